"""Train a translation system; keep the models of the last epochs, to be averaged, or the best model."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from fairseq.models.transformer.transformer_config import DEFAULT_MAX_SOURCE_POSITIONS as POSITIONS
from pydantic import Field

from synmask.pipeline.arguments import CountOption, Json, Source, Target, TrainingOptions, Whole
from synmask.pipeline.errors import UserError
from synmask.pipeline.run_settings import RunSettings
from synmask.pipeline.training.batches import Batches, Limits
from synmask.pipeline.training.binarise import read_dictionary, symbol_counts
from synmask.pipeline.training.checkpoints import average_file
from synmask.pipeline.training.divergence import divergence_summary
from synmask.pipeline.training.loop import run_training
from synmask.pipeline.training.schedules import Schedule, inverse_sqrt
from synmask.pipeline.training.stage import History, Stage, history_losses
from synmask.pipeline.training.trainer import Trainer
from synmask.pipeline.translation.criterion import MixedLoss
from synmask.pipeline.translation.dataset import AnnotatedPairs
from synmask.pipeline.translation.task import GuidedTranslation
from synmask.pipeline.translation.transformer import GuidedTransformer


@dataclass(frozen=True)
class TranslationStage(Stage):
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

    @cached_property
    def _task(self) -> GuidedTranslation:
        words = [read_dictionary(path) for path in self._dictionaries]
        symbols = read_dictionary(self.templates["dictionary"]) if self.templates else None
        return GuidedTranslation(*words, self.settings, self.seed, symbols)

    @property
    def _dictionaries(self) -> list[Path]:
        return [self.data / f"dict.{language}.txt" for language in (self.source, self.target)]

    def check(self) -> dict[str, int]:
        if self.settings.system.templated and not self.templates:
            raise UserError("this system reads templates of the target; give --templates")
        if self.keep > self.epochs:
            raise UserError(
                f"{self.keep} epochs to average, but training.max_epochs is {self.epochs}; "
                "lower training.average"
            )
        left_out = {}
        for split in ("train", "valid"):
            sizes, most = self.dataset(split).sizes.max(1), self._longest(split)
            left_out[split] = int((sizes > most).sum())
            if left_out[split] == len(sizes):
                raise UserError(
                    f"{self.data}: no pair of {split} has at most {most} sub-words a side; "
                    "raise training.batch.tokens or give shorter sentences"
                )
        return left_out

    def _longest(self, split: str) -> int:
        """The maximum number of sub-words a side: a pair to validate on may be larger than a batch."""
        return min(POSITIONS, self.settings.training.batch.tokens) if split == "train" else POSITIONS

    def data_files(self) -> list[Path]:
        files = [path for split in ("train", "valid") for path in self.data.glob(f"{split}.*")]
        if self.settings.system.options_class.reads:
            files += [self.data / f"syntax.{split}.{self.source}.npy" for split in ("train", "valid")]
        return [*files, *self._dictionaries, *self.templates.values()]

    def older_data_files(self) -> list[Path]:
        return [path for path in self.data_files() if path not in self._dictionaries]

    def model(self) -> GuidedTransformer:
        return self._task.build_model()

    def loss(self) -> MixedLoss:
        smoothing, weight = self.settings.training.label_smoothing, self.settings.system.mlm_weight
        return MixedLoss(self._task.tgt_dict.pad(), smoothing, weight)

    def schedule(self) -> Schedule:
        training = self.settings.training
        return inverse_sqrt(training.lr, training.warmup_updates, start=1e-7)

    def dataset(self, split: str) -> AnnotatedPairs:
        return self._task.pairs(self.data, split, self.source, self.target, self.templates.get(split))

    def batch_limits(self, split: str) -> Limits:
        longest, tokens = self._longest(split), self.settings.training.batch.tokens
        if split == "valid":
            sizes = self.dataset(split).sizes.max(1)
            tokens = max(tokens, int(sizes[sizes <= longest].max()))
        return Limits((longest, longest), tokens)

    def validate(
        self, trainer: Trainer, valid: Batches, train: Mapping[str, float], epoch: int
    ) -> dict[str, Any]:
        means = trainer.validate(valid.in_order())
        return {
            **history_losses(train, train_loss="loss", mlm_loss="mlm_loss"),
            **history_losses(means, valid_loss="loss"),
            "valid_ppl": round(math.exp(min(means["nll_loss"], 50)), 4),
            **self._bleu(trainer, valid.data, epoch),
        }

    def _bleu(self, trainer: Trainer, data: AnnotatedPairs, epoch: int) -> dict[str, Any]:
        """Every `validate_bleu` epochs and after the last one, BLEU on the validation set."""
        every = self.settings.training.validate_bleu
        if not every:
            return {}
        if epoch % every and epoch != self.epochs:
            return {"valid_bleu": ""}
        from synmask.pipeline.translation.valid_bleu import valid_bleu  # few trainings need what it loads

        return {"valid_bleu": round(valid_bleu(trainer.model, data, self.settings.decoding), 4)}

    def summary(self, history: History) -> dict[str, Any]:
        """The validation text's unigram perplexity, and whether the training diverged by that."""
        parts = [self.dataset(split) for split in ("train", "valid")]
        counts = [symbol_counts(part.tgt, part.tgt_dict) for part in parts]
        return divergence_summary(
            *counts, [row["valid_ppl"] for row in history], self.kept_epochs(history)[-1]
        )

    def kept_epochs(self, history: History) -> list[int]:
        if self.settings.training.checkpoint == "best":
            losses = [math.inf if math.isnan(row["valid_loss"]) else row["valid_loss"] for row in history]
            return [losses.index(min(losses)) + 1] if losses else []
        if self.settings.training.checkpoint == "best-bleu":
            known = [(row["valid_bleu"], -row["epoch"]) for row in history if row["valid_bleu"] != ""]
            return [-max(known)[1]] if known else []
        return [*range(max(1, self.epochs - self.keep + 1), len(history) + 1)]

    @property
    def final_model(self) -> str:
        return average_file(self.keep)

    @property
    def run_facts(self) -> dict[str, Any]:
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
    options: TrainingOptions,
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
        UserError, TryAgain: as for `loop.run_training`.
    """
    if len(templates) not in (0, 3):
        raise UserError("--templates: give three files: those of train, of valid, and their dictionary")
    template_files = dict(zip(("train", "valid", "dictionary"), templates, strict=False))
    stage = TranslationStage(settings, options.seed, data, source, target, keep, template_files)
    run_training(stage, run, options, processes)
