"""P_D by PyTorch's operators.

`FusedDistribution` has a backward pass of its own: for GPUs, and where no C++ compiler was found. Autograd
differentiates `distribution_in_pytorch`, as often as one likes: for compiled and exported models, under
torch.func, and for second derivatives.

The names follow docs/method.md: inside = p(j in C(i)), inverse = 1/Z, share = P_D without its factor
exp(height of j).
"""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
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


def exact(x: Tensor) -> AbstractContextManager:
    """Without autocast on the device of `x`."""
    device = x.device.type
    if device != "meta" and torch.is_autocast_enabled(device):
        return torch.autocast(device, enabled=False)
    return nullcontext()


def distribution_in_pytorch(
    distance: Tensor, height: Tensor, padding: Tensor | None, distance_scale: Tensor, height_scale: Tensor
) -> Tensor:
    """Distance (B, n-1), height (B, n), padding (B, n), two 0-d scales → P_D (B, n, n)."""
    with exact(height):
        distance, height = _without_pads(distance, height, padding)
        n = height.size(1)
        above = ones_above(n, height)
        # x @ upper is a cumulative sum, x @ lower the same from the right
        lower, upper = above[:, 1:].mT, above[:, 1:]
        farthest = running_maximum(gaps(distance, lower))
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


def _without_pads(distance: Tensor, height: Tensor, padding: Tensor | None) -> tuple[Tensor, Tensor]:
    """Distances and heights in which a pad is beyond the sentence, and its own constituent is empty."""
    if padding is None:
        return distance, height
    distance = distance.masked_fill(padding[:, 1:] | padding[:, :-1], BORDER)
    return distance, height.masked_fill(padding, -_PAD_DEPTH)


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
        with exact(grad):
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
    logits = torch.where(logits < -(1 + 1e-6) * reach, -reach, logits)
    return (logits - logits.detach().amin(1, keepdim=True) / 2).exp()


def ones_above(n: int, like: Tensor) -> Tensor:
    """(n, n+1): 1 above the diagonal, 0 elsewhere."""
    return like.new_ones(n, n + 1).triu(1)


def gaps(distance: Tensor, lower: Tensor) -> Tensor:
    """Distances (B, n-1) → (B, n, n): in row i, of the gap before each token j > i; far below where j <= i.

    The largest up to column j is then the largest between i and j. `lower` is 1 on and below the diagonal.
    """
    gap_before = F.pad(distance, (1, 0), value=OVER_BORDERS)  # above all that a row has where j <= i
    return torch.add(gap_before[:, None, :], lower, alpha=-NO_SPAN)


def running_maximum(x: Tensor) -> Tensor:
    """x (B, n, n) → the largest number of each row up to each column."""
    if not torch.compiler.is_exporting():
        return x.cummax(-1).values
    # ONNX has no cummax: over 2, 4, 8, … columns, up to 65,536.
    steps = 2 ** torch.arange(16, device=x.device)
    earlier = (torch.arange(x.size(-1), device=x.device) - steps[:, None]).clamp(min=0)
    for columns in earlier:
        x = torch.maximum(x, x.index_select(-1, columns))
    return x


def gradients_by_autograd(
    inputs: Sequence[Tensor | None], needed: Sequence[bool], grad: Tensor
) -> tuple[Tensor | None, ...]:
    """The gradients of the needed arguments of `distribution_in_pytorch`, to be differentiated in turn."""
    leaves = [x for x, needs in zip(inputs, needed, strict=True) if needs]
    output = distribution_in_pytorch(*inputs)
    gradients = iter(torch.autograd.grad(output, leaves, grad, create_graph=True))
    return tuple(next(gradients) if needs else None for needs in needed)


class FusedDistribution(torch.autograd.Function):
    """Distance, height, padding, distance_scale, height_scale -> P_D (B, n, n).

    Few and large operators, and the backward pass written out: autograd's keeps more matrices and runs more
    operators. `sides` are p_L and p_R, `through` is what they are multiplied with, both (2, B, n, n).
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor | None) -> Tensor:
        distance, height, padding, distance_scale, height_scale = inputs
        with exact(height):
            distance, height = _without_pads(distance, height, padding)
            batch, n = height.shape
            triangles = lower, upper, above = _triangles(height)
            farthest, where = gaps(distance, lower).cummax(-1)
            over = height[:, :, None] - torch.maximum(farthest, farthest.mT)
            inside = F.pad(distance_scale * over, (1, 1), value=-math.inf).sigmoid_()
            beside = inside.unfold(-1, n, 2).movedim(2, 0)  # inside of j - 1, of j + 1
            inside = inside[..., 1:-1]
            sides = torch.sub(inside, beside, out=height.new_empty(2, batch, n, n)).mul_(triangles[:2, None])
            logits, weight = _far_and_weights(height_scale * height)
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
                *inputs, height, where, over, inside, sides, logits, weight, inverse, through, share
            )
            return share * weight[:, None, :]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        inputs, saved = ctx.saved_tensors[:5], ctx.saved_tensors[5:]
        if torch.is_grad_enabled():
            return gradients_by_autograd(inputs, ctx.needs_input_grad, grad)
        with exact(grad):
            return FusedDistribution._gradients(inputs, saved, ctx.triangles, grad)

    @staticmethod
    def _gradients(
        inputs: tuple[Tensor, ...], saved: tuple[Tensor, ...], triangles: Tensor, grad: Tensor
    ) -> tuple[Tensor | None, ...]:
        *_, distance_scale, height_scale = inputs
        height, where, over, inside, sides, logits, weight, inverse, through, share = saved
        lower, upper, _ = triangles
        grad_share, grad = grad * share, grad * weight[:, None, :]
        grad_sides = _summed(grad * triangles[::2, None], triangles[:2])
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


def _far_and_weights(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Scaled heights (B, n), far below all others at pads -> how far they lie below the highest (pads: 0).

    And their exponentials, in the exact range and centred on its middle.
    """
    logits = F.threshold(logits.sub_(logits.amax(1, keepdim=True)), -BORDER, 0, inplace=True)
    near = logits.clamp(min=-height_range(logits.dtype))
    return logits, torch.sub(near, near.amin(1, keepdim=True), alpha=0.5).exp_()


def _summed(x: Tensor, triangles: Tensor) -> Tensor:
    """x (2, B, n, n), triangles (2, n, n): the sums of each row's numbers up to a column, or from it."""
    return torch.bmm(x.flatten(1, 2), triangles).view_as(x)


def _triangles(like: Tensor) -> Tensor:
    """For `like` (B, n), ones in (3, n, n) below the diagonal and on it, above it and on it, above it.

    x @ upper is the cumulative sum of x along its last dimension, x @ lower the same from the right: as
    products they are faster than cumsum and flip. x * lower is faster than tril.
    """
    ones = ones_above(like.size(1), like)
    return torch.stack([ones[:, 1:].mT, ones[:, 1:], ones[:, :-1]])
