"""`synmask plan`: the needs of a target: trainings, parameters, hours, memory, disk. Nothing is run."""

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from synmask.pipeline.arguments import Whole
from synmask.pipeline.cli.settings import configured
from synmask.pipeline.config.schema import Config
from synmask.pipeline.display import aligned
from synmask.pipeline.paths import PAIR, TASK, WEIGHTS, below_results, filled
from synmask.pipeline.training.binarise import read_dictionary
from synmask.pipeline.translation.parameters import count_parameters
from synmask.pipeline.workflow import half_done
from synmask.pipeline.workflow.hours import REFERENCE, Clock, Hours, total, used_parameters
from synmask.pipeline.workflow.jobs import Jobs, Values
from synmask.pipeline.workflow.trainings import Training, parsed_tasks, trainings

ROWS = {  # rules that train → the folder of the trainings in a row
    "train_templates": PAIR / "{system}/template",
    "train": PAIR / "{system}",
    "pretrain": WEIGHTS,
    "continue_pretraining": WEIGHTS,
    "finetune": TASK,
}
BYTES = 4  # per parameter
TRAINED = 4  # values per parameter in training: itself, its gradient, Adam's two moments
RESUME = 3  # of them in a checkpoint to resume from: all but the gradient
PARSED_A_SECOND = 11  # English sentences, per thread with its own core (docs/parsing.md)
# Models of `checkpoint: best`: a new best one, and those of last.pt and previous.pt until it is saved.
BEST = 3


def plan(
    *target: str,
    configfile: tuple[Path, ...] = (),
    gpus: Annotated[Whole, Field(ge=1, le=100000)] = 1,
) -> None:
    """Estimate what a target needs before it runs: trainings, parameters, hours, memory and disk.

    `~` marks estimates: of parameters, before the vocabulary exists; of hours, from the speed of named
    machines, before trainings of your own have run. `snakemake -n` gives the same hours.

    For example: `synmask plan demo --gpus 4`, `synmask plan mine --configfile mine.yaml`

    Args:
        target: Experiments and tables of the configuration; default: its targets.
        configfile: Your own files; each overrides config.yaml and the files before it. Words after them
            without a dot are targets.
        gpus: Also give the hours on this many GPUs.
    """
    target = (*target, *(str(path) for path in configfile if not path.suffix))
    config, targets, _ = configured(target, [path for path in configfile if path.suffix])
    for line in [*lines(rows_of(config, targets), gpus), *parsing_lines(config, targets)]:
        print(line)
    if message := half_done_trainings(config, targets):
        print(f"half done  {message}")


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


def rows_of(config: Config, targets: Iterable[str], results: Path = Path("results")) -> list[Row]:
    """The rows of all `trainings` of the targets.

    Parameters are counted on a model without weights. Before a corpus is prepared, each vocabulary is assumed
    to have as many sub-words as there are merge operations, which is an upper bound. Those of a RoBERTa are
    `used_parameters`, if its sizes are in the configuration.
    """
    clock, jobs = Clock(config, results), {}
    for job in trainings(config, targets):
        jobs.setdefault(filled(ROWS[job.rule], **job.wildcards), []).append(job)
    found = []
    for folder, alike in jobs.items():
        done = sum((results / below_results(job.folder) / "train.json").exists() for job in alike)
        sizes = _sizes(config, alike[0], results)
        found.append(Row(below_results(folder), len(alike), done, clock.hours(alike[0]), **sizes))
    return found


def _sizes(config: Config, training: Training, results: Path) -> dict[str, Any]:
    """Parameters, bytes and MB of one training; {} where files that may be missing give a model's sizes."""
    models, names = 1, training.wildcards
    resources = config.resources_of(*Jobs.entry(names))
    if training.rule == "pretrain":
        entry = config.weights[names["weights"]].pretrain
        parameters, estimated = used_parameters(entry.model, entry.merges), True
    elif "corpus" in names:
        parameters, estimated = _parameters(config, training, results)
        settings = config.training_of(names["corpus"], names["system"])
        models = settings.average if settings.checkpoint == "average" else BEST
    else:
        return {}
    model = parameters * BYTES
    checkpoints, keep = model * (models + 2 * RESUME), resources.keep_checkpoints  # last.pt and previous.pt
    return {
        "parameters": parameters,
        "estimated": estimated,
        "kept": model + (checkpoints if keep else model),  # without, a second copy of the average
        "working": model * RESUME + checkpoints * (not keep),  # a third one exists while it is written
        "requested": resources.mem_mb,
    }


def _parameters(config: Config, training: Training, results: Path) -> tuple[int, bool]:
    """The parameters of a translation model, and whether they are estimated."""
    names = training.wildcards
    source, target = (f"dict.{names[side]}.txt" for side in ("source", "target"))
    text = results / names["corpus"] / training.direction / "bin"
    templates = text.parent / names["system"] / "templates/bin"
    if training.rule == "train_templates":
        settings, dictionaries = config.template_settings, [templates / source, templates / target]
    else:
        settings, dictionaries = config.run_settings, [text / source, text / target]
        dictionaries += [templates / target] * config.systems[names["system"]].kind.templates
    sizes = [len(read_dictionary(path)) if path.exists() else None for path in dictionaries]
    merges = config.corpora[names["corpus"]].bpe.merges
    run = settings(names["corpus"], training.direction, names["system"])
    return count_parameters(run, *(size or merges for size in sizes)), None in sizes


def parsing_lines(config: Config, targets: Iterable[str]) -> Iterator[str]:
    """The hours of CoreNLP for each of the `parsed_tasks`: its training set, and all other parts together."""
    threads = config.corenlp.threads
    for benchmark, task in parsed_tasks(config, targets):
        count = sum(config.task_sentences(benchmark, task, start) for start in ("", "dev-"))
        parts = ("train", config.benchmarks[benchmark].tasks[task].parts[0])
        files = sum(len(config.task_parses(benchmark, task, part)) for part in parts)
        hours = f"{count / (PARSED_A_SECOND * threads) / 3600:.2f} hours with {threads} threads"
        yield f"parsing    {benchmark}/{task}: at most {count:,} sentences in {files} files: {hours}"


def half_done_trainings(config: Config, targets: Iterable[str], results: Path = Path("results")) -> str:
    """Trainings of the targets that other code has half done, in one line."""
    jobs = Jobs(config)
    begun = (
        (results / below_results(job.folder), partial(jobs.stamp, Values(job.wildcards), job.rule))
        for job in trainings(config, targets)
    )
    return half_done.line(begun, config.any_code)


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
    unknown = sum(row.left for row in left if not row.kept)
    but = f" (without {unknown:,} of unknown size)" if unknown else ""
    return free >= needed, f"{_size(needed)} are needed for models still to come{but}, {_size(free)} are free"


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.name,
        str(row.count),
        str(row.done),
        f"{'~' * row.estimated}{row.parameters / 1e6:.2f} M" if row.parameters else "",
        _hours(row.hours.gpu, measured="gpu" in row.hours.measured),
        _hours(row.hours.cpu, measured="cpu" in row.hours.measured),
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
