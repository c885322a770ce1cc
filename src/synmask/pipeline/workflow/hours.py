"""The hours of trainings: operations by the speed of machines, or measured from trainings that ran here."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean, median
from typing import Any

import yaml
from pydantic import ConfigDict, ValidationError

from synmask.pipeline.config.base import Section, sides
from synmask.pipeline.config.benchmarks import Pretrain, RobertaSize
from synmask.pipeline.config.faults import one_line
from synmask.pipeline.config.schema import Config
from synmask.pipeline.config.sections import Model
from synmask.pipeline.config.sizes import bytes_of_text, number_of_pairs
from synmask.pipeline.files import UserError, read_json
from synmask.pipeline.paths import RUN, existing
from synmask.pipeline.workflow.trainings import TRAININGS, Training

REFERENCE: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("reference.yaml").read_text("utf-8"))


def used_parameters(model: Model | RobertaSize, vocabulary: int) -> int:
    """Parameters in a step's matrix products, without a guide: of the layers and of the output."""
    width = model.embed_dim
    attention, ffn = 4 * width**2, 2 * width * model.ffn_dim
    if isinstance(model, RobertaSize):
        return vocabulary * width + model.layers * (attention + ffn)
    decoder = model.decoder_layers * (2 * attention + ffn)  # also attends to the source
    return vocabulary * width + model.encoder_layers * (attention + ffn) + decoder


MACHINES = frozenset(("gpu", "cpu"))
PARAMETERS = used_parameters(Model(), REFERENCE["merges"])  # of the model whose steps were measured


@dataclass(frozen=True)
class Hours:
    """Hours of one training: on one GPU, and on one core of a CPU; None if the text's size is unknown.

    Attributes:
        measured: which of the two ("gpu", "cpu") are those of trainings that ran here; others are estimated.
    """

    gpu: float | None
    cpu: float | None
    measured: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Work:
    """The steps of a training: how many (None: unknown), their tokens, the model's size and guide."""

    steps: float | None
    tokens: float
    parameters: int
    guide: str = "none"
    times: float = 1.0
    precision: str = "fp32"

    def hours(self, machine: str) -> float | None:
        """On a machine of the reference: "gpu", or "cpu" for one of its cores."""
        if self.steps is None:
            return None
        known = REFERENCE[machine]
        measured = self.guide if self.guide in known["seconds"] else "none"  # a user's own guide is not
        like = REFERENCE["like"].get(self.guide, {"guide": measured, "times": 1.0})
        larger = self.parameters / PARAMETERS
        size = (self.tokens / known["tokens"]) * (larger if larger > 1 else larger ** known["power"])
        seconds = known["seconds"][like["guide"]] * size * known["times"].get(self.precision, 1.0)
        step = max(seconds, known["least"][like["guide"]])
        return self.steps * step * like["times"] * self.times / 3600


class TrainingRecord(Section):
    """The duration of a training, from its train.json."""

    model_config = ConfigDict(extra="ignore")

    train_seconds: float
    workers: int
    device: str
    threads: int = 1


class Clock:
    """The hours of a configuration's trainings; `results` contains the runs so far.

    They are measured from trainings that are `alike` here. Without such, they are the reference's, scaled by
    how much longer other trainings took here.
    """

    def __init__(self, config: Config, results: Path = Path("results")) -> None:
        self.config, self.results = config, results

    def hours(self, training: Training) -> Hours:
        """The hours of one training."""
        hours: dict[str, Any] = {machine: mean(found) for machine, found in self._measured(training).items()}
        measured = frozenset(hours)
        for machine in MACHINES - measured:
            guess = self._work(training).hours(machine)
            hours[machine] = guess and guess * self._scales[machine]
        return Hours(**hours, measured=measured)

    def _measured(self, training: Training) -> dict[str, list[float]]:
        """Machine → hours of the trainings alike that ran on such here; on a CPU, of one core."""
        hours: dict[str, list[float]] = {}
        for path in existing(f"{training.alike}/train.json", self.results):
            try:
                run = TrainingRecord.model_validate(read_json(path))
            except ValidationError as error:
                raise UserError(f"{path}: {one_line(error, {})}; delete it and rerun") from None
            machine, cores = ("cpu", run.threads) if run.device == "CPU" else ("gpu", 1)
            hours.setdefault(machine, []).append(run.train_seconds * run.workers * cores / 3600)
        return hours

    @cached_property
    def _scales(self) -> dict[str, float]:
        """Median ratio of measured to estimated hours by machine."""
        ratios: dict[str, list[float]] = {machine: [] for machine in MACHINES}
        for run in sorted({path.parts[-5:-2] for path in existing(f"{RUN}/train.json", self.results)}):
            if run[0] in self.config.corpora and run[2] in self.config.systems:
                training = Training.of_run("train", *run)
                for machine, found in self._measured(training).items():
                    if guess := self._work(training).hours(machine):
                        ratios[machine].append(mean(found) / guess)
        return {machine: median(found) if found else 1.0 for machine, found in ratios.items()}

    def _work(self, training: Training) -> Work:
        if "weights" in training.wildcards:
            return self._pretraining(training.wildcards["weights"])
        if "benchmark" in training.wildcards:
            return self._finetuning(training.wildcards["benchmark"], training.wildcards["task"])
        corpus, system = training.wildcards["corpus"], training.wildcards["system"]
        entry, settings = self.config.corpora[corpus], self.config.training_of(corpus, system)
        subwords, tokens = self._subwords(corpus, training.direction), settings.batch.tokens
        steps = None if subwords is None else subwords * settings.max_epochs / (tokens * REFERENCE["filled"])
        parameters = used_parameters(self.config.model_of(corpus, system), entry.bpe.merges)
        guide = self.config.systems[system].guide if training.rule == "train" else "none"
        return Work(steps, tokens, parameters, guide, precision=settings.precision)

    def _finetuning(self, benchmark: str, task: str) -> Work:
        entry = self.config.benchmarks[benchmark]
        settings, parameters = entry.tasks[task], used_parameters(self._shape(entry.weights), 0)
        return Work(settings.total_updates, settings.sentences * REFERENCE["example"], parameters)

    def _pretraining(self, weights: str) -> Work:
        """As long as the text of the weights is, or, continued, by their schedule."""
        entry, known = self.config.weights[weights], REFERENCE["pretraining"]
        training = (entry.pretrain or entry.continued).training
        batch, times = training.batch, 1.0
        if entry.continued:
            steps = training.total_updates * batch.gpus * batch.updates
            times = known["losses"] if entry.continued.losses else 1.0
        else:
            text = self._bytes(entry.pretrain)
            read = text and text * training.max_epochs / known["bytes"]
            steps = read and read / (batch.tokens * REFERENCE["filled"])
        return Work(steps, batch.tokens, used_parameters(self._shape(weights), 0), times=times)

    def _bytes(self, entry: Pretrain) -> int | None:
        """The size of the text of a pre-training; None where it is missing or packed."""
        if entry.generate:
            return entry.generate.train * REFERENCE["pretraining"]["document"]
        paths = [Path(path) for path in entry.text["train"]]
        there = all(path.is_file() and path.suffix != ".gz" for path in paths)
        return sum(path.stat().st_size for path in paths) if there else None

    def _shape(self, weights: str) -> RobertaSize:
        """The sizes of a RoBERTa; RoBERTa-base's if only its files say them, which may be missing still."""
        entry = self.config.weights[weights]
        if entry.continued:
            return self._shape(entry.continued.weights)
        return entry.pretrain.model if entry.pretrain else RobertaSize()

    def _subwords(self, corpus: str, direction: str) -> float | None:
        """Sub-words of the training text's target side, one end per pair included: counted or estimated."""
        target = sides(direction)[1]
        prepared = self.results / corpus / direction / f"bpe/train.{target}"
        if prepared.exists():
            text = prepared.read_bytes()
            return text.count(b" ") + 2 * text.count(b"\n")
        pairs, entry = number_of_pairs(self.config, corpus, target), self.config.corpora[corpus]
        if pairs is not None and entry.files and not entry.url:  # the user's own
            size = bytes_of_text(self.config, corpus, target)
            return size and pairs + size / REFERENCE["bytes"]
        per_pair = REFERENCE["subwords"].get(entry.download or corpus, REFERENCE["other"])
        return None if pairs is None else pairs * per_pair


def as_text(hours: float) -> str:
    """Hours for humans.

    >>> as_text(0.004), as_text(0.5), as_text(3.21), as_text(72), as_text(1234), as_text(100000)
    ('15 seconds', '30 minutes', '3.2 hours', '3.0 days', '51 days', '11 years')
    """
    if hours < 1:
        minutes = round(hours * 60)
        return f"{minutes} minutes" if minutes > 1 else f"{max(1, round(hours * 3600 / 5)) * 5} seconds"
    if hours < 48:
        return f"{hours:.1f} hours"
    days = hours / 24
    return f"{days:,.{1 if days < 10 else 0}f} days" if days < 730 else f"{days / 365:,.0f} years"


def of_jobs(config: Config, jobs: Iterable[tuple[str, Mapping[str, str]]]) -> str:
    """`total` of a dry run's jobs, given as rule and wildcards; `synmask plan` says the same."""
    clock = Clock(config)
    words = total(clock.hours(Training(*job)) for job in jobs if job[0] in TRAININGS)
    return words and f"{words}: see synmask plan"


def total(trainings: Iterable[Hours], gpus: int = 1) -> str:
    """One line on the hours of trainings, on GPUs and on this machine's cores; empty if none are known."""
    known = [hours for hours in trainings if hours.gpu is not None and hours.cpu is not None]
    if not known:
        return ""
    each, cores = [hours.gpu for hours in known], os.cpu_count() or 1
    on_gpus = as_text(max(sum(each) / gpus, *each))
    without = as_text(sum(hours.cpu for hours in known) / cores)
    where = f"{gpus} GPUs" if gpus > 1 else "one GPU"
    return f"about {on_gpus} of training on {where}, {without} on {cores} cores without one"
