"""Masked tokens, and the sums that losses log: parts of all training objectives."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import data_utils
from torch import Tensor

Sums = dict[str, Any]  # numbers and tensors () by their names


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


def add_sums(totals: Sums, sums: Sums) -> None:
    """Add sums to the totals of an epoch, tensors in float64."""
    for name, value in sums.items():
        value = value.double() if torch.is_tensor(value) else value
        totals[name] = totals[name] + value if name in totals else value


def mean_losses(sums: Sums) -> dict[str, float]:
    """The losses ("loss", "nll_loss", …) per unit of the sample size; mlm_loss per masked token, if any."""
    values = {name: float(value) for name, value in sums.items()}
    size, masked = max(1.0, values["sample_size"]), values.get("masked", 0.0)
    losses = {
        name: value / size for name, value in values.items() if name.endswith("loss") and name != "mlm_loss"
    }
    return losses | ({"mlm_loss": values["mlm_loss"] / masked} if masked else {})
