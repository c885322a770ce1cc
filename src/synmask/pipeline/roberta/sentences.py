"""Trainings on encoded sentences and sentence pairs: data, and the objective of fine-tuning."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset, data_utils
from torch import Tensor, nn

from synmask.options import NO_TOKEN
from synmask.pipeline.config.benchmarks import ContinuedRun, FinetuningSettings
from synmask.pipeline.record import check_model, run_beside, weights_identity
from synmask.pipeline.roberta.examples import (
    EncodedExamples,
    read_encoded,
    read_examples,
    read_syntax,
    syntax_path,
)
from synmask.pipeline.roberta.model import HEAD_NAME
from synmask.pipeline.roberta.weights import MASK, load_weights
from synmask.pipeline.training.losses import Sums, collate_masked, draw_mask
from synmask.pipeline.training.schedules import Schedule, linear_decay
from synmask.pipeline.training.stage import Stage


def pad_words(rows: Sequence[np.ndarray]) -> dict[str, Tensor]:
    """A guide's input from annotations (n, 4) of examples: "words" (B, n, 4), -1 at pads."""
    words = [torch.from_numpy(row.astype(np.int64)) for row in rows]
    return {"words": nn.utils.rnn.pad_sequence(words, batch_first=True, padding_value=NO_TOKEN)}


@dataclass(eq=False)
class Sentences(FairseqDataset):
    """Examples as batches, padded on the right.

    Attributes:
        syntax: annotations (T, 4) of the examples' tokens, added to `net_input` (`pad_words`).
        mask_rate: share of tokens, special ones excepted, replaced by `<mask>`. `net_input` then contains
            `masked` (m,), positions in the flattened (B, n), and the batch `masked_target` (m,), the original
            tokens. Masking depends on seed, epoch and example only.
        order: of the examples before batching; default: short ones first.
    """

    encoded: EncodedExamples
    dictionary: Dictionary
    syntax: np.ndarray | None = None
    mask_rate: float = 0.0
    seed: int = 1
    order: np.ndarray | None = None
    epoch: int = 1

    @property
    def sizes(self) -> np.ndarray:
        return self.encoded.sizes

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.encoded)

    def __getitem__(self, index: int) -> dict[str, Any]:
        tokens = torch.from_numpy(self.encoded[index].astype(np.int64))
        example = {"id": index, "tokens": tokens, "target": self.encoded.targets[index]}
        if not self.mask_rate:
            return example
        random = np.random.default_rng([self.seed, self.epoch, index])
        real = (tokens != self.dictionary.bos()) & (tokens != self.dictionary.eos())
        masked = draw_mask(random, len(tokens), self.mask_rate) & real
        return example | {"masked": masked, "unmasked": tokens} | self.corrupt(random, index, tokens, masked)

    def corrupt(
        self, random: np.random.Generator, index: int, tokens: Tensor, masked: Tensor
    ) -> dict[str, Any]:
        """The tokens of an example with `<mask>` in place of the `masked` ones."""
        return {"tokens": tokens.masked_fill(masked, self.dictionary.index(MASK))}

    def collater(self, samples: list[dict[str, Any]]) -> dict[str, Any]:
        if not samples:
            return {}
        pad, lengths = self.dictionary.pad(), torch.tensor([len(sample["tokens"]) for sample in samples])
        batch = {
            "id": torch.tensor([sample["id"] for sample in samples]),
            "net_input": {
                "src_tokens": data_utils.collate_tokens([sample["tokens"] for sample in samples], pad),
                "src_lengths": lengths,
            },
            "target": torch.tensor([sample["target"] for sample in samples]),
            "ntokens": int(lengths.sum()),
            "nsentences": len(samples),
        }
        if self.syntax is not None:
            rows = [self.encoded.part(self.syntax, sample["id"]) for sample in samples]
            batch["net_input"]["annotations"] = pad_words(rows)
        if self.mask_rate:
            batch["net_input"]["masked"], batch["masked_target"] = collate_masked(samples, pad)
        return batch

    def num_tokens(self, index: int) -> int:
        return int(self.sizes[index])

    def ordered_indices(self) -> np.ndarray:
        return np.argsort(self.sizes, kind="stable") if self.order is None else self.order


@dataclass(frozen=True)
class SentenceStage(Stage):
    """A training that starts from the folder `weights`, on train.npz and VALID.npz in `data`."""

    settings: FinetuningSettings | ContinuedRun
    data: Path
    weights: Path
    valid: str = "valid"

    @property
    def reads_syntax(self) -> bool:
        """Whether the training reads the syntax beside each part."""
        return True

    @property
    def parts(self) -> list[Path]:
        return [self.data / f"{name}.npz" for name in ("train", self.valid)]

    def check(self) -> dict[str, int]:
        weights = load_weights(self.weights)
        path = self.weights / "model.pt"
        check_model(path, weights.run, run_beside(path))
        for part in self.parts:
            self.syntax(part, read_examples(part, weights))
        return {}

    @property
    def run_facts(self) -> dict[str, Any]:
        return {"start": weights_identity(self.weights)}

    def syntax(self, part: Path, encoded: EncodedExamples) -> np.ndarray | None:
        """The annotations of PART.npz, if the training reads them."""
        return read_syntax(part, encoded) if self.reads_syntax else None

    def data_files(self) -> list[Path]:
        syntax = map(syntax_path, self.parts) if self.reads_syntax else ()
        return [self.weights / "model.pt", *self.parts, *syntax]

    def load_part(self, split: str) -> tuple[EncodedExamples, np.ndarray | None]:
        """The examples of "train" or "valid", and their annotations."""
        part = self.parts[split == "valid"]
        encoded = read_encoded(part)
        return encoded, self.syntax(part, encoded)

    def schedule(self) -> Schedule:
        training = self.settings.training
        return linear_decay(training.lr, training.warmup_updates, training.total_updates)


def task_loss(outputs: Tensor, targets: Tensor, reduction: str) -> Tensor:
    """The squared error of a regression's outputs (N, 1), or the cross-entropy of class scores (N, C)."""
    if outputs.size(1) == 1:
        return nn.functional.mse_loss(outputs.view(-1).float(), targets, reduction=reduction)
    return nn.functional.cross_entropy(outputs.float(), targets.long(), reduction=reduction)


@dataclass(frozen=True)
class SentenceLoss:
    """L = (1 − λ)·L_task + λ·L_MLM (docs/method.md, "The objective"); λ is `mlm_weight`.

    L_task is `task_loss`, a mean over examples; L_MLM the cross-entropy of the masked tokens, a mean over
    these. Logged per example in nats (squared errors).
    """

    mlm_weight: float

    def __call__(self, model: nn.Module, sample: dict[str, Any]) -> tuple[Tensor, int, Sums]:
        """→ loss (a sum), sample size (examples), sums to log (nats)."""
        inputs = dict(sample["net_input"])
        if not self.mlm_weight:
            inputs.pop("masked", None)
        outputs, extra = model(**inputs, classification_head_name=HEAD_NAME)
        loss, size = task_loss(outputs, sample["target"], "sum"), sample["nsentences"]
        log = {"task_loss": loss.data, "ntokens": sample["ntokens"]}
        if "mlm_logits" in extra:
            hidden = sample["masked_target"]
            mlm = nn.functional.cross_entropy(extra["mlm_logits"].float(), hidden, reduction="sum")
            loss = (1 - self.mlm_weight) * loss + self.mlm_weight * size * mlm / max(1, len(hidden))
            log |= {"mlm_loss": mlm.data, "masked": len(hidden)}
        return loss, size, log | {"loss": loss.data}
