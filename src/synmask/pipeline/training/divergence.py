"""Whether a training learned anything: its perplexity beside that of word frequencies alone."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def divergence_summary(
    train: np.ndarray, valid: np.ndarray, perplexities: Sequence[float], final: int
) -> dict[str, Any]:
    """The keys of train.json that say whether a training learned anything; "diverged" is why it did not.

    Args:
        train, valid: as for `unigram_perplexity`; perplexities, final: as for `why_diverged`.
    """
    unigram = unigram_perplexity(train, valid)
    return {"unigram_ppl": round(unigram, 4), "diverged": why_diverged(perplexities, unigram, final)}


def unigram_perplexity(train: np.ndarray, valid: np.ndarray) -> float:
    """The perplexity of a unigram model, which knows nothing but frequencies, on the validation text.

    Each symbol's probability is its share of the training text, counted once more than it occurs (add-one),
    so that no symbol of the validation text has none.

    Args:
        train, valid: (V,) how often each symbol of the dictionary occurs, `</s>` once per sentence.
    """
    shares = (train + 1.0) / (train + 1.0).sum()
    return float(np.exp(-(valid * np.log(shares)).sum() / valid.sum()))


def why_diverged(perplexities: Sequence[float], unigram: float, final: int) -> str | None:
    """Why a training counts as diverged; None if it learned something, or there is no perplexity.

    Args:
        perplexities: on the validation text, one per epoch; unigram: that of `unigram_perplexity`.
        final: the last epoch, from 1, whose model is used.
    """
    if not perplexities:
        return None
    if not perplexities[final - 1] < unigram:
        return f"perplexity {perplexities[final - 1]:.4g}, word frequencies alone have {unigram:.4g}"
    if len(perplexities) > 1 and min(perplexities[1:]) >= perplexities[0]:
        return f"perplexity never below that of the first epoch, {perplexities[0]:.4g}"
    return None
