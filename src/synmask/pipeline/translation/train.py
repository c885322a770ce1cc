"""Train a translation system; keep the models of the last epochs, to be averaged, or the best model."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
from fairseq.models.transformer.transformer_config import DEFAULT_MAX_SOURCE_POSITIONS as POSITIONS
from fairseq.optim.lr_scheduler.inverse_square_root_schedule import InverseSquareRootLRScheduleConfig
from fairseq.trainer import Trainer
from omegaconf import DictConfig
from pydantic import Field

from synmask.pipeline.arguments import CountOption, Json, Source, Target, TrainingOptions, Whole
from synmask.pipeline.config.sections import RunSettings
from synmask.pipeline.files import UserError
from synmask.pipeline.training.binarise import counted, read_dictionary
from synmask.pipeline.training.checkpoints import average_file
from synmask.pipeline.training.divergence import diverged, unigram_perplexity
from synmask.pipeline.training.loop import run_stage
from synmask.pipeline.training.stage import History, Stage, valid_means
from synmask.pipeline.training.trainer import fairseq_config
from synmask.pipeline.translation.criterion import MixedLoss
from synmask.pipeline.translation.dataset import AnnotatedPairs
from synmask.pipeline.translation.task import GuidedTranslation, task_config, transformer_config


@dataclass(frozen=True)
class Translation(Stage):
    """One system in one direction: `data` contains its binarised text; the last `keep` models are kept.

    With `training.checkpoint: best`, the model with the lowest validation loss is kept, with `best-bleu` that
    with the highest BLEU on the validation set (the first, if equal).

    Attributes:
        templates: for a system that reads templates, the files of "train" and "valid", one line per pair, and
            the "dictionary" of their symbols.
    """

    settings: RunSettings
    data: Path
    source: str
    target: str
    keep: int
    templates: Mapping[str, Path]

    def _task(self) -> GuidedTranslation:
        sides = (self.source, self.target)
        words = [read_dictionary(self.data / f"dict.{language}.txt") for language in sides]
        symbols = read_dictionary(self.templates["dictionary"]) if self.templates else None
        args = self.settings, self.seed, symbols, self.templates
        return GuidedTranslation(task_config(self.data, *sides), *words, *args)

    def _pairs(self, split: str) -> AnnotatedPairs:
        task = self._task()
        task.load_dataset(split)
        return task.dataset(split)

    def check(self) -> dict[str, int]:
        if self.settings.system.templated and not self.templates:
            raise UserError("this system reads templates of the target; give --templates")
        if self.keep > self.epochs:
            raise UserError(
                f"{self.keep} epochs to average, but training.max_epochs is {self.epochs}; "
                "lower training.average"
            )
        longest = {"train": min(POSITIONS, self.settings.training.batch.tokens), "valid": POSITIONS}
        left_out = {}
        for split, most in longest.items():
            sizes = self._pairs(split).sizes.max(1)
            left_out[split] = int((sizes > most).sum())
            if left_out[split] == len(sizes):
                raise UserError(
                    f"{self.data}: no pair of {split} has at most {most} sub-words a side; "
                    "raise training.batch.tokens or give shorter sentences"
                )
        return left_out

    def files(self) -> list[Path]:
        files = [path for split in ("train", "valid") for path in self.data.glob(f"{split}.*")]
        if self.settings.system.kind.reads:
            files += [self.data / f"syntax.{split}.{self.source}.npy" for split in ("train", "valid")]
        return [*files, *self.templates.values()]

    def config(self, checkpoints: Path, processes: int) -> DictConfig:
        cfg = translation_config(
            self.data, checkpoints, self.source, self.target, self.settings, self.seed, processes
        )
        # otherwise fairseq stops at a validation pair that is too long for the model or a batch
        cfg.dataset.skip_invalid_size_inputs_valid_test = True
        sizes = self._pairs("valid").sizes.max(1)
        cfg.dataset.max_tokens_valid = max(cfg.dataset.max_tokens, int(sizes[sizes <= POSITIONS].max()))
        return cfg

    def trainer(self, cfg: DictConfig) -> Trainer:
        torch.manual_seed(self.seed)
        task = self._task()
        model = task.build_model(cfg.model)
        task.load_dataset("valid")
        system = self.settings.system
        loss = MixedLoss(task, self.settings.training.label_smoothing, system.mlm_weight)
        return Trainer(cfg, task, model, loss)

    def losses(self, trainer: Trainer, train: Mapping[str, float]) -> dict[str, Any]:
        valid = valid_means(trainer)
        return {
            "train_loss": round(float(train["loss"]), 5),
            "mlm_loss": round(float(train["mlm_loss"]), 5) if "mlm_loss" in train else "",
            "valid_loss": round(float(valid["loss"]), 5),
            "valid_ppl": round(math.exp(min(float(valid["nll_loss"]), 50)), 4),
            **self._bleu(trainer),
        }

    def _bleu(self, trainer: Trainer) -> dict[str, Any]:
        """Every `validate_bleu` epochs and after the last one, BLEU on the validation set."""
        every, epoch = self.settings.training.validate_bleu, trainer.task.dataset("train").epoch
        if not every:
            return {}
        if epoch % every and epoch != self.epochs:
            return {"valid_bleu": ""}
        from synmask.pipeline.translation.valid_bleu import valid_bleu  # few trainings need what it loads

        return {"valid_bleu": round(valid_bleu(trainer), 4)}

    def summary(self, history: History) -> dict[str, Any]:
        """The validation text's unigram perplexity, and whether the training diverged by that."""
        parts = [self._pairs(split) for split in ("train", "valid")]
        unigram = unigram_perplexity(*(counted(part.tgt, part.tgt_dict) for part in parts))
        return {
            "unigram_ppl": round(unigram, 4),
            "diverged": diverged([row["valid_ppl"] for row in history], unigram, self.models(history)[-1]),
        }

    def models(self, history: History) -> list[int]:
        if self.settings.training.checkpoint == "best":
            losses = [row["valid_loss"] for row in history]
            return [losses.index(min(losses)) + 1] if losses else []
        if self.settings.training.checkpoint == "best-bleu":
            known = [(row["valid_bleu"], -row["epoch"]) for row in history if row["valid_bleu"] != ""]
            return [-max(known)[1]] if known else []
        return [*range(max(1, self.epochs - self.keep + 1), len(history) + 1)]

    @property
    def final(self) -> str:
        return average_file(self.keep)

    @property
    def details(self) -> dict[str, Any]:
        return {"direction": f"{self.source}-{self.target}", "averaged_epochs": self.keep}


def train(
    *,
    data: Path,
    run: Path,
    source: Source,
    target: Target,
    settings: Json[RunSettings],
    keep: CountOption,
    templates: tuple[Path, ...] = (),
    processes: Annotated[Whole, Field(ge=1, le=1024)] | None = None,
    training: TrainingOptions,
) -> None:
    """Train one system with one seed.

    Run it again to continue where it stopped. With other settings, data, seed or code it is another training.
    On Ctrl-C, SIGTERM, SIGHUP or SIGXCPU, it saves and exits with 75.

    Args:
        data: Folder of binarised data.
        run: Folder of the run: checkpoints/, lock, history.csv, train.json.
        settings: See `synmask settings`.
        keep: How many of the last epochs' models to keep for averaging.
        templates: Templates of train and of valid and their dictionary, for systems that read them.
        processes: Data-parallel workers; default: one per GPU.

    Raises:
        UserError, TryAgain: as for `loop.run_stage`.
    """
    if len(templates) not in (0, 3):
        raise UserError("--templates: give three files: those of train, of valid, and their dictionary")
    named = dict(zip(("train", "valid", "dictionary"), templates, strict=False))
    run_stage(
        Translation(settings, training.seed, data, source, target, keep, named), run, training, processes
    )


def translation_config(
    data: Path,
    checkpoints: Path,
    source: str,
    target: str,
    settings: RunSettings,
    seed: int,
    processes: int = 1,
) -> DictConfig:
    """The run's settings as fairseq's configuration.

    Gradients are accumulated, so that an update sees gpus x updates x tokens target tokens (`training.batch`)
    with any number of workers.
    """
    training, batch = settings.training, settings.training.batch
    scheduler = InverseSquareRootLRScheduleConfig(warmup_updates=training.warmup_updates, warmup_init_lr=1e-7)
    scheduler._name = "inverse_sqrt"
    updates = batch.gpus * batch.updates // processes
    batches = {"updates": updates, "max_tokens": batch.tokens}
    cfg = fairseq_config(checkpoints, training, seed, processes, scheduler, **batches)
    cfg.task, cfg.model = task_config(data, source, target), transformer_config(settings)
    return cfg
