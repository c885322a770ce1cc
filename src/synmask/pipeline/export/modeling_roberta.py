"""A RoBERTa for classification whose self-attention syntax guides, for Hugging Face's transformers.

`synmask export` copies this file and the method into a model's folder. There, without synmask,
`AutoModelForSequenceClassification.from_pretrained(FOLDER, trust_remote_code=True)` runs them.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import RobertaConfig, RobertaForSequenceClassification
from transformers.modeling_outputs import BaseModelOutputWithPoolingAndCrossAttentions as Output
from transformers.models.roberta.modeling_roberta import RobertaEmbeddings, RobertaPreTrainedModel

from synmask.encoder import EncoderLayer, encode_layers
from synmask.guides import Guide, Shape, Syntax
from synmask.guides.grammar import GrammarGuide as OwnGuide  # a copy names the model's guide
from synmask.options.grammar import GrammarOptions as OwnOptions


class GuidedConfig(RobertaConfig):
    """RoBERTa's settings, and `guide` with its `guide_options`."""

    model_type = "synmask-roberta"

    guide: str = "grammar"
    guide_options: dict | None = None


class GuidedRobertaModel(RobertaPreTrainedModel):
    """RoBERTa's embeddings and guided layers."""

    config_class = GuidedConfig

    def __init__(self, config: GuidedConfig) -> None:
        super().__init__(config)
        self.embeddings = RobertaEmbeddings(config)
        sizes = config.hidden_size, config.num_attention_heads, config.intermediate_size
        shape = Shape(*sizes, config.num_hidden_layers)
        dropout = config.hidden_dropout_prob, config.attention_probs_dropout_prob, 0.0
        self.layers = nn.ModuleList(EncoderLayer(shape, *dropout, F.gelu) for _ in range(shape.layers))
        self.guide: Guide = OwnGuide(OwnOptions(**config.guide_options or {}), shape)
        self.post_init()

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **_: Any) -> Output:
        """input_ids (B, n), with pads on either side → states (B, n, d); those of left pads come last.

        The head reads the first state, which must be that of `<s>`.
        """
        x, padding = self.read(input_ids, attention_mask)
        states, _ = encode_layers(self.layers, self.guide, x, padding, {})
        pads = padding.long().argmin(1, keepdim=True)  # on the left
        turned = (torch.arange(x.size(1), device=x.device) + pads) % x.size(1)
        return Output(last_hidden_state=states.transpose(0, 1).take_along_dim(turned[..., None], 1))

    def read(self, input_ids: Tensor, attention_mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """The first layer's input (B, n, d), 0 at pads, and padding (B, n)."""
        pads = input_ids.eq(self.config.pad_token_id)
        padding = pads if attention_mask is None else pads | attention_mask.eq(0)
        return self.embeddings(input_ids).masked_fill(padding[..., None], 0), padding


class GuidedRoberta(RobertaForSequenceClassification):
    """RoBERTa with a head over `<s>`."""

    config_class = GuidedConfig

    def __init__(self, config: GuidedConfig) -> None:
        super().__init__(config)
        self.roberta = GuidedRobertaModel(config)
        self.post_init()

    @torch.no_grad()
    def parse(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Syntax:
        """The induced distances (B, n-1), heights (B, n) and P_D (B, n, n); positions count pads."""
        model = self.roberta
        return model.guide.syntax(model.guide.prepare(*model.read(input_ids, attention_mask), {}))
