"""LISA (Strubell et al., EMNLP 2018) for translation: one head is trained to point to the parent."""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmask.guides import Guide, LossInputs, Shape
from synmask.guides.attention import masked_softmax
from synmask.options.lisa import LisaOptions


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

    def prepare(self, x: Tensor, padding: Tensor, annotations: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """x (B, n, d) → logits of token i's parent being j (B, n, n), and padding (B, n)."""
        query, key = F.leaky_relu(self.inputs(x)).chunk(2, dim=-1)
        query = torch.cat([query, torch.ones_like(query[..., :1])], dim=-1)
        return query @ self.bilinear.to(query.dtype) @ key.mT, padding

    def attend(self, scores: Tensor, prepared: tuple[Tensor, Tensor], layer: int) -> Tensor:
        """Scores (B, H, n, n) → weights; the first head's scores are ignored."""
        logits, padding = prepared
        pointed = torch.cat([logits[:, None].to(scores.dtype), scores[:, 1:]], dim=1)
        return masked_softmax(pointed, padding)

    def loss(self, inputs: LossInputs) -> Tensor:
        """Cross-entropy in nats, summed over source tokens with a head."""
        parent, (logits, padding) = inputs.annotations["heads"][..., 0], inputs.source
        logits = logits.float().masked_fill(padding[:, None, :], float("-inf"))
        summed = F.cross_entropy(logits.flatten(0, 1), parent.flatten(), ignore_index=-1, reduction="sum")
        return self.options.parse_weight * summed
