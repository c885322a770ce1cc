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

from synmask.kernels import load

# Scaled heights are exponentiated centred on the middle of their range r: e^(-r/2) ... e^(r/2) must fit the
# floating type with room to spare for the gradients, which are up to n^2 times larger.
_ROOM = 0.8


def height_range(dtype: torch.dtype) -> float:
    """How far below the sentence's highest a scaled height may lie and still count exactly.

    142 in float32 (and for narrower types, which are computed in float32), 1135 in float64.
    """
    return 2 * _ROOM * math.log(torch.finfo(torch.promote_types(dtype, torch.float32)).max)


_KERNEL = load(__package__, Path(__file__).with_name("kernel.cpp"))


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
        ValueError: an argument has a wrong shape or type, or a sentence is all pads (looked for on the
            CPU only: on a GPU it would make the host wait).
    """
    _check(distance, height, padding)
    if padding is not None and padding.device.type == "cpu" and padding.all(1).any():
        raise ValueError(f"padding {tuple(padding.shape)} has a row without a real token")
    distance, height = _exact(distance, height)
    if implementation(height.device) == "PyTorch":
        return _in_pytorch(distance, height, padding, distance_scale, height_scale)
    scales = (torch.as_tensor(scale, dtype=height.dtype) for scale in (distance_scale, height_scale))
    return _InCpp.apply(distance, height, padding, *scales)


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
    return distance - calibration_margin(distance, height, padding)


def calibration_margin(distance: Tensor, height: Tensor, padding: Tensor | None = None) -> Tensor:
    """The number that `calibrate` subtracts from a sentence's distances: (B, 1), in float32 or wider."""
    _check(distance, height, padding)
    distance, height = _exact(distance, height)
    n = height.size(1)
    border = distance
    if padding is not None:
        border = distance.masked_fill(padding[:, 1:] | padding[:, :-1], math.inf)
    border = F.pad(border, (1, 1), value=math.inf)
    with torch.no_grad():  # the gradient reaches three numbers per sentence: it needs no (n, n)
        spans = torch.ones(n, n, dtype=torch.bool, device=height.device).triu()
        highest, where = height[:, None, :].masked_fill(~spans, -math.inf).cummax(-1)
        narrower = torch.minimum(border[:, :-1, None], border[:, None, 1:])  # of span [l, r]
        proper = spans & (narrower < math.inf)  # the whole sentence has two infinite borders
        if padding is not None:
            real = ~padding
            proper = proper & real[:, :, None] & real[:, None, :]
        # Some span is never proper (the sentence itself), so the largest is 0 at least.
        margin, span = torch.where(proper, narrower - highest, 0).flatten(1).max(1, keepdim=True)
        borders = torch.cat([span // n, span % n + 1], dim=1)
        token = where.flatten(1).gather(1, span)
    cut_off = border.gather(1, borders).amin(1, keepdim=True) - height.gather(1, token)
    return torch.where(margin > 0, cut_off, margin)


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
    if padding is not None and (padding.shape != height.shape or padding.dtype != torch.bool):
        raise ValueError(
            f"padding must be (B, n) = {(batch, n)} bool, not {tuple(padding.shape)} {padding.dtype}"
        )


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


def _in_pytorch(
    distance: Tensor,
    height: Tensor,
    padding: Tensor | None,
    distance_scale: float | Tensor,
    height_scale: float | Tensor,
) -> Tensor:
    outside = None
    if padding is not None:
        height = height.masked_fill(padding, 0)
        distance = distance.masked_fill(padding[:, 1:] | padding[:, :-1], 0)
        outside = padding[:, None, :] | padding[:, :, None]
    logits = _centred(height_scale * height, padding)
    with torch.autocast(height.device.type, enabled=False):
        return _InPyTorch.apply(distance_scale * distance, distance_scale * height, logits, outside)


def _centred(logits: Tensor, padding: Tensor | None) -> Tensor:
    """Clamp scaled heights (B, n) to the exact range and shift its middle to 0 (pads: 0).

    A constant added to all heights changes nothing, so the shift needs no gradient.
    """
    with torch.no_grad():
        real = logits if padding is None else logits.masked_fill(padding, -math.inf)
        top = real.amax(1, keepdim=True)
        real = logits if padding is None else logits.masked_fill(padding, math.inf)
        low = torch.maximum(real.amin(1, keepdim=True), top - height_range(logits.dtype))
        middle = (top + low) / 2
    centred = logits.clamp(min=low) - middle
    return centred if padding is None else centred.masked_fill(padding, 0)


class _InPyTorch(torch.autograd.Function):
    """Scaled distances (B, n-1), scaled heights (B, n), logits of the parent (B, n) -> P_D (B, n, n).

    `outside` (B, n, n) bool or None is True where a token is a pad. The names follow docs/method.md: inside
    = p(j in C(i)); left, right = p_L, p_R; inverse = 1/Z; share = P_D without its factor exp(height of j).

    The backward pass is written out because autograd's of 1/Z squares numbers near the limit of the floating
    type, so that gradients would overflow from half the range on. It cannot be differentiated again.
    """

    @staticmethod
    def forward(ctx: Any, distance: Tensor, height: Tensor, logits: Tensor, outside: Tensor | None) -> Tensor:
        lower, upper, above = _triangles(height)
        farthest, where = _range_maximum(distance, lower)
        inside = (height[:, :, None] - torch.maximum(farthest, farthest.mT)).sigmoid_()
        if outside is not None:
            inside.masked_fill_(outside, 0)
        left, right = inside.clone(), inside.clone()
        left[..., 1:].sub_(inside[..., :-1])
        left *= lower
        right[..., :-1].sub_(inside[..., 1:])
        right *= upper
        weight = logits.exp()
        # Z[l, r]: sums of positive numbers only, so as exact as logcumsumexp, and many times faster.
        # Below the diagonal, where left and right are 0, any finite number will do for 1/Z.
        inverse = (weight[:, None, :] * upper @ upper).add_(above.mT).reciprocal_()
        from_left, from_right = right @ inverse.mT, left @ inverse
        share = (left * from_left @ upper).mul_(lower).addcmul_(right * from_right @ lower, above)
        ctx.triangles = lower, upper, above
        ctx.save_for_backward(where, inside, left, right, inverse, from_left, from_right, share, weight)
        return share * weight[:, None, :]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        with torch.autocast(grad.device.type, enabled=False):
            return _InPyTorch._gradients(ctx, grad)

    @staticmethod
    def _gradients(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        where, inside, left, right, inverse, from_left, from_right, share, weight = ctx.saved_tensors
        lower, upper, above = ctx.triangles
        grad_weight = (grad * share).sum(1)
        grad = grad * weight[:, None, :]
        grad_below, grad_above = grad * lower @ lower, grad * above @ upper
        to_left, to_right = grad_below * left, grad_above * right
        # d(1/Z) = -(1/Z)(1/Z) dZ; the first product is moderate, so the second does not overflow.
        grad_z = torch.baddbmm(to_left.mT @ right, left.mT, to_right).mul_(inverse).mul_(inverse)
        grad_weight -= (grad_z @ lower).mul_(upper).sum(1)  # over the spans that hold the token
        # Beyond the diagonal these may overflow: cut off, since a product with 0 would not clear them.
        grad_left = grad_below.mul_(from_left).baddbmm_(to_right, inverse.mT).tril_()
        grad_right = grad_above.mul_(from_right).baddbmm_(to_left, inverse).triu_()
        grad_inside = grad_left + grad_right
        grad_inside[..., :-1].sub_(grad_left[..., 1:])
        grad_inside[..., 1:].sub_(grad_right[..., :-1])
        grad_gap = torch.ops.aten.sigmoid_backward(grad_inside, inside)
        grad_height = grad_gap.sum(2)
        grad_gap = (grad_gap + grad_gap.mT).mul_(above).flatten(1)
        grad_distance = torch.zeros_like(weight).scatter_add_(1, where.flatten(1), grad_gap)[:, 1:]
        return -grad_distance, grad_height, grad_weight * weight, None


def _triangles(like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For `like` (B, n), ones in (n, n) below the diagonal and on it, above it and on it, above it.

    x @ upper is the cumulative sum of x along its last dimension, x @ lower the same from the right: as
    products they are faster than cumsum and flip. x * lower is faster than tril.
    """
    ones = like.new_ones(like.size(1), like.size(1))
    return ones.tril(), ones.triu(), ones.triu(1)


def _range_maximum(distance: Tensor, lower: Tensor) -> tuple[Tensor, Tensor]:
    """Distances (B, n-1) -> (B, n, n): the largest between tokens i < j, -infinity for i >= j.

    And (B, n, n): the token after that gap. `lower` is of `_triangles`.
    """
    gap_before = F.pad(distance, (1, 0), value=-math.inf)
    return (gap_before[:, None, :] + torch.where(lower > 0, -math.inf, 0.0)).cummax(-1)
