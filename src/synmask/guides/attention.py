"""Functions for attention weights that several guides share."""

import torch
from torch import Tensor


def masked_softmax(scores: Tensor, padding: Tensor) -> Tensor:
    """Softmax over the last dimension, in float32 or wider, 0 at pads; the result has the scores' type.

    Args:
        scores: (B, H, m, n).
        padding: (B, n) bool, True at pads; or (B, 1, m, n), True where attention is not allowed.
    """
    outside = padding[:, None, None, :] if padding.dim() == 2 else padding
    exact = scores.to(torch.promote_types(scores.dtype, torch.float32))
    return exact.masked_fill(outside, float("-inf")).softmax(-1).to(scores.dtype)


def on_first_heads(heads: int | None, value: Tensor, scores: Tensor, neutral: float) -> Tensor:
    """`value` (B, 1 or G, m, n) for the first `heads` (None: all) of H heads, `neutral` for the rest.

    Args:
        scores: (B, H, m, n).

    Returns:
        (B, H, m, n), or `value` itself if it applies to all heads.
    """
    total = scores.size(1)
    if heads is None or heads >= total:
        return value
    batch, _, m, n = value.shape
    rest = value.new_full((batch, total - heads, m, n), neutral)
    return torch.cat([value.expand(-1, heads, -1, -1), rest], dim=1)


def log_gates(to_left: Tensor, to_right: Tensor) -> Tensor:
    """Logarithm of the gate between each two tokens, which is the product of the factors between them.

    Args:
        to_left: (..., n, n), logarithm of the factor of row i at column k < i; others are ignored.
        to_right: the same for k > i.

    Returns:
        (..., n, n): the sum of to_left[i, j..i-1] for j < i, of to_right[i, i+1..j] for j > i, 0 for j = i.
    """
    left = to_left.tril(-1).flip(-1).cumsum(-1).flip(-1)
    return left.tril(-1) + to_right.triu(1).cumsum(-1)
