"""Attention, one token at a time. No cache is reordered when hypotheses change places.

The hypotheses of a sentence share one cache. Each token that a hypothesis got has a slot in it, and a
hypothesis is its path: the slots of its tokens, in order. S sentences have W hypotheses each; d = H * d_head.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from synmask.search import operators

ROOM = 64  # slots that a cache has at first


def attended(
    query: Tensor, memory: Tensor, heads: int, path: Tensor | None = None, bias: Tensor | None = None
) -> Tensor:
    """Attend to the keys and values of each query's sentence.

    Args:
        query: (S, W, d).
        memory: (S, n, 2d), keys and values.
        path: (S, W, t), those of the n that a query attends to; None: all.
        bias: (S, 1 or H, 1 or W, t or n), what is added to the scores; None: nothing.

    Returns:
        (S, W, d).
    """
    if operators.serve(query, memory):
        return torch.ops.synmask.attend(query, memory, heads, path, bias)
    if path is not None:
        bias = _on_path(path, memory.size(1), bias)
    parts = (query, *memory.chunk(2, dim=-1))
    split = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in parts)  # (S, H, ..., d_head)
    return F.scaled_dot_product_attention(*split, attn_mask=bias).transpose(1, 2).flatten(2)


def _on_path(path: Tensor, slots: int, bias: Tensor | None) -> Tensor:
    """`bias` (S, G, W, t) of the slots on a path (S, W, t), -inf of the others: (S, G, W, slots)."""
    if bias is None:
        bias = torch.zeros(1, device=path.device).expand(path.size(0), 1, *path.shape[1:])
    outside = bias.new_full((*bias.shape[:3], slots), float("-inf"))
    return outside.scatter_(-1, path[:, None].expand_as(bias), bias)


def used(path: Tensor, slots: int) -> tuple[Tensor, Tensor]:
    """Which slots of each sentence are still needed: its hypotheses share most of their first tokens.

    Args:
        path: (S, W, t).

    Returns:
        (S, m) slots, those that a path uses, in order, then others, so that all sentences have m; and the
        paths (S, W, t) through these.
    """
    flat = path.flatten(1)
    needed = torch.zeros(len(path), slots, dtype=torch.bool, device=path.device).scatter_(1, flat, True)
    number = needed.cumsum(1) - 1
    order = needed.logical_not().byte().argsort(dim=1, stable=True)
    return order[:, : int(number.max()) + 1], number.gather(1, flat).view_as(path)


class SelfAttention:
    """Self-attention with its cache: `project` makes query, key and value, (..., d) → (..., 3d)."""

    def __init__(self, project: Callable[[Tensor], Tensor], heads: int) -> None:
        self.project, self.heads = project, heads
        self.memory: Tensor | None = None  # (S or more, slots or more, 2d)

    def __call__(self, x: Tensor, path: Tensor, slots: int, bias: Tensor | None = None) -> Tensor:
        """Attention of the hypotheses' last tokens.

        Args:
            x: (S, W, d); they take the last W of the `slots` that there are.
            path: (S, W, t); bias: as for `attended`.

        Returns:
            (S, W, d).
        """
        width, d = x.shape[1:]
        made = self.project(x)
        if self.memory is None:
            self.memory = made.new_empty((len(x), ROOM, 2 * d))
        if slots > self.memory.size(1):
            self.memory = F.pad(self.memory[: len(x)], (0, 0, 0, slots))
        memory = self.memory[: len(x), :slots]
        memory[:, -width:] = made[..., d:]
        return attended(made[..., :d], memory, self.heads, path, bias)

    def keep(self, sentences: Tensor, slots: Tensor) -> None:
        """Go on with these of the S sentences, (S', 1), and these slots of each, (S', m)."""
        self.memory[: len(slots), : slots.size(1)] = self.memory[sentences, slots]
