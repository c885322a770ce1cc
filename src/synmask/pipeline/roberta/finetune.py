"""Fine-tune RoBERTa on a task of language understanding, and predict with the best model."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.trainer import Trainer
from omegaconf import DictConfig

from synmask.pipeline.config.benchmarks import FinetuningSettings
from synmask.pipeline.evaluation.task_scores import TASK_METRICS, score
from synmask.pipeline.files import UserError, machine_fault, write_lines
from synmask.pipeline.options import (
    BY_HAND,
    Identity,
    Json,
    Switch,
    Threads,
    TrainingOptions,
    on_gpus,
)
from synmask.pipeline.owner import check_owner, check_start, owned
from synmask.pipeline.roberta.encoded import Encoded, read_encoded, read_fitting, read_syntax
from synmask.pipeline.roberta.labelled import SentenceLoss, Sentences, SentenceStage, SentenceTask, batched
from synmask.pipeline.roberta.model import HEAD, GuidedRoberta
from synmask.pipeline.roberta.weights import Weights, load_weights
from synmask.pipeline.tasks import TASKS
from synmask.pipeline.training.checkpoints import epoch_model, load, retire, save
from synmask.pipeline.training.loop import run_stage
from synmask.pipeline.training.stage import History

BEST = "best.pt"
EXAMPLES = 64  # answered together


@dataclass(frozen=True)
class FineTuning(SentenceStage):
    """One system on one task with one seed; the model with the best score on the part `valid` is kept.

    Without `keep_checkpoints`, all but the best epoch's model are removed in the end.
    """

    settings: FinetuningSettings
    keep_checkpoints: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        return ("train_loss", "mlm_loss", "valid_loss", *TASK_METRICS[self.task])

    @property
    def batches(self) -> int:
        return 1  # a few sentences: too few to share among workers

    @property
    def task(self) -> str:
        return self.settings.task

    @cached_property
    def metric(self) -> str:
        return TASK_METRICS[self.task][0]

    @property
    def reads_syntax(self) -> bool:
        return bool(self.settings.system.kind.reads)

    def config(self, run: Path, processes: int) -> DictConfig:
        return self.decaying(run, processes, batch_size=self.settings.training.sentences)

    def trainer(self, cfg: DictConfig) -> Trainer:
        torch.manual_seed(self.seed)
        weights, system, datasets = load_weights(self.weights), self.settings.system, {}
        regression = not TASKS[self.task].labels
        for split, encoded, syntax in self.examples():
            order, rate = np.argsort(encoded.sizes, kind="stable"), 0.0
            if split == "train":
                order, rate = np.random.default_rng(self.seed).permutation(len(encoded)), system.mask_rate
            how = {"order": order, "syntax": syntax, "mask_rate": rate, "seed": self.seed}
            datasets[split] = Sentences(encoded, weights.dictionary, regression=regression, **how)
        task = SentenceTask(weights, datasets)
        loss = SentenceLoss(task, system.mlm_weight, regression=regression)
        return Trainer(cfg, task, _new_model(self.settings, weights), loss)

    def losses(self, trainer: Trainer, train: Mapping[str, float]) -> dict[str, Any]:
        dataset = trainer.task.dataset("valid")
        outputs = model_outputs(trainer.get_model(), dataset.encoded, dataset.syntax)
        gold = torch.from_numpy(dataset.encoded.targets)
        if TASKS[self.task].labels:
            loss = torch.nn.functional.cross_entropy(outputs, gold.long())
        else:
            loss = torch.nn.functional.mse_loss(outputs.view(-1), gold)
        reported = score(self.task, _texts(self.task, gold), _answers(self.task, outputs))
        return {
            "train_loss": round(float(train["task_loss"]), 5),
            "mlm_loss": round(float(train["mlm_loss"]), 5) if "mlm_loss" in train else "",
            "valid_loss": round(float(loss), 5),
            **{name: round(value, 4) for name, value in reported.items()},
        }

    def judged(self, row: Mapping[str, Any]) -> str:
        return f"{self.metric} {row[self.metric]:.2f}"

    def best(self, history: History) -> int | None:
        """The first epoch with the best score."""
        scores = [row[self.metric] for row in history]
        return scores.index(max(scores)) + 1 if scores else None

    def models(self, history: History) -> list[int]:
        best = self.best(history)
        return [best] if best else []

    @property
    def final(self) -> str:
        return BEST

    def summary(self, history: History) -> dict[str, Any]:
        """The best epoch; and whether its answers are no better than always the most frequent label's."""
        best = self.best(history)
        constant, reached = self._constant(), history[best - 1][self.metric]
        told = f"{self.metric} {reached:.2f}, one constant answer has {constant:.2f}"
        return {"best_epoch": best, "diverged": told if reached <= constant else None}

    def _constant(self) -> float:
        """The score of the training set's most frequent label on `valid`; that of any number is 0."""
        if not TASKS[self.task].labels:
            return 0.0
        train, valid = (torch.from_numpy(read_encoded(part).targets) for part in self.parts)
        labels = _texts(self.task, valid)
        answer = _texts(self.task, train.mode().values[None])
        return round(score(self.task, labels, answer * len(labels))[self.metric], 4)

    def deliver(self, run: Path, history: History) -> None:
        folder, best = run / "checkpoints", self.best(history)
        path = folder / f"epoch{best}.pt"
        model = epoch_model(path) if path.exists() else load(folder / BEST)["model"]
        whose = owned(self.identity)
        save(run / BEST, {"model": model, "settings": self.settings.plain(), "epoch": best, **whose})
        if not self.keep_checkpoints:
            retire(folder, run / BEST, BEST)


def _new_model(settings: FinetuningSettings, weights: Weights) -> GuidedRoberta:
    """A model to fine-tune, with one output for a regression."""
    outputs = max(1, len(TASKS[settings.task].labels))
    return GuidedRoberta.fine_tuned(
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
    identity: Identity = BY_HAND,
    training: TrainingOptions,
) -> None:
    """Fine-tune one system on one task with one seed; keep the model of the best epoch.

    Run it again to continue where it stopped. On SIGTERM, SIGHUP or Ctrl-C it saves and exits with 75.

    Args:
        data: Folder with PART.npz of each part, and syntax.PART.npy if the system reads it.
        valid: The part that chooses the best epoch.
        weights: A folder with RoBERTa's weights.
        keep_checkpoints: 0: remove all but the best epoch's model.
        run: Folder of the run: checkpoints/, lock, history.csv, train.json, best.pt.
        settings: Task, training and system; `snakemake -np TARGET` shows them.
    """
    stage = FineTuning(settings, training.seed, data, weights, identity, valid, bool(keep_checkpoints))
    run_stage(stage, run, training)


@on_gpus
def predict(
    *,
    model: Path,
    weights: Path,
    data: Path,
    output: Path,
    threads: Threads = 1,
    identity: Identity = BY_HAND,
) -> None:
    """Predict the answers to a task: one label or number per line.

    Args:
        model: best.pt of a fine-tuning.
        weights: The weights that its training started from.
        data: PART.npz.
        output: Text, one line per example.
    """
    write_lines(output, predictions(model, weights, data, threads, identity))


def predictions(
    model: Path, weights: Path, data: Path, threads: int, identity: Mapping[str, Any]
) -> list[str]:
    """The model's prediction for each example of a part, a label or a number; arguments as for `predict`."""
    torch.set_num_threads(threads)
    saved, loaded = load(model), load_weights(weights)
    check_owner(model, saved, identity)
    check_start(weights, loaded.run, identity)
    tuned, settings = _tuned(model, saved, loaded, weights)
    encoded = read_fitting(data, loaded, test=True)
    syntax = read_syntax(data, encoded) if settings.system.kind.reads else None
    tuned.to("cuda" if torch.cuda.is_available() else "cpu")
    return _answers(settings.task, model_outputs(tuned, encoded, syntax))


def _tuned(
    model: Path, saved: Mapping[str, Any], loaded: Weights, weights: Path
) -> tuple[GuidedRoberta, FinetuningSettings]:
    """The model of a fine-tuning from the folder `weights`, `saved` in the file `model`, and its settings.

    Raises:
        UserError: it is none, was trained from other weights, or has weights that are not finite.
    """
    try:
        settings = FinetuningSettings.model_validate(saved["settings"])
        tuned = _new_model(settings, loaded)
        tuned.load_state_dict({**saved["model"]})
    except Exception as error:  # what another file's content makes of these is not limited
        if isinstance(error, UserError) or machine_fault(error):
            raise
        raise UserError(f"{model}: not the model of a fine-tuning from {weights}") from None
    if wrong := [name for name, value in tuned.state_dict().items() if not value.isfinite().all()]:
        raise UserError(f"{model}: {wrong[0]} is not finite; train again with a lower lr")
    return tuned, settings


def model_outputs(model: GuidedRoberta, encoded: Encoded, syntax: np.ndarray | None) -> torch.Tensor:
    """The head's outputs for all examples, (N, C) in their order, on the CPU; batched by length.

    Args:
        syntax: the annotations of the examples' tokens, if the model's guide reads them.
    """
    order = np.argsort(encoded.sizes, kind="stable")
    device, pad = next(model.parameters()).device, model.encoder.dictionary.pad()
    outputs: list[torch.Tensor] = []
    training = model.training
    model.eval()
    with torch.no_grad():
        for first in range(0, len(order), EXAMPLES):
            chosen = order[first : first + EXAMPLES]
            rows = [torch.from_numpy(encoded[i].astype(np.int64)) for i in chosen]
            tokens = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad).to(device)
            read = batched([encoded.part(syntax, i) for i in chosen]) if syntax is not None else {}
            read = {name: value.to(device) for name, value in read.items()}
            answers, _ = model(tokens, annotations=read, classification_head_name=HEAD)
            outputs.append(answers.float().cpu())
    model.train(training)
    return torch.cat(outputs)[torch.from_numpy(np.argsort(order, kind="stable"))]


def _answers(task: str, outputs: torch.Tensor) -> list[str]:
    """Outputs (N, C) as labels, or as the numbers of a regression."""
    if not TASKS[task].labels:
        return [f"{value:.4f}" for value in outputs.view(-1).tolist()]
    return [TASKS[task].labels[best] for best in outputs.argmax(1).tolist()]


def _texts(task: str, targets: torch.Tensor) -> list[str]:
    labels = TASKS[task].labels
    return [labels[int(target)] if labels else str(float(target)) for target in targets]
