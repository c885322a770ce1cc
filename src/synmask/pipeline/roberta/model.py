"""fairseq's RoBERTa with self-attention that may be guided by syntax in its first layers."""

from argparse import Namespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models.roberta import RobertaClassificationHead, RobertaEncoder, RobertaModel
from fairseq.models.transformer.transformer_config import TransformerConfig
from fairseq.modules.transformer_sentence_encoder import init_bert_params
from torch import Tensor, nn

from synmask.encoder import SelfAttention
from synmask.guides import build_guide
from synmask.pipeline.cpu.modules import accelerate
from synmask.pipeline.guidance import Guidance
from synmask.pipeline.roberta.weights import Weights
from synmask.pipeline.training.operators import FAIRSEQ_MODULES
from synmask.pipeline.translation.layers import shape_of
from synmask.pipeline.translation.transformer import TokenEncoder

HEAD_NAME = "task"  # fairseq's name for the classification head


class _Encoder(RobertaEncoder):
    """RoBERTa's encoder around ours; its parameters keep fairseq's names."""

    def build_encoder(self, args: Namespace, dictionary: Dictionary, embed_tokens: nn.Module) -> TokenEncoder:
        encoder = TokenEncoder(TransformerConfig.from_namespace(args), dictionary, embed_tokens)
        encoder.apply(_init_bert)
        return encoder

    def extract_features(
        self, src_tokens: Tensor, *_: Any, annotations: dict[str, Tensor] | None = None, **__: Any
    ) -> tuple[Tensor, dict[str, Any]]:
        """src_tokens (B, n) → the last layer's states (B, n, d)."""
        encoded = self.sentence_encoder(src_tokens, annotations=annotations)
        return encoded["encoder_out"][0].transpose(0, 1), {}


def _init_bert(module: nn.Module) -> None:
    """BERT's initialisation; fairseq's function draws those of its own attention twice."""
    init_bert_params(module)
    if isinstance(module, SelfAttention):
        for projection in (module.q_proj, module.k_proj, module.v_proj):
            nn.init.normal_(projection.weight, std=0.02)


class GuidedRoberta(RobertaModel):
    """RoBERTa for pre-training (a masked language model) and for fine-tuning (a head over `<s>`)."""

    @classmethod
    def build(cls, args: Namespace, dictionary: Dictionary) -> "GuidedRoberta":
        """A plain model with new weights.

        Args:
            args: sizes and dropout under fairseq's names (`RobertaShape.settings`).
        """
        return accelerate(cls(args, _Encoder(args, dictionary)), FAIRSEQ_MODULES)

    @classmethod
    def with_head(cls, weights: Weights, args: Namespace, system: Guidance, outputs: int) -> "GuidedRoberta":
        """A model with pre-trained `weights`, a new head with `outputs` outputs, and `system`'s guide.

        Shared parts are made before the guide, so that runs with the same seed start from the same weights.
        """
        model = cls.build(args, weights.dictionary)
        model.load_state_dict(weights.state)
        width, pooler = args.encoder_embed_dim, (args.pooler_activation_fn, args.pooler_dropout)
        model.classification_heads[HEAD_NAME] = RobertaClassificationHead(width, width, outputs, *pooler)
        if system.guide != "none":
            encoder = model.encoder.sentence_encoder
            encoder.guide = build_guide(system.guide, system.options, shape_of(encoder.cfg))
            encoder.guide.start_plain()
        return accelerate(model, FAIRSEQ_MODULES)

    @torch.no_grad()
    def scale_outputs(self, factor: float) -> None:
        """Multiply the head's outputs."""
        if factor != 1:
            for parameter in self.classification_heads[HEAD_NAME].out_proj.parameters():
                parameter.mul_(factor)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        masked: Tensor | None = None,
        annotations: dict[str, Tensor] | None = None,
        classification_head_name: str | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """With `classification_head_name` → that head's outputs (B, C); if positions `masked` (m,) of the
        flattened (B, n) are given, the extras contain `mlm_logits` (m, V). Without: as in fairseq.
        `annotations` are the guide's input."""
        if classification_head_name is None:
            return super().forward(src_tokens, src_lengths=src_lengths, **kwargs)
        features, extra = self.encoder.extract_features(src_tokens, annotations=annotations)
        if masked is not None:
            chosen = features.flatten(0, 1).index_select(0, masked)
            extra["mlm_logits"] = self.encoder.output_layer(chosen)
        return self.classification_heads[classification_head_name](features), extra
