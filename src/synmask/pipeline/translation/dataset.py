"""Sentence pairs with annotations and masking, on top of fairseq's LanguagePairDataset."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary, LanguagePairDataset
from torch.nn.utils.rnn import pad_sequence

from synmask.options import NO_TOKEN
from synmask.pipeline.text.labels import PADDING_LABEL, bpe_labels
from synmask.pipeline.training.losses import collate_masked, draw_mask

PAD_VALUES = {"bpe_labels": PADDING_LABEL, "distances": NO_TOKEN, "heads": NO_TOKEN}  # their values at pads


def continues(dictionary: Dictionary) -> np.ndarray:
    """(V,) bool: True for symbols that end in "@@", the non-final pieces of split words."""
    return np.array([symbol.endswith("@@") for symbol in dictionary.symbols])


def _sizes(sentences: Any) -> Any:
    return sentences.sizes if hasattr(sentences, "sizes") else [len(sentence) for sentence in sentences]


class AnnotatedPairs(LanguagePairDataset):
    """Sentence pairs whose batches contain what guides and objectives need.

    `net_input` also has `annotations` (a dict of tensors, padded like the source; see `Guide`) and, with
    masking, `masked` (m,): the masked positions in the flattened (B, n) source. The batch also has
    `masked_target` (m,): the original tokens (docs/method.md, "The objective"). Masking depends only on seed,
    epoch and sentence, so a resumed training sees the same masks.

    Args:
        task: the `GuidedTranslation` with the dictionaries, the system, and the annotations that it needs
            ("bpe_labels" are computed from the tokens).
        source, target: ids with `</s>` of each sentence; target None: without translations.
        syntax: (n, 3) per sentence, if "heads" or "distances" are needed (`syntax.annotations`).
        templates: ids with `</s>` of each sentence's template, if "template" is needed; None: all empty.
        training: replace source tokens (`</s>` included) by the mask symbol `<s>`, which occurs in no source
            sentence, and leave templates out, both at the system's rates.
    """

    def __init__(
        self,
        task: Any,
        source: Sequence[torch.Tensor],
        target: Sequence[torch.Tensor] | None = None,
        syntax: Sequence[np.ndarray] | None = None,
        templates: Sequence[torch.Tensor] | None = None,
        *,
        training: bool = False,
    ) -> None:
        system = task.settings.system
        super().__init__(
            source,
            _sizes(source),
            task.src_dict,
            target,
            None if target is None else _sizes(target),
            task.tgt_dict,
            left_pad_source=system.left_pad_source,
            shuffle=target is not None,
        )
        self.needs, self.mixes, self.seed, self.epoch = task.needs, task.mixes, task.seed, 1
        self.syntax, self.templates = syntax, templates
        self.mask_rate = system.mask_rate if training else 0.0
        self.without = getattr(system.guide_options, "without", 0.0) if training else 0.0
        self.continues = continues(self.src_dict)

    def set_epoch(self, epoch: int) -> None:
        super().set_epoch(epoch)
        self.epoch = epoch

    def __getitem__(self, index: int) -> dict[str, Any]:
        example = super().__getitem__(index)
        source = example["source"]
        annotations = {}
        if "bpe_labels" in self.needs:
            annotations["bpe_labels"] = torch.from_numpy(bpe_labels(source.numpy(), self.continues))
        if self.syntax is not None:
            syntax = torch.from_numpy(self.syntax[index].astype(np.int64))
            annotations |= {"heads": syntax[:, :2], "distances": syntax[:, 2]}
        if "template" in self.needs:
            annotations["template"] = self._template(index)
        example["annotations"] = annotations
        if not self.mask_rate:
            return example
        random = np.random.default_rng([self.seed, self.epoch, index])
        return example | self._mask(source, annotations, draw_mask(random, len(source), self.mask_rate))

    def _mask(
        self, source: torch.Tensor, annotations: dict[str, torch.Tensor], masked: torch.Tensor
    ) -> dict[str, Any]:
        if "bpe_labels" in annotations:
            annotations = annotations | {"bpe_labels": annotations["bpe_labels"].masked_fill(masked, 0)}
        noisy = source.masked_fill(masked, self.src_dict.bos())
        return {"source": noisy, "annotations": annotations, "masked": masked, "unmasked": source}

    def _template(self, index: int) -> torch.Tensor:
        empty = torch.tensor([self.src_dict.eos()])
        if self.templates is None:
            return empty
        left_out = np.random.default_rng([self.seed, self.epoch, index, 1]).random() < self.without
        return empty if left_out else self.templates[index]

    def collater(
        self, samples: list[dict[str, Any]], pad_to_length: Mapping[str, int] | None = None
    ) -> dict[str, Any]:
        batch = super().collater(samples, pad_to_length=pad_to_length)
        if not batch:
            return batch
        by_id = {sample["id"]: sample for sample in samples}
        ordered = [by_id[i] for i in batch["id"].tolist()]
        batch["net_input"]["annotations"] = self._annotations([s["annotations"] for s in ordered])
        if self.mask_rate:
            masked, target = collate_masked(ordered, self.src_dict.pad(), left_pad=self.left_pad_source)
            batch["net_input"]["masked"], batch["masked_target"] = masked, target
        return batch

    def _annotations(self, rows: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
        """The padded annotations of a batch; padding on the left shifts positions."""
        side = "left" if self.left_pad_source else "right"
        batch = {
            name: pad_sequence([row[name] for row in rows], True, padding, side)
            for name, padding in PAD_VALUES.items()
            if name in self.needs
        }
        if "template" in self.needs:  # target side: padded on the right
            batch["template"] = pad_sequence([row["template"] for row in rows], True, self.src_dict.pad())
        if "heads" in batch and self.left_pad_source:
            pads = batch["heads"].size(1) - torch.tensor([len(row["heads"]) for row in rows])
            batch["heads"] += pads[:, None, None] * (batch["heads"] >= 0)
        return batch
