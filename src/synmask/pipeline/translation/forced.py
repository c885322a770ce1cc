"""Forced decoding: the probability that a model gives to a translation."""

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_lines
from synmask.pipeline.translation.dataset import AnnotatedPairs
from synmask.pipeline.translation.inputs import encode_lines, inference_batches

# Those of evaluation.sentences.PROBABILITY, as a test says: by an import, a change there would decode again.
FORCED_COLUMNS = ["log_probability", "tokens"]


def encode_references(path: Path, model: Any, task: Any, sentences: int) -> list[torch.Tensor]:
    """The ids of reference translations in BPE, with `</s>`.

    Raises:
        UserError: there are not as many lines as `sentences`; or as `inputs.encode_lines` does.
    """
    references = encode_lines(read_lines(path), model.max_decoder_positions(), task.tgt_dict, name=path)
    if len(references) != sentences:
        raise UserError(f"{path}: {len(references)} lines for {sentences} sentences; prepare the text again")
    return references


@torch.inference_mode()
def log_probabilities(model: Any, pairs: AnnotatedPairs, max_tokens: int) -> list[float]:
    """The sum of the natural log-probabilities of each target sentence's sub-words and `</s>`."""
    log_probs = [0.0] * len(pairs)
    for batch in inference_batches(pairs, model, max_tokens):
        logits, _ = model(**batch["net_input"])  # (B, m, V)
        target = batch["target"]
        kwargs = {"reduction": "none", "ignore_index": pairs.tgt_dict.pad()}
        losses = F.cross_entropy(logits.flatten(0, 1).float(), target.flatten(), **kwargs)
        sums = -losses.view(target.shape).double().sum(dim=1)
        for number, value in zip(batch["id"].tolist(), sums.tolist(), strict=True):
            log_probs[number] = round(value, 4) + 0.0  # no -0
    return log_probs
