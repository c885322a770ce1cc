"""Syntax-BERT (Bai et al., EACL 2021): attention restricted by masks of parents, children and siblings."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from synmask.config.guides import SyntaxOptions
from synmask.guides import Drop, Guide, Shape
from synmask.guides.attention import masked_softmax
from synmask.guides.dependencies import NONE, ancestors, restricted, same

EVERYTHING = 0  # the mask that allows all tokens


@dataclass(frozen=True)
class Relations:
    """What tokens are to each other.

    relation (B, n, n) uint8: the only mask, from 1, that lets token i see j; 0: none does. used (B, n, M)
    bool: which masks let token i see anything, the mask of all tokens, number 0, among them; padding (B, n).
    """

    relation: Tensor
    used: Tensor
    padding: Tensor


class SyntaxGuide(Guide):
    """Every layer and head attends M times by the same scores, each time to what one mask allows.

    For each distance d up to `distance`: the parent at d steps, the children at d steps, the siblings (words
    of which neither is above the other) at d + 1 edges; then the words of the other sentence, and everything,
    M = 3 `distance` + 2. Masks that allow a token nothing are left out for it; tokens that have no word or no
    parse (`<s>`, `</s>`) attend to everything alone, as without a guide. Of a token's k outputs

    "sum" makes their sum divided by √k (the published code);
    "topical" a mean, weighted by softmax(u·O_m + b_m), u and b learnt in each layer (the paper).

    The outputs are made one after the other and again in the backward pass, so that memory holds one layer's.
    """

    def __init__(self, options: SyntaxOptions, shape: Shape) -> None:
        super().__init__(options, shape)
        self.layers = shape.layers
        self.masks = 3 * options.distance + 2
        if options.aggregation == "topical":
            self.topic = nn.Parameter(torch.zeros(shape.layers, shape.embed_dim))
            self.bias = nn.Parameter(torch.zeros(shape.layers, self.masks))
            odds = (1 - options.start) / options.start  # of everything against all other masks
            nn.init.constant_(self.bias[:, EVERYTHING], math.log((self.masks - 1) * odds))

    def prepare(self, x: Tensor, padding: Tensor, annotations: Mapping[str, Tensor]) -> Relations:
        """words (B, n, 4) -> relations."""
        words, most = annotations["words"], self.options.distance
        line = ancestors(words, most)
        known = line[0] != NONE
        relation = x.new_zeros((*known.shape, known.size(1)), dtype=torch.uint8)
        taken = same(line[0], line[0])  # the own word

        def mark(pairs: Tensor, number: int) -> None:
            nonlocal taken
            relation.masked_fill_(pairs & ~taken, number)
            taken = taken | pairs

        for d in range(1, most + 1):
            mark(same(line[d], line[0]), d)
            mark(same(line[0], line[d]), most + d)
        for d in range(1, most + 1):
            for up in range(1, d + 1):  # d + 1 edges: `up` of them to what both have above them
                mark(same(line[up], line[d + 1 - up]), 2 * most + d)
        row, column = words[:, :, None, 2], words[:, None, :, 2]  # their sentences
        mark((row != column) & (column > 0) & known[:, :, None], 3 * most + 1)
        used = torch.stack([(relation == number).any(-1) for number in range(self.masks)], dim=-1)
        used[..., EVERYTHING] = True
        return Relations(relation, used, padding)

    def attend(self, scores: Tensor, prepared: Relations, layer: int) -> Tensor:
        """Scores (B, H, n, n) -> the sum of all masks' weights, divided by √k."""
        total = self._weights(scores, prepared, EVERYTHING)
        for number in range(1, self.masks):
            used = prepared.used[:, None, :, number, None]
            total = total + self._weights(scores, prepared, number) * used
        return total / prepared.used.sum(-1).sqrt()[:, None, :, None].to(total.dtype)

    def context(
        self, scores: Tensor, values: Tensor, states: Tensor, drop: Drop, prepared: Relations, layer: int
    ) -> Tensor:
        """What the masks' outputs are together; (B, H, n, d_head) as `values`."""

        def together(scores: Tensor, values: Tensor) -> Tensor:
            if self.options.aggregation == "sum":
                return drop(self.attend(scores, prepared, layer)) @ values
            return self._topical(scores, values, drop, prepared, layer)

        if torch.is_grad_enabled():
            return checkpoint(together, scores, values, use_reentrant=False)
        return together(scores, values)

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
        return restricted(scores, prepared.relation == number, prepared.padding)
