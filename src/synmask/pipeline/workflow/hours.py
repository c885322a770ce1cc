"""The duration of trainings: measured from those that ran here, or estimated from reference machines."""

import gzip
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean, median
from typing import Any

import yaml

from synmask.pipeline.config import Config
from synmask.pipeline.config.base import sides
from synmask.pipeline.config.benchmarks import RobertaSize
from synmask.pipeline.config.machine import least_parameters, least_roberta
from synmask.pipeline.config.sections import Model
from synmask.pipeline.files import UserError, read_json
from synmask.pipeline.paths import CORPUS, RESULTS, below_results, filled

REFERENCE: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("reference.yaml").read_text("utf-8"))
BASE = RobertaSize()  # RoBERTa-base, which the reference fine-tunes
PARAMETERS = least_parameters(Model(), 0, REFERENCE["merges"])  # used in a step of the reference model


@dataclass(frozen=True)
class Hours:
    """Hours of one training: `gpu` on one GPU, `cores` on one CPU core; None if the corpus size is unknown.

    `measured`: the devices of trainings that ran here. For other kinds of device, hours are estimated.
    """

    gpu: float | None
    cores: float | None
    measured: tuple[str, ...] = ()

    def or_else(self, other: "Hours") -> "Hours":
        """These hours, completed with the other's."""
        gpu = other.gpu if self.gpu is None else self.gpu
        return Hours(gpu, other.cores if self.cores is None else self.cores, self.measured)


class Clock:
    """The hours of a configuration's trainings; `results` contains the runs so far."""

    def __init__(self, config: Config, results: Path = Path("results")) -> None:
        self.config, self.results = config, results
        self._pairs: dict[tuple[str, str], int | None] = {}

    def training(self, corpus: str, direction: str, system: str, part: str = "") -> Hours:
        """The hours of one training of a system in a direction of a corpus.

        They are measured from runs in any direction of the corpus. Without such runs, they are the
        reference's hours, scaled by how much longer trainings of other systems and corpora took here.

        Args:
            part: "template" for the model that predicts the templates which the system reads.
        """
        guess = self._estimate(corpus, direction, system, part)
        if guess.gpu is not None and guess.cores is not None:
            guess = Hours(guess.gpu * self._scales["gpu"], guess.cores * self._scales["cores"])
        return self._own(f"{corpus}/*/{system}/seed*", part).or_else(guess)

    def finetuning(self, benchmark: str, task: str) -> Hours:
        """The hours of one fine-tuning: measured here, or a share of the paper's hours for all of GLUE.

        The share is proportional to the examples that a fine-tuning sees, and to the size of the model.
        """
        entry, known = self.config.benchmarks[benchmark], REFERENCE["finetuning"]
        settings, pretrain = entry.tasks[task], self.config.weights[entry.weights].pretrain
        share = settings.total_updates * settings.sentences / known["examples"]
        size = least_roberta(pretrain.model, 0) / least_roberta(BASE, 0) if pretrain else 1.0
        gpu = known["hours"] * share * size
        least = settings.total_updates * REFERENCE["gpu"]["least"]["none"] / 3600
        core = max(gpu * _cores_for_gpu(), settings.total_updates * known["least"] / 3600)
        guess = Hours(max(least, gpu), core)
        return self._own(f"{benchmark}/{task}/*/seed*").or_else(guess)

    def pretraining(self, weights: str) -> Hours:
        """The hours of pre-training weights, from the start or further: measured here, or estimated.

        The estimate follows from the tokens that it reads, at the speed of the reference's model, scaled by
        the parameters of RoBERTa's layers.
        """
        entry, tokens = self.config.weights[weights], self._tokens(weights)
        settings = entry.pretrain or entry.continued
        guess = Hours(None, None)
        if tokens is not None:
            times = REFERENCE["pretraining"]["losses"] if entry.continued and entry.continued.losses else 1.0
            batch, size = settings.training.batch.tokens, least_roberta(self._shape(weights), 0)
            gpu, cpu = (_seconds("none", machine, batch, size) * times for machine in ("gpu", "cpu"))
            batches = tokens / (batch * REFERENCE["filled"])
            core = max(cpu * REFERENCE["cpu"]["cores"], REFERENCE["pretraining"]["least"] * times)
            guess = Hours(batches * gpu / 3600, batches * core / 3600)
        return self._own(f"weights/{weights}").or_else(guess)

    def _shape(self, weights: str) -> RobertaSize:
        """The sizes of a RoBERTa; RoBERTa-base's if only its files say them, which may be missing still."""
        entry = self.config.weights[weights]
        if entry.continued:
            return self._shape(entry.continued.weights)
        return entry.pretrain.model if entry.pretrain else BASE

    def _tokens(self, weights: str) -> float | None:
        """How many tokens pre-training reads in all its epochs, by the bytes of its text.

        If parses are missing still, the schedule of the learning rate gives the number.
        """
        entry = self.config.weights[weights]
        settings = entry.pretrain or entry.continued
        training, batch = settings.training, settings.training.batch
        if entry.pretrain and entry.pretrain.generate:
            sizes = [entry.pretrain.generate.train * REFERENCE["pretraining"]["document"]]
        elif entry.pretrain:
            sizes = [self._bytes(path) for path in entry.pretrain.text["train"]]
        else:
            sizes = [self._bytes(f"{prefix}.text") for prefix in entry.continued.parses["train"]]
        if None not in sizes:
            return sum(sizes) * training.max_epochs / REFERENCE["pretraining"]["bytes"]
        most = batch.gpus * batch.updates * batch.tokens  # in an update
        return training.total_updates * most * REFERENCE["filled"] if entry.continued else None

    def _bytes(self, path: str) -> float | None:
        """The size of a text, estimated from its number of pairs if it is a corpus' and missing still.

        None if it is not known.
        """
        here = self.results / below_results(path) if path.startswith(f"{RESULTS}/") else Path(path)
        if here.is_file() and here.suffix != ".gz":
            return here.stat().st_size
        for corpus in self.config.corpora:
            if path.startswith(filled(f"{CORPUS}/raw/train.", corpus=corpus)):
                pairs = self.number_of_pairs(corpus, path.rpartition(".")[2])
                return None if pairs is None else pairs * REFERENCE["pretraining"]["line"]
        return None

    def _own(self, runs: str, part: str = "") -> Hours:
        """The mean hours of trainings that ran here in folders that match `runs`."""
        gpu, cores, devices = [], [], set()
        for path in self.results.glob(str(Path(runs, part, "train.json"))):
            summary = read_record(path, "train_seconds", "workers", device=str)
            hours = summary["train_seconds"] * summary["workers"] / 3600
            devices.add(summary["device"])
            if summary["device"] == "CPU":
                cores.append(hours * read_record(path, "threads")["threads"])
            else:
                gpu.append(hours)
        return Hours(mean(gpu) if gpu else None, mean(cores) if cores else None, tuple(sorted(devices)))

    @cached_property
    def _scales(self) -> dict[str, float]:
        """Median ratio of measured to estimated hours, on a GPU and without."""
        ratios: dict[str, list[float]] = {"gpu": [], "cores": []}
        trained = {path.parts[-5:-2] for path in self.results.glob("*/*-*/*/seed*/train.json")}
        for corpus, direction, system in sorted(trained):
            if corpus not in self.config.corpora or system not in self.config.systems:
                continue
            guess = self._estimate(corpus, direction, system, "")
            own = self._own(f"{corpus}/{direction}/{system}/seed*")
            for kind, took, estimate in (("gpu", own.gpu, guess.gpu), ("cores", own.cores, guess.cores)):
                if took is not None and estimate is not None:
                    ratios[kind].append(took / estimate)
        return {kind: median(found) if found else 1.0 for kind, found in ratios.items()}

    def _estimate(self, corpus: str, direction: str, system: str, part: str) -> Hours:
        entry, training = self.config.corpora[corpus], self.config.training_of(corpus, system)
        target = sides(direction)[1]
        subwords = self._subwords(corpus, direction, target)
        if subwords is None:
            return Hours(None, None)
        guide = "none" if part else self.config.systems[system].guide
        parameters = least_parameters(self.config.model_of(corpus, system), 0, entry.bpe.merges)
        batches = subwords * training.max_epochs / (training.batch.tokens * REFERENCE["filled"])
        gpu = _seconds(guide, "gpu", training.batch.tokens, parameters)
        cores = _seconds(guide, "cpu", training.batch.tokens, parameters) * REFERENCE["cpu"]["cores"]
        return Hours(batches * gpu / 3600, batches * cores / 3600)

    def _subwords(self, corpus: str, direction: str, target: str) -> float | None:
        """Sub-words of the training text's target side, one end per pair included: counted or estimated."""
        prepared = self.results / corpus / direction / f"bpe/train.{target}"
        if prepared.exists():
            text = prepared.read_bytes()
            return text.count(b" ") + 2 * text.count(b"\n")
        pairs = self.number_of_pairs(corpus, target)
        name = self.config.corpora[corpus].download or corpus
        return None if pairs is None else pairs * REFERENCE["subwords"].get(name, REFERENCE["other"])

    def number_of_pairs(self, corpus: str, language: str) -> int | None:
        """The number of training pairs: from the configuration, or the lines of the user's own file."""
        if (corpus, language) not in self._pairs:
            entry = self.config.corpora[corpus]
            said = entry.generate.train if entry.generate else entry.pairs.get("train")
            if said is None and entry.files:
                said = _lines(*self.config.raw_files(corpus, "train", language))
            self._pairs[corpus, language] = sum(said) // 2 if isinstance(said, tuple) else said
        return self._pairs[corpus, language]


def _seconds(guide: str, machine: str, tokens: int, parameters: int) -> float:
    """Seconds of a step with this many target tokens, proportional to the model's operations."""
    known = REFERENCE[machine]
    measured = guide if guide in known["seconds"] else "none"  # a user's own guide is not
    like = REFERENCE["like"].get(guide, {"guide": measured, "times": 1.0})
    base = known["seconds"][like["guide"]] * (tokens / known["tokens"]) * (parameters / PARAMETERS)
    return max(base, known.get("least", {}).get(like["guide"], 0.0)) * like["times"]


def _cores_for_gpu() -> float:
    """Core hours per GPU hour, for a model without a guide."""
    gpu, cpu = REFERENCE["gpu"], REFERENCE["cpu"]
    return (cpu["seconds"]["none"] * cpu["cores"] / cpu["tokens"]) / (gpu["seconds"]["none"] / gpu["tokens"])


def _lines(path: str) -> int | None:
    """Number of lines of a text (.gz or plain); None if it cannot be read."""
    try:
        with gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb") as file:
            return sum(1 for _ in file)
    except OSError:
        return None


def side_by_side(hours: Iterable[float], devices: int) -> float:
    """When the last of these jobs ends on `devices`: longest first, each on the first free device.

    >>> side_by_side([3.0, 2.0, 2.0], 2)
    4.0
    """
    ends = [0.0] * devices
    for each in sorted(hours, reverse=True):
        ends[ends.index(min(ends))] += each
    return max(ends)


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


def read_record(path: Path, *numbers: str, **others: type) -> dict[str, Any]:
    """The record of a step's duration: `numbers`, and `others` of these types.

    Raises:
        UserError: one of them is missing, or of another type.
    """
    record = read_json(path)
    wanted = dict.fromkeys(numbers, (int, float)) | others
    if not isinstance(record, dict):
        record = {}
    for key, kind in wanted.items():
        if not isinstance(record.get(key), kind):
            raise UserError(f"{path}: no {key} in it, or not one of its kind; delete it and rerun")
    return record


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
    """One line on the hours of a dry run's jobs, given as rule and wildcards; empty if none are known."""
    clock = Clock(config)
    each = [TRAININGS[rule](clock, wildcards) for rule, wildcards in jobs if rule in TRAININGS]
    gpu = sum(hours.gpu for hours in each if hours.gpu is not None)
    cores = sum(hours.cores for hours in each if hours.cores is not None) / (os.cpu_count() or 1)
    if not gpu:
        return ""
    without = f"{as_text(cores)} on {os.cpu_count()} cores without one"
    return f"about {as_text(gpu)} of training on one GPU, {without}: see synmask plan"
