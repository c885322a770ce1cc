"""fairseq's Transformer with an encoder whose first layers may be guided by syntax."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase, TransformerModelBase
from fairseq.models.transformer.transformer_config import TransformerConfig
from fairseq.modules.transformer_layer import TransformerEncoderLayerBase
from torch import Tensor, nn

from synmask.guides import Guide, build_guide

Attend = Callable[[Tensor], Tensor]


class EncoderLayer(TransformerEncoderLayerBase):
    """fairseq's encoder layer, in which a guide may make the attention weights.

    Parameters and their names are fairseq's, without the copies for its inference fast path: fairseq 0.12.2
    keeps a second, never trained set of every layer's weights (in_proj_weight, fc1_weight, …) for a private
    torch function that has changed since; here they are neither made, counted nor saved.
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

        `attend` turns (B, H, n, n) raw scores into attention weights; without it the layer is stock.
        """
        if attend is None:
            return super().forward(x, encoder_padding_mask)
        x = self.self_attn_layer_norm(x + self.dropout_module(self._attention(x, attend)))
        hidden = self.activation_dropout_module(self.activation_fn(self.fc1(x)))
        return self.final_layer_norm(x + self.dropout_module(self.fc2(hidden)))

    def _attention(self, x: Tensor, attend: Attend) -> Tensor:
        attention = self.self_attn
        n, batch, d = x.shape

        def heads(projected: Tensor) -> Tensor:  # (n, B, d) → (B, H, n, d_head)
            return projected.view(n, batch, attention.num_heads, attention.head_dim).permute(1, 2, 0, 3)

        query = heads(attention.q_proj(x) * attention.scaling)
        key, value = heads(attention.k_proj(x)), heads(attention.v_proj(x))
        weights = attention.dropout_module(attend(query @ key.transpose(-1, -2)))
        return attention.out_proj((weights @ value).permute(2, 0, 1, 3).reshape(n, batch, d))


class GuidedEncoder(TransformerEncoderBase):
    """fairseq's encoder; its first `guide.layers` layers attend as the guide says, the others are stock."""

    def __init__(self, cfg: TransformerConfig, dictionary: Any, embed_tokens: nn.Module) -> None:
        super().__init__(cfg, dictionary, embed_tokens)
        self.guide: Guide | None = None

    @property
    def needs(self) -> frozenset[str]:
        """The annotations that the guide reads."""
        return self.guide.needs if self.guide is not None else frozenset()

    def build_encoder_layer(self, cfg: TransformerConfig) -> EncoderLayer:
        return EncoderLayer(cfg)

    def induce(self, src_tokens: Tensor, annotations: dict[str, Tensor]) -> Any:
        """What the guide prepares for a batch (B, n) of ids: for `grammar`, distances, heights and P_D."""
        padding = src_tokens.eq(self.padding_idx)
        return self.guide.prepare(self._embed(src_tokens, padding), padding, annotations)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        return_all_hiddens: bool = False,
        annotations: dict[str, Tensor] | None = None,
        masked: Tensor | None = None,
    ) -> dict[str, Any]:
        """src_tokens (B, n) → fairseq's encoder output, plus the guide's `prepared` state.

        `masked` is for the model's language-model head and not read here.
        """
        padding = src_tokens.eq(self.padding_idx)
        x = self._embed(src_tokens, padding)
        prepared = None
        if self.guide is not None:
            prepared = self.guide.prepare(x, padding, annotations or {})
        x = x.transpose(0, 1)  # fairseq's layers are sequence-first
        attended_padding = padding if padding.any() else None
        for index, layer in enumerate(self.layers):
            attend = None
            if self.guide is not None and index < self.guide.layers:
                attend = partial(self.guide.attend, prepared=prepared, layer=index)
            x = layer(x, attended_padding, attend)
        return {
            "encoder_out": [x],
            "encoder_padding_mask": [padding],
            "encoder_embedding": [],
            "encoder_states": [],
            "src_tokens": [],
            "src_lengths": [],
            "prepared": prepared,
        }

    def _embed(self, src_tokens: Tensor, padding: Tensor) -> Tensor:
        """(B, n) ids → (B, n, d): sqrt(d) * embedding + position, after dropout, 0 at pads."""
        x, _ = self.forward_embedding(src_tokens)
        return x.masked_fill(padding.unsqueeze(-1), 0.0)


class GuidedTransformer(TransformerModelBase):
    """Encoder–decoder with a guided encoder and, where the objective has it, a masked-language-model head.

    The head (method.md, section 5): LayerNorm without affine → dropout 0.1 → linear, tied to the source
    embeddings, with its own bias; at masked positions only.
    """

    def __init__(self, cfg: TransformerConfig, encoder: Any, decoder: Any, mlm: bool) -> None:
        super().__init__(cfg, encoder, decoder)
        self.mlm_bias = nn.Parameter(torch.zeros(len(encoder.dictionary))) if mlm else None

    @classmethod
    def build(cls, args: Any, task: Any, system: dict[str, Any]) -> "GuidedTransformer":
        """Build the model of `system` (that part of a run's settings), initialised as fairseq does.

        Everything that all systems share is built before the guide, so that runs of one seed start from
        the same shared weights.
        """
        cfg = TransformerConfig.from_namespace(args)
        source, target = task.source_dictionary, task.target_dictionary
        embed = cls.build_embedding(cfg, source, cfg.encoder.embed_dim)
        embed_target = cls.build_embedding(cfg, target, cfg.decoder.embed_dim)
        options = dict(system["options"])
        if options:
            options["layers"] = min(options["layers"], cfg.encoder.layers)
        encoder = GuidedEncoder(cfg, source, embed)
        decoder = TransformerDecoderBase(cfg, target, embed_target)
        if options:
            encoder.guide = build_guide(
                system["guide"], options, cfg.encoder.embed_dim, cfg.encoder.attention_heads
            )
        return cls(cfg, encoder, decoder, mlm=system["mlm_weight"] > 0)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        annotations: dict[str, Tensor] | None = None,
        masked: Tensor | None = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        """→ target logits (B, m, V_target); extras: `prepared`, and `mlm_logits` (masked, V_source)."""
        encoder_out = self.encoder(src_tokens, src_lengths, annotations=annotations)
        logits, extra = self.decoder(prev_output_tokens, encoder_out=encoder_out, src_lengths=src_lengths)
        extra["prepared"] = encoder_out["prepared"]
        if self.mlm_bias is not None and masked is not None:
            extra["mlm_logits"] = self._masked_logits(encoder_out["encoder_out"][0], masked)
        return logits, extra

    def _masked_logits(self, states: Tensor, masked: Tensor) -> Tensor:
        """states (n, B, d), masked (m,) positions in the flattened (B, n) → (m, V_source)."""
        chosen = states.transpose(0, 1).reshape(-1, states.size(-1)).index_select(0, masked)
        chosen = nn.functional.layer_norm(chosen, chosen.shape[-1:])
        chosen = nn.functional.dropout(chosen, 0.1, self.training)
        return nn.functional.linear(chosen, self.encoder.embed_tokens.weight, self.mlm_bias)
