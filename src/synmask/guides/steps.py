"""Attention token by token, for beam search, without a cache for each hypothesis that would have to be sorted.

The hypotheses of a sentence share one cache. Each token that a hypothesis ever got has a slot in it, and a
hypothesis is its path: the slots of its tokens, in order. A token's query meets the keys of all slots; a bias
of -inf takes out those that are not on its path. S sentences have W hypotheses each; d = H * d_head.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

ROOM = 80  # slots by which a cache grows: 16 tokens of 5 hypotheses


def heads(x: Tensor, number: int) -> Tensor:
    """(S, n, number * d_head) → (S, number, n, d_head)."""
    return x.unflatten(-1, (number, -1)).transpose(1, 2)


def attended(query: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None) -> Tensor:
    """query (S, H, W, d_head), keys and values (S, H, n, d_head), bias for the scores → (S, W, d)."""
    return F.scaled_dot_product_attention(query, keys, values, bias).transpose(1, 2).flatten(2)


def on_path(path: Tensor, slots: int, gate: Tensor | None = None) -> Tensor:
    """The bias that keeps attention on the hypotheses' paths.

    Args:
        path: (S, W, t) slots.
        gate: (S, G, W, t), what is added to the scores of the tokens on the path; None: nothing.

    Returns:
        (S, G, W, slots), with G = 1 where there is no gate.
    """
    if gate is None:
        gate = torch.zeros(1, device=path.device).expand(path.size(0), 1, *path.shape[1:])
    bias = gate.new_full((*gate.shape[:3], slots), float("-inf"))
    return bias.scatter_(-1, path[:, None].expand_as(gate), gate)


class SelfAttention:
    """Self-attention with its cache: `weight` (3d, d) and `bias` (3d,) make query, key and value."""

    def __init__(self, weight: Tensor, bias: Tensor, number: int) -> None:
        self.weight, self.bias, self.number = weight, bias, number
        self.cache: Tensor | None = None  # (S, 2H, room, d_head): keys, then values

    def __call__(self, x: Tensor, bias: Tensor) -> Tensor:
        """x (S, W, d), which takes the last W of the slots that `bias` (S, 1 or H, W, slots) is for → same."""
        made = heads(F.linear(x, self.weight, self.bias), 3 * self.number)
        query, new = made.split([self.number, 2 * self.number], dim=1)
        slots, width = bias.size(-1), x.size(1)
        if self.cache is None:
            self.cache = new.new_empty((*new.shape[:2], 0, new.size(3)))
        if slots > self.cache.size(2):
            self.cache = F.pad(self.cache, (0, 0, 0, ROOM + width))
        self.cache[:, :, slots - width : slots] = new
        keys, values = self.cache[:, :, :slots].chunk(2, dim=1)
        return attended(query, keys, values, bias)

    def keep(self, sentences: Tensor) -> None:
        """Go on with these of the S sentences."""
        self.cache = self.cache[sentences]
