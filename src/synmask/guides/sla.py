"""SLA (Li et al., Findings of ACL 2021): local attention in the dependency tree, mixed with global."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from synmask.guides import Drop, Guide, Shape
from synmask.guides.attention import masked_softmax
from synmask.guides.dependencies import restricted_softmax, within_edges
from synmask.options import NO_TOKEN
from synmask.options.sla import SlaOptions


class SlaGuide(Guide):
    """A = z L + (1 - z) G in each layer and head: G = softmax(scores), L the same over near tokens only.

    z = sigmoid(w·h + b), where h is the token's state at the layer's input; each layer learns w and b,
    starting from w = 0 and z = `start`. A token is near i if its word is at most `edges` edges of the
    dependency tree from i's word or from one of the two words beside that. Punctuation and tokens without a
    word or a parse (`<s>`, `</s>`) are visible to all tokens; the latter also see all tokens.

    It reads `annotations["words"]` (B, n, 4) int (`Guide`).

    Args:
        options: `SlaOptions`.
        shape: the sizes of the guided encoder.
    """

    def __init__(self, options: SlaOptions, shape: Shape) -> None:
        super().__init__(options, shape)
        self.layers = shape.layers
        self.gates = nn.ModuleList(nn.Linear(shape.embed_dim, 1) for _ in range(shape.layers))
        for gate in self.gates:
            nn.init.zeros_(gate.weight)
            nn.init.constant_(gate.bias, math.log(options.start / (1 - options.start)))

    def prepare(self, x: Tensor, padding: Tensor, annotations: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """words (B, n, 4) → the tokens that each sees in local attention (B, n, n), and padding (B, n)."""
        words = annotations["words"]
        word = words[..., 0]
        near = within_edges(words, self.options.edges)
        after = word + (word[:, :, None] == word[:, None, :]).sum(-1)  # where the next word begins
        allowed = near | _near_rows(near, word - 1, word) | _near_rows(near, after, word)
        free = word == NO_TOKEN
        allowed |= free[:, :, None] | free[:, None, :] | (words[..., 3] == 1)[:, None, :]
        return allowed, padding

    def attend(self, scores: Tensor, prepared: tuple[Tensor, Tensor], layer: int) -> Tensor:
        """Scores (B, H, n, n) → the weights of local attention, L."""
        return restricted_softmax(scores, *prepared)

    def context(
        self, scores: Tensor, values: Tensor, states: Tensor, drop: Drop, prepared: Any, layer: int
    ) -> Tensor:
        """The values weighted by L and G, mixed by each token's gate."""
        gate = self.gates[layer](states).sigmoid()[:, None]
        everything = masked_softmax(scores, prepared[1])
        local = self.attend(scores, prepared, layer)
        return drop(torch.lerp(everything, local, gate.to(local.dtype))) @ values


def _near_rows(near: Tensor, place: Tensor, word: Tensor) -> Tensor:
    """The rows of `near` at `place` (B, n); empty rows if the token or its place has no word."""
    inside = (word != NO_TOKEN) & (place >= 0) & (place < word.size(1))
    rows = near.gather(1, place.clamp(0, word.size(1) - 1)[:, :, None].expand_as(near))
    return rows & inside[:, :, None]
