"""The training objective: translation loss, mixed with masked-language-model and guide losses."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from synmask.pipeline.training.operators import smoothed_cross_entropy


@dataclass(frozen=True)
class MixedLoss:
    """L = (1 − λ)·L_MT + λ·L_MLM (+ the guide's own loss): docs/method.md, "The objective".

    L_MT is summed over target tokens, L_MLM over masked tokens; an update divides both by the number of
    target tokens. Where nothing is masked, as in validation, the loss is L_MT. Logged in nats per token.

    Attributes:
        pad: the target's padding symbol; mlm_weight: λ.
    """

    pad: int
    label_smoothing: float
    mlm_weight: float

    def __call__(self, model: nn.Module, sample: dict[str, Any]) -> tuple[Tensor, int, dict[str, Any]]:
        """→ loss (a sum), sample size (target tokens), sums to log (nats)."""
        output = model(**sample["net_input"])
        loss, nll = smoothed_cross_entropy(
            output[0].flatten(0, 1), sample["target"].flatten(), self.label_smoothing, self.pad
        )
        log = {"nll_loss": nll, "ntokens": sample["ntokens"]}
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
        if model.training and guide is not None:
            extra = guide.loss(output[1]["loss_inputs"])
            loss = loss if extra is None else loss + extra
        log["loss"] = loss.data
        return loss, sample["ntokens"], log
