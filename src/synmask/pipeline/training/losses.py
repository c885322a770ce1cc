"""The base of all training objectives: it passes their sums to fairseq's meters."""

from typing import Any, ClassVar

from fairseq import utils
from fairseq.criterions import FairseqCriterion
from fairseq.logging import metrics


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
