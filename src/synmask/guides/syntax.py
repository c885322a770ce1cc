"""Syntax-BERT (Bai et al., EACL 2021): attention restricted by masks of parents, children and siblings."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from synmask.checks import is_functorch
from synmask.guides import Drop, Guide, Shape
from synmask.guides.attention import masked_softmax
from synmask.guides.dependencies import ancestors, restricted_softmax, same_position
from synmask.options import NO_TOKEN
from synmask.options.syntax import SyntaxOptions

EVERYTHING = 0  # number of the mask that allows all tokens


@dataclass(frozen=True)
class Relations:
    """The relations between tokens.

    Attributes:
        relation: (B, n, n) uint8, the number of the only mask (from 1) that lets token i see j; 0: none.
        used: (B, n, M) bool, whether a mask lets token i see any token; always true for mask 0 (all tokens).
        padding: (B, n).
    """

    relation: Tensor
    used: Tensor
    padding: Tensor


class SyntaxGuide(Guide):
    """Each layer and head attends M times by the same scores, each time to the tokens that one mask allows.

    The M = 3 `distance` + 2 masks are, for each d up to `distance`: parents at d steps, children at d steps,
    siblings (words of which neither is above the other) at d + 1 edges; further the words of the other
    sentence, and all tokens. A token ignores masks that allow it no token. Tokens without a word or a parse
    (`<s>`, `</s>`) use only the mask of all tokens, as without a guide. The output is the mean of a token's k
    outputs, weighted by softmax(u·O_m + b_m); each layer learns u and b (the paper; the published code sums
    them).

    The outputs of a layer are recomputed in the backward pass, so memory holds those of one layer only;
    `checkpointing` holds further arguments of `torch.utils.checkpoint`.

    It reads `annotations["words"]` (B, n, 4) int (`Guide`).

    Args:
        options: `SyntaxOptions`.
        shape: the sizes of the guided encoder.
    """

    checkpointing: Mapping[str, Any] = {}

    def __init__(self, options: SyntaxOptions, shape: Shape) -> None:
        super().__init__(options, shape)
        self.layers = shape.layers
        self.masks = 3 * options.distance + 2
        self.topic = nn.Parameter(torch.zeros(shape.layers, shape.embed_dim))
        self.bias = nn.Parameter(torch.zeros(shape.layers, self.masks))
        odds = (1 - options.start) / options.start  # of the mask of all tokens against the others
        nn.init.constant_(self.bias[:, EVERYTHING], math.log((self.masks - 1) * odds))

    def prepare(self, x: Tensor, padding: Tensor, annotations: Mapping[str, Tensor]) -> Relations:
        """words (B, n, 4) → relations."""
        words, most = annotations["words"], self.options.distance
        line = ancestors(words, most)
        known = line[0] != NO_TOKEN
        relation = x.new_zeros((*known.shape, known.size(1)), dtype=torch.uint8)
        taken = same_position(line[0], line[0])  # the token's own word

        def mark(pairs: Tensor, number: int) -> None:
            nonlocal taken
            relation.masked_fill_(pairs & ~taken, number)
            taken = taken | pairs

        for d in range(1, most + 1):
            mark(same_position(line[d], line[0]), d)
            mark(same_position(line[0], line[d]), most + d)
        for d in range(1, most + 1):
            for up in range(1, d + 1):  # d + 1 edges, `up` of them to the common ancestor
                mark(same_position(line[up], line[d + 1 - up]), 2 * most + d)
        row, column = words[:, :, None, 2], words[:, None, :, 2]  # their sentences
        mark((row != column) & (column > 0) & known[:, :, None], 3 * most + 1)
        used = torch.stack([(relation == number).any(-1) for number in range(self.masks)], dim=-1)
        used[..., EVERYTHING] = True
        return Relations(relation, used, padding)

    def attend(self, scores: Tensor, prepared: Relations, layer: int) -> Tensor:
        """Scores (B, H, n, n) → the mean of the masks' weights: those of `context` with equal shares."""
        total = self._weights(scores, prepared, EVERYTHING)
        for number in range(1, self.masks):
            used = prepared.used[:, None, :, number, None]
            total = total + self._weights(scores, prepared, number) * used
        return total / prepared.used.sum(-1)[:, None, :, None].to(total.dtype)

    def context(
        self, scores: Tensor, values: Tensor, states: Tensor, drop: Drop, prepared: Relations, layer: int
    ) -> Tensor:
        """The combined outputs of all masks, (B, H, n, d_head)."""
        arguments = scores, values, drop, prepared, layer
        if torch.is_grad_enabled() and not is_functorch(scores):
            return checkpoint(self._topical, *arguments, use_reentrant=False, **self.checkpointing)
        return self._topical(*arguments)

    def _topical(self, scores: Tensor, values: Tensor, drop: Drop, prepared: Relations, layer: int) -> Tensor:
        outputs = torch.stack(
            [drop(self._weights(scores, prepared, number)) @ values for number in range(self.masks)]
        )
        topic = self.topic[layer].view(values.size(1), values.size(3)).to(values.dtype)
        logits = torch.einsum("mbhnd,hd->bnm", outputs, topic).float() + self.bias[layer]
        share = logits.masked_fill(~prepared.used, float("-inf")).softmax(-1).to(values.dtype)
        return torch.einsum("bnm,mbhnd->bhnd", share, outputs)

    def _weights(self, scores: Tensor, prepared: Relations, number: int) -> Tensor:
        if number == EVERYTHING:
            return masked_softmax(scores, prepared.padding)
        return restricted_softmax(scores, prepared.relation == number, prepared.padding)
