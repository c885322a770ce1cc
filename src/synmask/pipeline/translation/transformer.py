"""fairseq's Transformer; syntax guides self-attention in encoder layers and the first decoder layer."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase, TransformerModelBase
from fairseq.models.transformer.transformer_config import TransformerConfig
from torch import Tensor, nn

from synmask.encoder import encode_layers
from synmask.guides import Guide, LossInputs, Syntax, build_guide
from synmask.pipeline.cpu.modules import accelerate, dropout, linear
from synmask.pipeline.training.operators import FAIRSEQ_MODULES
from synmask.pipeline.translation.layers import ConfiguredLayer, DecoderLayer, shape_of


class TokenEncoder(TransformerEncoderBase):
    """fairseq's embeddings and our layers; a guide computes self-attention in the first `guide.layers`."""

    def __init__(self, cfg: TransformerConfig, dictionary: Any, embed_tokens: nn.Module) -> None:
        super().__init__(cfg, dictionary, embed_tokens)
        self.guide: Guide | None = None

    def build_encoder_layer(self, cfg: TransformerConfig) -> ConfiguredLayer:
        return ConfiguredLayer(cfg)

    def induce(self, src_tokens: Tensor, annotations: dict[str, Tensor]) -> Syntax:
        """The syntax that the guide induces for a batch (B, n) of ids."""
        padding = src_tokens.eq(self.padding_idx)
        x = self._embed(src_tokens, padding)
        return self.guide.syntax(self.guide.prepare(x, padding, annotations))

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        annotations: dict[str, Tensor] | None = None,
    ) -> dict[str, Any]:
        """src_tokens (B, n) → fairseq's encoder output, plus the guide's `prepared` state."""
        padding = src_tokens.eq(self.padding_idx)
        x = self._embed(src_tokens, padding)
        x, prepared = encode_layers(self.layers, self.guide, x, padding, annotations or {})
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


class GuidedDecoder(TransformerDecoderBase):
    """fairseq's decoder; if it has a guide, this computes self-attention in the first layer."""

    def __init__(self, cfg: TransformerConfig, dictionary: Any, embed_tokens: nn.Module) -> None:
        super().__init__(cfg, dictionary, embed_tokens)
        self.guide: Guide | None = None

    def build_decoder_layer(self, cfg: TransformerConfig, no_encoder_attn: bool = False) -> DecoderLayer:
        return DecoderLayer(cfg, no_encoder_attn)

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, Any],
        incremental_state: dict | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """prev_output_tokens (B, m), padded on the right → states (B, m, d).

        No layer masks the pads: only pads see them. With a guide, the extras also contain its `prepared`
        state, and `attn` is the mean over the heads of the second-last layer, which aligns best (Garg et al.,
        EMNLP 2019) and which LPSI uses, too; without one, nothing reads `attn`, and it is None. fairseq's own
        beam search uses fairseq's code where there is no guide, ours `DecoderSteps`.
        """
        if self.guide is None and incremental_state is not None:
            return super().extract_features(
                prev_output_tokens, encoder_out, incremental_state, *args, **kwargs
            )
        x = self.embed_scale * self.embed_tokens(prev_output_tokens)
        x = self.dropout_module(x + self.embed_positions(prev_output_tokens))
        prepared, aligning, alignment = None, None, None
        if self.guide is not None:
            padding = prev_output_tokens.eq(self.padding_idx)
            prepared = self.guide.prepare(x.masked_fill(padding.unsqueeze(-1), 0.0), padding, {})
            aligning = max(0, len(self.layers) - 2)
        x = x.transpose(0, 1).contiguous()
        future = self.buffered_future_mask(x)
        source, source_padding = encoder_out["encoder_out"][0], encoder_out["encoder_padding_mask"][0]
        for index, layer in enumerate(self.layers):
            guides = self.guide is not None and index == 0
            x, weights, _ = layer(
                x,
                source,
                source_padding,
                self_attn_mask=future,
                need_attn=index == aligning,
                need_head_weights=index == aligning,
                attend=partial(self.guide.context, prepared=prepared, layer=0) if guides else None,
            )
            if index == aligning:
                alignment = weights.float().mean(0)
        return x.transpose(0, 1), {"attn": [alignment], "inner_states": [], "prepared": prepared}

    def cross_steps(
        self, attends: Callable[..., Any], layer: DecoderLayer, encoder_out: dict[str, Any]
    ) -> Any:
        """A layer's cross-attention in beam search.

        Args:
            attends: makes a cross-attention of fairseq's, the states (n, S, d) that it reads, and their
                padding (S, n) (translation/steps.py).
        """
        states, padding = encoder_out["encoder_out"][0], encoder_out["encoder_padding_mask"][0]
        return attends(layer.encoder_attn, states, padding)


class GuidedTransformer(TransformerModelBase):
    """Encoder–decoder with a guided encoder and, if the objective needs it, a masked-language-model head.

    The head (docs/method.md, "The objective") is applied at masked positions: LayerNorm without affine →
    dropout 0.1 → linear, tied to the source embeddings, with its own bias, initialised like torch's Linear
    (as published).
    """

    encoder_class = TokenEncoder
    decoder_class = GuidedDecoder

    def __init__(self, cfg: TransformerConfig, encoder: Any, decoder: Any, mlm: bool) -> None:
        super().__init__(cfg, encoder, decoder)
        self.mlm_bias = None
        if mlm:
            bound = cfg.encoder.embed_dim**-0.5
            self.mlm_bias = nn.Parameter(torch.empty(len(encoder.dictionary)).uniform_(-bound, bound))

    @classmethod
    def build(cls, cfg: TransformerConfig, task: Any) -> "GuidedTransformer":
        """Build the model of a `GuidedTranslation` with fairseq's initialisation.

        Parts that all systems share are built before the guide, so that runs with one seed start from the
        same shared weights.
        """
        source, target, system = task.src_dict, task.tgt_dict, task.settings.system
        embed = cls.build_embedding(cfg, source, cfg.encoder.embed_dim)
        embed_target = cls.build_embedding(cfg, target, cfg.decoder.embed_dim)
        encoder = cls.encoder_class(cfg, source, embed)
        decoder = cls.decoder_class(cfg, target, embed_target)
        if system.guide != "none":
            cls.add_guide(encoder, decoder, task)
        return accelerate(cls(cfg, encoder, decoder, mlm=system.mlm_weight > 0), FAIRSEQ_MODULES)

    @classmethod
    def add_guide(cls, encoder: TokenEncoder, decoder: GuidedDecoder, task: Any) -> None:
        """Give encoder and decoder the guide of the task's system."""
        system = task.settings.system
        encoder.guide = build_guide(system.guide, system.options, shape_of(encoder.cfg))
        decoder.guide = encoder.guide.decoder()

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        annotations: dict[str, Tensor] | None = None,
        masked: Tensor | None = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        """→ target logits (B, m, V_target); extras: with a guide `loss_inputs`; `mlm_logits`
        (masked, V_source)."""
        encoder_out = self.encoder(src_tokens, src_lengths, annotations=annotations)
        logits, extra = self.decoder(prev_output_tokens, encoder_out=encoder_out, src_lengths=src_lengths)
        if self.encoder.guide is not None:
            prepared = encoder_out["prepared"], extra["prepared"]
            extra["loss_inputs"] = LossInputs(*prepared, annotations or {}, extra["attn"][0])
        if self.mlm_bias is not None and masked is not None:
            extra["mlm_logits"] = self._masked_logits(encoder_out["encoder_out"][0], masked)
        return logits, extra

    def _masked_logits(self, states: Tensor, masked: Tensor) -> Tensor:
        """states (n, B, d), masked (m,) positions in the flattened (B, n) → (m, V_source)."""
        chosen = states.transpose(0, 1).reshape(-1, states.size(-1)).index_select(0, masked)
        chosen = nn.functional.layer_norm(chosen, chosen.shape[-1:])
        chosen = dropout(chosen, 0.1) if self.training else chosen
        return linear(chosen, self.encoder.embed_tokens.weight, self.mlm_bias)
