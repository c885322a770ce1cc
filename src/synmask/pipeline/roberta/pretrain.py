"""Pre-train a small RoBERTa as a masked language model, with fairseq's own data sets and objective."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq.criterions.masked_lm import MaskedLmConfig, MaskedLmLoss
from fairseq.data import FairseqDataset
from fairseq.tasks.masked_lm import MaskedLMConfig, MaskedLMTask

from synmask.pipeline.arguments import Json, TrainingOptions
from synmask.pipeline.config.benchmarks import PretrainingRun
from synmask.pipeline.errors import UserError
from synmask.pipeline.record import RunRecord
from synmask.pipeline.roberta.model import GuidedRoberta
from synmask.pipeline.roberta.weights import RobertaShape, save_weights
from synmask.pipeline.training.batches import Batches, Limits
from synmask.pipeline.training.binarise import read_binary, read_dictionary, symbol_counts
from synmask.pipeline.training.checkpoints import load_epoch_model
from synmask.pipeline.training.divergence import divergence_summary
from synmask.pipeline.training.loop import run_training
from synmask.pipeline.training.schedules import Schedule, inverse_sqrt
from synmask.pipeline.training.stage import History, Stage
from synmask.pipeline.training.trainer import Trainer

BASE_WIDTH = 768  # of the RoBERTa that fairseq's initialisation is made for


@dataclass(frozen=True)
class PretrainingStage(Stage):
    """A plain RoBERTa of the size `settings.model`; its last model is kept.

    `data` holds {train,valid}.{bin,idx}, sentences as ids, and `weights` dict.txt.
    """

    settings: PretrainingRun
    data: Path
    weights: Path

    @property
    def shape(self) -> RobertaShape:
        return RobertaShape(**dict(self.settings.model))

    def check(self) -> dict[str, int]:
        most, tokens = self.settings.model.max_positions, self.settings.training.batch.tokens
        if tokens < most:
            raise UserError(f"batch.tokens {tokens}: a block has max_positions {most}; give as many")
        dictionary = read_dictionary(self.weights / "dict.txt")
        left_out = {}
        for split in ("train", "valid"):
            sentences = read_binary(self.data / split, dictionary)  # kept, as its sizes need it
            sizes = sentences.sizes + 1  # <s>
            left_out[split] = int((sizes > most).sum())
            if left_out[split] == len(sizes):
                raise UserError(f"{self.data}: each line of {split} is longer than {most} tokens")
        return left_out

    def data_files(self) -> list[Path]:
        return [self.weights / "dict.txt", *self.data.glob("train.*"), *self.data.glob("valid.*")]

    @property
    def _task(self) -> MaskedLMTask:
        """fairseq's; it makes the data sets, and adds the mask to the dictionary."""
        cfg = MaskedLMConfig(
            data=str(self.data),
            tokens_per_sample=self.settings.model.max_positions,
            sample_break_mode="complete_doc",
            mask_prob=self.settings.training.mask_rate,
            seed=self.seed,
        )
        return MaskedLMTask(cfg, read_dictionary(self.weights / "dict.txt"))

    def model(self) -> GuidedRoberta:
        model = GuidedRoberta.build(self.shape.settings(self.settings.training), self._task.dictionary)
        _scale_weights(model, math.sqrt(BASE_WIDTH / self.shape.embed_dim))
        return model

    def loss(self) -> MaskedLmLoss:
        return MaskedLmLoss(MaskedLmConfig(tpu=False), self._task)

    def schedule(self) -> Schedule:
        return inverse_sqrt(self.settings.training.lr, self.settings.training.warmup_updates)

    def dataset(self, split: str) -> FairseqDataset:
        task = self._task
        task.load_dataset(split)
        return task.dataset(split)

    def batch_limits(self, split: str) -> Limits:
        return Limits(self.settings.model.max_positions, self.settings.training.batch.tokens)

    def validate(
        self, trainer: Trainer, valid: Batches, train: Mapping[str, float], epoch: int
    ) -> dict[str, Any]:
        loss = trainer.validate(valid.in_order())["loss"]
        return {
            "train_loss": round(train["loss"], 5),
            "valid_loss": round(loss, 5),
            "valid_ppl": round(math.exp(min(loss, 50)), 4),
        }

    def summary(self, history: History) -> dict[str, Any]:
        """The validation text's unigram perplexity, and whether the training diverged by that."""
        dictionary = read_dictionary(self.weights / "dict.txt")
        texts = [read_binary(self.data / split, dictionary) for split in ("train", "valid")]
        counts = [symbol_counts(text, dictionary) for text in texts]
        return divergence_summary(*counts, [row["valid_ppl"] for row in history], len(history))

    def write_outputs(self, run: Path, checkpoints: Path, history: History, record: RunRecord) -> None:
        model = load_epoch_model(checkpoints / self.final_model)
        save_weights(self.weights, model, self.shape, self.weights, record)


def _scale_weights(model: GuidedRoberta, factor: float) -> None:
    """Multiply all initial embeddings and weights of layers.

    fairseq draws them with a standard deviation of 0.02 at any width. A narrow layer then adds almost nothing
    to its residual connection and hardly learns.
    """
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() == 2:
                weight.mul_(factor)


def pretrain(
    *,
    data: Path,
    weights: Path,
    run: Path,
    settings: Json[PretrainingRun],
    options: TrainingOptions,
) -> None:
    """Pre-train a RoBERTa as a masked language model.

    It is stopped and resumed as `train` is.

    Args:
        data: Output of `pretraining-text`.
        weights: Folder with dict.txt; model.pt is written there.
        run: Folder of the run: checkpoints/, lock, history.csv, train.json.
        settings: Model and training; `snakemake -np TARGET` shows them.
    """
    run_training(PretrainingStage(settings, options.seed, data, weights), run, options)
