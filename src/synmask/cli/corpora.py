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
        verbs,
        "download",
        _download,
        "Fetch one file of a corpus, checked and whole or not at all; an interrupted download goes on.",
    )
    option("name", "the corpus' name, for messages", type=str)
    option("url", "where its publisher keeps it", type=str)
    option("output", "where it goes")
    option("sha256", "its checksum", type=str, default=None)
    option("mirror", "folder or URL that holds the file instead", type=str, default=None)

    option = add(
        verbs, "text", _text, "Check two aligned raw files (.gz or plain) and write them as clean plain text."
    )
    option("name", "the corpus' name, for messages", type=str)
    for side in ("source", "target"):
        option(f"{side}-in", f"raw {side} text")
        option(f"{side}-out", f"plain {side} text")


def _demo_corpus(a: Arguments) -> None:
    from synmask.corpora.demo import write_corpus

    sizes = dict(a.settings)
    write_corpus(a.output, seed=sizes.pop("seed"), sizes=sizes)


def _download(a: Arguments) -> None:
    from synmask.corpora.download import fetch

    fetch(a.name, a.url, a.output, sha256=a.sha256, mirror=a.mirror)


def _text(a: Arguments) -> None:
    from synmask.corpora.plain import write_pair

    count = write_pair(a.source_in, a.target_in, a.source_out, a.target_out, a.name)
    print(f"{a.name}: {count:,} pairs", file=sys.stderr)
