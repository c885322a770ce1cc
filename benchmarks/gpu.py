"""All measurements on a GPU: the distribution, steps of all systems, decoding, whole trainings.

    make gpu-report
    python benchmarks/gpu.py --output docs/gpu --configfile mine.yaml     # mine.yaml: mirrors, say

Writes docs/gpu.md and docs/gpu.csv; meant to take at most 25 minutes on an H100 (it has not run on one yet).
Each part has a process of its own: one that fails is named in the report and makes the exit status 1, and the
others go on. The workflow trains 10 models of multi30k-small, which share the GPU; start MPS before
(docs/performance.md). With --small, every part runs in a small form, also without a GPU: a test does that.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

import pandas as pd
import torch

import machine
from decoding import compare
from distribution import BATCHES, TOKENS, dependency_distribution, measure
from steps import STOCK
from synmask.pipeline.files import read_lines
from training import costs as costs_of_training

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TRANSLATION = (
    "transformer", "transformer-mask", "transformer-mlm", "pascal", "lisa", "st-nmt", "distance", "lpsi",
    "lpsi-sync", "structformer", "grammar-nobpe", "grammar-noattention", "grammar-residual", "grammar-mended",
    "grammar-nomlm", "grammar",
)  # fmt: skip


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    lengths: tuple[int, ...] = (8, 16, 32, 64, 128, 256, 512)  # tokens per sentence, of the distribution
    corpora: tuple[str, ...] = ("iwslt14", "nc11", "aspec")  # whose model sizes
    batch: tuple[int, int] = (128, 32)  # sentences, tokens per sentence
    systems: tuple[str, ...] = TRANSLATION
    precisions: tuple[str, ...] = ("fp32", "bf16", "fp16")
    compiled: tuple[str, ...] = ("transformer", "grammar")  # systems
    backend: str = "inductor"  # of torch.compile
    steps: int = 5
    sentences: int = 1000  # to decode
    turns: int = 3  # of decoding
    corpus: str = "multi30k-small"  # of the trainings, which share one GPU, since it asks for none of its own
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)  # of the trainings


FULL = Size()
SMALL = Size(
    lengths=(4,),
    corpora=("demo",),
    batch=(2, 6),
    systems=("transformer", "grammar"),
    precisions=("fp32", "bf16"),  # CPUs do not train in fp16
    compiled=("transformer",),  # tracing takes most of the time of all parts
    backend="eager",
    steps=1,
    sentences=20,
    turns=1,
    corpus="demo",
    seeds=(1,),
)


def distribution(size):
    """Time and memory of P_D, also compiled and by Triton, and of its literal form."""
    compiled = torch.compile(dependency_distribution, backend=size.backend)
    rows = []
    for n in size.lengths:
        batch = BATCHES.get(n, max(1, TOKENS // n)) if size is FULL else 2
        kinds = {"eager": dependency_distribution, "compiled": compiled}
        if DEVICE == "cuda" and n <= 64:  # the longest sentences that they take
            kinds["Triton"] = dependency_distribution
        for kind, ours in kinds.items():
            use_triton(kind == "Triton")
            rows.append({"kind": kind} | measure(n, batch, DEVICE, ours))
    return rows


def use_triton(switch):
    """Switch Triton's kernels of P_D on or off, in this process."""
    os.environ["SYNMASK_TRITON"] = str(int(switch))


def training(size, corpus, precision, backend=None, triton=False):
    """Steps of translation systems at a corpus's model size, and of stock fairseq."""
    use_triton(triton)
    systems = size.compiled if backend or triton else size.systems
    kwargs = {"device": DEVICE, "precision": precision, "backend": backend}
    found = costs_of_training((STOCK, *systems), corpus, *size.batch, size.steps, **kwargs)
    return [asdict(cost) for cost in found]


def workflow(size, configfile):
    """Whole trainings by Snakemake: scores, and the speed of each while all share the GPU."""
    systems = ("transformer", "grammar")
    experiment = {"title": "On a GPU", "corpus": size.corpus, "directions": ["de-en"], "systems": systems}
    experiment |= {"seeds": size.seeds, "tables": ["translation"]}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as overlay:
        json.dump({"experiments": {"gpu": experiment}}, overlay)
        overlay.flush()
        files = [*([configfile] if configfile else []), overlay.name]
        words = ["snakemake", "results/tables/gpu.md", "--cores", str(os.cpu_count()), "--configfile", *files]
        subprocess.run(words, check=True)
    rows = []
    for system, seed in itertools.product(systems, size.seeds):
        run = json.loads((runs(size) / system / f"seed{seed}/scores.json").read_text())
        keys = "system", "seed", "train_seconds", "tokens_per_second", "device"
        rows.append({key: run[key] for key in keys} | run["scores"]["test"])
    return rows


def decoding(size):
    """Our beam search and fairseq's, with the workflow's models."""
    lines = list(read_lines(runs(size) / "bpe/test.de"))[: size.sentences]
    models = [runs(size) / system / "seed1/average.pt" for system in ("transformer", "grammar")]
    return [row for model in models for row in compare(model, lines, tokens=8000, beam=5, turns=size.turns)]


def runs(size):
    """The folder of the workflow's runs."""
    return Path("results", size.corpus, "de-en")


def parts(size, configfile):
    """Title, function and arguments of each part, in order."""
    yield "The distribution P_D, forward and backward", distribution, (size,)
    for corpus in size.corpora:
        for precision in size.precisions:
            yield f"Training steps, {corpus}, {precision}", training, (size, corpus, precision)
    compiled = size.corpora[0], "fp32", size.backend
    yield f"Training steps, {size.corpora[0]}, fp32, compiled", training, (size, *compiled)
    if DEVICE == "cuda":
        kernels = size.corpora[0], "fp32", None, True
        yield f"Training steps, {size.corpora[0]}, fp32, P_D by Triton", training, (size, *kernels)
    yield f"The workflow on {size.corpus}", workflow, (size, configfile)
    yield "Beam search", decoding, (size,)


def attempt(function, arguments):
    """The rows of a part, or its error in one line. It has a process of its own, which may die.

    CUDA does not survive a fork; without it, a fork saves the seconds of the imports.
    """
    context = get_context("spawn" if DEVICE == "cuda" else "fork")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        try:
            return pool.submit(function, *arguments).result(), ""
        except Exception as error:  # the report names it
            message = " ".join(str(error).split())[:200]
            return [], f"{type(error).__name__}: {message}"


def markdown(rows):
    """The rows as a table; numbers with four digits."""
    frame = pd.DataFrame(rows)
    cells = frame.map(lambda cell: f"{cell:,.4g}" if isinstance(cell, float) else str(cell))
    lines = [list(frame.columns), ["---"] * len(frame.columns), *cells.to_numpy().tolist()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main():
    """Measure all parts, and write the report after each, so that none is lost."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, required=True, help="prefix of .md and .csv")
    parser.add_argument("--configfile", type=Path, help="laid over config.yaml for the workflow")
    parser.add_argument("--small", action="store_true", help="a small form of every part")
    args = parser.parse_args()
    if DEVICE == "cpu" and not args.small:
        sys.exit("gpu.py: PyTorch sees no GPU here; --small tries everything on a CPU")
    where = machine.name(DEVICE)
    setting = machine.described("torch", "fairseq", device=DEVICE)
    page = [f"# Measured on {where}\n\nBy `{' '.join(['python', *sys.argv])}`, on {setting}.\n"]
    table, failed = [], 0
    for title, function, arguments in parts(SMALL if args.small else FULL, args.configfile):
        start = time.perf_counter()
        rows, error = attempt(function, arguments)
        taken = f"{time.perf_counter() - start:.0f} s"
        print(f"{title}: {error or 'done'}, {taken}", file=sys.stderr, flush=True)
        page.append(f"## {title}\n\n{f'Failed: {error}' if error else markdown(rows)}\n\nTook {taken}.\n")
        table += [{"part": title} | row for row in rows]
        failed += bool(error)
        args.output.with_suffix(".md").write_text("\n".join(page))
        pd.DataFrame(table).to_csv(args.output.with_suffix(".csv"), index=False)
    sys.exit(min(failed, 1))


if __name__ == "__main__":
    main()
