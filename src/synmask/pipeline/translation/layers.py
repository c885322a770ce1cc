"""fairseq's Transformer layers; a guide may compute their self-attention."""

from collections.abc import Callable
from typing import Any

from fairseq.models.transformer.transformer_config import TransformerConfig
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase, TransformerEncoderLayerBase
from torch import Tensor, nn

from synmask.bf16 import product
from synmask.guides import Drop
from synmask.pipeline.training.operators import by_head

Attend = Callable[[Tensor, Tensor, Tensor, Drop], Tensor]  # `Guide.context` in a layer


def guided_attention(layer: "EncoderLayer | DecoderLayer", x: Tensor, attend: Attend) -> Tensor:
    """Self-attention of x (n, B, d), with its residual connection → (n, B, d).

    `attend` computes each token's context from the scaled scores (B, H, n, n) and the values; all else is the
    layer's.
    """
    attention = layer.self_attn
    projected = attention.q_proj(x) * attention.scaling, attention.k_proj(x), attention.v_proj(x)
    query, key, value = (by_head(one, attention.num_heads) for one in projected)
    scores = product(query, key.transpose(-1, -2))
    context = attend(scores, value, x.transpose(0, 1), attention.dropout_module)
    attended = attention.out_proj(context.permute(2, 0, 1, 3).reshape(x.shape))
    return layer.self_attn_layer_norm(x + layer.dropout_module(attended))


class EncoderLayer(TransformerEncoderLayerBase):
    """fairseq's encoder layer; a guide may compute its self-attention.

    Parameters and names are fairseq's, without the copies for its inference fast path. fairseq 0.12.2 keeps a
    second, untrained set of each layer's weights (in_proj_weight, fc1_weight, …) for a private torch function
    that has changed since. Here they are not created, counted or saved.
    """

    def __init__(self, cfg: TransformerConfig) -> None:
        super().__init__(cfg)
        for name in ("in_proj", "out_proj", "fc1", "fc2"):
            delattr(self, f"{name}_weight")
            delattr(self, f"{name}_bias")
        self.can_use_fastpath = False

    def _load_from_state_dict(self, *args: Any) -> None:
        nn.Module._load_from_state_dict(self, *args)

    def forward(self, x: Tensor, encoder_padding_mask: Tensor | None, attend: Attend | None = None) -> Tensor:
        """x (n, B, d) → (n, B, d).

        With `attend`, a guide computes self-attention; without it, the layer is fairseq's.
        """
        if attend is None:
            return super().forward(x, encoder_padding_mask)
        return feed_forward(self, guided_attention(self, x, attend))


class DecoderLayer(TransformerDecoderLayerBase):
    """fairseq's decoder layer; a guide may compute its self-attention."""

    def forward(
        self,
        x: Tensor,
        encoder_out: Tensor | None = None,
        encoder_padding_mask: Tensor | None = None,
        incremental_state: dict | None = None,
        *,
        need_attn: bool = False,
        need_head_weights: bool = False,
        attend: Attend | None = None,
        **more: Any,
    ) -> tuple[Tensor, Tensor | None, None]:
        """x (m, B, d) → (m, B, d), and the weights of cross-attention if they are requested.

        With `attend`, a guide computes self-attention; without it, the layer is fairseq's.
        """
        if attend is None:
            return super().forward(
                x, encoder_out, encoder_padding_mask, incremental_state,
                need_attn=need_attn, need_head_weights=need_head_weights, **more,
            )  # fmt: skip
        x = guided_attention(self, x, attend)
        attended, weights = self.encoder_attn(
            query=x,
            key=encoder_out,
            value=encoder_out,
            key_padding_mask=encoder_padding_mask,
            incremental_state=incremental_state,
            static_kv=True,
            need_weights=need_attn,
            need_head_weights=need_head_weights,
        )
        x = self.encoder_attn_layer_norm(x + self.dropout_module(attended))
        return feed_forward(self, x), weights, None


def feed_forward(layer: EncoderLayer | DecoderLayer, x: Tensor) -> Tensor:
    hidden = layer.activation_dropout_module(layer.activation_fn(layer.fc1(x)))
    return layer.final_layer_norm(x + layer.dropout_module(layer.fc2(hidden)))
