"""PASCAL (Bugliarello & Okazaki, ACL 2020): scores weighted by a Gaussian around the dependency head."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from synmask.guides import Guide
from synmask.guides.attention import masked_softmax, on_first_heads


class PascalGuide(Guide):
    """A = softmax(scores * w), w_ij = N(j; p_i, sigma²) with p_i the middle of the head's sub-words.

    It guides the first `heads` heads of the first layer. In training, each row of each head stays unguided
    (w_i = 1) with probability `ignore`. Sentences without heads are not guided.

    It reads `annotations["heads"]` (B, n, 2) int: first and last sub-word of the head; -1: none.

    Args:
        options: `PascalOptions`.
        shape: the sizes of the guided encoder.
    """

    def prepare(self, x: Tensor, padding: Tensor, annotations: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """heads (B, n, 2) → the factors of the scores (B, n, n), in float32, and padding (B, n)."""
        heads = annotations["heads"]
        middle = heads.float().mean(-1, keepdim=True)
        sigma = self.options.sigma
        column = torch.arange(heads.size(1), device=heads.device)
        weight = (-((column - middle) ** 2) / (2 * sigma**2)).exp() / (sigma * math.sqrt(2 * math.pi))
        return torch.where(heads[..., :1] < 0, 1.0, weight), padding

    def attend(self, scores: Tensor, prepared: tuple[Tensor, Tensor], layer: int) -> Tensor:
        """Scores (B, H, n, n) → weights."""
        weight, padding = prepared
        weight = weight[:, None]
        if self.training and self.options.ignore:
            heads = min(self.options.heads or scores.size(1), scores.size(1))
            rows = torch.rand(scores.size(0), heads, scores.size(2), 1, device=scores.device)
            weight = torch.where(rows < self.options.ignore, 1.0, weight)
        weight = on_first_heads(self.options.heads, weight, scores, neutral=1.0)
        return masked_softmax(scores * weight.to(scores.dtype), padding)
