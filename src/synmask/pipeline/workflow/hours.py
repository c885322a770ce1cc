"""The hours of trainings: operations by the speed of machines, or measured from trainings that ran here."""

import os
from collections.abc import Callable, Iterable, Mapping
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
from synmask.pipeline.paths import RUN, TUNED, WEIGHTS, existing, filled

REFERENCE: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("reference.yaml").read_text("utf-8"))


def used_parameters(model: Model | RobertaSize, vocabulary: int) -> int:
    """Parameters in a step's matrix products, without a guide: of the layers and of the output."""
    width = model.embed_dim
    attention, ffn = 4 * width**2, 2 * width * model.ffn_dim
    if isinstance(model, RobertaSize):
        return vocabulary * width + model.layers * (attention + ffn)
    decoder = model.decoder_layers * (2 * attention + ffn)  # also attends to the source
    return vocabulary * width + model.encoder_layers * (attention + ffn) + decoder


PARAMETERS = used_parameters(Model(), REFERENCE["merges"])  # of the model whose steps were measured


@dataclass(frozen=True)
class Hours:
    """Hours of one training: `gpu` on one GPU, `cores` on one CPU core; None if the text's size is unknown.

    `measured`: the devices of trainings that ran here. For other kinds of device, hours are estimated.
    """

    gpu: float | None
    cores: float | None
    measured: tuple[str, ...] = ()


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
        """On this machine of the reference: a GPU, or a core of a CPU."""
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


class Trained(Section):
    """The duration of a training, from its train.json."""

    model_config = ConfigDict(extra="ignore")

    train_seconds: float
    workers: int
    device: str
    threads: int = 1


class Clock:
    """The hours of a configuration's trainings; `results` contains the runs so far.

    They are measured from the same training here, with any seed and in any direction. Without such runs,
    they are the reference's, scaled by how much longer other trainings took here.
    """

    def __init__(self, config: Config, results: Path = Path("results")) -> None:
        self.config, self.results = config, results

    def training(self, corpus: str, direction: str, system: str, part: str = "") -> Hours:
        """The hours of one training of a system in a direction of a corpus.

        Args:
            part: "template" for the model that predicts the templates which the system reads.
        """
        runs = filled(f"{RUN}/{part}".rstrip("/"), corpus=corpus, system=system)
        return self._hours(runs, self._work(corpus, direction, system, part))

    def finetuning(self, benchmark: str, task: str) -> Hours:
        """The hours of one fine-tuning."""
        entry = self.config.benchmarks[benchmark]
        settings, parameters = entry.tasks[task], used_parameters(self._shape(entry.weights), 0)
        tokens = settings.sentences * REFERENCE["example"]
        runs = filled(TUNED, benchmark=benchmark, task=task)
        return self._hours(runs, Work(settings.total_updates, tokens, parameters))

    def pretraining(self, weights: str) -> Hours:
        """The hours of pre-training weights: as long as their text is, or further, by their schedule."""
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
        work = Work(steps, batch.tokens, used_parameters(self._shape(weights), 0), times=times)
        return self._hours(filled(WEIGHTS, weights=weights), work)

    def _bytes(self, entry: Pretrain) -> int | None:
        """The size of the text of a pre-training; None where it is missing or packed."""
        if entry.generate:
            return entry.generate.train * REFERENCE["pretraining"]["document"]
        paths = [Path(path) for path in entry.text["train"]]
        there = all(path.is_file() and path.suffix != ".gz" for path in paths)
        return sum(path.stat().st_size for path in paths) if there else None

    def _hours(self, runs: str, work: Work) -> Hours:
        """Measured in the folders of the pattern `runs`, else estimated."""
        gpu, cores, devices = self._measured(runs)
        for machine, found in (("gpu", gpu), ("cpu", cores)):
            if not found and (guess := work.hours(machine)) is not None:
                found.append(guess * self._scales[machine])
        return Hours(mean(gpu) if gpu else None, mean(cores) if cores else None, tuple(sorted(devices)))

    def _measured(self, runs: str) -> tuple[list[float], list[float], set[str]]:
        """Hours on a GPU, core hours without one, and the devices of trainings that ran in these folders."""
        gpu, cores, devices = [], [], set()
        for path in existing(f"{runs}/train.json", self.results):
            try:
                run = Trained.model_validate(read_json(path))
            except ValidationError as error:
                raise UserError(f"{path}: {one_line(error, {})}; delete it and rerun") from None
            hours = run.train_seconds * run.workers / 3600
            devices.add(run.device)
            if run.device == "CPU":
                cores.append(hours * run.threads)
            else:
                gpu.append(hours)
        return gpu, cores, devices

    @cached_property
    def _scales(self) -> dict[str, float]:
        """Median ratio of measured to estimated hours, on a GPU and without."""
        ratios: dict[str, list[float]] = {"gpu": [], "cpu": []}
        for run in sorted({path.parts[-5:-2] for path in existing(f"{RUN}/train.json", self.results)}):
            corpus, direction, system = run
            if corpus in self.config.corpora and system in self.config.systems:
                runs = filled(RUN, direction, corpus=corpus, system=system)
                work, measured = self._work(*run), self._measured(runs)
                for machine, found in zip(ratios, measured, strict=False):
                    if found and (guess := work.hours(machine)):
                        ratios[machine].append(mean(found) / guess)
        return {machine: median(found) if found else 1.0 for machine, found in ratios.items()}

    def _work(self, corpus: str, direction: str, system: str, part: str = "") -> Work:
        entry, training = self.config.corpora[corpus], self.config.training_of(corpus, system)
        subwords, tokens = self._subwords(corpus, direction), training.batch.tokens
        steps = None if subwords is None else subwords * training.max_epochs / (tokens * REFERENCE["filled"])
        parameters = used_parameters(self.config.model_of(corpus, system), entry.bpe.merges)
        guide = "none" if part else self.config.systems[system].guide
        return Work(steps, tokens, parameters, guide, precision=training.precision)

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


# Rules that train, each with the hours of one of its jobs.
TRAININGS: dict[str, Callable[[Clock, Mapping[str, str]], Hours]] = {
    "train": lambda clock, w: clock.training(w["corpus"], f"{w['source']}-{w['target']}", w["system"]),
    "train_templates": lambda clock, w: clock.training(
        w["corpus"], f"{w['source']}-{w['target']}", w["system"], "template"
    ),
    "pretrain": lambda clock, w: clock.pretraining(w["weights"]),
    "continue_pretraining": lambda clock, w: clock.pretraining(w["weights"]),
    "finetune": lambda clock, w: clock.finetuning(w["benchmark"], w["task"]),
}


def of_jobs(config: Config, jobs: Iterable[tuple[str, Mapping[str, str]]]) -> str:
    """`total` of a dry run's jobs, given as rule and wildcards; `synmask plan` says the same."""
    clock = Clock(config)
    words = total(TRAININGS[rule](clock, wildcards) for rule, wildcards in jobs if rule in TRAININGS)
    return words and f"{words}: see synmask plan"


def total(trainings: Iterable[Hours], gpus: int = 1) -> str:
    """One line on the hours of trainings, on GPUs and on this machine's cores; empty if none are known."""
    known = [hours for hours in trainings if hours.gpu is not None and hours.cores is not None]
    if not known:
        return ""
    each, cores = [hours.gpu for hours in known], os.cpu_count() or 1
    on_gpus = as_text(max(sum(each) / gpus, *each))
    without = as_text(sum(hours.cores for hours in known) / cores)
    where = f"{gpus} GPUs" if gpus > 1 else "one GPU"
    return f"about {on_gpus} of training on {where}, {without} on {cores} cores without one"
