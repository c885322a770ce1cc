"""Faster versions of the costliest operations of a training step."""

import math
from inspect import unwrap
from typing import Any

import torch
from fairseq.modules import FairseqDropout, MultiheadAttention
from torch import Tensor, nn

from synmask.encoder import by_head
from synmask.pipeline.cpu.modules import FAST_MODULES, FastDropout, attention

IGNORE_INDEX = -100  # torch's class that no token has


class FastFairseqDropout(FairseqDropout):
    """fairseq's dropout module with the function `dropout`."""

    forward = FastDropout.forward


class FastMultiheadAttention(MultiheadAttention):
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
        q, k, v = (by_head(projection, self.num_heads) for projection in projected)
        context = attention(q * self.scaling, k, v, bias, self.dropout_module)
        return self.out_proj(context.permute(2, 0, 1, 3).reshape(query.shape)), None


# for models of fairseq's modules (`accelerate`)
FAIRSEQ_MODULES = FAST_MODULES | {
    FairseqDropout: FastFairseqDropout,
    MultiheadAttention: FastMultiheadAttention,
}


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
        ctx.dtype = logits.dtype
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
        return result.mul_(grad).to(ctx.dtype), None, None, None


class AdamW(torch.optim.AdamW):
    """torch's, without the wrappers that load torch.compile: they take 0.15 GB and more than a second.

    It differs from fairseq's Adam (decoupled weight decay) in one point: fairseq adds ε to √v, torch to
    √v̂ = √v / √(1 - β2^t) (Kingma and Ba 2015, end of section 2).
    """

    step = torch.no_grad()(unwrap(torch.optim.AdamW.step))
    add_param_group = unwrap(torch.optim.AdamW.add_param_group)
    load_state_dict = unwrap(torch.optim.AdamW.load_state_dict)
    state_dict = unwrap(torch.optim.AdamW.state_dict)
    zero_grad = unwrap(torch.optim.AdamW.zero_grad)
