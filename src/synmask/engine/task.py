"""The translation task: fairseq's, with our data set, and with models that the settings describe."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary, indexed_dataset
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
        sides = [_sentences(f"{prefix}.{language}") for language in (source, target)]
        if len(sides[0]) != len(sides[1]):
            raise _unusable(f"{prefix}.*")
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


def _sentences(path: str) -> indexed_dataset.MMapIndexedDataset:
    """One side of a binarised split, whose two files are there and fit each other."""
    try:
        fit = _end(Path(f"{path}.idx").read_bytes()) == os.path.getsize(f"{path}.bin")
    except FileNotFoundError:
        fit = False
    if not fit:  # fairseq itself would show a page of tracebacks
        raise _unusable(path)
    return indexed_dataset.MMapIndexedDataset(path)


def _end(index: bytes) -> int | None:
    """Where the last sentence ends in the data that belong to `index`, in bytes; None: not a whole index.

    An index is a magic number (9 bytes), a version (8), the type of the ids (1), the number of sentences (8),
    and of each sentence its length (4) and where it starts (8).
    """
    magic, count = index[:9], int.from_bytes(index[18:26], "little")
    kind = indexed_dataset._code_to_dtype.get(index[17]) if len(index) > 17 else None
    whole = magic == indexed_dataset.MMapIndexedDataset.Index._HDR_MAGIC and len(index) == 26 + 12 * count
    if not count or kind is None or not whole:
        return None
    length, start = index[26 + 4 * (count - 1) :][:4], index[-8:]
    return int.from_bytes(start, "little") + int.from_bytes(length, "little") * np.dtype(kind).itemsize


def _unusable(path: str) -> UserError:
    return UserError(f"{path}: binarised data missing or damaged; delete its folder and rerun")
