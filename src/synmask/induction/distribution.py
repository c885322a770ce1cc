"""Distances and heights of a sentence -> the distribution of every token's parent.

The distribution of StructFormer (Shen et al. 2021), which Kai et al. 2024 put into a Transformer. Token i
has a random constituent C(i) = [l, r]; its parent is one token j of it, the likelier the higher j is.

The literal definition (`synmask.induction.literal`) sums over all spans, O(n^4) time and O(n^3) memory. Here
it is factorised, exactly: O(n^3) time and O(n^2) memory (docs/method.md). It is written in C++ (kernel.cpp)
for CPUs, in PyTorch for GPUs and where no C++ compiler was found at set-up, and in Triton (in_triton.py).
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from synmask.checks import check_padding, is_functorch
from synmask.induction.in_pytorch import (
    BORDER,
    NO_SPAN,
    OVER_BORDERS,
    FusedDistribution,
    distribution_in_pytorch,
    ones_above,
    running_maximum,
)
from synmask.induction.operators import implementation, parent_distribution


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
        and columns of pads are 0. Differentiable in distance, height and the scales, also twice. In float32,
        also for narrower types and under autocast, or float64.

    Raises:
        ValueError: an argument has a wrong shape or type, or a sentence is all pads (looked for on a CPU
            only: on a GPU the host would have to wait).
    """
    _check(distance, height, padding)
    distance, height = _exact(distance, height)
    scales = [
        torch.as_tensor(scale, dtype=height.dtype, device=height.device)
        for scale in (distance_scale, height_scale)
    ]
    plain = torch.compiler.is_exporting() or is_functorch(distance, height, *scales)
    chosen = implementation(height.device)
    if chosen == "C++" and not plain:
        return parent_distribution(distance, height, padding, *scales)
    if plain or torch.compiler.is_compiling():
        return distribution_in_pytorch(distance, height, padding, *scales)
    if chosen == "Triton":
        from synmask.induction import in_triton  # it needs `triton`, which not every PyTorch has

        if in_triton.supports(height):
            return in_triton.TritonDistribution.apply(distance, height, padding, *scales)
    return FusedDistribution.apply(distance, height, padding, *scales)


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
    return distance - _margin(distance, height, padding)


def calibration_margin(distance: Tensor, height: Tensor, padding: Tensor | None = None) -> Tensor:
    """The number that `calibrate` subtracts from a sentence's distances: (B, 1), in float32 or wider."""
    _check(distance, height, padding)
    return _margin(*_exact(distance, height), padding)


def _margin(distance: Tensor, height: Tensor, padding: Tensor | None) -> Tensor:
    border, heights = _borders_and_heights(distance, height, padding)
    if torch.compiler.is_exporting():
        return -_spare(border, running_maximum(heights)).flatten(1).amin(1, keepdim=True)
    # The margin is the difference of one distance and one height, whose places need no gradient.
    n = height.size(1)
    highest, token = heights.detach().cummax(-1)
    least, span = _spare(border.detach(), highest).flatten(1).min(1, keepdim=True)
    left, right = border.gather(1, span // n), border.gather(1, span % n + 1)
    nearer = torch.where(left <= right, left, right)
    token = token.flatten(1).gather(1, span)
    return torch.where(least < 0, nearer - height.gather(1, token), 0)


def _borders_and_heights(distance: Tensor, height: Tensor, padding: Tensor | None) -> tuple[Tensor, Tensor]:
    """The borders (B, n+1) between which tokens stand; in row l (B, n, n) the heights from l on."""
    if padding is not None:  # a span with a pad is the lowest, and never cut off
        distance = distance.masked_fill(padding[:, 1:] | padding[:, :-1], BORDER)
        height = height.masked_fill(padding, OVER_BORDERS)
    below = ones_above(height.size(1), height)[:, :-1].mT
    return F.pad(distance, (1, 1), value=BORDER), torch.add(height[:, None, :], below, alpha=-NO_SPAN)


def _spare(border: Tensor, highest: Tensor) -> Tensor:
    """How far each span's highest token (B, n, n) is above the lower of its borders (B, n+1).

    0 for no proper span: the whole sentence, which has two borders beyond it, and l > r.
    """
    spare = highest - torch.minimum(border[:, :-1, None], border[:, None, 1:])
    return F.threshold(spare, -0.1 * BORDER, 0, inplace=True)


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
    dtype = torch.promote_types(torch.promote_types(distance.dtype, height.dtype), torch.float32)
    return distance.to(dtype), height.to(dtype)
