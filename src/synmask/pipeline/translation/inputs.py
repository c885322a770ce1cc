"""Sub-words as a model's input: ids, and batches of them."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import utils
from fairseq.data import Dictionary

from synmask.pipeline.errors import UserError
from synmask.pipeline.text.notation import reserved_fault
from synmask.pipeline.training.binarise import encode_line
from synmask.pipeline.translation.dataset import AnnotatedPairs

MAX_BATCH_SENTENCES = 128  # per batch: what a step computes then fits into a CPU's caches


def encode_lines(
    lines: Iterable[str], limit: int, dictionary: Dictionary, first: int = 1, name: Path | None = None
) -> list[torch.Tensor]:
    """Lines in BPE as ids.

    Args:
        limit: the maximum number of ids of a line, with `</s>`.
        first: the number of the first line, and `name` the lines' file, for messages.
    Raises:
        UserError: a line is too long, or would be misread.
    """
    sentences = []
    for number, line in enumerate(lines, start=first):
        where = f"{name}, line {number}" if name else f"line {number}"
        if fault := reserved_fault([piece for piece in line.split(" ") if piece]):
            raise UserError(f"{where}: {fault}; give raw text to `synmask translate`")
        sentences.append(encode_line(line, dictionary).long())
        if len(sentences[-1]) > limit:
            raise UserError(f"{where}: longer than {limit} sub-words; split the sentence")
    return sentences


def report_unknown_words(lines: Iterable[str], dictionary: Dictionary, first: int = 1) -> None:
    """Report the lines in BPE where half of the words or more have sub-words that the dictionary lacks.

    Args:
        first: the number of the first line.
    """
    unknown = []
    for number, line in enumerate(lines, start=first):
        words = [word.split("\t") for word in line.replace("@@ ", "@@\t").split(" ") if word]
        strange = sum(not dictionary.indices.keys() >= {*pieces} for pieces in words)
        if 2 * strange >= max(len(words), 1):
            unknown.append(str(number))
    if unknown:
        which = ", ".join([*unknown[:5], *["…"][: len(unknown) > 5]])
        message = "half of the words or more have parts that the training text lacks; the result says little"
        print(f"line {which}: {message}", file=sys.stderr)


def inference_batches(
    sources: AnnotatedPairs, model: Any, max_tokens: int, *, least: int = 1, equal_lengths: bool = False
) -> Iterator[dict[str, Any]]:
    """Batches of sentences of similar (or equal) length, with `</s>` at `least`, on the model's device.

    Each sentence is a batch of its own if others would affect the model's output for it.
    """
    order = np.argsort(sources.src_sizes, kind="stable")
    order = order[sources.src_sizes[order] >= least]
    if not len(order):
        return
    limit = max(max_tokens, int(np.max(sources.sizes)))  # also those of targets, if there are any
    most = 1 if sources.mixes else MAX_BATCH_SENTENCES
    device = next(model.parameters()).device
    borders = np.flatnonzero(np.diff(sources.src_sizes[order])) + 1 if equal_lengths else []
    for group in np.split(order, borders):
        for indices in sources.batch_by_size(group, max_tokens=limit, max_sentences=most):
            batch = sources.collater([sources[i] for i in indices])
            yield utils.move_to_cuda(batch) if device.type == "cuda" else batch
