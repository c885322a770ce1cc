"""ST-NMT (Yang et al., ACL 2020): a Transformer with a second encoder, for a template of the target."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from fairseq.data import Dictionary
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn

from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_lines, read_object
from synmask.pipeline.record import NO_RUN, RunRecord, check_training, read_record, run_names
from synmask.pipeline.training.binarise import encode_line
from synmask.pipeline.translation.layers import DecoderLayer
from synmask.pipeline.translation.transformer import GuidedDecoder, GuidedTransformer, TokenEncoder


class CrossInputs(NamedTuple):
    """The inputs of a decoder layer's cross-attention: states of the source (n, B, d) and of the template
    (k, B, d), and the template's padding (B, k)."""

    source: Tensor
    template: Tensor
    padding: Tensor


class GatedAttention(nn.Module):
    """Cross-attention to source and template: Z = β Z_X + (1 − β) Z_T, β = σ(W Z_X + U Z_T).

    A sentence whose template is empty (`</s>` alone) attends to its source only: Z = Z_X.
    """

    def __init__(self, source: MultiheadAttention, template: MultiheadAttention) -> None:
        super().__init__()
        self.source = source
        self.template = template
        self.from_source = nn.Linear(source.embed_dim, source.embed_dim, bias=False)
        self.from_template = nn.Linear(source.embed_dim, source.embed_dim, bias=False)
        for gate in (self.from_source, self.from_template):
            nn.init.xavier_uniform_(gate.weight)

    def forward(
        self,
        query: Tensor,
        key: CrossInputs,
        value: CrossInputs,
        key_padding_mask: Tensor | None = None,
        incremental_state: None = None,
        *,
        static_kv: bool = False,
        **options: bool,
    ) -> tuple[Tensor, Tensor | None]:
        """query (m, B, d) → (m, B, d), and the weights of attention to the source if they are `options`."""
        read, weights = self.source(
            query, key.source, key.source, key_padding_mask=key_padding_mask, static_kv=static_kv, **options
        )
        template, _ = self.template(
            query, key.template, key.template, key.padding, need_weights=False, static_kv=static_kv
        )
        return self.mix(read, template, ((~key.padding).sum(1) == 1)[:, None]), weights

    def mix(self, read: Tensor, template: Tensor, empty: Tensor) -> Tensor:
        """Z (…, d) from Z_X and Z_T (…, d); `empty`: True for empty templates, broadcast to (…, 1)."""
        gate = (self.from_source(read) + self.from_template(template)).sigmoid()
        return torch.where(empty, read, torch.lerp(template, read, gate))


class TemplatedEncoder(TokenEncoder):
    """The encoder of the source and, as `template`, the encoder of templates."""

    template: TokenEncoder

    def forward(
        self, src_tokens: Tensor, *args: Any, annotations: dict[str, Tensor], **kwargs: Any
    ) -> dict[str, Any]:
        """src_tokens (B, n), annotations["template"] (B, k) → fairseq's encoder output, plus `template`: the
        template's states (k, B, d) and its padding (B, k)."""
        read = self.template(annotations["template"])
        template = read["encoder_out"][0], read["encoder_padding_mask"][0]
        return super().forward(src_tokens, *args, **kwargs) | {"template": template}


class TemplatedDecoder(GuidedDecoder):
    """The decoder; each layer attends to source and template."""

    def extract_features(
        self, prev_output_tokens: Tensor, encoder_out: dict[str, Any], *args: Any, **kwargs: Any
    ) -> tuple[Tensor, dict[str, Any]]:
        """As in fairseq."""
        sides = CrossInputs(encoder_out["encoder_out"][0], *encoder_out["template"])
        return super().extract_features(
            prev_output_tokens, encoder_out | {"encoder_out": [sides]}, *args, **kwargs
        )

    def cross_steps(
        self, attends: Callable[..., Any], layer: DecoderLayer, encoder_out: dict[str, Any]
    ) -> "GatedSteps":
        """As `GuidedDecoder.cross_steps`, to source and template."""
        attention = layer.encoder_attn
        source = encoder_out["encoder_out"][0], encoder_out["encoder_padding_mask"][0]
        sides = (attention.source, *source), (attention.template, *encoder_out["template"])
        return GatedSteps(attention, *(attends(*side) for side in sides))


class GatedSteps:
    """`GatedAttention` in beam search."""

    def __init__(self, attention: GatedAttention, source: Any, template: Any) -> None:
        """source, template: cross-attention to each (`translation.steps.CrossAttention`)."""
        self.attention, self.source, self.template = attention, source, template

    def __call__(self, x: Tensor, rows: Tensor, plus: Tensor) -> Tensor:
        """x (S, W, d) of the sentences `rows` (S,) → same, with `plus` added."""
        empty = self.template.bias[rows, 0].isfinite().sum(-1, keepdim=True) == 1  # (S, 1, 1)
        return plus + self.attention.mix(self.source(x, rows), self.template(x, rows), empty)


class TemplatedTransformer(GuidedTransformer):
    """Encoder–decoder with a second encoder for templates of the target, annotations["template"] (B, k)."""

    encoder_class = TemplatedEncoder
    decoder_class = TemplatedDecoder

    @classmethod
    def add_guide(cls, encoder: TemplatedEncoder, decoder: TemplatedDecoder, task: Any) -> None:
        """Add an encoder of templates, as deep as the source's, and attention to it in all decoder layers."""
        cfg, dictionary = encoder.cfg, task.template_dictionary
        embed = cls.build_embedding(cfg, dictionary, cfg.encoder.embed_dim)
        encoder.template = TokenEncoder(cfg, dictionary, embed)
        for layer in decoder.layers:
            template = layer.build_encoder_attention(cfg.decoder.embed_dim, cfg)
            layer.encoder_attn = GatedAttention(layer.encoder_attn, template)


def read_template_ids(
    path: Path,
    dictionary: Dictionary,
    sentences: int,
    run: RunRecord = NO_RUN,
    model: tuple[Path, str | None] | None = None,
) -> list[torch.Tensor]:
    """The ids of a file's templates, with `</s>`; one line per sentence, empty if it has no template.

    Args:
        run: the run that reads them; `model`: its model file and the `training_digest` of the model in it
            that predicts templates. The record of `predict-templates` beside them, PATH.json, must fit both.

    Raises:
        UserError: the number of lines is not `sentences`, or the templates are of another run.
    """
    if (beside := Path(f"{path}.json")).exists():
        read_record(beside, [path], run_names(run))
        if model:
            check_training(beside, read_object(beside).get("training"), *model)
    templates = [encode_line(line, dictionary).long() for line in read_lines(path)]
    if len(templates) != sentences:
        raise UserError(f"{path}: {len(templates)} templates for {sentences} sentences; make them again")
    return templates
