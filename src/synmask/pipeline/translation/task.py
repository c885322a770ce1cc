"""fairseq's translation task with our data set and the models that the settings describe."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.tasks.translation import TranslationTask
from omegaconf import DictConfig

from synmask.pipeline.config.guides import GUIDES
from synmask.pipeline.config.sections import RunSettings
from synmask.pipeline.files import UserError, read_lines
from synmask.pipeline.training.binarise import encode, read_binary
from synmask.pipeline.training.trainer import fairseq_arguments
from synmask.pipeline.translation.dataset import AnnotatedPairs
from synmask.pipeline.translation.transformer import GuidedTransformer

if TYPE_CHECKING:
    from synmask.pipeline.syntax.annotations import Annotations

PARSED = frozenset({"heads", "distances"})  # annotations that come from a parser


class GuidedTranslation(TranslationTask):
    """Translation by a Transformer whose encoder self-attention may be guided by syntax.

    Args:
        cfg: fairseq's task configuration (`data`, `source_lang`, `target_lang`).
        template_dictionary: the symbols of templates, if the system reads them; else None.
        templates: split → file of its templates, one line per pair.
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

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> GuidedTransformer:
        system = self.settings.system
        model = model_class(system.guide).build(cfg, self, system)
        self.needs = model.encoder.needs
        return model

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        languages = (self.cfg.source_lang, self.cfg.target_lang)
        dictionaries = (self.src_dict, self.tgt_dict)
        read = read_split(Path(self.cfg.data), split, languages, dictionaries, bool(self.parsed))
        templates = None
        if self.template_dictionary is not None:
            templates = read_templates(self.templates[split], self.template_dictionary, len(read[0]))
        self.datasets[split] = self._pairs(*read, templates, training=split == "train")

    @property
    def parsed(self) -> frozenset[str]:
        """The annotations that the model reads and a parser provides."""
        return self.needs & PARSED

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
            None if target is None else self.tgt_dict,
            left_pad_source=system.left_pad_source,
            shuffle=target is not None,
            needs=self.needs,
            syntax=syntax,
            templates=templates,
            without=system.options.get("without", 0.0) if training else 0.0,
            mask_rate=system.mask_rate if training else 0.0,
            mask_copies=system.mask_copies,
            masked_epochs=self.settings.masked_epochs,
            seed=self.seed,
        )


def translation_config(*given: Any, **named: Any) -> DictConfig:
    """The run's settings as fairseq's configuration; see `translation_arguments`."""
    return convert_namespace_to_omegaconf(translation_arguments(*given, **named))


def translation_arguments(
    data: Path, run: Path, source: str, target: str, settings: RunSettings, seed: int, processes: int = 1
) -> Namespace:
    """The run's settings as arguments of fairseq's command line.

    Gradients are accumulated, so that an update sees gpus x updates x tokens target tokens (`training.batch`)
    with any number of workers.
    """
    model, training, batch = settings.model, settings.training, settings.training.batch
    words = {
        "--task": "translation",
        "--source-lang": source,
        "--target-lang": target,
        "--arch": "transformer",
        "--encoder-layers": model.encoder_layers,
        "--decoder-layers": model.decoder_layers,
        "--encoder-embed-dim": model.embed_dim,
        "--decoder-embed-dim": model.embed_dim,
        "--encoder-ffn-embed-dim": model.ffn_dim,
        "--decoder-ffn-embed-dim": model.ffn_dim,
        "--encoder-attention-heads": model.heads,
        "--decoder-attention-heads": model.heads,
        "--dropout": training.dropout,
        "--attention-dropout": training.attention_dropout,
        "--lr-scheduler": "inverse_sqrt",
        "--warmup-init-lr": 1e-7,
        "--max-tokens": batch.tokens,
        "--update-freq": batch.gpus * batch.updates // processes,
    }
    flags = ["--share-decoder-input-output-embed"]
    return fairseq_arguments(data, run, words, training, seed, processes, flags)


def model_class(guide: str) -> type[GuidedTransformer]:
    """The model class that a guide needs; like guides, it is imported only when needed."""
    if not GUIDES[guide].templates:
        return GuidedTransformer
    from synmask.pipeline.translation.st_nmt import TemplatedTransformer

    return TemplatedTransformer


def read_templates(path: Path, dictionary: Dictionary, sentences: int) -> list[torch.Tensor]:
    """The ids of a file's templates, with `</s>`; one line per sentence, empty if it has no template.

    Raises:
        UserError: the number of lines is not `sentences`.
    """
    templates = [encode(line, dictionary).long() for line in read_lines(path)]
    if len(templates) != sentences:
        raise UserError(f"{path}: {len(templates)} templates for {sentences} sentences; make them again")
    return templates


def read_split(
    data: Path,
    split: str,
    languages: Sequence[str],
    dictionaries: Sequence[Dictionary],
    parsed: bool,
) -> tuple[MMapIndexedDataset, MMapIndexedDataset, "Annotations | None"]:
    """Source, target and, if `parsed`, the source's syntax of a split in a folder of binarised data.

    Raises:
        UserError: a file is missing or damaged, or the files do not belong together.
    """
    prefix = data / f"{split}.{languages[0]}-{languages[1]}"
    source, target = (
        read_binary(Path(f"{prefix}.{language}"), dictionary)
        for language, dictionary in zip(languages, dictionaries, strict=True)
    )
    if len(source) != len(target):
        raise UserError(f"{prefix}.*: binarised data missing or damaged; delete its folder and rerun")
    if not parsed:
        return source, target, None
    from synmask.pipeline.syntax.annotations import (
        Annotations,  # imported here: other systems do not depend on it
    )

    return source, target, Annotations(data / f"syntax.{split}.{languages[0]}.npy", source.sizes)
