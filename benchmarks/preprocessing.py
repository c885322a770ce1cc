"""Lines per second of each stage of preprocessing, beside the library that it calls, used directly.

    python benchmarks/preprocessing.py --text train.de.gz train.en.gz

The text is German and English, such as Multi30k's. A line is one sentence in one language. Each stage reads
what the stage before it wrote. The libraries run in one process, as a plain loop over the lines of a file,
and must write the same bytes as we do, but for tokens (see text/tokenise.py). One process is timed by its CPU
time, to be fair on a busy machine, several by the clock; each time is the best of three, ours and the
library's in turn.
"""

import argparse
import contextlib
import io
import itertools
import logging
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sacremoses import MosesTokenizer
from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

from synmask.pipeline.corpora.plain import write_pair
from synmask.pipeline.training.binarise import binarise  # isort: split

from fairseq import options
from fairseq_cli import preprocess

import machine
from synmask.pipeline.config.sections import Lengths
from synmask.pipeline.files import read_lines, write_lines
from synmask.pipeline.text.bpe import apply_file, learn
from synmask.pipeline.text.clean import clean_files
from synmask.pipeline.text.labels import labels_of_ids
from synmask.pipeline.text.tokenise import tokenise_file

MERGES = 10_000
LANGUAGES = ("de", "en")


@dataclass
class Stage:
    name: str
    run: Callable[[Any, int], object]  # takes what `prepare` gives, and the number of processes
    parallel: bool = False
    library: str = "–"
    run_library: Callable[[Path, Path], object] | None = None  # reads from one folder, writes into the other
    outputs: tuple[str, ...] = ()  # the files that both write
    prepare: Callable[[Path], Any] = lambda folder: folder  # not timed


def pair(folder, name):
    return [folder / f"{name}.{language}" for language in LANGUAGES]


def tokenise(folder, threads):
    for language, raw, tokens in zip(LANGUAGES, pair(folder, "raw"), pair(folder, "tokens"), strict=True):
        tokenise_file(input=raw, output=tokens, language=language, threads=threads)


def tokenise_library(folder, output):
    for language, raw, tokens in zip(LANGUAGES, pair(folder, "raw"), pair(output, "tokens"), strict=True):
        moses = MosesTokenizer(language)
        with open(raw, encoding="utf-8") as lines, open(tokens, "w", encoding="utf-8") as handle:
            for line in lines:
                handle.write(moses.tokenize(line, return_str=True) + "\n")


def clean(folder, _):
    sides = [*zip(("source", "target"), pair(folder, "tokens"), pair(folder, "clean"), strict=True)]
    files = {f"{side}_in": tokens for side, tokens, _ in sides}
    files |= {f"{side}_out": kept for side, _, kept in sides}
    clean_files(**files, kept=folder / "kept", settings=Lengths())


def learn_library(folder, output):
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(open(path, encoding="utf-8")) for path in pair(folder, "clean")]
        handle = stack.enter_context(open(output / "codes", "w", encoding="utf-8"))
        stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        learn_bpe(itertools.chain(*files), handle, MERGES)


def apply(folder, threads):
    for text, split in zip(pair(folder, "clean"), pair(folder, "bpe"), strict=True):
        apply_file(input=text, output=split, codes=folder / "codes", threads=threads)


def apply_library(folder, output):
    for text, split in zip(pair(folder, "clean"), pair(output, "bpe"), strict=True):
        with (
            open(folder / "codes", encoding="utf-8") as codes,
            open(text, encoding="utf-8") as lines,
            open(split, "w", encoding="utf-8") as handle,
        ):
            bpe = BPE(codes)
            for line in lines:
                handle.write(bpe.process_line(line))


def as_ids(folder):
    """Every sentence as a fairseq data set holds it, and which symbols end in "@@"."""
    index = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    sentences = [
        np.array([index.setdefault(token, len(index)) for token in [*line.split(), "</s>"]], dtype=np.int32)
        for path in pair(folder, "bpe")
        for line in read_lines(path)
    ]
    return sentences, np.array([symbol.endswith("@@") for symbol in index])


def label(prepared, _):
    sentences, continues = prepared
    for ids in sentences:
        labels_of_ids(ids, continues)


def as_splits(folder):
    """The text as training text, beside one line to validate on."""
    (folder / "split").mkdir(exist_ok=True)
    for language, text in zip(LANGUAGES, pair(folder, "bpe"), strict=True):
        (folder / f"split/train.{language}").write_bytes(text.read_bytes())
        write_lines(folder / f"split/valid.{language}", ["a"])
    return folder


def binarise_library(folder, output):
    (output / "bin/dict.de.txt").unlink(missing_ok=True)  # fairseq refuses to write it again
    (output / "bin/dict.en.txt").unlink(missing_ok=True)
    words = ["--source-lang", "de", "--target-lang", "en", "--trainpref", folder / "bpe"]
    logging.disable(logging.INFO)
    parser = options.get_preprocessing_parser()
    preprocess.main(parser.parse_args([*map(str, words), "--destdir", str(output / "bin")]))


STAGES = [
    Stage("tokenise", tokenise, True, "sacremoses", tokenise_library),
    Stage("clean", clean),
    Stage(
        f"learn BPE, {MERGES} merges",
        lambda folder, _: learn(
            inputs=pair(folder, "clean"),
            codes=folder / "codes",
            vocabularies=[folder / "vocabulary.de", folder / "vocabulary.en"],
            merges=MERGES,
        ),
        library="subword-nmt",
        run_library=learn_library,
        outputs=("codes",),
    ),
    Stage("apply BPE", apply, True, "subword-nmt", apply_library, ("bpe.de", "bpe.en")),
    Stage("BPE labels", label, prepare=as_ids),
    Stage(
        "binarise",
        lambda folder, _: binarise(
            text=folder / "split", output=folder / "bin", source=LANGUAGES[0], target=LANGUAGES[1]
        ),
        library="fairseq-preprocess",
        run_library=binarise_library,
        outputs=tuple(f"bin/{name}" for name in ("dict.de.txt", "train.de-en.de.bin", "train.de-en.en.idx")),
        prepare=as_splits,
    ),
]


def seconds(clock, function, *arguments):
    start = clock()
    function(*arguments)
    return clock() - start


def measure(stage, folder, threads):
    """Seconds of the library (None without one), of us in one process, and in several (None if it cannot)."""
    output = folder / "library"
    output.mkdir(exist_ok=True)
    times = {"library": [], "one": [], "many": []}
    prepared = stage.prepare(folder)
    for _ in range(3):
        times["one"].append(seconds(time.process_time, stage.run, prepared, 1))
        if stage.parallel:
            times["many"].append(seconds(time.perf_counter, stage.run, prepared, threads))
        if stage.run_library:
            times["library"].append(seconds(time.process_time, stage.run_library, folder, output))
    for name in stage.outputs:
        assert (folder / name).read_bytes() == (output / name).read_bytes(), (
            f"{name} differs from the library's"
        )
    return [min(values, default=None) for values in times.values()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--text", type=Path, nargs=2, required=True, help="German and English, plain or .gz")
    parser.add_argument("--copies", type=int, default=6, help="how many times the text is repeated")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (source, target), once = args.text, pair(folder, "once")
        how = {"source_in": [source], "target_in": [target], "source_out": once[0], "target_out": once[1]}
        pairs = args.copies * write_pair(name="multi30k", **how)["pairs"]
        for once, raw in zip(pair(folder, "once"), pair(folder, "raw"), strict=True):
            write_lines(raw, list(read_lines(once)) * args.copies)
        lines = len(LANGUAGES) * pairs
        print(machine.described("sacremoses", "subword-nmt", "fairseq", threads=args.threads))
        print(f"{pairs} pairs, {lines} lines; lines/s (times the library's)\n")
        print(f"| stage | library | library alone | ours, 1 process | ours, {args.threads} processes |")
        print("|---|---|---:|---:|---:|")
        for stage in STAGES:
            library, *ours = measure(stage, folder, args.threads)
            cells = [f"{lines / library:,.0f}" if library else "–"]
            for time_taken in ours:
                speed = f"{lines / time_taken:,.0f}" if time_taken else "–"
                cells.append(f"{speed} ({library / time_taken:.2f}×)" if library and time_taken else speed)
            print("|", " | ".join([stage.name, stage.library, *cells]), "|")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
