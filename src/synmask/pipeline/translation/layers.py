"""fairseq's Transformer layers; a guide may compute their self-attention."""

from typing import Any

from fairseq import utils
from fairseq.models.transformer.transformer_config import TransformerConfig
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase
from torch import Tensor

from synmask.encoder import Attend, EncoderLayer, guided_attention
from synmask.guides import Shape


def shape_of(cfg: TransformerConfig) -> Shape:
    """The encoder's sizes."""
    encoder = cfg.encoder
    return Shape(encoder.embed_dim, encoder.attention_heads, encoder.ffn_embed_dim, encoder.layers)


class ConfiguredLayer(EncoderLayer):
    """An encoder layer with fairseq's settings."""

    def __init__(self, cfg: TransformerConfig) -> None:
        rates = cfg.dropout, cfg.attention_dropout, cfg.activation_dropout
        super().__init__(shape_of(cfg), *rates, utils.get_activation_fn(cfg.activation_fn))

    def upgrade_state_dict_named(self, state: dict[str, Any], name: str) -> None:
        """fairseq calls it when it loads a model; there is nothing to rename."""


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
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None, None]:
        """x (m, B, d) → (m, B, d), and the weights of cross-attention if they are requested.

        With `attend`, a guide computes self-attention; without it, the layer is fairseq's.
        """
        if attend is None:
            return super().forward(
                x, encoder_out, encoder_padding_mask, incremental_state,
                need_attn=need_attn, need_head_weights=need_head_weights, **kwargs,
            )  # fmt: skip
        x = self.self_attn_layer_norm(x + self.dropout_module(guided_attention(self.self_attn, x, attend)))
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
        hidden = self.activation_dropout_module(self.activation_fn(self.fc1(x)))
        return self.final_layer_norm(x + self.dropout_module(self.fc2(hidden))), weights, None
