"""The interface between the loop and a kind of training: translation, pre-training or fine-tuning."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq.data import FairseqDataset
from torch import nn

from synmask.pipeline.config.benchmarks import ContinuedRun, FinetuningSettings, PretrainingRun
from synmask.pipeline.run_settings import RunSettings
from synmask.pipeline.training.batches import Batches, Limits
from synmask.pipeline.training.schedules import Schedule
from synmask.pipeline.training.trainer import Loss, Trainer

History = Sequence[Mapping[str, Any]]  # one row per epoch


def history_losses(means: Mapping[str, float], **columns: str) -> dict[str, float | str]:
    """Values of history.csv: column → the mean loss of this name; "" if nothing was masked."""
    return {column: round(means[name], 5) if name in means else "" for column, name in columns.items()}


@dataclass(frozen=True)
class Stage(ABC):
    """One kind of training: its model, data and validation, and the epochs whose models are kept.

    Each worker process gets a copy.

    Attributes:
        settings: all that the training depends on besides data, seed and code.
    """

    settings: RunSettings | FinetuningSettings | PretrainingRun | ContinuedRun
    seed: int

    @property
    def epochs(self) -> int:
        return self.settings.training.max_epochs

    @property
    def batches(self) -> int:
        """Number of batches in an update; workers must share them evenly."""
        return self.settings.training.batch.gpus * self.settings.training.batch.updates

    @abstractmethod
    def check(self) -> dict[str, int]:
        """Check the training's inputs before anything is written or moved.

        Returns:
            the numbers of examples of "train" and "valid" that are left out, because they are too long for
            the model or a batch.
        Raises:
            UserError: an input is missing, damaged or does not fit, or all examples are too long.
        """

    @abstractmethod
    def data_files(self) -> list[Path]:
        """The training and validation data, which are a part of the training's stamp."""

    def older_data_files(self) -> list[Path]:
        """The files of `data_files` that were a part of the stamp in version 0.2.0."""
        return self.data_files()

    @abstractmethod
    def model(self) -> nn.Module:
        """The model at its start, drawn by torch's generator."""

    @abstractmethod
    def loss(self) -> Loss:
        """The training objective."""

    @abstractmethod
    def schedule(self) -> Schedule:
        """The learning rate."""

    @abstractmethod
    def dataset(self, split: str) -> FairseqDataset:
        """The data of "train" or "valid"."""

    @abstractmethod
    def batch_limits(self, split: str) -> Limits:
        """How the examples of a split make batches."""

    @abstractmethod
    def validate(
        self, trainer: Trainer, valid: Batches, train: Mapping[str, float], epoch: int
    ) -> dict[str, Any]:
        """Validate after an epoch with the mean losses `train` → values for history.csv ("valid_loss", …),
        with the same keys after each."""

    def describe_quality(self, row: Mapping[str, Any]) -> str:
        """The quality of an epoch's model in a few words."""
        return f"perplexity {row['valid_ppl']:.2f}"

    def kept_epochs(self, history: History) -> list[int]:
        """The epochs whose models are kept when those of `history` are done: by default the last one."""
        return [self.epochs] if len(history) == self.epochs else []

    @property
    def final_model(self) -> str:
        """Name of the file of the checkpoints that replaces all models once they have been used."""
        return f"epoch{self.epochs}.pt"

    def summary(self, history: History) -> dict[str, Any]:
        """Values for train.json that only this kind of training has."""
        return {}

    @property
    def run_facts(self) -> dict[str, Any]:
        """The facts on the run in train.json besides settings, seed, code and data."""
        return {}

    def write_outputs(
        self, run: Path, checkpoints: Path, history: History, record: Mapping[str, Any]
    ) -> None:
        """Write outputs that only this kind of training has, from its models in the folder `checkpoints`.

        Args:
            record: the contents of train.json, which is written afterwards.
        """
        return
