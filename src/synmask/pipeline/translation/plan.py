"""The needs of a target: trainings, parameters, hours, disk. Nothing is run."""

import os
from argparse import Namespace
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary

from synmask.pipeline.config import Config, as_json, read_published
from synmask.pipeline.config.base import sides
from synmask.pipeline.config.machine import BYTES, RESUME, free_bytes
from synmask.pipeline.config.sections import RunSettings, Table
from synmask.pipeline.config.table_plan import asked_runs
from synmask.pipeline.config.table_plan import plan as table_plan
from synmask.pipeline.files import read_object
from synmask.pipeline.paths import below_results
from synmask.pipeline.translation.task import model_class, transformer_config
from synmask.pipeline.workflow.hours import REFERENCE, Clock, Hours, as_text, read_record, side_by_side

PARSED_A_SECOND = 11  # English sentences, per thread with its own core (docs/parsing.md)
# Models of `checkpoint: best`: a new best one, and those of last.pt and previous.pt until it is saved.
BEST = 3


@dataclass(frozen=True)
class Row:
    """The trainings of one system in one direction of a corpus, one per seed."""

    corpus: str
    direction: str
    system: str
    seeds: tuple[int, ...]
    done: int  # how many of them have been trained
    parameters: int
    estimated: bool  # the vocabulary's size is not known yet
    hours: Hours  # of one training
    published: str  # hours of one training in a paper: time on one device, times devices
    kept: int  # bytes of one training after its end
    working: int  # additional bytes while it runs
    part: str = ""  # "template": the model that predicts the system's templates

    @property
    def name(self) -> str:
        return f"{self.system}/{self.part}" if self.part else self.system

    @property
    def left(self) -> int:
        return len(self.seeds) - self.done


def plan(config: Config, targets: Iterable[str], results: Path = Path("results")) -> list[Row]:
    """A row for each corpus, direction and system that `targets` (experiments, tables, groups of them) train.

    A system that reads templates has two rows, the first for the model that predicts them. Parameters are
    counted on a model without weights. Before a corpus is prepared, each vocabulary is assumed to have as
    many sub-words as there are merge operations, which is an upper bound. Hours are measured or estimated
    (`synmask.pipeline.workflow.hours`).
    """
    seeds: dict[tuple[str, str, str], set[int]] = {}
    for *key, seed in _trainings(config, targets):
        seeds.setdefault(tuple(key), set()).add(seed)
    clock = Clock(config, results)
    return [
        _row(clock, *key, tuple(sorted(numbers)), part)
        for key, numbers in seeds.items()
        for part in (("template", "") if _templated(config, key[2]) else ("",))
    ]


def _templated(config: Config, system: str) -> bool:
    return config.systems[system].kind.templates


def _trainings(config: Config, targets: Iterable[str]) -> Iterator[tuple[str, str, str, int]]:
    """Corpus, direction, system and seed of each training of the experiments and tables of `targets`."""
    published = read_published(config.published)
    for target in targets:
        for name in config.own_experiments(target):
            entry, numbers = config.plain_experiments[name], config.experiment_seeds(name)
            yield from product([entry.corpus], entry.directions, entry.systems, numbers)
        for name in config.tables_of(target):
            if config.all_tables[name].experiments:
                for run in asked_runs(table_plan(config, published, name)):
                    yield run["corpus"], run["direction"], run["system"], run["seed"]


def finetunings(config: Config, targets: Iterable[str], results: Path = Path("results")) -> dict[str, bool]:
    """The fine-tunings that the benchmark tables of `targets` need → whether they are done."""
    runs = [
        f"{table.benchmark}/{task}/{system}/seed{seed}"
        for table in _benchmark_tables(config, targets)
        for task in config.tasks_of(table)
        for system in table.systems
        if system in config.systems
        for seed in config.benchmark_seeds(table.benchmark)
    ]
    return {run: (results / run / "train.json").exists() for run in runs}


def finetuning_lines(runs: dict[str, bool], results: Path = Path("results")) -> Iterator[str]:
    """A line on fine-tunings, with the hours of those that are done."""
    if runs:
        records = (results / run / "train.json" for run, there in runs.items() if there)
        done = [read_record(path, "train_seconds") for path in records]
        hours = sum(summary["train_seconds"] for summary in done) / 3600
        yield f"fine-tunings  {len(runs)}, {len(done)} of them done" + (
            f" in {hours:.1f} device hours" if done else ""
        )


def pretrainings(config: Config, targets: Iterable[str], results: Path = Path("results")) -> dict[str, bool]:
    """The RoBERTas that are pre-trained for the benchmark tables of `targets` → whether they are done.

    Those that others continue come first.
    """
    wanted = []
    for table in _benchmark_tables(config, targets):
        entry = config.benchmarks[table.benchmark]
        wanted += [entry.weights_of.get(system, entry.weights) for system in table.systems]
    for name in wanted:  # grows
        if (continued := config.weights[name].continued) is not None:
            wanted.append(continued.weights)
    made = [name for name in wanted[::-1] if config.weights[name].pretrain or config.weights[name].continued]
    return {name: (results / "weights" / name / "train.json").exists() for name in made}


def pretraining_lines(
    config: Config, made: dict[str, bool], results: Path = Path("results")
) -> Iterator[str]:
    """A line per pre-training, with its hours."""
    clock = Clock(config, results)
    for name, there in made.items():
        hours = clock.pretraining(name)
        if hours.gpu is None or hours.cores is None:
            yield f"pre-training  {name}: its text is not there yet, so its hours are not known"
            continue
        how = f"measured on {', '.join(hours.measured)}" if hours.measured else "estimated"
        took = f"{as_text(hours.gpu)} on a GPU, {as_text(hours.cores)} on a core ({how})"
        yield f"pre-training  {name}: {took}{', done' * there}"


def parsing_lines(config: Config, targets: Iterable[str], results: Path = Path("results")) -> Iterator[str]:
    """The hours of CoreNLP for each task whose parses the systems of `targets` read.

    The speed is that of the task's own parses, else of other tasks' parses, else `PARSED_A_SECOND`.
    """
    tasks = {
        (table.benchmark, task): None
        for table in _benchmark_tables(config, targets)
        if config.reads_words(table) and config.benchmarks[table.benchmark].generate is None
        for task in config.tasks_of(table)
    }
    reports = {key: _parse_reports(config, *key, results) for key in tasks}
    known = [report for found in reports.values() for report in found]
    guess = PARSED_A_SECOND * config.corenlp.threads
    for (benchmark, task), found in reports.items():
        count = config.task_sentences(benchmark, task)
        files = len(config.task_parses(benchmark, task, "train"))
        speed = _speed(found) or _speed(known) or guess
        hours = f"{count / speed / 3600:.2f} hours with {config.corenlp.threads} threads"
        how = "measured here" if known else "not measured here yet"
        sentences = f"at most {count:,} sentences in {files} files, {len(found)} done"
        yield f"parsing       {benchmark}/{task}: {sentences}; {hours}, {how}"


def _benchmark_tables(config: Config, targets: Iterable[str]) -> list[Table]:
    """The tables of benchmarks among `targets`."""
    names = dict.fromkeys(table for target in targets for table in [target, *config.tables_of(target)])
    tables = [config.all_tables[name] for name in names if name in config.all_tables]
    return [table for table in tables if table.benchmark]


def _parse_reports(config: Config, benchmark: str, task: str, results: Path) -> list[dict[str, Any]]:
    """CoreNLP's reports on the files of a task that it has parsed."""
    prefixes = config.task_parses(benchmark, task, "train")
    paths = [results / f"{below_results(prefix)}.json" for prefix in prefixes]
    there = {path: read_object(path) for path in paths if path.exists()}
    return [read_record(path, *({"seconds", "parsed"} & report.keys())) for path, report in there.items()]


def _speed(reports: list[dict[str, Any]]) -> float | None:
    """Sentences per second; None if nothing was parsed."""
    seconds = sum(report.get("seconds", 0) for report in reports)
    return sum(report.get("parsed", 0) for report in reports) / seconds if seconds else None


def _row(clock: Clock, corpus: str, direction: str, system: str, seeds: tuple[int, ...], part: str) -> Row:
    config, results = clock.config, clock.results
    entry, folder = config.corpora[corpus], results / corpus / direction / system
    source, target = (f"dict.{language}.txt" for language in sides(direction))
    text, templates = folder.parent / "bin", folder / "templates/bin"
    if part:
        settings, dictionaries = config.template_settings, [templates / source, templates / target]
    else:
        settings, dictionaries = config.run_settings, [text / source, text / target]
        dictionaries += [templates / target] * _templated(config, system)
    sizes = [_vocabulary(path) for path in dictionaries]
    parameters = count_parameters(
        settings(corpus, direction, system), *(size or entry.bpe.merges for size in sizes)
    )
    model, training = parameters * BYTES, config.training_of(corpus, system)
    epochs = training.average if training.checkpoint == "average" else BEST
    checkpoints = model * (epochs + 2 * RESUME)  # with last.pt and previous.pt
    keep = entry.resources.keep_checkpoints
    printed = read_published(config.published).numbers.get((corpus, direction, "device_hours", system))
    return Row(
        corpus, direction, system, seeds,
        done=sum((folder / f"seed{seed}" / part / "train.json").exists() for seed in seeds),
        parameters=parameters,
        estimated=None in sizes,
        hours=clock.training(corpus, direction, system, part),
        published=printed.text if printed and not part else "",
        kept=model + (checkpoints if keep else model),  # without, a second copy of the average
        working=model * RESUME + checkpoints * (not keep),  # a third one exists while it is written
        part=part,
    )  # fmt: skip


def _vocabulary(dictionary: Path) -> int | None:
    """The number of symbols in a dictionary; None if it does not exist yet."""
    if not dictionary.exists():
        return None
    with open(dictionary, encoding="utf-8") as lines:
        return sum(1 for _ in lines) + Dictionary().nspecial


def count_parameters(settings: RunSettings, *sizes: int) -> int:
    """The parameters of a run's model with vocabularies of these sizes.

    The vocabularies are source, target and, for a system that reads templates, templates.
    """
    return _counted(as_json(settings), *sizes)


@lru_cache  # it takes 0.4 s; so by JSON, as settings cannot be hashed
def _counted(json: str, *sizes: int) -> int:
    settings = RunSettings.model_validate_json(json)
    names = ("source_dictionary", "target_dictionary", "template_dictionary")
    words = dict(zip(names, map(_dictionary, sizes), strict=False))
    with torch.device("meta"):
        model = model_class(settings.system.guide).build(
            transformer_config(settings), Namespace(**words), settings.system
        )
    return sum(parameter.numel() for parameter in model.parameters())


@lru_cache
def _dictionary(size: int) -> Dictionary:
    dictionary = Dictionary()
    for number in range(size - len(dictionary)):
        dictionary.add_symbol(str(number))
    return dictionary


HEAD = (
    "corpus", "direction", "system", "trainings", "done",
    "parameters", "GPU hours", "core hours", "published", "disk", "working",
)  # fmt: skip


def lines(rows: list[Row], results: Path = Path("results")) -> Iterator[str]:
    """The plan as text: a table, the number of trainings, and a warning if the disk is too small."""
    table = [HEAD, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        yield "  ".join(
            cell.ljust(width) if column < 3 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
    left = [row for row in rows if row.left]
    trainings, pairs = sum(len(row.seeds) for row in rows), {(row.corpus, row.direction) for row in rows}
    yield ""
    yield (
        f"trainings  {trainings}, {sum(row.done for row in rows)} of them done; with --profile slurm at most "
        f"{2 * trainings + len(pairs)} jobs for corpora, trainings and what follows from each"
    )
    disk, most = sum(row.kept * row.left for row in left), max((row.working for row in left), default=0)
    free = free_bytes(results)
    yield (
        f"disk       {_size(disk)} for models still to come, and up to {_size(most)} more for each training "
        f"that runs at a time; {_size(free)} are free; each direction of a corpus takes six times its text"
    )
    if free < disk + most:
        needed = _size(disk + most)
        yield f"WARNING    {results}: not enough space: {_size(free)} free, {needed} needed at least"


def disk(config: Config, targets: Iterable[str], results: Path = Path("results")) -> tuple[bool, str]:
    """Whether the models of `targets` still to come fit onto the disk, one training at a time; in words."""
    left, free = [row for row in plan(config, targets) if row.left], free_bytes(results)
    needed = sum(row.kept * row.left for row in left) + max((row.working for row in left), default=0)
    fits = f"{_size(needed)} of disk are needed for models, {_size(free)} are free"
    return free >= needed, fits if free >= needed else f"{fits}: make room, or put results/ elsewhere"


def _cells(row: Row) -> tuple[str, ...]:
    gpus = any(device != "CPU" for device in row.hours.measured)
    return (
        row.corpus,
        row.direction,
        row.name,
        str(len(row.seeds)),
        str(row.done),
        f"{'~' * row.estimated}{row.parameters / 1e6:.2f} M",
        _hours(row.hours.gpu, measured=gpus),
        _hours(row.hours.cores, measured="CPU" in row.hours.measured),
        row.published,
        _size(row.kept),
        _size(row.working),
    )


def _hours(hours: float | None, *, measured: bool) -> str:
    return "?" if hours is None else f"{'~' * (not measured)}{hours:,.{2 if hours < 100 else 0}f}"


def hour_lines(
    config: Config,
    rows: list[Row],
    tuned: dict[str, bool],
    made: dict[str, bool],
    gpus: int = 1,
    results: Path = Path("results"),
) -> Iterator[str]:
    """The hours of the trainings that are left, on this machine and on `gpus` GPUs, and their sources.

    Args:
        rows: see `plan`.
        tuned: see `finetunings`.
        made: see `pretrainings`.
    """
    clock, left = Clock(config, results), [row for row in rows if row.left]
    each = [row.hours for row in left for _ in range(row.left)]
    each += [clock.finetuning(*run.split("/")[:2]) for run, there in tuned.items() if not there]
    each += [clock.pretraining(name) for name, there in made.items() if not there]
    known = [hours for hours in each if hours.gpu is not None and hours.cores is not None]
    if known:
        kinds = "trainings and fine-tunings" if tuned else "trainings"
        kinds = "trainings, pre-trainings and fine-tunings" if made else kinds
        on_gpu, cores = [hours.gpu for hours in known], os.cpu_count() or 1
        yield f"one GPU    about {as_text(sum(on_gpu))} for {len(known)} {kinds}, one after another"
        if gpus > 1:
            yield f"{gpus} GPUs".ljust(11) + f"about {as_text(side_by_side(on_gpu, gpus))}"
        whole = as_text(sum(hours.cores for hours in known) / cores)
        yield f"no GPU     about {whole} on this machine's {cores} cores"
        yield (
            "           of training alone: starting, predicting and scoring take as long again in a demo, "
            "little where trainings take hours"
        )
        yield from _sources(config, left, bool(tuned) and not all(tuned.values()))
    for corpus in dict.fromkeys(row.corpus for row in left if row.hours.gpu is None):
        key = f"corpora.{corpus}.pairs: {{train: …}}"
        yield f"?          the size of {corpus} is not known: give its number of pairs as {key}"


def _sources(config: Config, left: list[Row], tuned: bool) -> Iterator[str]:
    """The sources of the hours."""
    if devices := sorted({device for row in left for device in row.hours.measured}):
        yield f"measured   by your own trainings, on {', '.join(devices)}"
    machines = " and ".join(REFERENCE[machine]["name"] for machine in ("gpu", "cpu"))
    guess = f", for fine-tunings by the paper's {REFERENCE['finetuning']['hours']} hours for GLUE" * tuned
    yield (
        f"~          estimated from speeds of {machines} (src/synmask/pipeline/workflow/reference.yaml)"
        f"{guess}; your own trainings take their place"
    )
    named = {row.corpus for row in left if row.published}
    results = [
        result for result in read_published(config.published).results if result.metric == "device_hours"
    ]
    yield from (
        f"published  {result.note.removeprefix('Published ')}"
        for result in results
        if result.corpus in named and result.note
    )


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
