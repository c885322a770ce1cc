"""The hours of trainings: those of like ones that ran here, else from the speeds of two machines."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import yaml

from synmask.pipeline.config.benchmarks import RobertaSize, WeightsSource
from synmask.pipeline.config.data_files import DataFiles
from synmask.pipeline.config.schema import Config
from synmask.pipeline.config.sections import Model
from synmask.pipeline.disk import size_of
from synmask.pipeline.display import duration
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_object
from synmask.pipeline.paths import existing
from synmask.pipeline.runs import Pretraining, Run, Training, Tuning

REFERENCE: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("reference.yaml").read_text("utf-8"))


class Hours(NamedTuple):
    """Hours of one training: on one GPU, and on one core of a CPU; None if the text's size is unknown."""

    gpu: float | None
    cpu: float | None


@dataclass(frozen=True)
class Workload:
    """The tokens that a training reads, and its model."""

    read: float | None  # tokens that it reads, all epochs together; None: unknown
    tokens: float  # of a step
    shape: Model | RobertaSize
    vocabulary: int  # sub-words of a language
    guide: str = "none"

    @property
    def multiplied(self) -> int:
        """Parameters in a step's matrix products: of the layers, and of a translation's output."""
        shape, width = self.shape, self.shape.embed_dim
        attention, ffn = 4 * width**2, 2 * width * shape.ffn_dim
        if isinstance(shape, RobertaSize):
            return shape.layers * (attention + ffn)
        decoder = shape.decoder_layers * (2 * attention + ffn)  # also attends to the source
        return self.vocabulary * width + shape.encoder_layers * (attention + ffn) + decoder

    @property
    def parameters(self) -> int:
        """Parameters of the model: those, its other embeddings and its guide's."""
        width = self.shape.embed_dim
        guide = REFERENCE["parameters"].get(self.guide, 0) * width**2
        return self.multiplied + self.vocabulary * width + guide

    def hours(self, machine: str) -> float | None:
        """On a machine of the reference: "gpu", or "cpu" for one of its cores."""
        known = REFERENCE[machine]
        like, times = REFERENCE["like"].get(self.guide, (self.guide, 1.0))
        like = like if like in known["seconds"] else "none"  # a user's own guide
        larger = self.multiplied / MULTIPLIED
        size = self.tokens / known["tokens"] * max(larger, larger ** REFERENCE["power"])
        step = max(known["seconds"][like] * size, known["least"][like]) * times
        return None if self.read is None else self.read / self.tokens * step / 3600


# of the model whose steps were measured
MULTIPLIED = Workload(None, 0, Model(), REFERENCE["merges"]).multiplied


class Estimator:
    """The hours of a configuration's trainings; `results` contains the runs so far."""

    def __init__(self, config: Config, results: Path = Path("results")) -> None:
        self.config, self.results = config, results

    def hours(self, training: Training) -> Hours:
        """The mean of trainings like this one that ran here, on each kind of machine; else estimates."""
        ran: dict[str, list[float]] = {"gpu": [], "cpu": []}
        for path in existing(f"{training.folders('source', 'target')}/train.json", self.results):
            run = read_object(path)
            try:
                machine, cores = ("cpu", run.get("threads", 1)) if run["device"] == "CPU" else ("gpu", 1)
                ran[machine].append(run["train_seconds"] * run["workers"] * cores / 3600)
            except (KeyError, TypeError):
                raise UserError(f"{path}: no duration of a training in it; delete it and rerun") from None
        work = self.workload(training)
        return Hours(*(mean(hours) if hours else work.hours(machine) for machine, hours in ran.items()))

    def workload(self, training: Training) -> Workload:
        """The workload of a training, by the configuration and the size of its text."""
        match training:
            case Run():
                return self._translation(training)
            case Pretraining(weights):
                return self._pretraining(self.config.weights[weights])
            case Tuning(name, task):
                benchmark = self.config.benchmarks[name]
                entry, model = benchmark.tasks[task], self._roberta(self.config.weights[benchmark.weights])
                tokens = entry.sentences * REFERENCE["example"]
                return Workload(entry.total_updates * tokens, tokens, *model)

    def _translation(self, run: Run) -> Workload:
        settings = self.config.training_of(run.corpus, run.system)
        subwords = self._subwords(run.corpus, run.source, run.target)
        read = subwords and subwords * settings.max_epochs / REFERENCE["filled"]
        guide = self.config.systems[run.system].guide if run.guided else "none"
        model = self.config.model_of(run.corpus, run.system), self.config.corpora[run.corpus].bpe.merges
        return Workload(read, settings.batch.tokens, *model, guide)

    def _pretraining(self, entry: WeightsSource) -> Workload:
        """By the schedule of one that continues, else by the size of the text."""
        settings = entry.trained.training
        batch, model = settings.batch, self._roberta(entry)
        if entry.continued:
            read = settings.total_updates * batch.gpus * batch.updates * batch.tokens
            return Workload(read, batch.tokens, *model)
        subwords = _subwords_in(entry.pretrain.text["train"])
        read = subwords and subwords * settings.max_epochs / REFERENCE["filled"]
        return Workload(read, batch.tokens, *model)

    def _roberta(self, entry: WeightsSource) -> tuple[RobertaSize, int]:
        """Its sizes and vocabulary: RoBERTa-base's where only its files, which may be missing, say them."""
        if entry.continued:
            return self._roberta(self.config.weights[entry.continued.weights])
        made = entry.pretrain
        return (made.model, made.merges) if made else (RobertaSize(), REFERENCE["roberta"])

    def _subwords(self, corpus: str, source: str, target: str) -> float | None:
        """Sub-words of the training text's target side, an end per pair included: counted or estimated."""
        prepared = self.results / corpus / f"{source}-{target}/bpe/train.{target}"
        if prepared.exists():
            text = prepared.read_bytes()
            return text.count(b" ") + 2 * text.count(b"\n")
        entry = self.config.corpora[corpus]
        if entry.files and not entry.url:  # the user's own
            return _subwords_in(DataFiles(self.config).raw_files(corpus, "train", target))
        pairs = DataFiles(self.config).number_of_pairs(corpus, target)
        return pairs and pairs * REFERENCE["subwords"].get(entry.download or corpus, REFERENCE["other"])


def _subwords_in(paths: Iterable[str]) -> float | None:
    """An estimate by the size of the text; None if it cannot be read."""
    size = size_of(paths)
    return size and size[1] / REFERENCE["bytes"]


def total(trainings: Iterable[Hours], gpus: int = 1) -> str:
    """One line on the hours of trainings, on GPUs and on this machine's cores; empty if none are known."""
    known = [hours for hours in trainings if None not in hours]
    if not known:
        return ""
    each, cores = [hours.gpu for hours in known], os.cpu_count() or 1
    on_gpus = max(sum(each) / gpus, *each, 1 / 3600)
    without = max(sum(hours.cpu for hours in known) / cores, 1 / 3600)
    where = f"{gpus} GPUs" if gpus > 1 else "one GPU"
    return (
        f"about {duration(3600 * on_gpus)} of training on {where}, "
        f"{duration(3600 * without)} on {cores} cores without one"
    )
