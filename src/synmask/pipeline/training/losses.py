"""Masked tokens, and sums for fairseq's meters: parts of all training objectives."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from fairseq import utils
from fairseq.criterions import FairseqCriterion
from fairseq.data import data_utils
from fairseq.logging import metrics
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


class LoggedLoss(FairseqCriterion):
    """A criterion that logs sums; fairseq's meters get their means over all workers.

    `losses` are divided by the sample size, and mlm_loss by the number of masked tokens, if there are any.
    """

    losses: ClassVar[tuple[str, ...]]

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict]) -> None:
        """Pass the means and the number of tokens to the meters."""

        def total(key: str) -> Any:
            return sum(log.get(key, 0) for log in logging_outputs)

        size, masked = total("sample_size"), utils.item(total("masked"))
        for loss in cls.losses:
            metrics.log_scalar(loss, total(loss) / max(1, size), size)  # 0: nothing was masked
        metrics.log_scalar("ntokens", total("ntokens"), 1)
        if masked:
            metrics.log_scalar("mlm_loss", total("mlm_loss") / masked, masked)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """True: the logged values are sums, so workers exchange one number each."""
        return True
