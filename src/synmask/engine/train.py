"""Training a translation system: the epochs whose models are averaged for decoding are kept."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq.logging import metrics
from fairseq.trainer import Trainer
from omegaconf import DictConfig

from synmask.config.guides import GUIDES
from synmask.engine.loop import run_stage
from synmask.engine.stage import History, Stage
from synmask.engine.trainer import build_trainer, fairseq_config


def average_file(last: int) -> str:
    """What the average of the last `last` epochs is called beside their checkpoints."""
    return f"average{last}.pt"


@dataclass(frozen=True)
class Translation(Stage):
    """One system in one direction: `data` holds its binarised text, `keep` models are to be averaged."""

    data: Path
    source: str
    target: str
    keep: int

    @property
    def columns(self) -> tuple[str, ...]:
        return ("train_loss", "mlm_loss", "valid_loss", "valid_ppl")

    @property
    def batches(self) -> int:
        batch = self.settings["training"]["batch"]
        return batch["gpus"] * batch["updates"]

    def files(self) -> list[Path]:
        files = [*self.data.glob("train.*")]
        if GUIDES[self.settings["system"]["guide"]].reads:
            files += self.data.glob(f"syntax.train.{self.source}.npy")
        return files

    def config(self, run: Path, processes: int) -> DictConfig:
        return fairseq_config(self.data, run, self.source, self.target, self.settings, self.seed, processes)

    def trainer(self, cfg: DictConfig) -> Trainer:
        return build_trainer(cfg, self.settings, self.seed)

    def losses(self, trainer: Trainer, train: Mapping[str, float]) -> dict[str, Any]:
        batches = trainer.get_valid_iterator("valid").next_epoch_itr(shuffle=False, set_dataset_epoch=False)
        with metrics.aggregate(new_root=True) as totals:
            for sample in batches:
                trainer.valid_step(sample)
        valid = totals.get_smoothed_values()
        return {
            "train_loss": round(float(train["loss"]), 5),
            "mlm_loss": round(float(train["mlm_loss"]), 5) if "mlm_loss" in train else "",
            "valid_loss": round(float(valid["loss"]), 5),
            "valid_ppl": round(math.exp(min(float(valid["nll_loss"]), 50)), 4),
        }

    def judged(self, row: Mapping[str, Any]) -> str:
        return f"perplexity {row['valid_ppl']:.2f}"

    def models(self, history: History) -> list[int]:
        return [*range(max(1, self.epochs - self.keep + 1), len(history) + 1)]

    @property
    def final(self) -> str:
        return average_file(self.keep)


def train(
    data: Path,
    run: Path,
    source: str,
    target: str,
    settings: dict[str, Any],
    seed: int,
    *,
    keep: int,
    **how: Any,
) -> None:
    """Train one system with one seed, or go on where an earlier call stopped: see `loop.run_stage`.

    Args:
        data: folder of binarised data.
        settings: `model`, `training` and `system`, as `Config.run_settings` gives them.
        keep: how many of the last epochs' models will be averaged.
        how: for `run_stage`.
    """
    run_stage(Translation(settings, seed, data, source, target, keep), run, **how)
