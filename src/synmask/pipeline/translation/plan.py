"""The needs of a target: trainings, parameters, hours, memory, disk. Nothing is run."""

import shutil
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path

import torch
from fairseq.data import Dictionary

from synmask.pipeline.config.base import sides
from synmask.pipeline.config.loading import read_published
from synmask.pipeline.config.schema import Config, as_json
from synmask.pipeline.config.sections import Resources, RunSettings
from synmask.pipeline.config.table_plan import expected_runs
from synmask.pipeline.config.table_plan import plan as table_plan
from synmask.pipeline.display import aligned
from synmask.pipeline.training.binarise import read_dictionary
from synmask.pipeline.translation.task import model_class, transformer_config
from synmask.pipeline.workflow.hours import REFERENCE, Clock, Hours, total, used_parameters

BYTES = 4  # per parameter
TRAINED = 4  # values per parameter in training: itself, its gradient, Adam's two moments
RESUME = 3  # of them in a checkpoint to resume from: all but the gradient
RESUMED = 3 * RESUME  # of last.pt, previous.pt and one that is being written: docs/reliability.md
PARSED_A_SECOND = 11  # English sentences, per thread with its own core (docs/parsing.md)
# Models of `checkpoint: best`: a new best one, and those of last.pt and previous.pt until it is saved.
BEST = 3


@dataclass(frozen=True)
class Row:
    """Trainings that differ in their seed, or fine-tunings of a task."""

    name: str  # the folder of their runs in results/
    count: int
    done: int
    hours: Hours  # of one training
    parameters: int = 0  # 0: not counted
    estimated: bool = False  # the vocabulary's size is not known yet
    kept: int = 0  # bytes of one training after its end
    working: int = 0  # additional bytes while it runs
    requested: int = 0  # MB of memory that one training asks for

    @property
    def left(self) -> int:
        return self.count - self.done


def plan(config: Config, targets: Iterable[str], results: Path = Path("results")) -> list[Row]:
    """A row for each corpus, direction and system that `targets` (experiments, tables, groups of them) train.

    A system that reads templates has two rows, the first for the model that predicts them. Then come the
    RoBERTas that are pre-trained, and a row of fine-tunings for each task. Parameters are counted on a model
    without weights. Before a corpus is prepared, each vocabulary is assumed to have as many sub-words as
    there are merge operations, which is an upper bound. Hours are those of `synmask.pipeline.workflow.hours`.
    """
    targets, clock = list(targets), Clock(config, results)
    seeds: dict[tuple[str, str, str], set[int]] = {}
    for *key, seed in _trainings(config, targets):
        seeds.setdefault(tuple(key), set()).add(seed)
    rows = [
        _row(clock, *key, numbers, part)
        for key, numbers in seeds.items()
        for part in (("template", "") if config.systems[key[2]].kind.templates else ("",))
    ]
    rows += [_pretraining_row(clock, name) for name in pretrained(config, targets)]
    tuned: dict[tuple[str, str], set[str]] = {}
    for benchmark, task, run in finetunings(config, targets):
        tuned.setdefault((benchmark, task), set()).add(run)
    for (benchmark, task), runs in tuned.items():
        done = sum((results / benchmark / task / run / "train.json").exists() for run in runs)
        rows.append(Row(f"{benchmark}/{task}", len(runs), done, clock.finetuning(benchmark, task)))
    return rows


def _trainings(config: Config, targets: Iterable[str]) -> Iterator[tuple[str, str, str, int]]:
    """Corpus, direction, system and seed of each training of the experiments and tables of `targets`."""
    published = read_published(config.published)
    for target in targets:
        for name in config.own_experiments(target):
            entry, numbers = config.plain_experiments[name], config.experiment_seeds(name)
            yield from product([entry.corpus], entry.directions, entry.systems, numbers)
        for name in config.tables_of(target):
            if config.all_tables[name].experiments:
                for run in expected_runs(table_plan(config, published, name)):
                    yield run["corpus"], run["direction"], run["system"], run["seed"]


def trained(config: Config, targets: Sequence[str]) -> list[tuple[str, str]]:
    """Section and name of the entries that say what the trainings for `targets` request."""
    names = [("corpora", run[0]) for run in _trainings(config, targets)]
    names += [("benchmarks", run[0]) for run in finetunings(config, targets)]
    names += [("weights", name) for name in pretrained(config, targets)]
    return list(dict.fromkeys(names))


def finetunings(config: Config, targets: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Benchmark, task and SYSTEM/seedN of the fine-tunings that the benchmark tables of `targets` need."""
    for table in config.benchmark_tables(*targets):
        systems = [system for system in table.systems if system in config.systems]
        for task, system, seed in product(
            config.tasks_of(table), systems, config.benchmark_seeds(table.benchmark)
        ):
            yield table.benchmark, task, f"{system}/seed{seed}"


def pretrained(config: Config, targets: Iterable[str]) -> list[str]:
    """The RoBERTas that are pre-trained for `targets`; those that others continue come first."""
    wanted = []
    for table in config.benchmark_tables(*targets):
        entry = config.benchmarks[table.benchmark]
        wanted += [entry.weights_of.get(system, entry.weights) for system in table.systems]
    entries = [config.weights[name] for name in wanted]
    wanted += [entry.continued.weights for entry in entries if entry.continued]
    made = [name for name in wanted[::-1] if config.weights[name].pretrain or config.weights[name].continued]
    return list(dict.fromkeys(made))


def parsing_lines(config: Config, targets: Iterable[str]) -> Iterator[str]:
    """The hours of CoreNLP for each task whose parses the systems of `targets`, or their weights, read."""
    continued = [config.weights[name].continued for name in pretrained(config, targets)]
    read = {prefix for one in continued if one for part in one.parses.values() for prefix in part}
    tasks = {
        (table.benchmark, task): None
        for table in config.benchmark_tables(*targets)
        if config.reads_words(table)
        for task in config.tasks_of(table)
    } | {
        (benchmark, task): None
        for benchmark, entry in config.benchmarks.items()
        for task in entry.tasks
        if read and not read.isdisjoint(_parses(config, benchmark, task))
    }
    for benchmark, task in tasks:
        if config.benchmarks[benchmark].generate is not None:
            continue
        threads, starts = config.corenlp.threads, ("", "dev-")
        count = sum(config.task_sentences(benchmark, task, start) for start in starts)
        files = len(_parses(config, benchmark, task))
        hours = f"{count / (PARSED_A_SECOND * threads) / 3600:.2f} hours with {threads} threads"
        yield f"parsing    {benchmark}/{task}: at most {count:,} sentences in {files} files: {hours}"


def _parses(config: Config, benchmark: str, task: str) -> list[str]:
    """The files of a task's parses: of its training set, and of all others together."""
    if "train" not in (entry := config.benchmarks[benchmark].tasks[task]).rows:
        return []
    return [
        prefix for part in ("train", entry.parts[0]) for prefix in config.task_parses(benchmark, task, part)
    ]


def _row(clock: Clock, corpus: str, direction: str, system: str, seeds: set[int], part: str) -> Row:
    config, results = clock.config, clock.results
    entry, folder = config.corpora[corpus], results / corpus / direction / system
    source, target = (f"dict.{language}.txt" for language in sides(direction))
    text, templates = folder.parent / "bin", folder / "templates/bin"
    if part:
        settings, dictionaries = config.template_settings, [templates / source, templates / target]
    else:
        settings, dictionaries = config.run_settings, [text / source, text / target]
        dictionaries += [templates / target] * config.systems[system].kind.templates
    sizes = [len(read_dictionary(path)) if path.exists() else None for path in dictionaries]
    parameters = count_parameters(
        settings(corpus, direction, system), *(size or entry.bpe.merges for size in sizes)
    )
    training = config.training_of(corpus, system)
    return Row(
        f"{corpus}/{direction}/{system}/{part}".rstrip("/"),
        len(seeds),
        sum((folder / f"seed{seed}" / part / "train.json").exists() for seed in seeds),
        clock.training(corpus, direction, system, part),
        parameters,
        estimated=None in sizes,
        **_bytes(parameters, training.average if training.checkpoint == "average" else BEST, entry.resources),
    )


def _pretraining_row(clock: Clock, name: str) -> Row:
    entry, run = clock.config.weights[name], f"weights/{name}"
    done = (clock.results / run / "train.json").exists()
    pretrain = entry.pretrain  # the sizes of others are in their files
    parameters = used_parameters(pretrain.model, pretrain.merges) if pretrain else 0
    sizes = _bytes(parameters, 1, pretrain.resources) if pretrain else {}
    return Row(run, 1, int(done), clock.pretraining(name), parameters, estimated=True, **sizes)


def _bytes(parameters: int, models: int, resources: Resources) -> dict[str, int]:
    """Bytes of disk that one training takes, with the models of so many epochs; MB of memory it asks for."""
    model = parameters * BYTES
    checkpoints, keep = model * (models + 2 * RESUME), resources.keep_checkpoints  # last.pt and previous.pt
    return {
        "kept": model + (checkpoints if keep else model),  # without, a second copy of the average
        "working": model * RESUME + checkpoints * (not keep),  # a third one exists while it is written
        "requested": resources.mem_mb,
    }


def count_parameters(settings: RunSettings, *sizes: int) -> int:
    """The parameters of a run's model with vocabularies of these sizes.

    The vocabularies are source, target and, for a system that reads templates, templates.
    """
    return _counted(as_json(settings), *sizes)


@lru_cache  # it takes 0.4 s; so by JSON, as settings cannot be hashed
def _counted(json: str, *sizes: int) -> int:
    settings = RunSettings.model_validate_json(json)
    names = ("source_dictionary", "target_dictionary", "template_dictionary")
    symbols = (map(str, range(size - Dictionary().nspecial)) for size in sizes)
    words = {name: Dictionary(extra_special_symbols=each) for name, each in zip(names, symbols, strict=False)}
    with torch.device("meta"):
        model = model_class(settings.system.guide).build(
            transformer_config(settings), Namespace(**words), settings.system
        )
    return sum(parameter.numel() for parameter in model.parameters())


HEAD = ("runs", "trainings", "done", "parameters", "GPU hours", "core hours", "disk", "working")


def lines(rows: list[Row], gpus: int = 1, results: Path = Path("results")) -> Iterator[str]:
    """The plan as text: a table, the hours of all trainings to come, and warnings of memory and disk."""
    yield aligned(HEAD, [*map(_cells, rows)]) + "\n"
    yield f"trainings  {sum(row.count for row in rows)}, {sum(row.done for row in rows)} of them done"
    each = [row.hours for row in rows for _ in range(row.left)]
    for number in sorted({1, gpus}):
        if words := total(each, number):
            yield f"hours      {words}"
    if each:
        machines = " and ".join(REFERENCE[machine]["name"] for machine in ("gpu", "cpu"))
        yield f"~          estimated for {machines}, until trainings of your own have run"
    unknown = [row.name for row in rows if row.left and row.hours.gpu is None]
    if unknown:
        yield f"?          the size of the text is not known, so that {', '.join(unknown)} have no hours"
    fits, words = disk(rows, results)
    yield f"disk       {words}; each direction of a corpus takes six times its text"
    if not fits:
        yield f"WARNING    {results}: not enough space"
    for row in rows:
        if (needed := BYTES * TRAINED * row.parameters) > row.requested * 1e6:
            takes = f"{_size(needed)} of memory at least; it asks for {row.requested:,} MB"
            yield f"WARNING    {row.name} takes {takes}"


def disk(rows: Iterable[Row], results: Path = Path("results")) -> tuple[bool, str]:
    """Whether the models still to come fit onto the disk, one training at a time; in words."""
    left = [row for row in rows if row.left]
    needed = sum(row.kept * row.left for row in left) + max((row.working for row in left), default=0)
    free = shutil.disk_usage(next(p for p in (results, *results.resolve().parents) if p.exists())).free
    return free >= needed, f"{_size(needed)} are needed for models still to come, {_size(free)} are free"


def _cells(row: Row) -> tuple[str, ...]:
    gpus = any(device != "CPU" for device in row.hours.measured)
    return (
        row.name,
        str(row.count),
        str(row.done),
        f"{'~' * row.estimated}{row.parameters / 1e6:.2f} M" if row.parameters else "",
        _hours(row.hours.gpu, measured=gpus),
        _hours(row.hours.cores, measured="CPU" in row.hours.measured),
        _size(row.kept) if row.kept else "",
        _size(row.working) if row.working else "",
    )


def _hours(hours: float | None, *, measured: bool) -> str:
    return "?" if hours is None else f"{'~' * (not measured)}{hours:,.{2 if hours < 100 else 0}f}"


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
