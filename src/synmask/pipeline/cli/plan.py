"""`synmask plan`: the needs of a target: trainings, parameters, hours, memory, disk. Nothing is run."""

import os
import random
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated

from pydantic import Field
from rich.filesize import decimal

from synmask.pipeline.arguments import Whole
from synmask.pipeline.cli.settings import load_targets
from synmask.pipeline.config.base import EXTERNAL
from synmask.pipeline.config.data_files import DataFiles
from synmask.pipeline.config.schema import Config
from synmask.pipeline.config.sections import Text
from synmask.pipeline.display import text_table
from synmask.pipeline.files import read_pairs
from synmask.pipeline.languages import characters_per_word
from synmask.pipeline.paths import below_results
from synmask.pipeline.runs import Run, Training, trainings
from synmask.pipeline.text.clean import advice_to_keep, clean, describe_dropped
from synmask.pipeline.text.tokenise import tokenise
from synmask.pipeline.workflow import half_done
from synmask.pipeline.workflow.hours import REFERENCE, Estimator, Hours, total
from synmask.pipeline.workflow.jobs import Jobs
from synmask.pipeline.workflow.targets import Targets

BYTES = 4  # per parameter
TRAINED_VALUES = 4  # values per parameter in training: itself, its gradient, Adam's two moments
RESUMED_VALUES = 3  # of them in a checkpoint to resume from: all but the gradient
# Models of `checkpoint: best`: a new best one, and those of last.pt and previous.pt until it is saved.
BEST_CHECKPOINTS = 3
SAMPLED_PAIRS = 2000  # training pairs, to estimate how many are dropped
PARSED_PER_SECOND = 11  # English sentences, per thread with its own core (benchmarks/README.md)


def plan(
    *target: str,
    configfile: tuple[Path, ...] = (),
    gpus: Annotated[Whole, Field(ge=1, le=100000)] = 1,
) -> None:
    """Estimate what a target needs before it runs: trainings, parameters, hours, memory and disk.

    Parameters, hours and disk are those of one training. Parameters are estimated with as many sub-words as
    there are merge operations, without a guide of yours or of a fine-tuning. `snakemake -n` says the same
    hours.

    For example: `synmask plan demo --gpus 4`, `synmask plan mine --configfile mine.yaml`

    Args:
        target: Experiments and tables of the configuration; default: its targets.
        configfile: Your own files; each overrides config.yaml and the files before it. Words after them
            without a dot are targets.
        gpus: Also give the hours on this many GPUs.
    """
    target = (*target, *(str(path) for path in configfile if not path.suffix))
    config, targets = load_targets(target, [path for path in configfile if path.suffix])
    rows = plan_lines(rows_of(config, targets), gpus)
    for line in chain(rows, parsing_lines(config, targets), text_lines(config, targets)):
        print(line)
    jobs, needed = Jobs(config), trainings(config, targets)
    if message := jobs.uneven_gpus(needed):
        print(f"WARNING    {message}")
    if message := half_done.line(jobs, needed):
        print(f"half done  {message}")


@dataclass(frozen=True)
class PlanRow:
    """Trainings that differ in their seed, or fine-tunings of a task."""

    name: str  # the folder of their runs in results/
    count: int
    left: int  # still to be run
    hours: Hours  # of one training
    parameters: int
    kept: int  # bytes of one training after its end
    working: int  # bytes while it runs
    requested: int  # MB of memory that one training asks for


def rows_of(config: Config, targets: Iterable[str], results: Path = Path("results")) -> list[PlanRow]:
    """The rows of all `trainings` of the targets."""
    estimator, by_folder = Estimator(config, results), {}
    for training in trainings(config, targets):
        by_folder.setdefault(training.folders(), []).append(training)
    return [_plan_row(config, estimator, seeds) for seeds in by_folder.values()]


def _plan_row(config: Config, estimator: Estimator, seeds: list[Training]) -> PlanRow:
    first, work = seeds[0], estimator.workload(seeds[0])
    resources, models = config.resources_of(first.wildcards), BEST_CHECKPOINTS
    if isinstance(first, Run):
        models = max(config.training_of(first.corpus, first.system).kept, BEST_CHECKPOINTS)
    size = work.parameters * BYTES
    checkpoints = size * (models + 2 * RESUMED_VALUES)  # last.pt and previous.pt
    return PlanRow(
        name=below_results(first.folders()).replace("/seed{seed}", "").removesuffix("/{system}"),
        count=len(seeds),
        left=sum(
            not (estimator.results / below_results(seed.folder) / "train.json").exists() for seed in seeds
        ),
        hours=estimator.hours(first),
        parameters=work.parameters,
        kept=size + (checkpoints if resources.keep_checkpoints else 0),  # else a hard link to the model
        working=checkpoints + size * RESUMED_VALUES,  # a third one exists while it is written
        requested=resources.mem_mb,
    )


def parsing_lines(config: Config, targets: Iterable[str]) -> Iterator[str]:
    """The hours of CoreNLP for each task of a benchmark that it parses."""
    needs, threads = Targets(config), config.corenlp.threads
    for benchmark, task in dict.fromkeys(chain(*map(needs.parsed_tasks, targets))):
        count = sum(DataFiles(config).task_sentences(benchmark, task, start) for start in ("", "dev-"))
        hours = f"{count / (PARSED_PER_SECOND * threads) / 3600:.2f} hours with {threads} threads"
        yield f"parsing    {benchmark}/{task}: at most {count:,} sentences, {hours}"


def text_lines(config: Config, targets: Iterable[str]) -> Iterator[str]:
    """Warnings of texts whose limits of length will drop a tenth or more of the training pairs.

    A sample of the raw files that are there is tokenised, unless that takes another program.
    """
    data = DataFiles(config)
    runs = (run for run in trainings(config, targets) if isinstance(run, Run))
    for corpus, source, target in dict.fromkeys((run.corpus, run.source, run.target) for run in runs):
        text, languages = config.corpora[corpus].text, (source, target)
        tokenisers = [*map(text.tokeniser_of, languages)]
        files = [data.raw_files(corpus, "train", language) for language in languages]
        if {*tokenisers} & {*EXTERNAL} or not all(map(os.path.exists, chain(*files))):
            continue
        outcomes = count_outcomes(
            reservoir_sample(chain.from_iterable(map(read_pairs, *files)), SAMPLED_PAIRS), languages, text
        )
        if words := describe_dropped(outcomes):
            advice = advice_to_keep(corpus, outcomes)
            yield f"WARNING    {corpus}/{source}-{target}: in a sample {words}; {advice}"


def count_outcomes(pairs: Iterable[tuple[str, str]], languages: Sequence[str], text: Text) -> Counter[str]:
    """Raw pairs, counted by their outcome in `clean`; no tokeniser may be an external program."""
    tokens = (
        tokenise(lines, language, tokeniser=text.tokeniser_of(language))
        for lines, language in zip(zip(*pairs, strict=True), languages, strict=True)
    )
    outcomes: Counter[str] = Counter()
    per_word = [*map(characters_per_word, languages, map(text.tokeniser_of, languages))]
    for _ in clean(zip(*tokens, strict=True), text, outcomes, per_word):
        pass
    return outcomes


def reservoir_sample(pairs: Iterable[tuple[str, str]], size: int) -> list[tuple[str, str]]:
    """Up to `size` of the pairs, each with the same probability."""
    draw, chosen = random.Random(1), []
    for number, pair in enumerate(pairs):
        if number < size:
            chosen.append(pair)
        elif (place := draw.randrange(number + 1)) < size:
            chosen[place] = pair
    return chosen


PLAN_COLUMNS = ("runs", "trainings", "done", "parameters", "GPU hours", "core hours", "disk")


def plan_lines(rows: list[PlanRow], gpus: int = 1, results: Path = Path("results")) -> Iterator[str]:
    """The plan as text: a table, the hours of all trainings to come, and warnings of memory and disk."""
    yield text_table(PLAN_COLUMNS, [*map(_row_cells, rows)]) + "\n"
    count, left = sum(row.count for row in rows), sum(row.left for row in rows)
    yield f"trainings  {count}, {count - left} of them done"
    hours = [row.hours for row in rows for _ in range(row.left)]
    for number in sorted({1, gpus}):
        if words := total(hours, number):
            yield f"hours      {words}"
    machines = " and ".join(REFERENCE[machine]["name"] for machine in ("gpu", "cpu"))
    yield f"           measured where such trainings have run here, else estimated for {machines}"
    if unknown := [row.name for row in rows if row.left and row.hours.gpu is None]:
        yield f"?          the size of the text is not known, so that {', '.join(unknown)} have no hours"
    words, fault = disk_space(rows, results)
    yield f"disk       {words}; each direction of a corpus takes six times its text"
    if fault:
        yield f"WARNING    {fault}"
    for row in rows:
        if (needed := BYTES * TRAINED_VALUES * row.parameters) > row.requested * 1e6:
            takes = f"{decimal(needed)} of memory at least; it asks for {row.requested:,} MB"
            yield f"WARNING    {row.name} takes {takes}"


def disk_space(rows: Iterable[PlanRow], results: Path = Path("results")) -> tuple[str, str]:
    """The space for models still to come, one training at a time; the fault if there is not enough, or ""."""
    left = [row for row in rows if row.left]
    needed = sum(row.kept * row.left for row in left) + max((row.working for row in left), default=0)
    free = shutil.disk_usage(next(p for p in (results, *results.resolve().parents) if p.exists())).free
    words = f"{decimal(needed)} are needed for models still to come, {decimal(free)} are free"
    return words, f"{results}: not enough space" if needed > free else ""


def _row_cells(row: PlanRow) -> tuple[str, ...]:
    hours = ("?" if hours is None else f"{hours:,.2f}" for hours in row.hours)
    parameters = f"{row.parameters / 1e6:.1f} M"
    return row.name, str(row.count), str(row.count - row.left), parameters, *hours, decimal(row.kept)
