"""A Transformer encoder whose self-attention a guide may compute, in plain PyTorch.

The models for translation and RoBERTa in `synmask.pipeline` are built of these layers, too. Parameters have
fairseq's names and start as fairseq's do. States are sequence-first, (n, B, d), inside of layers.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmask.bf16 import product
from synmask.checks import check_annotations, check_padding, check_states
from synmask.guides import Drop, Guide, Shape
from synmask.modules import Dropout, Linear

Attend = Callable[[Tensor, Tensor, Tensor, Drop], Tensor]  # `Guide.context` in a layer


def by_head(x: Tensor, heads: int) -> Tensor:
    """(n, B, d) → (B, H, n, d / H)."""
    return x.unflatten(-1, (heads, x.size(-1) // heads)).permute(1, 2, 0, 3)


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
    scores = product(query, key.mT)
    return product(drop((scores if bias is None else scores + bias).softmax(-1)), value)


def guided(module: nn.Module, x: Tensor, attend: Attend) -> Tensor:
    """Self-attention of x (n, B, d) with the projections of `module` → (n, B, d).

    `attend` computes each token's context from the scaled scores (B, H, n, n) and the values.
    """
    projected = module.q_proj(x) * module.scaling, module.k_proj(x), module.v_proj(x)
    query, key, value = (by_head(one, module.num_heads) for one in projected)
    context = attend(product(query, key.mT), value, x.transpose(0, 1), module.dropout_module)
    return module.out_proj(context.permute(2, 0, 1, 3).reshape(x.shape))


class SelfAttention(nn.Module):
    """Multi-head self-attention (Vaswani et al. 2017, §3.2); a guide may compute its weights."""

    def __init__(self, embed_dim: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.num_heads, self.scaling = heads, (embed_dim // heads) ** -0.5
        self.dropout_module = Dropout(dropout)
        self.k_proj, self.v_proj, self.q_proj, self.out_proj = (
            Linear(embed_dim, embed_dim) for _ in range(4)
        )
        for projection in (self.k_proj, self.v_proj, self.q_proj):
            nn.init.xavier_uniform_(projection.weight, gain=1 / math.sqrt(2))
        nn.init.xavier_uniform_(self.out_proj.weight)
        nn.init.zeros_(self.out_proj.bias)

    def forward(self, x: Tensor, bias: Tensor | None, attend: Attend | None = None) -> Tensor:
        """x (n, B, d), bias (B, 1, 1, n), added to the scores, or None → (n, B, d)."""
        if attend is not None:
            return guided(self, x, attend)
        query, key, value = (
            by_head(one, self.num_heads)
            for one in (self.q_proj(x) * self.scaling, self.k_proj(x), self.v_proj(x))
        )
        bias = None if bias is None else bias.to(query.dtype)
        context = attention(query, key, value, bias, self.dropout_module)
        return self.out_proj(context.permute(2, 0, 1, 3).reshape(x.shape))


class EncoderLayer(nn.Module):
    """A Transformer encoder layer with normalisation after each part (Vaswani et al. 2017, §3.1)."""

    def __init__(
        self,
        shape: Shape,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        activation: Callable[[Tensor], Tensor] = F.relu,
    ) -> None:
        super().__init__()
        self.self_attn = SelfAttention(shape.embed_dim, shape.heads, attention_dropout)
        self.self_attn_layer_norm = nn.LayerNorm(shape.embed_dim)
        self.dropout_module = Dropout(dropout)
        self.activation_fn = activation
        self.activation_dropout_module = Dropout(activation_dropout)
        self.fc1 = Linear(shape.embed_dim, shape.ffn_dim)
        self.fc2 = Linear(shape.ffn_dim, shape.embed_dim)
        self.final_layer_norm = nn.LayerNorm(shape.embed_dim)

    def forward(self, x: Tensor, bias: Tensor | None, attend: Attend | None = None) -> Tensor:
        """x and bias as for `SelfAttention` → (n, B, d). With `attend`, a guide attends."""
        attended = self.self_attn(x, bias, attend)
        x = self.self_attn_layer_norm(x + self.dropout_module(attended))
        hidden = self.activation_dropout_module(self.activation_fn(self.fc1(x)))
        return self.final_layer_norm(x + self.dropout_module(self.fc2(hidden)))


def encode(
    layers: Sequence[EncoderLayer],
    guide: Guide | None,
    x: Tensor,
    padding: Tensor,
    annotations: Mapping[str, Tensor],
) -> tuple[Tensor, Any]:
    """Embedded sentences x (B, n, d), 0 at pads, through all layers → states (n, B, d), the guide's state."""
    prepared = None if guide is None else guide.prepare(x, padding, annotations)
    x, bias = x.transpose(0, 1).contiguous(), None
    # On a GPU, to look for pads would take longer than to mask none: the host would wait.
    if padding.device.type != "cpu" or padding.any():
        bias = torch.where(padding, -math.inf, 0.0).to(x.dtype)[:, None, None]
    for index, layer in enumerate(layers):
        attend = None
        if guide is not None and index < guide.layers:
            attend = partial(guide.context, prepared=prepared, layer=index)
        x = layer(x, bias, attend)
    return x, prepared


class GuidedEncoder(nn.Module):
    """A Transformer encoder; `guide` computes self-attention in its first `guide.layers` layers.

    `dropout` and the others are those of `EncoderLayer`.
    """

    def __init__(self, shape: Shape, guide: Guide | None = None, **dropout: Any) -> None:
        super().__init__()
        if guide is not None and guide.shape != shape:
            raise ValueError(f"the guide was built for {guide.shape}, the encoder has {shape}")
        self.shape = shape
        self.layers = nn.ModuleList(EncoderLayer(shape, **dropout) for _ in range(shape.layers))
        self.guide = guide

    def forward(
        self, x: Tensor, padding: Tensor | None = None, annotations: Mapping[str, Tensor] | None = None
    ) -> tuple[Tensor, Any]:
        """Encode embedded sentences.

        Args:
            x: (B, n, d), with positions; values at pads are ignored.
            padding: (B, n) bool, True at pads; None: no pads.
            annotations: what the guide reads (`Guide`).

        Returns:
            the states (B, n, d), and the guide's state, of which `guide.syntax` gives trees and P_D.

        Raises:
            ValueError: an argument has a wrong shape, type or value, or an annotation is missing. Values are
                looked at on a CPU only: on a GPU the host would have to wait.
        """
        check_states(x, self.shape.embed_dim)
        if padding is None:
            padding = torch.zeros(x.shape[:2], dtype=torch.bool, device=x.device)
        check_padding(padding, x.shape[:2])
        if self.guide is not None:
            check_annotations(annotations, self.guide.options, x.shape[:2])
        x = x.masked_fill(padding[:, :, None], 0)
        states, prepared = encode(self.layers, self.guide, x, padding, annotations or {})
        return states.transpose(0, 1), prepared
