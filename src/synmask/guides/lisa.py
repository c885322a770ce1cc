"""LISA (Strubell et al., EMNLP 2018) for translation: one head is trained to point to the parent."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmask.guides import Guide, LossInputs, Shape
from synmask.guides.attention import masked_softmax
from synmask.options.lisa import LisaOptions


@dataclass(frozen=True)
class ParentLogits:
    """logits (B, n, n): of token i's parent being j; padding (B, n)."""

    logits: Tensor
    padding: Tensor


class LisaGuide(Guide):
    """The first head of the first layer attends by a biaffine parser, softmax_j([q_i; 1] U k_j).

    q and k are the halves of leaky_relu(W x + b), each as wide as a head. Loss: `parse_weight` times the
    cross-entropy of each token's parent, the first sub-word of its head word. Sentences without heads add
    nothing. The head attends by its own prediction, in training as in decoding.

    `loss` reads `annotations["heads"]` (B, n, 2) int: first and last sub-word of the head; -1: none.

    Args:
        options: `LisaOptions`.
        shape: the sizes of the guided encoder.
    """

    def __init__(self, options: LisaOptions, shape: Shape) -> None:
        super().__init__(options, shape)
        width = shape.embed_dim // shape.heads
        self.inputs = nn.Linear(shape.embed_dim, 2 * width)
        self.bilinear = nn.Parameter(torch.empty(width + 1, width))
        nn.init.xavier_uniform_(self.inputs.weight)
        nn.init.zeros_(self.inputs.bias)
        nn.init.xavier_uniform_(self.bilinear)

    def prepare(self, x: Tensor, padding: Tensor, annotations: Mapping[str, Tensor]) -> ParentLogits:
        """x (B, n, d) → logits of each token's parent."""
        query, key = F.leaky_relu(self.inputs(x)).chunk(2, dim=-1)
        query = torch.cat([query, torch.ones_like(query[..., :1])], dim=-1)
        return ParentLogits(query @ self.bilinear.to(query.dtype) @ key.mT, padding)

    def attend(self, scores: Tensor, prepared: ParentLogits, layer: int) -> Tensor:
        """Scores (B, H, n, n) → weights; the first head's scores are ignored."""
        pointed = torch.cat([prepared.logits[:, None].to(scores.dtype), scores[:, 1:]], dim=1)
        return masked_softmax(pointed, prepared.padding)

    def loss(self, inputs: LossInputs) -> Tensor:
        """Cross-entropy in nats, summed over source tokens with a head."""
        parent = inputs.annotations["heads"][..., 0]
        logits = inputs.source.logits.float().masked_fill(inputs.source.padding[:, None, :], float("-inf"))
        summed = F.cross_entropy(logits.flatten(0, 1), parent.flatten(), ignore_index=-1, reduction="sum")
        return self.options.parse_weight * summed
