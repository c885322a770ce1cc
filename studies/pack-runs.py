#!/usr/bin/env python3
"""Pack what studies/verdict.py reads of the runs below results/CORPUS, without a word of the corpus' text.

    studies/pack-runs.py results/multi30k-small studies/multi30k/runs.tar.xz

Of each run: scores, history, settings, translations, and trees as distances between sub-words
and heads of words, without these. Files of a kind stand side by side: that halves the archive.
"""

import io
import json
import lzma
import sys
import tarfile
from pathlib import Path

from synmask.pipeline.paths import RUN, existing, fill

KEPT = {
    "scores.json", "train.json", "history.csv", "hypothesis.valid.txt", "hypothesis.test.txt", "parse.json",
    "sentences.csv", "parse_counts.json", "heads.json",
}  # fmt: skip
TREES, WORDLESS = "trees.jsonl", "trees.wordless.jsonl"
XZ = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 1 << 27}]


def wordless(trees: bytes) -> bytes:
    """Of each sentence the distances, to six digits (three make ties), and the heads, if there are any."""
    lines = []
    for tree in map(json.loads, trees.decode().splitlines()):
        kept = {"distances": [round(distance, 6) for distance in tree["distances"]]}
        kept |= {"heads": tree["heads"]} if tree.get("heads") else {}
        lines.append(json.dumps(kept, separators=(",", ":")) + "\n")
    return "".join(lines).encode()


def pack(corpus: Path, out: Path) -> None:
    """Write the archive, whose bytes depend on the files alone."""
    runs = existing(fill(RUN, corpus=corpus.name), corpus.parent)
    files = [run / name for run in runs for name in {*KEPT, TREES, WORDLESS} if (run / name).exists()]
    with lzma.open(out, "wb", filters=XZ) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for path in sorted(files, key=lambda path: (path.name, path)):
            content, name = path.read_bytes(), str(path.relative_to(corpus.parent))
            if path.name == TREES:
                content, name = wordless(content), name.replace(TREES, WORDLESS)
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


if __name__ == "__main__":
    if len(sys.argv) != 3 or not Path(sys.argv[1]).is_dir():
        sys.exit(f"usage: {sys.argv[0]} RESULTS/CORPUS ARCHIVE")
    pack(Path(sys.argv[1]).absolute(), Path(sys.argv[2]))
