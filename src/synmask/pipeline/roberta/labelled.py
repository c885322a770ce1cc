"""Sentences and sentence pairs with a label or score: data, task and objective of fine-tuning."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset, data_utils
from fairseq.optim.lr_scheduler.polynomial_decay_schedule import PolynomialDecayLRScheduleConfig
from fairseq.tasks import FairseqTask
from omegaconf import DictConfig
from torch import Tensor, nn

from synmask.pipeline.config.benchmarks import DecayingTraining, FinetuningSettings
from synmask.pipeline.roberta.encoded import NONE, Encoded, read_encoded, read_syntax
from synmask.pipeline.roberta.model import HEAD, GuidedRoberta
from synmask.pipeline.roberta.weights import Weights
from synmask.pipeline.tasks import TASKS
from synmask.pipeline.training.losses import LoggedLoss
from synmask.pipeline.training.masking import collate_masked, draw_mask
from synmask.pipeline.training.trainer import fairseq_config


def batched(rows: Sequence[np.ndarray]) -> dict[str, Tensor]:
    """A guide's input from annotations (n, 4) of examples: "words" (B, n, 4), -1 at pads."""
    words = [torch.from_numpy(row.astype(np.int64)) for row in rows]
    return {"words": nn.utils.rnn.pad_sequence(words, batch_first=True, padding_value=NONE)}


class Sentences(FairseqDataset):
    """Examples as batches, padded on the right.

    Args:
        syntax: annotations (T, 4) of the examples' tokens, added to `net_input` (`batched`).
        mask_rate: share of tokens, special ones excepted, replaced by `<mask>`. `net_input` then contains
            `masked` (m,), positions in the flattened (B, n), and the batch `masked_target` (m,), the original
            tokens. Masking depends on seed, epoch and example only.
        order: of the examples before batching.
    """

    def __init__(
        self, encoded: Encoded, dictionary: Dictionary, *, regression: bool, order: np.ndarray,
        syntax: np.ndarray | None = None, mask_rate: float = 0.0, seed: int = 1,
    ) -> None:  # fmt: skip
        self.syntax = syntax
        self.encoded, self.dictionary, self.regression, self.order = encoded, dictionary, regression, order
        self.mask_rate, self.seed, self.epoch = mask_rate, seed, 1
        self.sizes = encoded.sizes

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.encoded)

    def __getitem__(self, index: int) -> dict[str, Any]:
        tokens = torch.from_numpy(self.encoded[index].astype(np.int64))
        example = {"id": index, "tokens": tokens, "target": self.encoded.targets[index]}
        if self.mask_rate:
            masked = self._mask(np.random.default_rng([self.seed, self.epoch, index]), tokens)
            shown = tokens.masked_fill(masked, self.dictionary.index("<mask>"))
            example |= {"tokens": shown, "masked": masked, "unmasked": tokens}
        return example

    def _mask(self, random: np.random.Generator, tokens: Tensor) -> Tensor:
        """(n,) bool: the tokens to mask, never `<s>` or `</s>`."""
        real = (tokens != self.dictionary.bos()) & (tokens != self.dictionary.eos())
        return draw_mask(random, len(tokens), self.mask_rate) & real

    def collater(self, samples: list[dict[str, Any]]) -> dict[str, Any]:
        if not samples:
            return {}
        pad, lengths = self.dictionary.pad(), torch.tensor([len(sample["tokens"]) for sample in samples])
        kind = torch.float32 if self.regression else torch.int64
        batch = {
            "id": torch.tensor([sample["id"] for sample in samples]),
            "net_input": {
                "src_tokens": data_utils.collate_tokens([sample["tokens"] for sample in samples], pad),
                "src_lengths": lengths,
            },
            "target": torch.tensor([sample["target"] for sample in samples]).to(kind),
            "ntokens": int(lengths.sum()),
            "nsentences": len(samples),
        }
        if self.syntax is not None:
            rows = [self.encoded.part(self.syntax, sample["id"]) for sample in samples]
            batch["net_input"]["annotations"] = batched(rows)
        if self.mask_rate:
            batch["net_input"]["masked"], batch["masked_target"] = collate_masked(samples, pad)
        return batch

    def num_tokens(self, index: int) -> int:
        return int(self.sizes[index])

    def size(self, index: int) -> int:
        return int(self.sizes[index])

    def ordered_indices(self) -> np.ndarray:
        return self.order


def sentence_config(
    run: Path, training: DecayingTraining, seed: int, processes: int, **more: Any
) -> DictConfig:
    """fairseq's configuration of a training of a `SentenceTask`; `more`: for `fairseq_config`."""
    scheduler = PolynomialDecayLRScheduleConfig(
        warmup_updates=training.warmup_updates, total_num_update=training.total_updates
    )
    scheduler._name = "polynomial_decay"
    return fairseq_config(run, training, seed, processes, scheduler, adam_eps=training.adam_eps, **more)


class SentenceTask(FairseqTask):
    """fairseq's task for PART.npz files in the folder `data`, encoded for `weights`."""

    def __init__(self, data: Path, settings: Any, weights: Weights, seed: int) -> None:
        super().__init__(Namespace())
        self.data, self.settings, self.weights, self.seed = data, settings, weights, seed

    @property
    def source_dictionary(self) -> Dictionary:
        return self.weights.dictionary

    @property
    def target_dictionary(self) -> Dictionary:
        return self.weights.dictionary

    def max_positions(self) -> int:
        return self.weights.shape.max_positions


class SentencePrediction(SentenceTask):
    """A class or a score for each example, by a RoBERTa that may be guided.

    Args:
        valid: the part to validate on.
    """

    def __init__(
        self, data: Path, valid: str, settings: FinetuningSettings, weights: Weights, seed: int
    ) -> None:
        super().__init__(data, settings, weights, seed)
        self.valid, self.classes = valid, len(TASKS[settings.task].labels)  # 0 for a regression

    def build_model(self, cfg: Namespace, from_checkpoint: bool = False) -> GuidedRoberta:
        return GuidedRoberta.fine_tuned(self.weights, cfg, self.settings.system, max(1, self.classes))

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        part = self.data / f"{self.valid if split == 'valid' else split}.npz"
        encoded = read_encoded(part)
        if split == "train":
            order = np.random.default_rng(self.seed).permutation(len(encoded))
        else:
            order = np.argsort(encoded.sizes, kind="stable")
        rate = self.settings.system.mask_rate if split == "train" else 0.0
        self.datasets[split] = Sentences(
            encoded, self.source_dictionary, regression=not self.classes, order=order,
            syntax=self.syntax(part, encoded), mask_rate=rate, seed=self.seed,
        )  # fmt: skip

    def syntax(self, part: Path, encoded: Encoded) -> np.ndarray | None:
        """The annotations of PART.npz, if the system's guide reads them."""
        return read_syntax(part, encoded) if self.settings.system.kind.reads else None


class SentenceLoss(LoggedLoss):
    """L = (1 − λ)·L_task + λ·L_MLM (docs/method.md, "The objective").

    L_task is the cross-entropy (for a regression, the squared error), a mean over examples; L_MLM the
    cross-entropy of the masked tokens, a mean over these. Logged per example in nats (squared errors).
    """

    losses = ("loss", "task_loss")

    def __init__(self, task: SentencePrediction, mlm_weight: float) -> None:
        super().__init__(task)
        self.regression, self.mlm_weight = not task.classes, mlm_weight

    def forward(self, model: nn.Module, sample: dict, reduce: bool = True) -> tuple[Tensor, int, dict]:
        """→ loss (a sum), sample size (examples), sums to log (nats)."""
        inputs = dict(sample["net_input"])
        if not self.mlm_weight:
            inputs.pop("masked", None)
        outputs, extra = model(**inputs, classification_head_name=HEAD)
        target, size = sample["target"], sample["nsentences"]
        if self.regression:
            loss = nn.functional.mse_loss(outputs.view(-1).float(), target, reduction="sum")
        else:
            loss = nn.functional.cross_entropy(outputs.float(), target, reduction="sum")
        log = {"task_loss": loss.data, "ntokens": sample["ntokens"], "sample_size": size}
        if "mlm_logits" in extra:
            hidden = sample["masked_target"]
            mlm = nn.functional.cross_entropy(extra["mlm_logits"].float(), hidden, reduction="sum")
            loss = (1 - self.mlm_weight) * loss + self.mlm_weight * size * mlm / max(1, len(hidden))
            log |= {"mlm_loss": mlm.data, "masked": len(hidden)}
        return loss, size, log | {"loss": loss.data}
