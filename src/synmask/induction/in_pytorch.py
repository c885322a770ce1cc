"""P_D by PyTorch's operators: on a GPU, where no C++ compiler was found, and in exported models.

Autograd differentiates it, as often as one likes. The names follow docs/method.md: inside = p(j in C(i)),
inverse = 1/Z, share = P_D without its factor exp(height of j).
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

# Scaled heights are exponentiated centred on the middle of their range r: e^(-r/2) ... e^(r/2) must fit the
# floating type with room to spare for the gradients, which are up to n^2 times larger.
_ROOM = 0.8
# Infinities, but finite, since inf - inf is NaN. No distance or height of a token comes near the first; each
# is so much larger than those before it that it alone decides a sum or maximum with them.
BORDER = 1e30  # the gap at a sentence's end and beside a pad: above every height
OVER_BORDERS = 1e2 * BORDER  # above borders, so that none cuts it off
NO_SPAN = 1e4 * BORDER  # subtracted where right < left: below all else, even from OVER_BORDERS
# A pad's depth in P_D: its own span, where the largest gap is about -NO_SPAN, must leave it out, too.
_PAD_DEPTH = 1e7 * BORDER


def height_range(dtype: torch.dtype) -> float:
    """How far below the sentence's highest a scaled height may lie and still count exactly.

    142 in float32 (and for narrower types, which are computed in float32), 1135 in float64.
    """
    return 2 * _ROOM * math.log(torch.finfo(torch.promote_types(dtype, torch.float32)).max)


def distribution_in_pytorch(
    distance: Tensor, height: Tensor, padding: Tensor | None, distance_scale: Tensor, height_scale: Tensor
) -> Tensor:
    """Distance (B, n-1), height (B, n), padding (B, n), two 0-d scales → P_D (B, n, n)."""
    with torch.autocast(height.device.type, enabled=False):
        return _distribution(distance, height, padding, distance_scale, height_scale)


def _distribution(
    distance: Tensor, height: Tensor, padding: Tensor | None, distance_scale: Tensor, height_scale: Tensor
) -> Tensor:
    if padding is not None:  # a pad is beyond the sentence, and its own constituent is empty
        distance = distance.masked_fill(padding[:, 1:] | padding[:, :-1], BORDER)
        height = height.masked_fill(padding, -_PAD_DEPTH)
    n = height.size(1)
    above = ones_above(n, height)
    lower, upper = above[:, 1:].mT, above[:, 1:]  # x @ upper is a cumulative sum, x @ lower from the right
    farthest = _range_maximum(distance, lower)
    over = height[:, :, None] - torch.maximum(farthest, farthest.mT)
    inside = (distance_scale * over).sigmoid()
    # Beyond the diagonal, gradients may overflow: tril and triu cut them off, a product with 0 would not.
    left, right = (inside - F.pad(inside, (1, -1))).tril(), (inside - F.pad(inside, (-1, 1))).triu()
    weight = _weights(height_scale * height, padding)
    # Z[l, r]: sums of positive numbers only, so as exact as logcumsumexp, and many times faster.
    # Below the diagonal, where both sides are 0, any finite number will do for 1/Z.
    inverse = _Inverse.apply(_Product.apply(weight[:, None, :] * upper, upper) + above[:, :-1].mT)
    to_left, to_right = left * _Product.apply(right, inverse.mT), right * _Product.apply(left, inverse)
    share = torch.where(lower.bool(), _Product.apply(to_left, upper), _Product.apply(to_right, lower))
    return share * weight[:, None, :]


class _Product(torch.autograd.Function):
    """x (B, n, n) @ y, exact also where the backward pass is under autocast."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, y: Tensor) -> Tensor:
        return x @ y

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None]:
        x, y = ctx.saved_tensors
        with torch.autocast(grad.device.type, enabled=False):
            return grad @ y.mT, x.mT @ grad if ctx.needs_input_grad[1] else None


class _Inverse(torch.autograd.Function):
    """1/x. The gradient is multiplied by 1/x twice; torch's own squares 1/x, which overflows."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.reciprocal()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (inverse,) = ctx.saved_tensors
        return -(grad * inverse) * inverse


def _weights(scaled: Tensor, padding: Tensor | None) -> Tensor:
    """Scaled heights (B, n) → their exponentials, in the exact range and centred on its middle."""
    logits = scaled - scaled.detach().amax(1, keepdim=True)
    if padding is not None:
        logits = logits.masked_fill(padding, 0)
    # A height below the range counts as if it lay on its limit, up to rounding.
    reach = height_range(scaled.dtype)
    exact = torch.where(logits < -(1 + 1e-6) * reach, -reach, logits)
    return (exact - exact.detach().amin(1, keepdim=True) / 2).exp()


def ones_above(n: int, like: Tensor) -> Tensor:
    """(n, n+1): 1 above the diagonal, 0 elsewhere."""
    return like.new_ones(n, n + 1).triu(1)


def _range_maximum(distance: Tensor, lower: Tensor) -> Tensor:
    """Distances (B, n-1) → (B, n, n): the largest between tokens i < j, far below all others for i >= j."""
    gap_before = F.pad(distance, (1, 0), value=OVER_BORDERS)  # above all that a row has where j <= i
    return running_maximum(gap_before[:, None, :] - NO_SPAN * lower)[0]


def running_maximum(x: Tensor) -> tuple[Tensor, Tensor]:
    """x (B, n, n) → the largest number of each row up to each column, and its column."""
    return x.cummax(-1)
