"""Translation: the data set, the model that the settings describe, and its configuration for fairseq."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.models.transformer.transformer_config import (
    DecoderConfig,
    EncDecBaseConfig,
    TransformerConfig,
)

from synmask.pipeline.errors import UserError
from synmask.pipeline.run_settings import RunSettings
from synmask.pipeline.syntax.annotations import Annotations
from synmask.pipeline.training.binarise import read_binary
from synmask.pipeline.translation.dataset import AnnotatedPairs
from synmask.pipeline.translation.st_nmt import TemplatedTransformer, read_template_ids
from synmask.pipeline.translation.transformer import GuidedTransformer

PARSER_ANNOTATIONS = frozenset({"heads", "distances"})  # annotations that come from a parser


class GuidedTranslation:
    """Translation by a Transformer whose encoder self-attention may be guided by syntax.

    Args:
        template_dictionary: the symbols of templates, if the system reads them; else None.

    Attributes:
        needs: names of the annotations that batches have.
        mixes: whether sentences of a batch affect each other; `inputs.inference_batches` then separates them.
    """

    def __init__(
        self,
        source: Dictionary,
        target: Dictionary,
        settings: RunSettings,
        seed: int = 1,
        template_dictionary: Dictionary | None = None,
    ) -> None:
        self.src_dict, self.tgt_dict = source, target
        self.settings = settings
        self.seed = seed
        self.template_dictionary = template_dictionary
        system = settings.system
        self.mixes = system.mixes
        self.needs = frozenset({"template"}) if system.templated else system.guide_options.needs

    def build_model(self) -> GuidedTransformer:
        """The model at its start."""
        model_class = TemplatedTransformer if self.settings.system.templated else GuidedTransformer
        return model_class.build(transformer_config(self.settings), self)

    def pairs(
        self, data: Path, split: str, source: str, target: str, templates: Path | None = None
    ) -> AnnotatedPairs:
        """A split of the folder `data` of binarised text.

        Args:
            templates: the file of the split's templates, one line per pair, if the system reads them.

        Raises:
            UserError: a file is missing or damaged, or the files do not belong together.
        """
        prefix = data / f"{split}.{source}-{target}"
        sides = ((source, self.src_dict), (target, self.tgt_dict))
        texts = [read_binary(Path(f"{prefix}.{language}"), dictionary) for language, dictionary in sides]
        if len(texts[0]) != len(texts[1]):
            raise UserError(f"{prefix}.*: binarised data missing or damaged; delete its folder and rerun")
        syntax = symbols = None
        if self.parser_annotations:
            syntax = Annotations(data / f"syntax.{split}.{source}.npy", texts[0].sizes)
        if templates is not None:
            symbols = read_template_ids(
                templates, self.template_dictionary, len(texts[0]), {"seed": self.seed}
            )
        return AnnotatedPairs(self, *texts, syntax, symbols, training=split == "train")

    @property
    def parser_annotations(self) -> frozenset[str]:
        """The annotations that the model reads and a parser provides."""
        return self.needs & PARSER_ANNOTATIONS

    def sources(
        self,
        sentences: list[torch.Tensor],
        syntax: Sequence[np.ndarray] | None = None,
        templates: Sequence[torch.Tensor] | None = None,
        references: Sequence[torch.Tensor] | None = None,
    ) -> AnnotatedPairs:
        """Source sentences, (n,) ids with `</s>` each, as a data set for decoding or parsing.

        Args:
            syntax: their annotations, (n, 3) each, if the model reads parses.
            templates: ids with `</s>` of their templates, if the model reads them; None: all empty.
            references: their translations, (m,) ids with `</s>` each, for forced decoding.
        """
        return AnnotatedPairs(self, sentences, references, syntax, templates)


def transformer_config(settings: RunSettings) -> TransformerConfig:
    """fairseq's configuration of the model."""
    model, training = settings.model, settings.training
    cfg = TransformerConfig()
    sizes = {"embed_dim": model.embed_dim, "ffn_embed_dim": model.ffn_dim, "attention_heads": model.heads}
    cfg.encoder = EncDecBaseConfig(layers=model.encoder_layers, **sizes)
    cfg.decoder = DecoderConfig(
        layers=model.decoder_layers, input_dim=model.embed_dim, output_dim=model.embed_dim, **sizes
    )
    cfg.dropout, cfg.attention_dropout = training.dropout, training.attention_dropout
    cfg.share_decoder_input_output_embed = True
    return cfg
