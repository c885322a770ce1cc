"""P_D on a GPU by Triton: one kernel forward and one backward, one program per sentence.

It needs `triton`, which comes with PyTorch's builds for GPUs. The names are those of in_pytorch.py. A program
keeps its matrices (N, N) in registers, N being the power of 2 from n on; the backward pass computes those of
the forward pass again. No program adds to what another one writes: the same arguments give the same bytes.
"""

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from synmask.induction.in_pytorch import BORDER as _BORDER
from synmask.induction.in_pytorch import gradients_by_autograd, height_range

# A thread has at most 255 registers. Compiled for sm_90, with the warps of `_run`, the forward and the
# backward pass take 36 and 100 at N = 16, 100 and 246 at N = 32. At N = 64 the factors of a product alone
# take 512: the backward pass keeps 3.5 KB per thread in local memory; at N = 128, the forward pass 30 KB.
LONGEST = 64  # tokens
BORDER = tl.constexpr(_BORDER)
BELOW_ALL = tl.constexpr(-math.inf)


def supports(height: Tensor) -> bool:
    """Whether the kernels take a batch of these heights (B, n): up to 64 tokens, in float32."""
    return height.dtype == torch.float32 and height.size(1) <= LONGEST


@triton.jit
def _larger(x, y):
    return tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _sum_in_step(earlier, begun, x, begins):
    """Two neighbours of a scan, combined: the sum starts at 0 where a step begins."""
    return tl.where(begins != 0, x, earlier + x), begun | begins


@triton.jit
def _product(x, y):
    return tl.dot(x, y, input_precision="ieee")  # TF32 would spoil P_D


@triton.jit
def _triangles(N: tl.constexpr):
    """Where j <= i, and where j >= i."""
    j = tl.arange(0, N)
    return j[None, :] <= j[:, None], j[None, :] >= j[:, None]


@triton.jit
def _real(padding, j, n):
    """Whether there is a real token at place j of the sentence, whose n tokens have this padding."""
    real = (j >= 0) & (j < n)
    if padding is not None:
        real = real & (tl.load(padding + j, mask=real, other=1) == 0)
    return real


@triton.jit
def _tokens(distance, height, padding, height_scale, n, reach, N: tl.constexpr):
    """Where a sentence has real tokens, their heights, the gaps before and after them, and their weights."""
    b, j = tl.program_id(0), tl.arange(0, N)
    if padding is not None:
        padding += b * n
    real = _real(padding, j, n)
    height = tl.load(height + b * n + j, mask=real, other=0.0)
    gap = distance + b * (n - 1) + j
    before = tl.load(gap - 1, mask=real & _real(padding, j - 1, n), other=BORDER)
    after = tl.load(gap, mask=real & _real(padding, j + 1, n), other=BORDER)
    logits = tl.where(real, height_scale * height, BELOW_ALL)
    logits = tl.where(real, logits - tl.max(logits, 0), 0.0)
    near = tl.where(logits < -reach, -reach, logits)
    # in float64, since the fast exponential of a GPU is wrong by 4e-6 at the ends of the range
    weight = tl.exp((near - tl.min(near, 0) / 2).to(tl.float64)).to(tl.float32)
    return real, height, before, after, logits, weight


@triton.jit
def _inside(distance_scale, height, farthest):
    return tl.sigmoid(distance_scale * (height[:, None] - farthest))


@triton.jit
def _matrices(real, height, before, after, weight, distance_scale, N: tl.constexpr):
    """The largest distances, `inside` of j, of j - 1 and of j + 1, p_L, p_R and 1/Z."""
    lower, upper = _triangles(N)
    farthest = tl.associative_scan(tl.where(lower, BELOW_ALL, before[None, :]), 1, _larger)
    farthest = _larger(farthest, tl.trans(farthest))
    inside = _inside(distance_scale, height, farthest)
    inside_left = _inside(distance_scale, height, _larger(farthest, before[None, :]))
    inside_right = _inside(distance_scale, height, _larger(farthest, after[None, :]))
    left = tl.where(lower & real[:, None], inside - inside_left, 0.0)
    right = tl.where(upper & real[:, None], inside - inside_right, 0.0)
    sums = tl.cumsum(tl.where(upper, weight[None, :], 0.0), 1)
    inverse = tl.where(upper, 1 / sums, 0.0)
    return farthest, inside, inside_left, inside_right, left, right, inverse


@triton.jit
def _place(n, N: tl.constexpr):
    """Where the program's matrix (n, n) lies in (B, n, n), and which of its entries there are."""
    j = tl.arange(0, N)
    place = (tl.program_id(0) * n + j[:, None]) * n + j[None, :]
    return place, (j[:, None] < n) & (j[None, :] < n)


@triton.jit
def _forward(distance, height, padding, distance_scale, height_scale, out, n, reach, N: tl.constexpr):
    distance_scale, height_scale = tl.load(distance_scale), tl.load(height_scale)
    real, height, before, after, _, weight = _tokens(distance, height, padding, height_scale, n, reach, N)
    _, _, _, _, left, right, inverse = _matrices(real, height, before, after, weight, distance_scale, N)
    at_left = tl.cumsum(left * _product(right, tl.trans(inverse)), 1)
    at_right = tl.cumsum(right * _product(left, inverse), 1, reverse=True)
    lower, _ = _triangles(N)
    place, there = _place(n, N)
    tl.store(out + place, tl.where(lower, at_left, at_right) * weight[None, :], mask=there)


@triton.jit
def _backward(
    distance, height, padding, distance_scale, height_scale, grad,
    grad_distance, grad_height, grad_distance_scale, grad_height_scale, n, reach, N: tl.constexpr,
):  # fmt: skip
    """The gradients of one sentence; those of the scales are its share."""
    b, j = tl.program_id(0), tl.arange(0, N)
    lower, upper = _triangles(N)
    distance_scale, height_scale = tl.load(distance_scale), tl.load(height_scale)
    real, height, before, after, logits, weight = _tokens(
        distance, height, padding, height_scale, n, reach, N
    )
    farthest, inside, inside_left, inside_right, left, right, inverse = _matrices(
        real, height, before, after, weight, distance_scale, N
    )
    place, there = _place(n, N)
    grad = tl.load(grad + place, mask=there, other=0.0) * weight[None, :]
    grad_left = tl.cumsum(tl.where(lower, grad, 0.0), 1, reverse=True)
    grad_right = tl.cumsum(tl.where(lower, 0.0, grad), 1)
    to_left, to_right = grad_left * left, grad_right * right
    transposed = tl.trans(inverse)
    through_left, through_right = _product(right, transposed), _product(left, inverse)
    at_left, at_right = tl.cumsum(left * through_left, 1), tl.cumsum(right * through_right, 1, reverse=True)
    grad_logits = tl.sum(grad * tl.where(lower, at_left, at_right), 0)
    # d(1/Z) = -(1/Z)(1/Z) dZ; the first product is moderate, so the second does not overflow.
    grad_z = (_product(tl.trans(to_left), right) + _product(tl.trans(left), to_right)) * inverse * inverse
    # what is subtracted: over the spans that hold the token
    grad_z = tl.where(upper, tl.cumsum(grad_z, 1, reverse=True), 0.0)
    grad_logits -= weight * tl.sum(grad_z, 0)
    grad_logits = tl.where(real & (logits > -(1 + 1e-6) * reach), grad_logits, 0.0)

    grad_left = grad_left * through_left + _product(to_right, transposed)
    grad_right = grad_right * through_right + _product(to_left, inverse)
    # p_L and p_R are 0, and their gradients cancel, unless the gap beside j is above those between i and j.
    # Of equal gaps the last one counts as the largest. Beyond the diagonal these may overflow: cut off.
    grad_left = tl.where(lower & real[:, None] & (before[None, :] > farthest), grad_left, 0.0)
    grad_right = tl.where(upper & real[:, None] & (after[None, :] >= farthest), grad_right, 0.0)
    grad_over = (grad_left + grad_right) * inside * (1 - inside)
    grad_left *= inside_left * (1 - inside_left)
    grad_right *= inside_right * (1 - inside_right)
    # Back through the running maximum: each gap takes the sum over the step that begins with it.
    grad_step = tl.where(upper, grad_over + tl.trans(grad_over), 0.0)
    begins = (after[None, :] >= farthest).to(tl.int32)
    grad_step, _ = tl.associative_scan((grad_step, begins), 1, _sum_in_step, reverse=True)
    grad_step = tl.where(upper & (before[None, :] >= farthest), grad_step, 0.0)
    to_before, to_after = tl.sum(grad_left - grad_step, 0), tl.sum(grad_right, 0)
    # that of the gap after the token before
    to_before += tl.sum(tl.where(j[:, None] + 1 == j[None, :], to_after[:, None], 0.0), 0)
    to_height = tl.sum(grad_over - grad_left - grad_right, 1)

    tl.store(grad_distance + b * (n - 1) + j - 1, distance_scale * to_before, mask=(j >= 1) & (j < n))
    tl.store(grad_height + b * n + j, distance_scale * to_height + height_scale * grad_logits, mask=j < n)
    scaled = tl.where(before == BORDER, 0.0, before) * to_before + height * to_height
    tl.store(grad_distance_scale + b, tl.sum(scaled, 0))
    tl.store(grad_height_scale + b, tl.sum(height * grad_logits, 0))


class TritonDistribution(torch.autograd.Function):
    """Distance, height, padding, distance_scale, height_scale -> P_D (B, n, n), if `supports` says so."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor | None) -> Tensor:
        ctx.save_for_backward(*inputs)
        height = inputs[1]
        out = height.new_empty(*height.shape, height.size(1))
        _run(_forward, inputs, out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        inputs = ctx.saved_tensors
        if torch.is_grad_enabled():
            return gradients_by_autograd(inputs, ctx.needs_input_grad, grad)
        distance, height = (torch.empty_like(x, memory_format=torch.contiguous_format) for x in inputs[:2])
        scales = height.new_empty(2, len(height))
        _run(_backward, inputs, grad.contiguous(), distance, height, *scales)
        return distance, height, None, *scales.sum(1)


def _run(kernel: Any, inputs: tuple[Tensor | None, ...], *rest: Tensor) -> None:
    """Run a kernel on the batch, a program per sentence."""
    distance, height, padding, *scales = (x if x is None else x.contiguous() for x in inputs)
    if padding is not None:
        padding = padding.view(torch.uint8)
    batch, n = height.shape
    size = max(16, triton.next_power_of_2(n))
    with torch.cuda.device_of(height):
        kernel[(batch,)](
            distance, height, padding, *scales, *rest, n, height_range(height.dtype),
            N=size, num_warps=4 if size == 16 else 8,
        )  # fmt: skip
