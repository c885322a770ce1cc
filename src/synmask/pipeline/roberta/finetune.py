"""Fine-tune RoBERTa on a task of language understanding."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import utils

from synmask.pipeline.arguments import Json, Switch, TrainingOptions
from synmask.pipeline.config.benchmarks import FinetuningSettings
from synmask.pipeline.evaluation.task_scores import best_constant, score
from synmask.pipeline.record import RunRecord, model_identity
from synmask.pipeline.roberta.examples import read_encoded
from synmask.pipeline.roberta.model import HEAD_NAME, GuidedRoberta
from synmask.pipeline.roberta.sentences import (
    SentenceLoss,
    Sentences,
    SentenceStage,
    task_loss,
)
from synmask.pipeline.roberta.weights import Weights, load_dictionary, load_weights
from synmask.pipeline.tasks import TASKS
from synmask.pipeline.training.batches import Batches, Limits
from synmask.pipeline.training.checkpoints import keep_final_only, load_epoch_model, load_final_model
from synmask.pipeline.training.loop import run_training
from synmask.pipeline.training.stage import History, history_losses
from synmask.pipeline.training.torch_files import save_checkpoint
from synmask.pipeline.training.trainer import Trainer

BEST_MODEL = "best.pt"
INFERENCE_BATCH = 64  # answered together


@dataclass(frozen=True)
class FinetuningStage(SentenceStage):
    """One system on one task with one seed; the model with the best score on the part `valid` is kept.

    Without `keep_checkpoints`, all but the best epoch's model are removed in the end.
    """

    settings: FinetuningSettings
    keep_checkpoints: bool = True

    @property
    def batches(self) -> int:
        return 1  # a few sentences: too few to share among workers

    @property
    def task(self) -> str:
        return self.settings.task

    @property
    def metric(self) -> str:
        return TASKS[self.task].metrics[0]

    @property
    def reads_syntax(self) -> bool:
        return bool(self.settings.system.options_class.reads)

    def model(self) -> GuidedRoberta:
        return build_model(self.settings, load_weights(self.weights))

    def loss(self) -> SentenceLoss:
        return SentenceLoss(self.settings.system.mlm_weight)

    def dataset(self, split: str) -> Sentences:
        (encoded, syntax), masking = self.load_part(split), {}
        if split == "train":
            order = np.random.default_rng(self.seed).permutation(len(encoded))
            masking = {"order": order, "mask_rate": self.settings.system.mask_rate, "seed": self.seed}
        return Sentences(encoded, load_dictionary(self.weights), syntax=syntax, **masking)

    def batch_limits(self, split: str) -> Limits:
        return Limits(sentences=self.settings.training.sentences, multiple=1)

    def validate(
        self, trainer: Trainer, valid: Batches, train: Mapping[str, float], epoch: int
    ) -> dict[str, Any]:
        outputs = model_outputs(trainer.model, valid.data)
        loss = task_loss(outputs, torch.from_numpy(valid.data.encoded.targets), "mean")
        reported = score(self.task, self._labels(self.valid), format_answers(self.task, outputs))
        return {
            **history_losses(train, train_loss="task_loss", mlm_loss="mlm_loss"),
            "valid_loss": round(float(loss), 5),
            **{name: round(value, 4) for name, value in reported.items()},
        }

    def describe_quality(self, row: Mapping[str, Any]) -> str:
        return f"{self.metric} {row[self.metric]:.2f}"

    def kept_epochs(self, history: History) -> list[int]:
        """The first epoch with the best score."""
        scores = [row[self.metric] for row in history]
        return [scores.index(max(scores)) + 1] if scores else []

    @property
    def final_model(self) -> str:
        return BEST_MODEL

    def summary(self, history: History) -> dict[str, Any]:
        """The best epoch; and whether its answers are no better than one answer for all examples."""
        [best] = self.kept_epochs(history)
        constant = round(best_constant(self.task, self._labels(self.valid)), 4)  # as the history
        reached = history[best - 1][self.metric]
        comparison = f"{self.metric} {reached:.2f}, the best constant answer has {constant:.2f}"
        return {"best_epoch": best, "diverged": comparison if reached <= constant else None}

    @property
    def run_facts(self) -> dict[str, Any]:
        return super().run_facts | {"task": self.task}

    def _labels(self, part: str) -> list[str]:
        targets = read_encoded(self.data / f"{part}.npz").targets
        return [*map(TASKS[self.task].label, targets.tolist())]

    def write_outputs(self, run: Path, checkpoints: Path, history: History, record: RunRecord) -> None:
        [best] = self.kept_epochs(history)
        path = checkpoints / f"epoch{best}.pt"
        model = (
            load_epoch_model(path)
            if path.exists()
            else load_final_model(checkpoints / BEST_MODEL, record["training"])
        )
        known = {"settings": self.settings.plain(), "unit": TASKS[self.task].unit}
        save_checkpoint(run / BEST_MODEL, {"model": model, "epoch": best, **known, **model_identity(record)})
        if not self.keep_checkpoints:
            keep_final_only(checkpoints, run / BEST_MODEL, BEST_MODEL)


def build_model(settings: FinetuningSettings, weights: Weights) -> GuidedRoberta:
    """A model to fine-tune, with one output for a regression."""
    outputs = max(1, len(TASKS[settings.task].labels))
    return GuidedRoberta.with_head(
        weights, weights.shape.settings(settings.training), settings.system, outputs
    )


def finetune(
    *,
    data: Path,
    valid: str,
    weights: Path,
    keep_checkpoints: Switch = 1,
    run: Path,
    settings: Json[FinetuningSettings],
    options: TrainingOptions,
) -> None:
    """Fine-tune one system on one task with one seed; keep the model of the best epoch.

    It is stopped and resumed as `train` is.

    Args:
        data: Folder with PART.npz of each part, and syntax.PART.npy if the system reads it.
        valid: The part that chooses the best epoch.
        weights: A folder with RoBERTa's weights.
        keep_checkpoints: 0: remove all but the best epoch's model.
        run: Folder of the run: checkpoints/, lock, history.csv, train.json, best.pt.
        settings: Task, training and system; `snakemake -np TARGET` shows them.
    """
    stage = FinetuningStage(settings, options.seed, data, weights, valid, bool(keep_checkpoints))
    run_training(stage, run, options)


def model_outputs(model: GuidedRoberta, data: Sentences) -> torch.Tensor:
    """The head's outputs for all examples, (N, C) in their order, on the CPU."""
    order, device, training = data.ordered_indices(), next(model.parameters()).device, model.training
    outputs: list[torch.Tensor] = []
    model.eval()
    with torch.no_grad():
        for first in range(0, len(order), INFERENCE_BATCH):
            batch = data.collater([data[i] for i in order[first : first + INFERENCE_BATCH]])
            inputs = utils.apply_to_sample(lambda tensor: tensor.to(device), batch["net_input"])
            answers, _ = model(**inputs, classification_head_name=HEAD_NAME)
            outputs.append(answers.float().cpu())
    model.train(training)
    return torch.cat(outputs)[torch.from_numpy(np.argsort(order, kind="stable"))]


def format_answers(task: str, outputs: torch.Tensor) -> list[str]:
    """Outputs (N, C) as labels, or as the scores of a regression."""
    best = outputs.argmax(1) if TASKS[task].labels else outputs.view(-1)
    return [*map(TASKS[task].label, best.tolist())]
