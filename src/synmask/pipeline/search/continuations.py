"""The best continuations of hypotheses."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from synmask.pipeline.search import extension


def best_continuations(
    logits: Sequence[Tensor], score: Tensor, count: int, never: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The best continuations of each sentence by one token, by the mean of some models' probabilities.

    Args:
        logits: (S, W, V) of each model.
        score: (S, W), sums of log-probabilities.
        count: the number of continuations; there are no more than W * (V - 1).
        never: (V,) bool, True for tokens that are not allowed.

    Returns:
        scores, tokens, and the hypotheses that they continue: (S, count), the best first. The score -inf
        stands for no continuation.
    """
    if len(logits) == 1 and extension.is_supported(*logits, score):
        return torch.ops.synmask.best(logits[0], score, count, never)
    each = [model_logits.log_softmax(-1, dtype=torch.float32) for model_logits in logits]
    logs = each[0] if len(each) == 1 else torch.stack(each).logsumexp(0) - math.log(len(each))
    most = min(count, logs.size(-1) - 1)
    values, tokens = logs.masked_fill_(never, -math.inf).topk(most)
    score, index = (score[..., None] + values).flatten(1).topk(min(count, values[0].numel()))
    return score, tokens.flatten(1).gather(1, index), index // most
