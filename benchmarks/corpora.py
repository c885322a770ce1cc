"""The cost of preparing and training with ever larger corpora: copies of Multi30k, in BPE.

    snakemake results/multi30k-small/en-de/bin/dict.en.txt && python benchmarks/corpora.py
    python benchmarks/corpora.py --copies 1 3 --updates 2 --output corpora

"binarise" is `synmask binarise`. "start" is all that a training does before its first update, with Python's
own start: checks, data, model, and the order of the first epoch's batches. An update of the `transformer` of
multi30k-small should cost the same with any corpus; its time is the median of some. Prints CPU seconds (user
and system) and peak memory; with --output also draws those of "binarise" and "start". Also prints the share
of pads in the first epoch's batches, and in as many batches of the corpus in its own order.
"""

import argparse
import json
import resource
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import pandas as pd

import machine
from growth import ROOT, draw, run

SOURCE, TARGET = "en", "de"


def grown(text: Path, copies: int, folder: Path) -> int:
    """Write the training text so many times, and the validation text → the number of pairs."""
    for language in (SOURCE, TARGET):
        whole = (text / f"train.{language}").read_text()
        (folder / f"train.{language}").write_text(whole * copies)
        shutil.copy(text / f"valid.{language}", folder)
    return whole.count("\n") * copies


def training(data: Path, place: Path, updates: int) -> None:
    """Start a training, take some updates, and print the costs as JSON."""
    from synmask.pipeline.config import load, project_files, read_all
    from synmask.pipeline.translation.train import Translation  # isort: split

    from fairseq.data import iterators

    config = load(read_all(project_files(ROOT)))
    settings = config.run_settings("multi30k-small", f"{SOURCE}-{TARGET}", "transformer")
    stage = Translation(settings, 1, data, SOURCE, TARGET, 1, {})
    stage.check()
    trainer = stage.trainer(stage.config(place, 1))
    epoch = trainer.get_train_iterator(1)
    trainer.begin_epoch(1)
    groups = iter(iterators.GroupedIterator(epoch.next_epoch_itr(), 1))
    first, started = next(groups), time.process_time()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = []
    for samples in [first, *(next(groups) for _ in range(updates))]:
        before = time.process_time()
        trainer.train_step(samples)
        seconds.append(time.process_time() - before)
    found = {"seconds": started, "memory": memory, "update": statistics.median(seconds[1:])}
    print(json.dumps(found | {"pads": pads(trainer, epoch)}))


def pads(trainer, epoch) -> tuple[float, float]:
    """The share of pads in an epoch's batches, and in as many batches of the corpus in its own order."""
    pairs = trainer.task.dataset("train")
    number = max(1, round(len(pairs) / len(epoch)))
    unsorted = [range(first, min(first + number, len(pairs))) for first in range(0, len(pairs), number)]
    shares = []
    for batches in (epoch.frozen_batches, unsorted):
        sides = [[sizes[list(batch)] for batch in batches] for sizes in (pairs.src_sizes, pairs.tgt_sizes)]
        whole = sum(len(batch) * int(batch.max()) for side in sides for batch in side)
        shares.append(1 - sum(int(batch.sum()) for side in sides for batch in side) / whole)
    return tuple(shares)


def measured(text: Path, copies: int, updates: int, place: Path) -> tuple[list[dict], dict]:
    """The rows of a corpus, and what its training printed."""
    for name in ("bpe", "bin"):
        (place / name).mkdir()
    pairs = grown(text, copies, place / "bpe")
    words = ["--text", str(place / "bpe"), "--source", SOURCE, "--target", TARGET]
    seconds, memory, _ = run(
        ["-m", "synmask.pipeline.cli", "binarise", *words, "--output", str(place / "bin")]
    )
    *_, last = run([__file__, "--train", str(place / "bin"), "--updates", str(updates)])[2].splitlines()
    found = json.loads(last)
    binarised = {"seconds": seconds, "memory": memory}
    started = {name: found[name] for name in binarised}
    rows = [{"pairs": pairs, "step": "binarise", **binarised}, {"pairs": pairs, "step": "start", **started}]
    return rows, found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--text", type=Path, default=ROOT / "results/multi30k-small/en-de/bpe")
    parser.add_argument("--copies", type=int, nargs="+", default=[1, 3, 6, 24])
    parser.add_argument("--updates", type=int, default=5)
    parser.add_argument("--output", type=Path, help="the figure, without its ending")
    parser.add_argument("--train", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.train:
        with tempfile.TemporaryDirectory() as place:
            return training(args.train, Path(place), args.updates)
    rows = []
    print(machine.described("torch", "fairseq"), end="\n\n")
    print("| pairs | binarise: CPU s | MB | start: CPU s | MB | s per update | pads | unsorted |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    for copies in args.copies:
        with tempfile.TemporaryDirectory() as place:
            each, found = measured(args.text, copies, args.updates, Path(place))
        rows += each
        cells = [f"{row['seconds']:.1f} | {row['memory']:,.0f}" for row in each]
        sorted_, unsorted = found["pads"]
        print(
            f"| {each[0]['pairs']:,} | {' | '.join(cells)} | {found['update']:.2f} | {sorted_:.1%} | "
            f"{unsorted:.1%} |",
            flush=True,
        )
    if args.output:
        draw(pd.DataFrame(rows), "pairs", "step", args.output)


if __name__ == "__main__":
    main()
