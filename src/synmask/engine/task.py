"""The translation task: fairseq's, with our data set, and with models that the settings describe."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary, data_utils
from fairseq.tasks.translation import TranslationTask

from synmask.engine.dataset import AnnotatedPairs
from synmask.engine.model import GuidedTransformer
from synmask.files import UserError
from synmask.syntax.annotations import Annotations

PARSED = frozenset({"heads", "distances"})  # annotations that come from a parser


class GuidedTranslation(TranslationTask):
    """Translation by a Transformer whose encoder self-attention may be guided by syntax.

    Args:
        cfg: fairseq's task configuration (`data`, `source_lang`, `target_lang`).
        settings: what `Config.run_settings` says of the run: `model`, `training` and `system`.
    """

    def __init__(
        self, cfg: Any, source: Dictionary, target: Dictionary, settings: dict[str, Any], seed: int = 1
    ) -> None:
        super().__init__(cfg, source, target)
        self.settings = settings
        self.seed = seed

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> GuidedTransformer:
        model = GuidedTransformer.build(cfg, self, self.settings["system"])
        self.needs = model.encoder.needs
        return model

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        source, target = self.cfg.source_lang, self.cfg.target_lang
        prefix = Path(self.cfg.data) / f"{split}.{source}-{target}"
        sides = [
            data_utils.load_indexed_dataset(f"{prefix}.{language}", dictionary, "mmap")
            for language, dictionary in ((source, self.src_dict), (target, self.tgt_dict))
        ]
        if None in sides:
            raise UserError(f"{prefix}.*: binarised data missing or incomplete; rerun the rule `binarise`")
        syntax = None
        if self.parsed:
            syntax = Annotations(annotation_file(Path(self.cfg.data), split, source), sides[0].sizes)
        self.datasets[split] = self._pairs(*sides, syntax, masked=split == "train", shuffle=split != "test")

    @property
    def parsed(self) -> frozenset[str]:
        """What the model reads that a parser must give."""
        return self.needs & PARSED

    def sources(
        self, sentences: list[torch.Tensor], syntax: Sequence[np.ndarray] | None = None
    ) -> AnnotatedPairs:
        """Source sentences, (n,) ids with `</s>` each, as a data set to decode or to parse.

        Args:
            syntax: their annotations, (n, 3) each, where the model reads what a parser gives.
        """
        return self._pairs(sentences, None, syntax, masked=False, shuffle=False)

    def _pairs(self, source: Any, target: Any, syntax: Any, *, masked: bool, shuffle: bool) -> AnnotatedPairs:
        def sizes(side: Any) -> Any:
            return side.sizes if hasattr(side, "sizes") else [len(sentence) for sentence in side]

        system = self.settings["system"]
        return AnnotatedPairs(
            source,
            sizes(source),
            self.src_dict,
            target,
            None if target is None else sizes(target),
            None if target is None else self.tgt_dict,
            left_pad_source=system["left_pad_source"],
            shuffle=shuffle,
            needs=self.needs,
            syntax=syntax,
            mask_rate=system["mask_rate"] if masked else 0.0,
            seed=self.seed,
        )


def annotation_file(data: Path, split: str, language: str) -> Path:
    """Where the syntax of a split lies, beside the binarised data."""
    return data / f"syntax.{split}.{language}.npy"
