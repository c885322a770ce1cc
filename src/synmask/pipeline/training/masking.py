"""Masks of tokens that a language model predicts."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import data_utils
from torch import Tensor


def draw_mask(random: np.random.Generator, length: int, rate: float) -> Tensor:
    """(length,) bool: True, with probability `rate`, for tokens to mask."""
    return torch.from_numpy(random.random(length) < rate)


def collate_masked(
    samples: Sequence[Mapping[str, Any]], pad: int, *, left_pad: bool = False
) -> tuple[Tensor, Tensor]:
    """The masked positions (m,) in the flattened batch (B, n), and the original tokens there.

    Args:
        samples: each with "masked" (n,) bool and "unmasked" (n,), the original tokens.
    """
    masked = [sample["masked"].to(torch.uint8) for sample in samples]
    unmasked = [sample["unmasked"] for sample in samples]
    positions = data_utils.collate_tokens(masked, 0, left_pad=left_pad).view(-1).nonzero().view(-1)
    return positions, data_utils.collate_tokens(unmasked, pad, left_pad=left_pad).view(-1)[positions]
