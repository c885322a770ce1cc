"""The translation task: fairseq's, with our data set, and with models that the settings describe."""

import os
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary, indexed_dataset
from fairseq.tasks.translation import TranslationTask

from synmask.engine.dataset import AnnotatedPairs
from synmask.engine.model import GuidedTransformer
from synmask.files import UserError


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
        self.datasets[split] = self._pairs(*sides, masked=split == "train", shuffle=split != "test")

    def sources(self, sentences: list[torch.Tensor]) -> AnnotatedPairs:
        """Source sentences, (n,) ids with `</s>` each, as a data set to decode or to parse."""
        return self._pairs(sentences, None, masked=False, shuffle=False)

    def _pairs(self, source: Any, target: Any, *, masked: bool, shuffle: bool) -> AnnotatedPairs:
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
            mask_rate=system["mask_rate"] if masked else 0.0,
            seed=self.seed,
        )


def _sentences(path: str) -> indexed_dataset.MMapIndexedDataset:
    """One side of a binarised split, whose two files are there and fit each other."""
    try:
        data = indexed_dataset.MMapIndexedDataset(path)
        index = data._index
        end = int(index._pointers[-1]) + int(index.sizes[-1]) * index.dtype().itemsize
        if end == os.path.getsize(f"{path}.bin"):
            return data
    except MemoryError:
        raise
    except Exception:  # what a damaged index makes of fairseq's reader is not limited
        pass
    raise _unusable(path)


def _unusable(path: str) -> UserError:
    return UserError(f"{path}: binarised data missing or damaged; delete its folder and rerun")
