"""The training objective: translation loss, mixed with masked-language-model and guide losses."""

from typing import Any

from torch import Tensor, nn

from synmask.pipeline.training.losses import LoggedLoss
from synmask.pipeline.training.operators import smoothed_cross_entropy


class MixedLoss(LoggedLoss):
    """L = (1 − λ)·L_MT + λ·L_MLM (+ the guide's own loss): docs/method.md, "The objective".

    L_MT is summed over target tokens, L_MLM over masked tokens; fairseq's trainer divides both by the number
    of target tokens. Where nothing is masked, as in validation, the loss is L_MT. Logged in nats per token.
    """

    losses = ("loss", "nll_loss")

    def __init__(self, task: Any, label_smoothing: float, mlm_weight: float) -> None:
        super().__init__(task)
        self.label_smoothing = label_smoothing
        self.mlm_weight = mlm_weight

    def forward(self, model: nn.Module, sample: dict, reduce: bool = True) -> tuple[Tensor, int, dict]:
        """→ loss (a sum), sample size (target tokens), sums to log (nats)."""
        output = model(**sample["net_input"])
        loss, nll = smoothed_cross_entropy(
            output[0].flatten(0, 1), sample["target"].flatten(), self.label_smoothing, self.padding_idx
        )
        log = {
            "nll_loss": nll,
            "ntokens": sample["ntokens"],
            "nsentences": sample["nsentences"],
            "sample_size": sample["ntokens"],
        }
        # Both are always there: workers sum what they log in one buffer.
        if "mlm_logits" in output[1]:
            mlm, plain = smoothed_cross_entropy(output[1]["mlm_logits"], sample["masked_target"])
            loss = loss.lerp(mlm, self.mlm_weight)
            log |= {"mlm_loss": plain, "masked": len(sample["masked_target"])}
        else:
            if "masked_target" in sample:
                loss = (1 - self.mlm_weight) * loss
            log |= {"mlm_loss": nll.new_zeros(()), "masked": 0}
        guide = model.encoder.guide
        if self.training and guide is not None:
            extra = guide.loss(output[1]["loss_inputs"])
            loss = loss if extra is None else loss + extra
        log["loss"] = loss.data
        return loss, sample["ntokens"], log
