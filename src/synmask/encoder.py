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

from synmask.checks import check_annotations, check_padding, check_states
from synmask.guides import Drop, Guide, Shape

Attend = Callable[[Tensor, Tensor, Tensor, Drop], Tensor]  # `Guide.context` in a layer


def by_head(x: Tensor, heads: int) -> Tensor:
    """(n, B, d) → (B, H, n, d / H)."""
    return x.unflatten(-1, (heads, x.size(-1) // heads)).permute(1, 2, 0, 3)


def guided_attention(module: nn.Module, x: Tensor, attend: Attend) -> Tensor:
    """Self-attention of x (n, B, d) with the projections of `module` → (n, B, d).

    `attend` computes each token's context from the scaled scores (B, H, n, n) and the values.
    """
    query, key, value = projections(module, x)
    context = attend(query @ key.mT, value, x.transpose(0, 1), module.dropout_module)
    return module.out_proj(context.permute(2, 0, 1, 3).reshape(x.shape))


def projections(module: nn.Module, x: Tensor) -> list[Tensor]:
    """The scaled queries, the keys and the values (B, H, n, d / H) of x (n, B, d)."""
    parts = module.q_proj(x) * module.scaling, module.k_proj(x), module.v_proj(x)
    return [by_head(part, module.num_heads) for part in parts]


class SelfAttention(nn.Module):
    """Multi-head self-attention (Vaswani et al. 2017, §3.2); a guide may compute its weights."""

    def __init__(self, embed_dim: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.num_heads, self.scaling = heads, (embed_dim // heads) ** -0.5
        self.dropout_module = nn.Dropout(dropout)
        self.k_proj, self.v_proj, self.q_proj, self.out_proj = (
            nn.Linear(embed_dim, embed_dim) for _ in range(4)
        )
        for projection in (self.k_proj, self.v_proj, self.q_proj):
            nn.init.xavier_uniform_(projection.weight, gain=1 / math.sqrt(2))
        nn.init.xavier_uniform_(self.out_proj.weight)
        nn.init.zeros_(self.out_proj.bias)

    def forward(self, x: Tensor, bias: Tensor, attend: Attend | None = None) -> Tensor:
        """x (n, B, d), bias (B, 1, 1, n), added to the scores → (n, B, d)."""
        if attend is not None:
            return guided_attention(self, x, attend)
        query, key, value = projections(self, x)
        context = self.attention(query, key, value, bias.to(query.dtype))
        return self.out_proj(context.permute(2, 0, 1, 3).reshape(x.shape))

    def attention(self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
        """Scaled queries, keys and values (B, H, n, d / H), bias (B, 1, 1, n) → (B, H, n, d / H)."""
        dropped = self.dropout_module.p if self.training else 0.0
        return F.scaled_dot_product_attention(query, key, value, bias, dropped, scale=1.0)


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
        self.dropout_module = nn.Dropout(dropout)
        self.activation_fn = activation
        self.activation_dropout_module = nn.Dropout(activation_dropout)
        self.fc1 = nn.Linear(shape.embed_dim, shape.ffn_dim)
        self.fc2 = nn.Linear(shape.ffn_dim, shape.embed_dim)
        self.final_layer_norm = nn.LayerNorm(shape.embed_dim)

    def forward(self, x: Tensor, bias: Tensor, attend: Attend | None = None) -> Tensor:
        """x and bias as for `SelfAttention` → (n, B, d). With `attend`, a guide attends."""
        attended = self.self_attn(x, bias, attend)
        x = self.self_attn_layer_norm(x + self.dropout_module(attended))
        hidden = self.activation_dropout_module(self.activation_fn(self.fc1(x)))
        return self.final_layer_norm(x + self.dropout_module(self.fc2(hidden)))


def encode_layers(
    layers: Sequence[EncoderLayer],
    guide: Guide | None,
    x: Tensor,
    padding: Tensor,
    annotations: Mapping[str, Tensor],
) -> tuple[Tensor, Any]:
    """Embedded sentences x (B, n, d), 0 at pads, through all layers → states (n, B, d), the guide's state."""
    prepared = None if guide is None else guide.prepare(x, padding, annotations)
    x = x.transpose(0, 1).contiguous()
    bias = torch.where(padding, -math.inf, 0.0).to(x.dtype)[:, None, None]
    for index, layer in enumerate(layers):
        attend = None
        if guide is not None and index < guide.layers:
            attend = partial(guide.context, prepared=prepared, layer=index)
        x = layer(x, bias, attend)
    return x, prepared


class GuidedEncoder(nn.Module):
    """A Transformer encoder; `guide` computes self-attention in its first `guide.layers` layers.

    Args:
        shape: the encoder's sizes.
        guide: a guide built for the same `shape`, such as `GrammarGuide(GrammarOptions(bpe="none"), shape)`;
            None: an ordinary encoder.
        dropout: the rate, from 0 to 1, after attention and after the feed-forward network.
        attention_dropout: the rate for attention weights.
        activation_dropout: the rate after the activation.
        activation: of the feed-forward network, (..., ffn_dim) → same.

    Raises:
        ValueError: the guide was built for another shape, or a rate is not from 0 to 1.
    """

    def __init__(
        self,
        shape: Shape,
        guide: Guide | None = None,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        activation: Callable[[Tensor], Tensor] = F.relu,
    ) -> None:
        super().__init__()
        if guide is not None and guide.shape != shape:
            raise ValueError(f"the guide was built for {guide.shape}, the encoder has {shape}")
        self.shape = shape
        settings = dropout, attention_dropout, activation_dropout, activation
        self.layers = nn.ModuleList(EncoderLayer(shape, *settings) for _ in range(shape.layers))
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
                looked at in eager mode on a CPU only: on a GPU the host would have to wait.
            NotImplementedError: `torch.jit` traces it, which would keep the length of its example.
        """
        if torch.jit.is_tracing():
            raise NotImplementedError("torch.jit.trace keeps one length: use torch.export.export")
        check_states(x, self.shape.embed_dim)
        if padding is None:
            padding = torch.zeros(x.shape[:2], dtype=torch.bool, device=x.device)
        check_padding(padding, x.shape[:2])
        if self.guide is not None:
            check_annotations(annotations, self.guide.options, x.shape[:2])
        x = x.masked_fill(padding[:, :, None], 0)
        states, prepared = encode_layers(self.layers, self.guide, x, padding, annotations or {})
        return states.transpose(0, 1), prepared
