"""A Transformer for translation whose self-attention syntax guides, for Hugging Face's transformers.

`synmask export` copies this file and the method into a model's folder. There, without synmask,
`AutoModelForSeq2SeqLM.from_pretrained(FOLDER, trust_remote_code=True)` runs them. The decoder, its cache and
its beam search are those of FSMT, which is fairseq's Transformer in transformers.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import FSMTConfig, FSMTForConditionalGeneration
from transformers.modeling_outputs import BaseModelOutput
from transformers.models.fsmt.modeling_fsmt import Attention, FSMTEncoder

from synmask.encoder import EncoderLayer, by_head, encode_layers
from synmask.guides import Guide, Shape, Syntax
from synmask.guides.grammar import GrammarGuide as OwnGuide  # a copy names the model's guide
from synmask.options.grammar import GrammarOptions as OwnOptions


class GuidedConfig(FSMTConfig):
    """FSMT's settings, and `guide` with its `guide_options`."""

    model_type = "synmask-translation"
    attribute_map = FSMTConfig.attribute_map | {"num_hidden_layers": "decoder_layers"}  # counts caches

    guide: str = "grammar"
    guide_options: dict | None = None


class GuidedEncoder(FSMTEncoder):
    """FSMT's embeddings and guided layers."""

    def __init__(self, config: GuidedConfig) -> None:
        super().__init__(config)
        sizes = config.d_model, config.encoder_attention_heads, config.encoder_ffn_dim, config.encoder_layers
        shape, dropout = Shape(*sizes), (config.dropout, config.attention_dropout)
        self.layers = nn.ModuleList(EncoderLayer(shape, *dropout) for _ in range(shape.layers))
        self.guide: Guide = OwnGuide(OwnOptions(**config.guide_options or {}), shape)
        self.end = config.eos_token_id
        self.register_buffer("continues", torch.zeros(config.src_vocab_size, dtype=torch.bool))

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **_: Any) -> BaseModelOutput:
        """input_ids (B, n), with pads on either side → states (B, n, d)."""
        x, padding, annotations = self.read(input_ids, attention_mask)
        states, _ = encode_layers(self.layers, self.guide, x, padding, annotations)
        return BaseModelOutput(last_hidden_state=states.transpose(0, 1))

    def read(
        self, input_ids: Tensor, attention_mask: Tensor | None
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """The first layer's input (B, n, d), 0 at pads; padding (B, n); BPE labels (docs/method.md)."""
        pads = input_ids.eq(self.padding_idx)
        padding = pads if attention_mask is None else pads | attention_mask.eq(0)
        x = self.embed_tokens(input_ids) * self.embed_scale + self.embed_positions(input_ids)
        x = F.dropout(x, self.dropout, self.training).masked_fill(padding[..., None], 0)
        goes_on = self.continues[input_ids]
        piece = (goes_on | F.pad(goes_on[:, :-1], (1, 0))) & input_ids.ne(self.end)
        return x, padding, {"bpe_labels": (2 * piece.long()).masked_fill(padding, 1)}


class GuidedAttention(Attention):
    """Self-attention of a decoder's first layer, computed by a guide of its own (LPSI's).

    The cache holds the layer's inputs behind its keys. Of them the guide computes its states again for each
    token, which `synmask decode` need not.
    """

    def __init__(self, guide: Guide, *sizes: Any, **kwargs: Any) -> None:
        super().__init__(*sizes, **kwargs)
        self.guide = guide

    def forward(
        self,
        query: Tensor,
        key: Any,
        key_padding_mask: Tensor | None = None,
        layer_state: Any = None,
        **_: Any,
    ) -> tuple[Tensor, None]:
        """query (m, B, d), the last m of t tokens; key_padding_mask (B, t) or None → (m, B, d)."""
        m, heads = len(query), self.num_heads
        queries, keys, values, inputs = (
            by_head(states, heads)
            for states in (self.q_proj(query) * self.scaling, self.k_proj(query), self.v_proj(query), query)
        )
        if layer_state is not None:
            both = torch.cat([keys, inputs], dim=-1)
            both, values = layer_state.self_attention_cache.update(both, values, self.layer_idx)
            keys, inputs = both.chunk(2, dim=-1)
        states = inputs.transpose(1, 2).flatten(2)
        padding = key_padding_mask
        if padding is None:
            padding = torch.zeros(states.shape[:2], dtype=torch.bool, device=states.device)
        prepared = self.guide.prepare(states.masked_fill(padding[..., None], 0), padding, {})
        scores = F.pad(queries @ keys.mT, (0, 0, states.size(1) - m, 0))  # rows of earlier tokens: not read
        context = self.guide.context(scores, values, states, self._drop, prepared, layer=0)[:, :, -m:]
        return self.out_proj(context.permute(2, 0, 1, 3).reshape(query.shape)), None

    def _drop(self, weights: Tensor) -> Tensor:
        return F.dropout(weights, self.dropout, self.training)


class GuidedTransformer(FSMTForConditionalGeneration):
    """Encoder and decoder; a guide computes self-attention in the encoder's first layers."""

    config_class = GuidedConfig

    def __init__(self, config: GuidedConfig) -> None:
        super().__init__(config)
        self.model.encoder = encoder = GuidedEncoder(config)
        if guide := encoder.guide.decoder():
            sizes = config.d_model, config.decoder_attention_heads, config.attention_dropout
            self.model.decoder.layers[0].self_attn = GuidedAttention(guide, *sizes, layer_idx=0)
        self.post_init()

    def forward(
        self, input_ids: Tensor | None = None, attention_mask: Tensor | None = None, **kwargs: Any
    ) -> Any:
        """As FSMT's; pads are never attended to, with an attention_mask or without."""
        if attention_mask is None and input_ids is not None:
            attention_mask = input_ids.ne(self.config.pad_token_id).long()
        return super().forward(input_ids, attention_mask, **kwargs)

    @torch.no_grad()
    def parse(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Syntax:
        """The induced distances (B, n-1), heights (B, n) and P_D (B, n, n); positions count pads."""
        encoder = self.model.encoder
        return encoder.guide.syntax(encoder.guide.prepare(*encoder.read(input_ids, attention_mask)))
