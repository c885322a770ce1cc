"""Faster versions of the costliest operations of a training step."""

import math
from inspect import unwrap
from typing import Any

import torch
from fairseq import optim
from fairseq.modules import FairseqDropout, MultiheadAttention
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig
from torch import Tensor, nn

from synmask import bf16
from synmask.encoder import attention, by_head
from synmask.processor import CPU

LEVELS = 1 << 16  # random numbers that a mask is drawn from
# oneDNN gets products of a multiple of so many rows. It makes code for each new size, which takes more than a
# millisecond and up to 1 MB, and what is kept of it lies scattered over the heap (docs/performance.md).
ROWS = 128
IGNORE_INDEX = -100  # torch's class that no token has


def dropout(x: Tensor, p: float) -> Tensor:
    """Set each number of `x` to 0 with probability `p`, and divide the others by 1 - p.

    On a CPU, torch draws one number per element, which takes ten times as long as a multiplication. Here,
    four elements share a draw of 64 bits, which rounds p to a multiple of 2**-16. Torch's generator draws
    sequentially, so the mask depends only on the seed, not on the number of threads.
    """
    dropped = round(p * LEVELS)
    if x.device.type != "cpu" or dropped == LEVELS or CPU.dropout == "PyTorch":
        return nn.functional.dropout(x, p)
    return _Dropout.apply(x, dropped)


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dropped: int) -> Tensor:
        draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        keep = (draws.view(torch.int16)[: x.numel()] >= dropped - LEVELS // 2).view(x.shape)
        ctx.save_for_backward(keep)
        ctx.scale = LEVELS / (LEVELS - dropped)
        return torch.ops.aten.native_dropout_backward(x, keep, ctx.scale)  # x * keep * scale

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (keep,) = ctx.saved_tensors
        return torch.ops.aten.native_dropout_backward(grad, keep, ctx.scale), None


class Dropout(nn.Dropout):
    """torch's dropout module with the function `dropout`."""

    def forward(self, x: Tensor, inplace: bool = False) -> Tensor:
        return dropout(x, self.p) if self.training and self.p else x


class DecoderDropout(FairseqDropout):
    """fairseq's dropout module with the function `dropout`."""

    forward = Dropout.forward


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """torch's `linear`: x (..., d), weight (e, d), bias (e,) → (..., e).

    Where `processor.CPU` says so, oneDNN computes the products of forward and backward. Under autocast, as
    torch's, in its type.
    """
    return bf16.computed(_linear, x, weight, bias)


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    ours = x.device.type == "cpu" and x.dtype == weight.dtype and x.dtype in (torch.float32, torch.bfloat16)
    if not (ours and x.numel() and CPU.linear == "oneDNN" and torch.backends.mkldnn.is_available()):
        return nn.functional.linear(x, weight, bias)
    return _Linear.apply(x.reshape(-1, x.size(-1)), weight, bias).view(*x.shape[:-1], -1)


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


def _product_of_rows(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (N, d), weight (e, d) → (N, e).

    The narrower side is copied, to fill up or to join its rows; in bf16 always x, since torch leaves the
    other rows to oneDNN, too.
    """
    count = len(x)
    rest = count % ROWS
    if rest and x.size(1) > weight.size(0) and count > ROWS and x.dtype == torch.float32:
        whole, last = x.split([count - rest, rest])
        return torch.cat([_product(whole, weight, bias), nn.functional.linear(last, weight, bias)])
    filled = nn.functional.pad(x, (0, 0, 0, ROWS - rest)) if rest else x
    return _product(filled, weight, bias).resize_(count, weight.size(0))


def _product_over_rows(grad: Tensor, x: Tensor) -> Tensor:
    """grad (N, e), x (N, d) → grad.t() @ x."""
    rest = len(x) % ROWS
    if rest and x.dtype == torch.bfloat16:
        grad, x = (nn.functional.pad(one, (0, 0, 0, ROWS - rest)) for one in (grad, x))
        rest = 0
    if rest == len(x):
        return grad.t() @ x
    whole, whole_x = grad[: len(x) - rest], x[: len(x) - rest]
    if grad.size(1) > 2 * x.size(1):  # then the transposed product is the faster one
        made = _product(whole_x.t(), whole.t()).t()
    else:
        made = _product(whole.t(), whole_x.t())
    return made.addmm_(grad[-rest:].t(), x[-rest:]) if rest else made


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


class Linear(nn.Linear):
    """torch's linear layer with the function `linear`."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


class Attention(MultiheadAttention):
    """fairseq's attention; in training, with the function `attention`."""

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        incremental_state: dict | None = None,
        need_weights: bool = True,
        static_kv: bool = False,
        attn_mask: Tensor | None = None,
        **kwargs: bool,
    ) -> tuple[Tensor, Tensor | None]:
        """query (m, B, d), key and value (n, B, d) → (m, B, d), and weights if they are needed."""
        if need_weights and incremental_state is None and bf16.lacking(query):
            context, weights = bf16.in_float32(
                self, query, key, value, key_padding_mask=key_padding_mask, attn_mask=attn_mask, **kwargs
            )
            return context.to(query.dtype), weights
        if incremental_state is not None or need_weights or any(kwargs.values()):
            return super().forward(
                query, key, value, key_padding_mask, incremental_state, need_weights, static_kv, attn_mask,
                **kwargs,
            )  # fmt: skip
        bias = attn_mask  # added to scores
        if key_padding_mask is not None:
            pads = torch.where(key_padding_mask, -math.inf, 0.0).to(query.dtype)[:, None, None]
            bias = pads if bias is None else pads + bias
        projected = self.q_proj(query), self.k_proj(key), self.v_proj(value)
        q, k, v = (by_head(one, self.num_heads) for one in projected)
        context = attention(q * self.scaling, k, v, bias, self.dropout_module)
        return self.out_proj(context.permute(2, 0, 1, 3).reshape(query.shape)), None


FASTER = {
    FairseqDropout: DecoderDropout,
    MultiheadAttention: Attention,
    nn.Dropout: Dropout,
    nn.Linear: Linear,
}


def use_faster_modules(model: nn.Module) -> None:
    """Make each of `model`'s modules compute as the one of FASTER does; parameters and names stay."""
    for module in model.modules():
        if faster := FASTER.get(type(module)):
            module.__class__ = faster


def smoothed_cross_entropy(
    logits: Tensor, target: Tensor, smoothing: float = 0.0, ignored: int = IGNORE_INDEX
) -> tuple[Tensor, Tensor]:
    """Label-smoothed cross-entropy as in fairseq, and plain cross-entropy: sums over tokens, in nats.

    With ε = `smoothing` and V classes, a token's loss is (1 - ε - ε/(V-1))·nll + ε/(V-1)·Σ_v -log p_v. Its
    gradient is softmax(logits) - ε/(V-1) - (1 - ε - ε/(V-1))·onehot(target), which needs one (N, V) tensor.

    Args:
        logits: (N, V).
        target: (N,) classes; tokens of the class `ignored` (IGNORE_INDEX: no class) do not count.

    Returns:
        The smoothed loss, and the plain loss (without a gradient).
    """
    return _CrossEntropy.apply(logits, target, smoothing, ignored)


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, target: Tensor, smoothing: float, ignored: int
    ) -> tuple[Tensor, Tensor]:
        lprobs = logits.log_softmax(-1, dtype=torch.float32)
        counts = None if ignored == IGNORE_INDEX else target.ne(ignored)
        ctx.each = smoothing / (logits.size(1) - 1)
        ctx.right = 1 - smoothing - ctx.each
        ctx.save_for_backward(lprobs, target, counts)
        ctx.kind = logits.dtype
        ctx.set_materialize_grads(False)
        loss = plain = nn.functional.nll_loss(lprobs, target, ignore_index=ignored, reduction="sum")
        if smoothing:
            rows = lprobs.sum(1)
            # `where`, not an index: the host would have to wait for the index's length on the GPU
            rows = rows if counts is None else torch.where(counts, rows, 0)
            loss = ctx.right * plain - ctx.each * rows.sum()
        plain = plain.detach()
        ctx.mark_non_differentiable(plain)
        return loss, plain

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Any) -> tuple[Tensor, None, None, None]:
        lprobs, target, counts = ctx.saved_tensors
        result = lprobs.exp_()  # in its place: (N, V) is a step's largest tensor
        if ctx.each:
            result -= ctx.each
        result.scatter_(1, target.unsqueeze(1), -ctx.right, reduce="add")
        grad = grad if counts is None else (grad * counts).unsqueeze(1)
        return result.mul_(grad).to(ctx.kind), None, None, None


class _AdamW(torch.optim.AdamW):
    """torch's, without the wrappers that load torch.compile: they take 0.15 GB and more than a second."""

    step = torch.no_grad()(unwrap(torch.optim.AdamW.step))
    add_param_group = unwrap(torch.optim.AdamW.add_param_group)
    load_state_dict = unwrap(torch.optim.AdamW.load_state_dict)
    state_dict = unwrap(torch.optim.AdamW.state_dict)
    zero_grad = unwrap(torch.optim.AdamW.zero_grad)


@optim.register_optimizer("fused_adam", dataclass=FairseqAdamConfig)
class FusedAdam(FairseqAdam):
    """fairseq's Adam (decoupled weight decay) with torch's fused kernel.

    They differ in one point: fairseq adds ε = adam_eps to √v, torch to √v̂ = √v / √(1 - β2^t) (Kingma and
    Ba 2015, end of section 2).
    """

    def __init__(self, cfg: Any, params: list[nn.Parameter]) -> None:
        optim.FairseqOptimizer.__init__(self, cfg)
        self._optimizer = _AdamW(params, fused=True, **self.optimizer_config)

    # Two of fairseq's loops over parameters as one call each: on a GPU, calls bound a small model's step.

    def multiply_grads(self, c: float | Tensor) -> None:
        """Multiply all gradients by `c`, one number."""
        if grads := [p.grad for p in self.params if p.grad is not None]:
            torch._foreach_mul_(grads, c)

    def clip_grad_norm(self, max_norm: float, aggregate_norm_fn: Any = None) -> Tensor:
        """Scale gradients down to the norm `max_norm` (0: never) → their norm before."""
        norm = nn.utils.get_total_norm([p.grad for p in self.params if p.grad is not None])
        if max_norm > 0:
            nn.utils.clip_grads_with_norm_(self.params, max_norm, norm)
        return norm
