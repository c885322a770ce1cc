"""Forced decoding: how probable a model finds given translations."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from synmask.pipeline.evaluation.sentences import PROBABILITY
from synmask.pipeline.files import UserError, read_lines
from synmask.pipeline.training.binarise import encode
from synmask.pipeline.translation.inputs import batches


def encoded_references(path: Path, model: Any, task: Any, sentences: int) -> list[torch.Tensor]:
    """The ids of reference translations in BPE, with `</s>`.

    Raises:
        UserError: there are not as many lines as `sentences`, or one is longer than the decoder reads.
    """
    references = [encode(line, task.tgt_dict).long() for line in read_lines(path)]
    if len(references) != sentences:
        raise UserError(f"{path}: {len(references)} lines for {sentences} sentences; prepare the text again")
    limit = model.max_decoder_positions()
    for number, ids in enumerate(references, start=1):
        if len(ids) > limit:
            raise UserError(f"{path}, line {number}: longer than {limit} sub-words; split the sentence")
    return references


@torch.inference_mode()
def log_probabilities(
    model: Any,
    task: Any,
    sentences: Sequence[torch.Tensor],
    references: Sequence[torch.Tensor],
    max_tokens: int,
    syntax: Sequence[np.ndarray] | None = None,
    templates: Sequence[torch.Tensor] | None = None,
) -> list[float]:
    """The sum of the natural log-probabilities of each reference's sub-words and `</s>`.

    Args:
        sentences, references: ids with `</s>`, (n,) and (m,) each.
        syntax, templates: of the sentences, if the model reads them.
    """
    found = [0.0] * len(sentences)
    pairs = task.sources(sentences, syntax, templates, references)
    for batch in batches(pairs, model, max_tokens):
        logits, _ = model(**batch["net_input"])  # (B, m, V)
        target = batch["target"]
        losses = F.cross_entropy(
            logits.flatten(0, 1).float(), target.flatten(), reduction="none", ignore_index=task.tgt_dict.pad()
        )
        sums = -losses.view(target.shape).double().sum(dim=1)
        for number, value in zip(batch["id"].tolist(), sums.tolist(), strict=True):
            found[number] = round(value, 4) + 0.0  # no -0
    return found


def write_probabilities(handle: Any, values: Sequence[float], references: Sequence[torch.Tensor]) -> None:
    """Write `PROBABILITY` of each reference as CSV."""
    rows = zip(values, map(len, references), strict=True)
    csv.writer(handle, lineterminator="\n").writerows([PROBABILITY, *rows])
