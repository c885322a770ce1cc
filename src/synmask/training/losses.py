"""What the objectives of all trainings share: how their sums reach fairseq's meters."""

from typing import Any, ClassVar

from fairseq import utils
from fairseq.criterions import FairseqCriterion
from fairseq.logging import metrics


class LoggedLoss(FairseqCriterion):
    """A criterion that logs sums, of which fairseq's meters get the means over all workers.

    Those are `losses` over the sample size, and mlm_loss over the masked tokens, where there are any.
    """

    losses: ClassVar[tuple[str, ...]]

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict]) -> None:
        """Hand the means to the meters, and the number of tokens."""

        def total(key: str) -> Any:
            return sum(log.get(key, 0) for log in logging_outputs)

        size, masked = total("sample_size"), utils.item(total("masked"))
        for loss in cls.losses:
            metrics.log_scalar(loss, total(loss) / size, size)
        metrics.log_scalar("ntokens", total("ntokens"), 1)
        if masked:
            metrics.log_scalar("mlm_loss", total("mlm_loss") / masked, masked)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """The logged values are sums, so that workers need to exchange one number each."""
        return True
