"""Time and memory of each step with ever larger corpora, up to the paper's largest, ASPEC: 672,000 pairs.

    python benchmarks/scale.py --mirror FOLDER
    python benchmarks/scale.py --mirror FOLDER --pairs 84000 168000 --corpus aspec --updates 200

FOLDER has Multi30k's train.*.gz and val.*.gz (docs/corpora.md). Training pairs are drawn with replacement. Of
the words drawn, one in twelve is replaced by another word of the text, and one in a hundred by a new one, so
that vocabulary, sentences and pairs of symbols grow with the text, as in real text.

Steps up to "binarise" are the workflow's commands, with multi30k-small's settings, one thread each. "start"
is all that a training of `--system` at the size of `--corpus` does before its first update, with Python's
start: checks, data, model, and the order of the first epoch's batches. An update should cost the same with
any corpus. "decode" translates the corpus' first 2,000 lines with the model after these updates: after few,
most translations have the greatest length. Prints CPU seconds (user and system) and peak memory; --output
draws them, too.
"""

import argparse
import gzip
import json
import resource
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import machine
from growth import ROOT, draw, run

SOURCE, TARGET = LANGUAGES = ("en", "de")
PAPER = [84_000, 168_000, 336_000, 672_000]
OTHER, NEW = 1 / 12, 1 / 100  # shares of words
DECODED = 2000  # lines
LETTERS = [*"enirstadhulcgmobwfkzpv"]


def write_text(mirror: Path, pairs: int, folder: Path) -> None:
    """FOLDER/train.LANGUAGE with as many pairs, and FOLDER/valid.LANGUAGE."""
    folder.mkdir()
    random = np.random.default_rng(1)
    chosen: np.ndarray | None = None
    for language in LANGUAGES:
        lines = [line.split() for line in _lines(mirror / f"train.{language}.gz")]
        words = [word for line in lines for word in line]
        chosen = random.integers(len(lines), size=pairs) if chosen is None else chosen
        with open(folder / f"train.{language}", "w", encoding="utf-8") as out:
            for number in chosen:
                out.write(" ".join(_changed(lines[number], words, random)) + "\n")
        valid = _lines(mirror / f"val.{language}.gz")
        (folder / f"valid.{language}").write_text("\n".join(valid) + "\n", encoding="utf-8")


def _lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()


def _changed(line: list[str], words: list[str], random: np.random.Generator) -> list[str]:
    changed, fate = list(line), random.random(len(line))
    for place in np.flatnonzero(fate < OTHER):
        changed[place] = words[random.integers(len(words))]
    for place in np.flatnonzero(fate > 1 - NEW):
        changed[place] = "".join(random.choice(LETTERS, random.integers(4, 12)))
    return changed


def preparing(place: Path) -> dict[str, list[list[str]]]:
    """The commands of each step from text to binarised data, in their order."""
    from synmask.pipeline.config.loading import load, project_files, read_all

    corpus = load(read_all(project_files(ROOT))).corpora["multi30k-small"]
    ways = {"lowercase", "tokeniser"}
    settings = ["--settings", corpus.text.model_dump_json(include=ways)]
    limits = ["--settings", corpus.text.model_dump_json(exclude=ways)]
    text, tokens, clean, bpe = (place / name for name in ("text", "tokens", "clean", "bpe"))
    for folder in (tokens, clean, bpe, place / "bin"):
        folder.mkdir()
    files = [(f"{split}.{language}", language) for split in ("train", "valid") for language in LANGUAGES]
    both = [f"train.{language}" for language in LANGUAGES]
    sides = dict(zip(("source", "target"), both, strict=True))
    cleaning = [word for side, name in sides.items() for word in (f"--{side}-in", f"{tokens}/{name}")]
    cleaning += [word for side, name in sides.items() for word in (f"--{side}-out", f"{clean}/{name}")]
    codes, vocabularies = bpe / "codes", [f"{bpe}/vocabulary.{language}" for language in LANGUAGES]
    learning = ["--inputs", *(f"{clean}/{name}" for name in both), "--codes", f"{codes}"]
    cut = ["--codes", f"{codes}", "--vocabulary-threshold", f"{corpus.bpe.vocabulary_threshold}"]
    steps = {"tokenise": [], "clean": [["clean", *cleaning, "--kept", f"{clean}/kept", *limits]]}
    learn = ["learn-bpe", *learning, "--vocabularies", *vocabularies, "--merges", f"{corpus.bpe.merges}"]
    steps |= {"learn BPE": [learn], "apply BPE": []}
    for name, language in files:
        work = ["--input", f"{text}/{name}", "--output", f"{tokens}/{name}", "--language", language]
        steps["tokenise"].append(["tokenise", *work, *settings, "--threads", "1"])
        work = ["--input", f"{clean if name in both else tokens}/{name}", "--output", f"{bpe}/{name}", *cut]
        work += ["--vocabulary", f"{bpe}/vocabulary.{language}", "--threads", "1"]
        steps["apply BPE"].append(["apply-bpe", *work])
    where = ["--text", f"{bpe}", "--output", f"{place}/bin", "--source", SOURCE, "--target", TARGET]
    return steps | {"binarise": [["binarise", *where]]}


def training(data: Path, place: Path, corpus: str, system: str, updates: int) -> None:
    """Start a training, take some updates, write `data`/model.pt, and print the costs as JSON."""
    from synmask.pipeline.config.loading import load, project_files, read_all
    from synmask.pipeline.training.memory import save_memory
    from synmask.pipeline.translation.average import ModelText, save_model
    from synmask.pipeline.translation.train import Translation  # isort: split

    import torch
    from fairseq.data import iterators

    torch.set_num_threads(1)
    save_memory()
    config = load(read_all(project_files(ROOT)))
    direction = "-".join(config.corpora[corpus].languages[:2])
    stage = Translation(config.run_settings(corpus, direction, system), 1, data, SOURCE, TARGET, 1, {})
    stage.check()
    trainer = stage.trainer(stage.config(place, 1))
    epoch = trainer.get_train_iterator(1)
    trainer.begin_epoch(1)
    groups = iter(iterators.GroupedIterator(epoch.next_epoch_itr(), 1))
    first, started = next(groups), time.process_time()
    found = {"seconds": started, "memory": _peak()}
    seconds = []
    for samples in [first, *(next(groups) for _ in range(updates))]:
        before = time.process_time()
        trainer.train_step(samples)
        seconds.append(time.process_time() - before)
    found |= {"update": statistics.median(seconds[1:] or seconds), "most": _peak()}
    how = {"source": SOURCE, "target": TARGET, "codes": (data.parent / "bpe/codes").read_text("utf-8")}
    kept = {"tokeniser": "moses", "lowercase": True}  # multi30k-small's, as for the other steps
    text = ModelText(**kept, **how, vocabulary=None)
    save_model(data / "model.pt", trainer.model.state_dict(), data, text, stage.settings)
    print(json.dumps(found))


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(mirror: Path, pairs: int, words: list[str]) -> list[dict]:
    """A row for each step with a corpus of so many pairs; they are printed, too."""
    rows = []

    def note(step: str, seconds: float, memory: float) -> None:
        print(f"| {pairs:,} | {step} | {seconds:.1f} | {memory:,.0f} |", flush=True)
        rows.append({"pairs": pairs, "step": step, "seconds": seconds, "memory": memory})

    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        write_text(mirror, pairs, place / "text")
        for step, commands in preparing(place).items():
            spent = [run(["-m", "synmask.pipeline.cli", *command]) for command in commands]
            note(step, sum(seconds for seconds, *_ in spent), max(memory for _, memory, _ in spent))
        *_, last = run([__file__, "--train", f"{place}/bin", *words])[2].splitlines()
        found = json.loads(last)
        note("start", found["seconds"], found["memory"])
        note("an update", found["update"], found["most"])
        lines = (place / f"bpe/train.{SOURCE}").read_text(encoding="utf-8").split("\n")[:DECODED]
        (place / "lines").write_text("\n".join(lines) + "\n", encoding="utf-8")
        files = ["--inputs", f"{place}/lines", "--outputs", f"{place}/out"]
        how = ["--settings", json.dumps({"beam": 5, "length_penalty": 1.0, "max_tokens": 8000})]
        seconds, memory, _ = run(
            ["-m", "synmask.pipeline.cli", "decode", "--model", f"{place}/bin/model.pt", *files, *how]
        )
        note("decode", seconds, memory)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mirror", type=Path, help="folder of Multi30k's files")
    parser.add_argument("--pairs", type=int, nargs="+", default=PAPER)
    parser.add_argument("--corpus", default="multi30k-small", help="whose model size and batches")
    parser.add_argument("--system", default="grammar")
    parser.add_argument("--updates", type=int, default=5)
    parser.add_argument("--output", type=Path, help="the figure, without its ending")
    parser.add_argument("--train", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.train:
        with tempfile.TemporaryDirectory() as place:
            return training(args.train, Path(place), args.corpus, args.system, args.updates)
    if args.mirror is None:
        parser.error("give --mirror")
    words = ["--corpus", args.corpus, "--system", args.system, "--updates", str(args.updates)]
    print(machine.described("torch", "fairseq"), end="\n\n")
    print("| pairs | step | CPU s | MB |\n|---:|---|---:|---:|")
    rows = [row for pairs in args.pairs for row in measured(args.mirror, pairs, words)]
    if args.output:
        draw(pd.DataFrame(rows), "pairs", "step", args.output)


if __name__ == "__main__":
    main()
