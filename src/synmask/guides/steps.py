"""Attention for beam search, one token at a time. Caches need no reordering when hypotheses change places.

The hypotheses of a sentence share one cache with a slot per token. A hypothesis is a path: the slots of its
tokens, in order. Queries are compared with the keys of all slots, and a bias of -inf removes the slots that
are not on the path. S sentences have W hypotheses each; d = H * d_head.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

ROOM = 64  # initial slots of a cache


def attended(query: Tensor, memory: Tensor, heads: int, bias: Tensor) -> Tensor:
    """query (S, W, d), memory (S, n, 2d) of keys and values, bias (S, 1 or H, W or 1, n) → (S, W, d)."""
    parts = (query, *memory.chunk(2, dim=-1))
    split = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in parts)  # (S, H, ..., d_head)
    return F.scaled_dot_product_attention(*split, attn_mask=bias).transpose(1, 2).flatten(2)


def on_path(path: Tensor, slots: int, gate: Tensor | None = None) -> Tensor:
    """The bias that restricts attention to the hypotheses' paths.

    Args:
        path: (S, W, t) slots.
        gate: (S, G, W, t), added to the scores of the tokens on the path; None: 0.

    Returns:
        (S, G, W, slots); G = 1 without a gate.
    """
    if gate is None:
        gate = torch.zeros(1, device=path.device).expand(path.size(0), 1, *path.shape[1:])
    bias = gate.new_full((*gate.shape[:3], slots), float("-inf"))
    return bias.scatter_(-1, path[:, None].expand_as(gate), gate)


def used(path: Tensor, slots: int) -> tuple[Tensor, Tensor]:
    """The slots that are still needed; the hypotheses of a sentence share most of their first tokens.

    Args:
        path: (S, W, t).

    Returns:
        (S, m) slots: those that a path uses, in order, then others, so that each sentence has m; and the
        paths (S, W, t) through them.
    """
    flat = path.flatten(1)
    needed = torch.zeros(len(path), slots, dtype=torch.bool, device=path.device).scatter_(1, flat, True)
    number = needed.cumsum(1) - 1
    order = needed.logical_not().byte().argsort(dim=1, stable=True)
    return order[:, : int(number.max()) + 1], number.gather(1, flat).view_as(path)


class SelfAttention:
    """Self-attention with a cache; `weight` (3d, d) and `bias` (3d,) project to query, key and value."""

    def __init__(self, weight: Tensor, bias: Tensor, heads: int) -> None:
        self.weight, self.bias, self.heads = weight, bias, heads
        self.memory: Tensor | None = None  # (S or more, slots or more, 2d)

    def __call__(self, x: Tensor, bias: Tensor) -> Tensor:
        """x (S, W, d) of the tokens in the last W slots, bias (S, 1 or H, W, slots) → (S, W, d)."""
        width, d = x.shape[1:]
        slots = bias.size(-1)
        made = F.linear(x, self.weight, self.bias)
        if self.memory is None:
            self.memory = made.new_empty((len(x), ROOM, 2 * d))
        if slots > self.memory.size(1):
            self.memory = F.pad(self.memory[: len(x)], (0, 0, 0, slots))
        memory = self.memory[: len(x), :slots]
        memory[:, -width:] = made[..., d:]
        return attended(made[..., :d], memory, self.heads, bias)

    def keep(self, sentences: Tensor, slots: Tensor) -> None:
        """Keep only these of the S sentences, (S', 1), and these slots of each, (S', m)."""
        self.memory[: len(slots), : slots.size(1)] = self.memory[sentences, slots]
