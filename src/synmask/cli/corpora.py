"""Where text comes from."""

import argparse
import json
import sys

from synmask.cli.options import Arguments, add


def add_verbs(verbs: argparse._SubParsersAction) -> None:
    option = add(
        verbs, "demo-corpus", _demo_corpus, "Generate the demo corpus with its gold trees and heads."
    )
    option("output", "folder for {train,valid,test}.{de,en}, .trees and .heads")
    option(
        "settings",
        'sizes and seed: \'{"seed": 1, "train": 8000, "valid": 400, "test": 400}\'',
        type=json.loads,
    )

    option = add(
        verbs, "demo-task", _demo_task, "Generate a task of language understanding from the demo's grammar."
    )
    option("task", "acceptability, paraphrase, entailment or similarity", type=str)
    option("part", "train or dev", type=str)
    option("settings", 'sizes and seed: \'{"seed": 1, "train": 3000, "dev": 500}\'', type=json.loads)
    option("output", "TSV: sentence1, sentence2 if there are two, label")
    option(
        "parses", "prefix: also makes PREFIX.text, .tokens, .trees and .heads of its sentences", default=None
    )

    option = add(
        verbs,
        "download",
        _download,
        "Fetch one file of a corpus, checked and whole or not at all; an interrupted download goes on.",
    )
    option("name", "the corpus' name, for messages", type=str)
    option("url", "where its publisher keeps it; without it there must be a mirror", type=str, default=None)
    option("output", "where it goes")
    option("sha256", "its checksum", type=str, default=None)
    option("mirror", "folder or URL that holds the file instead", type=str, default=None)

    option = add(
        verbs,
        "prepare",
        _prepare,
        "Write plain parallel text from a publisher's archives, as the paper's corpora need it; all checked.",
    )
    option("name", "the corpus' name, for messages", type=str)
    option("format", "iwslt14, nc11 or aspec", type=str)
    option("archives", "its files", nargs="+")
    option("output", "folder for {train,valid,test}.LANGUAGE")
    option(
        "pairs", 'pairs that there should be: \'{"train": [230000, 238000], "test": 2999}\'', type=json.loads
    )
    option("threads", "processes", type=int, default=1)

    option = add(
        verbs, "text", _text, "Check two aligned raw files (.gz or plain) and write them as clean plain text."
    )
    option("name", "the corpus' name, for messages", type=str)
    for side in ("source", "target"):
        option(f"{side}-in", f"raw {side} text")
        option(f"{side}-out", f"plain {side} text")
    option("pairs", "how many pairs there should be: 1000, or [990, 1010]", type=json.loads, default=None)

    option = add(
        verbs, "glue", _glue, "Write one part of a GLUE task as TSV; columns, labels and rows checked."
    )
    option("task", "cola, sst-2, mnli, qnli, rte, mrpc, qqp or sts-b", type=str)
    option("part", "train or dev; of mnli train, dev_matched or dev_mismatched", type=str)
    option("sources", "its archive (of mrpc its two files), or the folder with its PART.tsv", nargs="+")
    option("output", "TSV: sentence1, sentence2 if there are two, label")
    option("rows", "how many there must be", type=int)


def _demo_corpus(a: Arguments) -> None:
    from synmask.corpora.demo import write_corpus

    sizes = dict(a.settings)
    write_corpus(a.output, seed=sizes.pop("seed"), sizes=sizes)


def _demo_task(a: Arguments) -> None:
    from synmask.corpora.demo.tasks import write_part

    sizes = dict(a.settings)
    write_part(a.task, a.part, a.output, seed=sizes.pop("seed"), sizes=sizes, parses=a.parses)


def _download(a: Arguments) -> None:
    from synmask.corpora.download import fetch

    fetch(a.name, a.url, a.output, sha256=a.sha256, mirror=a.mirror)


def _text(a: Arguments) -> None:
    from synmask.corpora.plain import write_pair

    split = a.source_out.stem
    count = write_pair(
        a.source_in, a.target_in, a.source_out, a.target_out, a.name, split=split, expected=a.pairs
    )
    print(f"{a.name}: {count:,} pairs", file=sys.stderr)


def _prepare(a: Arguments) -> None:
    from synmask.corpora.prepare import prepare

    counts = prepare(a.name, a.format, a.archives, a.output, pairs=a.pairs, threads=a.threads)
    said = ", ".join(f"{split} {count:,}" for split, count in counts.items())
    print(f"{a.name}: pairs: {said}", file=sys.stderr)


def _glue(a: Arguments) -> None:
    from synmask.corpora.glue import write_part

    dropped = write_part(a.task, a.part, a.sources, a.output, a.rows)
    print(f"glue: {a.task} {a.part}: {a.rows:,} rows, {dropped} odd ones dropped", file=sys.stderr)
