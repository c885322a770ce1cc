"""Distances and heights of a sentence -> the distribution of every token's parent.

The distribution of StructFormer (Shen et al. 2021), which Kai et al. 2024 put into a Transformer. Token i
has a random constituent C(i) = [l, r]; its parent is one token j of it, the likelier the higher j is.

The literal definition (`synmask.induction.literal`) sums over all spans, O(n^4) time and O(n^3) memory. Here
it is factorised, exactly: O(n^3) time and O(n^2) memory (docs/method.md). It is written twice: in C++
(kernel.cpp) for CPUs, and in PyTorch for GPUs and where no C++ compiler was found at set-up.
"""

import math
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from synmask.checks import check_padding
from synmask.kernels import load
from synmask.processor import CPU

# Scaled heights are exponentiated centred on the middle of their range r: e^(-r/2) ... e^(r/2) must fit the
# floating type with room to spare for the gradients, which are up to n^2 times larger.
_ROOM = 0.8
# Infinities, but finite, since inf - inf is NaN. No distance or height of a token comes near the first; each
# is so much larger than those before it that it alone decides a sum or maximum with them.
_BORDER = 1e30  # the gap at a sentence's end and beside a pad: above every height
_OVER_BORDERS = 1e2 * _BORDER  # above borders, so that none cuts it off
_NO_SPAN = 1e4 * _BORDER  # subtracted where right < left: below all else, even from _OVER_BORDERS
# A pad's depth in P_D: its own span, where the largest gap is about -_NO_SPAN, must leave it out, too.
_PAD_DEPTH = 1e7 * _BORDER


def height_range(dtype: torch.dtype) -> float:
    """How far below the sentence's highest a scaled height may lie and still count exactly.

    142 in float32 (and for narrower types, which are computed in float32), 1135 in float64.
    """
    return 2 * _ROOM * math.log(torch.finfo(torch.promote_types(dtype, torch.float32)).max)


_KERNEL = CPU.distribution == "C++" and load(__package__, Path(__file__).with_name("kernel.cpp"))


def implementation(device: torch.device | str = "cpu") -> Literal["C++", "PyTorch"]:
    """Which implementation of P_D is used on a device. They agree but for the last bits.

    The C++ operator is built where a compiler and PyTorch are at installation: `pip install
    --no-build-isolation .`, as `make` does (pip's own isolation hides PyTorch).
    """
    return "C++" if _KERNEL and torch.device(device).type == "cpu" else "PyTorch"


def dependency_distribution(
    distance: Tensor,
    height: Tensor,
    padding: Tensor | None = None,
    *,
    distance_scale: float | Tensor = 1.0,
    height_scale: float | Tensor = 1.0,
) -> Tensor:
    """The distribution of every token's parent, P_D (Kai et al. 2024, §3.2; docs/method.md).

    Heights are exact within `height_range` (142 in float32) of the sentence's highest, after scaling;
    lower ones count as if they lay on that limit: rows still sum to 1 and everything stays finite.

    Args:
        distance: (B, n-1), one per gap between neighbours; values beside pads are ignored.
        height: (B, n), one per token; values at pads are ignored.
        padding: (B, n) bool, True at pads, which may stand on either side of a sentence; None: no pads.
        distance_scale: the factor of (height - distance), a positive float or 0-d tensor: exp(alpha).
        height_scale: the factor of the heights among themselves, likewise.

    Returns:
        (B, n, n): row i is the distribution of token i's parent over the real tokens, itself included. Rows
        and columns of pads are 0. Differentiable once in distance, height and the scales. In float32, also
        for narrower types and under autocast, or float64.

    Raises:
        ValueError: an argument has a wrong shape or type, or a sentence is all pads (looked for on a CPU
            only: on a GPU the host would have to wait).
    """
    _check(distance, height, padding)
    distance, height = _exact(distance, height)
    scales = (
        torch.as_tensor(scale, dtype=height.dtype, device=height.device)
        for scale in (distance_scale, height_scale)
    )
    way = _InPyTorch if implementation(height.device) == "PyTorch" else _InCpp
    return way.apply(distance, height, padding, *scales)


def calibrate(distance: Tensor, height: Tensor, padding: Tensor | None = None) -> Tensor:
    """Lower the distances of each sentence until no proper span is cut off on both sides.

    Subtracts, per sentence, the largest relu(min(distance left of l, distance right of r) - max height in
    l..r) over the spans l <= r other than the whole sentence, whose outer borders count as +infinity
    (StructFormer; there the maximum is taken over the whole batch).

    Args:
        distance: (B, n-1); height: (B, n); padding: (B, n) bool or None: as in `dependency_distribution`.

    Returns:
        (B, n-1), the calibrated distances, in float32 at least (beside pads: of no meaning).

    Raises:
        ValueError: an argument has a wrong shape or type.
    """
    _check(distance, height, padding)
    distance, height = _exact(distance, height)
    return distance + _NegativeMargin.apply(distance, height, padding)


def calibration_margin(distance: Tensor, height: Tensor, padding: Tensor | None = None) -> Tensor:
    """The number that `calibrate` subtracts from a sentence's distances: (B, 1), in float32 or wider."""
    _check(distance, height, padding)
    return -_NegativeMargin.apply(*_exact(distance, height), padding)


class _NegativeMargin(torch.autograd.Function):
    """Distance, height, padding -> the negative margin, which reaches one distance and one height of each
    sentence, and so does its gradient."""

    @staticmethod
    def forward(ctx: Any, distance: Tensor, height: Tensor, padding: Tensor | None) -> Tensor:
        n = height.size(1)
        if padding is not None:  # a span with a pad is the lowest, and never cut off
            distance = distance.masked_fill(padding[:, 1:] | padding[:, :-1], _BORDER)
            height = height.masked_fill(padding, _OVER_BORDERS)
        border = F.pad(distance, (1, 1), value=_BORDER)
        below = _ones_above(n, height)[:, :-1].mT
        highest, token = torch.add(height[:, None, :], below, alpha=-_NO_SPAN).cummax(-1)
        spare = highest - torch.minimum(border[:, :-1, None], border[:, None, 1:])  # of span [l, r]
        # No proper span: the whole sentence, which has two borders beyond it, and l > r.
        spare = F.threshold(spare, -0.1 * _BORDER, 0, inplace=True)
        least, span = spare.flatten(1).min(1, keepdim=True)
        left, right = span // n, span % n + 1
        nearer = torch.where(border.gather(1, left) <= border.gather(1, right), left, right)
        ctx.save_for_backward(nearer, token.flatten(1).gather(1, span), least)
        ctx.n = n
        return least

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        nearer, token, least = ctx.saved_tensors
        grad = torch.ops.aten.hardtanh_backward(grad, least, -math.inf, 0)  # none if the margin is 0
        border, height = grad.new_zeros(len(grad), 2 * ctx.n + 1).split([ctx.n + 1, ctx.n], 1)
        border.scatter_(1, nearer, -grad)
        return border[:, 1:-1], height.scatter_(1, token, grad), None


def _check(distance: Tensor, height: Tensor, padding: Tensor | None) -> None:
    """Raise ValueError unless shapes and types fit together."""
    if height.dim() != 2 or height.size(1) < 1:
        raise ValueError(f"height must be (B, n) with n >= 1, not {tuple(height.shape)}")
    batch, n = height.shape
    if distance.shape != (batch, n - 1):
        raise ValueError(
            f"distance must be (B, n-1) = {(batch, n - 1)} to fit height, not {tuple(distance.shape)}"
        )
    for name, value in (("distance", distance), ("height", height)):
        if not value.is_floating_point():
            raise ValueError(f"{name} {tuple(value.shape)} must be of a floating type, not {value.dtype}")
    if padding is not None:
        check_padding(padding, height.shape)


def _exact(distance: Tensor, height: Tensor) -> tuple[Tensor, Tensor]:
    """Both in the wider of their types, float32 at least."""
    kind = torch.promote_types(torch.promote_types(distance.dtype, height.dtype), torch.float32)
    return distance.to(kind), height.to(kind)


class _InCpp(torch.autograd.Function):
    """Distance, height, padding, distance_scale, height_scale -> P_D (B, n, n), by kernel.cpp's operators.

    Only the arguments are kept: the backward pass computes a sentence's matrices again, in the cache.
    """

    @staticmethod
    def forward(ctx: Any, *arguments: Tensor | None) -> Tensor:
        ctx.save_for_backward(*arguments)
        return torch.ops.synmask.parent_distribution(*arguments, height_range(arguments[0].dtype))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        reach = height_range(grad.dtype)
        backward = torch.ops.synmask.parent_distribution_backward
        distance, height, distance_scale, height_scale = backward(grad, *ctx.saved_tensors, reach)
        return distance, height, None, distance_scale, height_scale


class _InPyTorch(torch.autograd.Function):
    """The same as `_InCpp`, by PyTorch's operators: on a GPU, few and large ones.

    The names follow docs/method.md: inside = p(j in C(i)); inverse = 1/Z; share = P_D without its factor
    exp(height of j). `sides` are p_L and p_R, `through` is what they are multiplied with, both (2, B, n, n).

    The backward pass is written out because autograd's of 1/Z squares numbers near the limit of the floating
    type, so that gradients would overflow from half the range on. It cannot be differentiated again.
    """

    @staticmethod
    def forward(ctx: Any, *arguments: Tensor | None) -> Tensor:
        with torch.autocast(arguments[0].device.type, enabled=False):
            return _InPyTorch._distribution(ctx, *arguments)

    @staticmethod
    def _distribution(
        ctx: Any,
        distance: Tensor,
        height: Tensor,
        padding: Tensor | None,
        distance_scale: Tensor,
        height_scale: Tensor,
    ) -> Tensor:
        if padding is not None:  # a pad is beyond the sentence, and its own constituent is empty
            distance = distance.masked_fill(padding[:, 1:] | padding[:, :-1], _BORDER)
            height = height.masked_fill(padding, -_PAD_DEPTH)
        batch, n = height.shape
        triangles = lower, upper, above = _triangles(height)
        farthest, where = _range_maximum(distance, lower)
        over = height[:, :, None] - torch.maximum(farthest, farthest.mT)
        inside = F.pad(distance_scale * over, (1, 1), value=-math.inf).sigmoid_()
        beside = inside.unfold(-1, n, 2).movedim(2, 0)  # inside of j - 1, of j + 1
        inside = inside[..., 1:-1]
        sides = torch.sub(inside, beside, out=height.new_empty(2, batch, n, n)).mul_(triangles[:2, None])
        logits, weight = _weights(height_scale * height)
        # Z[l, r]: sums of positive numbers only, so as exact as logcumsumexp, and many times faster.
        # Below the diagonal, where both sides are 0, any finite number will do for 1/Z.
        sums = torch.baddbmm(above.mT, weight[:, None, :] * upper, upper.expand(batch, n, n))
        inverse = sums.reciprocal_()
        through = torch.empty_like(sides)
        torch.bmm(sides[1], inverse.mT, out=through[0])
        torch.bmm(sides[0], inverse, out=through[1])
        at_left, at_right = _summed(sides * through, triangles[:2].mT)
        share = at_right.lerp_(at_left, lower)
        ctx.triangles = triangles
        ctx.save_for_backward(
            height, distance_scale, height_scale, where, over, inside,
            sides, logits, weight, inverse, through, share,
        )  # fmt: skip
        return share * weight[:, None, :]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        with torch.autocast(grad.device.type, enabled=False):
            return _InPyTorch._gradients(ctx, grad)

    @staticmethod
    def _gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        height, distance_scale, height_scale, where, over, inside, *factors = ctx.saved_tensors
        sides, logits, weight, inverse, through, share = factors
        lower, upper, _ = ctx.triangles
        grad_share, grad = grad * share, grad * weight[:, None, :]
        grad_sides = _summed(grad * ctx.triangles[::2, None], ctx.triangles[:2])
        to_left, to_right = grad_sides * sides
        # d(1/Z) = -(1/Z)(1/Z) dZ; the first product is moderate, so the second does not overflow.
        grad_z = torch.baddbmm(to_left.mT @ sides[1], sides[0].mT, to_right).mul_(inverse).mul_(inverse)
        # what is subtracted: over the spans that hold the token
        grad_weight = grad_share.addcmul_(grad_z @ lower, upper, value=-1).sum(1)
        # Beyond the diagonal these may overflow: cut off, since a product with 0 would not clear them.
        grad_left, grad_right = grad_sides.mul_(through)
        grad_left.baddbmm_(to_right, inverse.mT).tril_()
        grad_right.baddbmm_(to_left, inverse).triu_()
        grad_inside = grad_left + grad_right
        grad_inside[..., :-1].sub_(grad_left[..., 1:])
        grad_inside[..., 1:].sub_(grad_right[..., :-1])
        grad_over = torch.ops.aten.sigmoid_backward(grad_inside, inside)
        grad_distance_scale = grad_over.flatten() @ over.flatten()
        grad_over *= distance_scale
        grad_gap = (grad_over + grad_over.mT).flatten(1)
        grad_distance = torch.zeros_like(weight).scatter_add_(1, where.flatten(1), grad_gap)[:, 1:]
        # A height below the range counts as if it lay on its limit, up to rounding.
        limit = -(1 + 1e-6) * height_range(weight.dtype)
        grad_logits = torch.ops.aten.threshold_backward(grad_weight * weight, logits, limit)
        grad_height = torch.addcmul(grad_over.sum(2), grad_logits, height_scale)
        grad_height_scale = grad_logits.flatten() @ height.flatten()
        return -grad_distance, grad_height, None, grad_distance_scale, grad_height_scale


def _weights(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Scaled heights (B, n), far below all others at pads -> how far they lie below the highest (pads: 0).

    And their exponentials, in the exact range and centred on its middle.
    """
    logits = F.threshold(logits.sub_(logits.amax(1, keepdim=True)), -_BORDER, 0, inplace=True)
    exact = logits.clamp(min=-height_range(logits.dtype))
    return logits, torch.sub(exact, exact.amin(1, keepdim=True), alpha=0.5).exp_()


def _summed(x: Tensor, triangles: Tensor) -> Tensor:
    """x (2, B, n, n), triangles (2, n, n): the sums of each row's numbers up to a column, or from it."""
    return torch.bmm(x.flatten(1, 2), triangles).view_as(x)


def _triangles(like: Tensor) -> Tensor:
    """For `like` (B, n), ones in (3, n, n) below the diagonal and on it, above it and on it, above it.

    x @ upper is the cumulative sum of x along its last dimension, x @ lower the same from the right: as
    products they are faster than cumsum and flip. x * lower is faster than tril.
    """
    ones = _ones_above(like.size(1), like)
    return torch.stack([ones[:, 1:].mT, ones[:, 1:], ones[:, :-1]])


def _ones_above(n: int, like: Tensor) -> Tensor:
    """(n, n+1): 1 above the diagonal, 0 elsewhere."""
    return like.new_ones(n, n + 1).triu(1)


def _range_maximum(distance: Tensor, lower: Tensor) -> tuple[Tensor, Tensor]:
    """Distances (B, n-1) -> (B, n, n): the largest between tokens i < j, far below all others for i >= j.

    And (B, n, n): the token after that gap, 0 for i >= j. `lower` is of `_triangles`.
    """
    gap_before = F.pad(distance, (1, 0), value=_OVER_BORDERS)  # above all that a row has where j <= i
    return torch.add(gap_before[:, None, :], lower, alpha=-_NO_SPAN).cummax(-1)
