"""Modules of PyTorch and of the method, faster on a CPU: `accelerate` puts them into a model."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmask import encoder
from synmask.pipeline.cpu import bf16
from synmask.pipeline.cpu.bf16 import bf16_product, lacks_bf16, recompute_contexts
from synmask.pipeline.cpu.processor import CPU, ONEDNN_WEIGHT

LEVELS = 1 << 16  # random numbers that a mask is drawn from
# oneDNN gets products of a multiple of so many rows. It makes code for each new size, which takes more than a
# millisecond and up to 1 MB, and what is kept of it lies scattered over the heap (docs/performance.md).
ROW_MULTIPLE = 128


def dropout(x: Tensor, p: float) -> Tensor:
    """Set each number of `x` to 0 with probability `p`, and divide the others by 1 - p.

    On a CPU, torch draws one number per element, which takes ten times as long as a multiplication. Here,
    four elements share a draw of 64 bits, which rounds p to a multiple of 2**-16. Torch's generator draws
    sequentially, so the mask depends only on the seed, not on the number of threads.
    """
    dropped = round(p * LEVELS)
    if x.device.type != "cpu" or dropped == LEVELS:
        return F.dropout(x, p)
    return _Dropout.apply(x, dropped)


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dropped: int) -> Tensor:
        draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        # torch compares in place, and multiplies by bytes, several times as fast as it makes and takes bools
        keep = draws.view(torch.int16)[: x.numel()].ge_(dropped - LEVELS // 2).to(torch.uint8).view(x.shape)
        ctx.save_for_backward(keep)
        ctx.scale = LEVELS / (LEVELS - dropped)
        return (x * keep).mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (keep,) = ctx.saved_tensors
        return (grad * keep).mul_(ctx.scale), None


class FastDropout(nn.Dropout):
    """torch's dropout module with the function `dropout`."""

    def forward(self, x: Tensor, inplace: bool = False) -> Tensor:
        return dropout(x, self.p) if self.training and self.p else x


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """torch's `linear`: x (..., d), weight (e, d), bias (e,) → (..., e).

    Where `processor.CPU` says so, oneDNN computes the products of forward and backward. Under autocast, as
    torch's, in its type.
    """
    return bf16_product(_linear, x, weight, bias)


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    large = x.dtype == torch.bfloat16 or (x.dtype == torch.float32 and weight.numel() >= ONEDNN_WEIGHT)
    ours = x.device.type == "cpu" and x.dtype == weight.dtype and large
    if not (ours and x.numel() and CPU.linear == "oneDNN" and torch.backends.mkldnn.is_available()):
        return F.linear(x, weight, bias)
    return _Linear.apply(x.reshape(-1, x.size(-1)), weight, bias).view(*x.shape[:-1], -1)


def _onednn_product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


def _product_of_rows(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (N, d), weight (e, d) → (N, e).

    The narrower side is copied, to fill up or to join its rows; in bf16 always x, since torch leaves the
    other rows to oneDNN, too.
    """
    count = len(x)
    rest = count % ROW_MULTIPLE
    if rest and x.size(1) > weight.size(0) and count > ROW_MULTIPLE and x.dtype == torch.float32:
        whole, last = x.split([count - rest, rest])
        return torch.cat([_onednn_product(whole, weight, bias), F.linear(last, weight, bias)])
    filled = F.pad(x, (0, 0, 0, ROW_MULTIPLE - rest)) if rest else x
    return _onednn_product(filled, weight, bias).resize_(count, weight.size(0))


def _product_over_rows(grad: Tensor, x: Tensor) -> Tensor:
    """grad (N, e), x (N, d) → grad.t() @ x."""
    rest = len(x) % ROW_MULTIPLE
    if rest and x.dtype == torch.bfloat16:
        grad, x = (F.pad(matrix, (0, 0, 0, ROW_MULTIPLE - rest)) for matrix in (grad, x))
        rest = 0
    if rest == len(x):
        return grad.t() @ x
    whole, whole_x = grad[: len(x) - rest], x[: len(x) - rest]
    if grad.size(1) > 2 * x.size(1):  # then the transposed product is the faster one
        product = _onednn_product(whole_x.t(), whole.t()).t()
    else:
        product = _onednn_product(whole.t(), whole_x.t())
    return product.addmm_(grad[-rest:].t(), x[-rest:]) if rest else product


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _product_of_rows(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        to_x, to_weight, to_bias = ctx.needs_input_grad
        return (
            _product_of_rows(grad, weight.t()) if to_x else None,
            _product_over_rows(grad, x) if to_weight else None,
            grad.sum(0) if to_bias else None,
        )


class FastLinear(nn.Linear):
    """torch's linear layer with the function `linear`."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


class FastConv1d(nn.Conv1d):
    """torch's convolution with `padding="same"`, as one product where `processor.CPU` says so."""

    def forward(self, x: Tensor) -> Tensor:
        if x.device.type == "cpu" and CPU.convolution == "oneDNN" and not lacks_bf16(x):
            return super().forward(x)
        # also on a GPU: cuDNN's in float32 is suspected of 9 GB (docs/performance.md)
        return convolve_as_product(self, x.mT).mT


def convolve_as_product(convolution: nn.Conv1d, x: Tensor) -> Tensor:
    """A convolution with `padding="same"` of x (B, n, d) as one matrix product, (B, n, d)."""
    return bf16_product(_over_windows, x, convolution.weight, convolution.bias)


def _over_windows(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.linear(_Windows.apply(x, weight.size(2)), weight.mT.flatten(1), bias)


class _Windows(torch.autograd.Function):
    """x (B, n, d), 0 beyond its ends -> what a kernel sees at each token, (B, n, kernel * d)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kernel: int) -> Tensor:
        before = (kernel - 1) // 2
        padded = F.pad(x, (0, 0, before, kernel - 1 - before))
        ctx.shape, ctx.kernel, ctx.before = padded.shape, kernel, before
        return padded.unfold(1, kernel, 1).mT.flatten(2).contiguous()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        padded = (_fold_by_place if grad.is_cpu else _fold_at_once)(grad, ctx.shape, ctx.kernel)
        return padded[:, ctx.before : ctx.before + grad.size(1)], None


def _fold_by_place(grad: Tensor, shape: torch.Size, kernel: int) -> Tensor:
    """The gradient of windows (B, n, kernel * d) -> that of the padded states, of `shape`.

    On a CPU, `_fold_at_once` takes 2 to 5 times as long. On a GPU, this launches operators for each place.
    """
    padded = grad.new_zeros(shape)
    for place, part in enumerate(grad.chunk(kernel, dim=2)):
        padded[:, place : place + grad.size(1)] += part
    return padded


def _fold_at_once(grad: Tensor, shape: torch.Size, kernel: int) -> Tensor:
    windows = grad.unflatten(2, (kernel, -1)).mT
    return torch.ops.aten.unfold_backward(windows, shape, 1, kernel, 1)


def attention(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, drop: nn.Module) -> Tensor:
    """Scaled queries (B, H, m, d), keys and values (B, H, n, d) → (B, H, m, d).

    On a CPU by products and a softmax: forward and backward, torch's fused attention takes up to 1.3 times as
    long in float32 (heads of 16 x 64 numbers; at 512 tokens 0.7 times), and up to 5 times in bf16.

    Args:
        bias: is added to the scores (B, H, m, n); it may have ones for any of their sizes.
        drop: for the weights; its rate is `drop.p`.
    """
    if query.device.type != "cpu":
        dropped = drop.p if drop.training else 0.0
        return F.scaled_dot_product_attention(query, key, value, bias, dropped, scale=1.0)
    scores = query @ key.mT
    return drop((scores if bias is None else scores + bias).softmax(-1)) @ value


class FastSelfAttention(encoder.SelfAttention):
    """The method's self-attention with the function `attention`."""

    def attention(self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
        return attention(query, key, value, bias, self.dropout_module)


Classes = dict[type[nn.Module], type[nn.Module]]  # of modules → those in their places
FAST_MODULES: Classes = {
    nn.Dropout: FastDropout,
    nn.Linear: FastLinear,
    nn.Conv1d: FastConv1d,
    encoder.SelfAttention: FastSelfAttention,
}


def accelerate(model: nn.Module, classes: Classes = FAST_MODULES) -> nn.Module:
    """Change the classes of a model's modules, in place, to those that this processor computes faster.

    Parameters and their names stay. Results differ in the last bits, and dropout draws other masks. For a
    model of fairseq's modules, `classes` are `training.operators.FAIRSEQ_MODULES`.
    """
    for module in model.modules():
        module.__class__ = classes.get(type(module), type(module))
        if hasattr(module, "checkpointing") and not bf16.has_instructions():
            module.checkpointing = {"context_fn": recompute_contexts}
    return model
