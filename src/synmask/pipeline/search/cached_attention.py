"""Attention of the hypotheses' last tokens, to their own tokens or to a source. S, W, t: as for `Paths`."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from synmask.pipeline.search import extension
from synmask.pipeline.search.slots import Paths


def cached_attention(
    query: Tensor,
    memory: Tensor,
    heads: int,
    rows: Tensor,
    slots: Tensor | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    """Attend to the keys and values of each query's sentence.

    Args:
        query: (S, W, d), d = H * d_head.
        memory: (rows, n, 2d), keys and values.
        rows: (S,), the row of each sentence.
        slots: (S, W, t), the positions that a query attends to; None: all n.
        bias: (S, 1 or H, 1 or W, t or n), added to the scores; None: nothing.

    Returns:
        (S, W, d).
    """
    if extension.is_supported(query, memory):
        return torch.ops.synmask.attend(query, memory, heads, rows, slots, bias)
    query = query.unflatten(-1, (heads, -1))  # (S, W, H, d_head)
    if slots is None:
        parts = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in memory[rows].chunk(2, dim=-1))
        context = F.scaled_dot_product_attention(query.transpose(1, 2), *parts, attn_mask=bias)
        return context.transpose(1, 2).flatten(2)
    cached = memory[rows[:, None, None], slots].unflatten(-1, (2, heads, -1))  # (S, W, t, 2, H, d_head)
    scores = torch.einsum("swhd,swthd->shwt", query, cached[:, :, :, 0]) / math.sqrt(query.size(-1))
    weights = (scores if bias is None else scores + bias).softmax(-1)
    return torch.einsum("shwt,swthd->swhd", weights, cached[:, :, :, 1]).flatten(2)


class CachedSelfAttention:
    """Self-attention with its cache: `project` makes query, key and value, (..., d) → (..., 3d)."""

    def __init__(self, project: Callable[[Tensor], Tensor], heads: int) -> None:
        self.project, self.heads = project, heads
        self.memory: Tensor | None = None  # (rows, slots, 2d)

    def __call__(self, x: Tensor, paths: Paths, bias: Tensor | None = None) -> Tensor:
        """Attention of the hypotheses' last tokens.

        Args:
            x: (S, W, d); paths: those to these tokens; bias: as for `cached_attention`.

        Returns:
            (S, W, d).
        """
        qkv, d = self.project(x), x.size(-1)
        self.memory = memory = paths.with_room(self.memory, qkv[..., d:])
        if extension.is_supported(qkv, memory):
            return torch.ops.synmask.attend_own(qkv, memory, self.heads, paths.rows, paths.slots, bias)
        memory[paths.last()] = qkv[..., d:]
        return cached_attention(qkv[..., :d], memory, self.heads, paths.rows, paths.slots, bias)
