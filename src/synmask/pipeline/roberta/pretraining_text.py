"""Text as ids, for pre-training."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import torch

from synmask.pipeline.arguments import CountOption, OneOrMore
from synmask.pipeline.disk import whole_folder
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_lines
from synmask.pipeline.text import gpt2
from synmask.pipeline.training.binarise import read_dictionary, write_binary


def write_pretraining_text(
    *,
    train: OneOrMore[Path],
    valid: OneOrMore[Path],
    merges: CountOption,
    weights: Path,
    output: Path,
) -> None:
    """Learn a byte-level BPE in GPT-2's format from the training text, and write all text as its ids.

    Args:
        train: Plain text files to train on; an empty line, and the end of a file, ends a document.
        valid: Plain text files to validate on.
        merges: How many merge operations.
        weights: Output: folder for encoder.json, vocab.bpe and dict.txt.
        output: Folder for {train,valid}.{bin,idx}, for `pretrain`.

    Raises:
        UserError: a split has no text.
    """
    with whole_folder(weights, "pretraining-text") as folder:
        gpt2.learn_byte_bpe([line for path in train for line in read_lines(path)], merges, folder)
        encode_text(train, valid, folder, output)


def encode_text(train: Sequence[Path], valid: Sequence[Path], weights: Path, output: Path) -> None:
    """Write text as ids, by the vocabulary in `weights`; see `write_pretraining_text`.

    Pre-training fills its blocks with whole lines of one document (Liu et al. 2019, section 4.2,
    DOC-SENTENCES).
    """
    dictionary = read_dictionary(weights / "dict.txt")
    texts = {"train": _documents(train, "train"), "valid": _documents(valid, "valid")}
    for split, lines in texts.items():
        pieces = gpt2.encode_batch(lines, weights)
        rows = ([dictionary.index(str(piece)) for piece in row] + [dictionary.eos()] for row in pieces)
        write_binary(output / split, map(torch.tensor, rows), len(dictionary), split)


def _documents(paths: Sequence[Path], split: str) -> list[str]:
    """The lines of all files, with one empty line between two documents."""
    lines = (line for path in paths for line in (*read_lines(path), ""))
    documents = [list(group) for full, group in groupby(lines, lambda line: bool(line.strip())) if full]
    if not documents:
        raise UserError(f"{' '.join(map(str, paths))}: no text; give --{split} a file with some")
    return [line for document in documents for line in ("", *document)][1:]
