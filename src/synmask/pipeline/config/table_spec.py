"""The spec of a table: its rows, its columns, and the runs that fill them."""

from collections.abc import Iterator
from typing import Annotated, Any, NotRequired, get_args

from pydantic import AfterValidator, ConfigDict, Field
from typing_extensions import TypedDict

from synmask.pipeline.config.base import Cost, Metric, Parsing, Translation, Validation, sides
from synmask.pipeline.config.published import Published
from synmask.pipeline.config.schema import Config
from synmask.pipeline.config.sections import Experiment, Table
from synmask.pipeline.paths import TASK, filled

SWEPT = ("valid_bleu_tokenised", "bleu_tokenised", "valid_sacrebleu", "sacrebleu")  # of a sweep's table
BASELINES = {"majority": "Majority", "bag-of-words": "Bag of words"}
BASELINE_NOTES = (
    "Majority: always the training set's most frequent label (of a regression its mean). Bag of words: a "
    "linear model of the words without their order.",
    "The best epoch is chosen on the set that is scored, as the papers do; the baselines choose nothing.",
)
AVERAGE = "average"
TESTED = ("sacrebleu", "bleu_tokenised", "glue")  # metrics tested against the baseline, by counts

ExpectedRun = dict[str, Any]


class Column(TypedDict):
    """A column of a table: a direction of a corpus, or a part of a task.

    Attributes:
        column: the direction, or the column's name in a benchmark's table.
        group: the heading above the columns of one of several corpora.
        runs: system → seeds.
        task, part: of a benchmark; None for the average of its tasks.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    corpus: str
    column: str
    group: str
    runs: dict[str, list[int]]
    task: NotRequired[str | None]
    part: NotRequired[str]


def _with_part(column: Column) -> Column:
    if column.get("task") and "part" not in column:
        raise ValueError("a task needs its part")
    return column


class TableSpec(TypedDict):
    """All that a table depends on besides the runs themselves.

    Attributes:
        sweep: whether the validation set chooses among the rows.
        baseline: the system that significance is tested against (the first one), if it is run.
        rows: name and label of each system.
        files: the files read from each run.
        notes: why a column has no runs.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    title: str
    metrics: Annotated[list[Metric], Field(min_length=1)]
    sweep: bool
    baseline: str | None
    rows: Annotated[list[tuple[str, str]], Field(min_length=1)]
    columns: Annotated[list[Annotated[Column, AfterValidator(_with_part)]], Field(min_length=1)]
    files: list[str]
    notes: list[str]


def table_names(config: Config) -> list[str]:
    """All tables: one per experiment with `translation` among its tables, and the entries of `tables`."""
    shown = [n for n, experiment in config.plain_experiments.items() if "translation" in experiment.tables]
    return [*shown, *config.all_tables]


def table_spec(config: Config, published: Published, name: str) -> TableSpec:
    table = config.all_tables.get(name) or _own_table(config.plain_experiments[name], name)
    rows = [[system, label_of(config, published, system)] for system in table.systems]
    if table.benchmark:
        columns, notes = _task_columns(config, table), list(BASELINE_NOTES)
        rows += [[name, label] for name, label in BASELINES.items()]
    else:
        columns, notes = _columns(config, table)
    first = table.systems[0]
    metrics = set(table.metrics)
    files = {
        "scores.json": metrics & {*get_args(Translation), *get_args(Validation), *get_args(Cost)},
        "parse.json": metrics & {*get_args(Parsing)},
        "sentences.csv": metrics & {*TESTED} & {*get_args(Translation)},
    }
    return {
        "title": table.title,
        "metrics": list(table.metrics),
        "sweep": name in config.plain_experiments and config.plain_experiments[name].sweep is not None,
        "baseline": first if any(first in column["runs"] for column in columns) else None,
        "rows": rows,
        "columns": columns,
        "files": [file for file, wanted in files.items() if wanted],
        "notes": notes,
    }


def _cells(spec: TableSpec) -> Iterator[tuple[Column, str, int]]:
    """Column, system and seed of every run that a table asks for, in its order."""
    for column in spec["columns"]:
        for system, _ in spec["rows"]:
            for seed in column["runs"].get(system, ()):
                yield column, system, seed


def expected_runs(spec: TableSpec) -> list[ExpectedRun]:
    """Every run that a table asks for, in its order: corpus, direction (or column), system and seed."""
    return [
        {"corpus": column["corpus"], "direction": column["column"], "system": system, "seed": seed}
        for column, system, seed in _cells(spec)
    ]


def task_files(spec: TableSpec) -> list[str]:
    """Paths that a benchmark's table reads: scores and answers of each run, scores of the baselines."""
    paths = []
    for column, system, seed in _cells(spec):
        run = [f"{system}/seed{seed}/{name}" for name in ("scores.json", "examples.csv")]
        names = ["baselines.json"] if system in BASELINES else run
        paths += [filled(f"{TASK}/{name}", benchmark=column["corpus"], task=column["task"]) for name in names]
    return list(dict.fromkeys(paths))


def _own_table(entry: Experiment, name: str) -> Table:
    """An experiment's own table: its systems, with those that only papers report after the first."""
    first, *others = entry.systems
    table = Table(title=entry.title, experiments=(name,), systems=(first, *entry.peers, *others))
    return table.model_copy(update={"metrics": SWEPT}) if entry.sweep else table


def _task_columns(config: Config, table: Table) -> list[dict[str, Any]]:
    """A column per task (two for MNLI), and their average if the table has all tasks.

    The trivial baselines have one run, with seed 0.
    """
    seeds = list(config.benchmark_seeds(table.benchmark))
    runs = {system: seeds for system in table.systems if system in config.systems}
    runs |= {name: [0] for name in BASELINES}
    columns = [
        {"corpus": table.benchmark, "column": column, "group": "", "task": task, "part": part, "runs": runs}
        for task, entry in config.tasks_of(table).items()
        for part, column in zip(entry.parts, entry.columns, strict=True)
    ]
    if table.tasks is None:
        average = {"corpus": table.benchmark, "column": AVERAGE, "group": "", "task": None, "runs": {}}
        columns.append(average)
    return columns


def _columns(config: Config, table: Table) -> tuple[list[dict[str, Any]], list[str]]:
    """A column per corpus and direction, with the runs of all experiments there."""
    parsing = bool(set(table.metrics) & set(get_args(Parsing)))
    columns: dict[tuple[str, str], dict[str, Any]] = {}
    notes = []

    for name in table.experiments:
        entry = config.plain_experiments[name]
        for direction in entry.directions:
            column = columns.setdefault(
                (entry.corpus, direction),
                {"corpus": entry.corpus, "column": direction, "group": entry.title, "runs": {}},
            )
            if parsing and config.gold_trees(entry.corpus, "valid", sides(direction)[0]) is None:
                notes.append(f"No runs here: corpora.{entry.corpus} has no `trees` to compare with.")
                continue
            for system in config.inducing(entry.systems) if parsing else entry.systems:
                if system in table.systems:
                    seeds = {*column["runs"].get(system, ()), *config.experiment_seeds(name)}
                    column["runs"][system] = sorted(seeds)
    if len({corpus for corpus, _ in columns}) == 1:
        for column in columns.values():
            column["group"] = ""
    return list(columns.values()), list(dict.fromkeys(notes))


def label_of(config: Config, published: Published, system: str) -> str:
    """The label of a system that runs, or that only papers report."""
    return config.label(system) if system in config.systems else published.systems[system].label
