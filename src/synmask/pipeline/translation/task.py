"""fairseq's translation task with our data set and the models that the settings describe."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.models.transformer.transformer_config import (
    DecoderConfig,
    EncDecBaseConfig,
    TransformerConfig,
)
from fairseq.tasks.translation import TranslationConfig, TranslationTask

from synmask.pipeline.config.sections import RunSettings
from synmask.pipeline.files import UserError
from synmask.pipeline.syntax.annotations import Annotations
from synmask.pipeline.training.binarise import read_binary
from synmask.pipeline.translation.dataset import AnnotatedPairs
from synmask.pipeline.translation.st_nmt import TemplatedTransformer, read_templates
from synmask.pipeline.translation.transformer import GuidedTransformer

PARSER_ANNOTATIONS = frozenset({"heads", "distances"})  # annotations that come from a parser


class GuidedTranslation(TranslationTask):
    """Translation by a Transformer whose encoder self-attention may be guided by syntax.

    Args:
        cfg: fairseq's task configuration (`data`, `source_lang`, `target_lang`).
        template_dictionary: the symbols of templates, if the system reads them; else None.
        templates: split → file of its templates, one line per pair.

    Attributes:
        needs: names of the annotations that batches have.
        mixes: whether sentences of a batch affect each other.
    """

    def __init__(
        self,
        cfg: Any,
        source: Dictionary,
        target: Dictionary,
        settings: RunSettings,
        seed: int = 1,
        template_dictionary: Dictionary | None = None,
        templates: Mapping[str, Path] = MappingProxyType({}),
    ) -> None:
        super().__init__(cfg, source, target)
        self.settings = settings
        self.seed = seed
        self.template_dictionary = template_dictionary
        self.templates = templates
        system = settings.system
        self.mixes = system.mixes
        self.needs = frozenset({"template"}) if system.templated else system.guide_options.needs

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> GuidedTransformer:
        system = self.settings.system
        return model_class(system.guide).build(cfg, self, system)

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Read a split from the folder of binarised data.

        Raises:
            UserError: a file is missing or damaged, or the files do not belong together.
        """
        source, target = self.cfg.source_lang, self.cfg.target_lang
        prefix = Path(self.cfg.data) / f"{split}.{source}-{target}"
        sides = ((source, self.src_dict), (target, self.tgt_dict))
        pairs = [read_binary(Path(f"{prefix}.{language}"), dictionary) for language, dictionary in sides]
        if len(pairs[0]) != len(pairs[1]):
            raise UserError(f"{prefix}.*: binarised data missing or damaged; delete its folder and rerun")
        syntax = templates = None
        if self.parsed:
            syntax = Annotations(prefix.with_name(f"syntax.{split}.{source}.npy"), pairs[0].sizes)
        if self.template_dictionary is not None:
            path, seed = self.templates[split], {"seed": self.seed}
            templates = read_templates(path, self.template_dictionary, len(pairs[0]), seed)
        self.datasets[split] = self._pairs(*pairs, syntax, templates, training=split == "train")

    @property
    def parsed(self) -> frozenset[str]:
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
        return self._pairs(sentences, references, syntax, templates, training=False)

    def _pairs(
        self, source: Any, target: Any, syntax: Any, templates: Any, *, training: bool
    ) -> AnnotatedPairs:
        def sizes(side: Any) -> Any:
            return side.sizes if hasattr(side, "sizes") else [len(sentence) for sentence in side]

        system = self.settings.system
        return AnnotatedPairs(
            source,
            sizes(source),
            self.src_dict,
            target,
            None if target is None else sizes(target),
            self.tgt_dict,
            left_pad_source=system.left_pad_source,
            shuffle=target is not None,
            needs=self.needs,
            syntax=syntax,
            templates=templates,
            mixes=self.mixes,
            without=getattr(system.guide_options, "without", 0.0) if training else 0.0,
            mask_rate=system.mask_rate if training else 0.0,
            seed=self.seed,
        )


def task_config(data: Path, source: str, target: str) -> TranslationConfig:
    """fairseq's configuration of the task."""
    return TranslationConfig(data=str(data), source_lang=source, target_lang=target)


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


def model_class(guide: str) -> type[GuidedTransformer]:
    """The model class that a guide needs."""
    return TemplatedTransformer if guide == "templates" else GuidedTransformer
