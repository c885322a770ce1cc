"""What a kind of training tells the loop: translation (train.py), pre-training or fine-tuning of RoBERTa."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq.logging import metrics
from fairseq.trainer import Trainer
from omegaconf import DictConfig

from synmask.config.nlu import ContinuedRun, FinetuningSettings, PretrainingRun
from synmask.config.sections import RunSettings

History = Sequence[Mapping[str, Any]]  # a row an epoch


@dataclass(frozen=True)
class Stage(ABC):
    """One kind of training: what is trained on what, how it is judged, which epochs' models are kept.

    It is handed to each worker process.

    Attributes:
        settings: all that the training depends on besides data, seed and code.
    """

    settings: RunSettings | FinetuningSettings | PretrainingRun | ContinuedRun
    seed: int

    @property
    def epochs(self) -> int:
        return self.settings.training.max_epochs

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """What `losses` gives, in the order of history.csv."""

    @property
    def batches(self) -> int:
        """Number of batches in an update; workers must share them evenly."""
        return self.settings.training.batch.gpus * self.settings.training.batch.updates

    @abstractmethod
    def check(self) -> dict[str, int]:
        """Read all that the training starts from, before anything is written or moved.

        Returns:
            how many examples of "train" and "valid" are too long for the model or a batch, and left out.
        Raises:
            UserError: something is missing, damaged or does not fit, or nothing is short enough.
        """

    @abstractmethod
    def files(self) -> list[Path]:
        """The data; what was trained on others is no checkpoint of this training."""

    @abstractmethod
    def config(self, run: Path, processes: int) -> DictConfig:
        """The settings as fairseq's configuration."""

    @abstractmethod
    def trainer(self, cfg: DictConfig) -> Trainer:
        """fairseq's trainer around the stage's task, model and criterion, with the data loaded."""

    @abstractmethod
    def losses(self, trainer: Trainer, train: Mapping[str, float]) -> dict[str, Any]:
        """Validate after an epoch whose mean losses are `train` → what history.csv says ("valid_loss", …)."""

    @abstractmethod
    def judged(self, row: Mapping[str, Any]) -> str:
        """The quality of an epoch's model in a few words."""

    def models(self, history: History) -> list[int]:
        """The epochs whose models are kept when those of `history` are done: by default the last one."""
        return [self.epochs] if len(history) == self.epochs else []

    @property
    def final(self) -> str:
        """Name of the file in checkpoints/ that replaces all models once they have been used."""
        return f"epoch{self.epochs}.pt"

    def summary(self, history: History) -> dict[str, Any]:
        """What train.json holds of this kind of training."""
        return {}


def valid_means(trainer: Trainer) -> Mapping[str, Any]:
    """The means that the criterion logs on the data to validate on."""
    batches = trainer.get_valid_iterator("valid").next_epoch_itr(shuffle=False, set_dataset_epoch=False)
    with metrics.aggregate(new_root=True) as totals:
        for sample in batches:
            trainer.valid_step(sample)
    return totals.get_smoothed_values()
