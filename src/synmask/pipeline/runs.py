"""The runs that a target asks for. Directions, tasks, systems and seeds are expanded here and nowhere else.

A target is an experiment, a table, or a group of them. Rules, tables, figures, pages, `plan`, `doctor` and
downloads are filters over the lists of this module.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import chain, product
from typing import Annotated, ClassVar, NotRequired, get_args

from pydantic import AfterValidator, ConfigDict
from typing_extensions import TypedDict

from synmask.pipeline.config.base import SEED_LIMIT, Fault, at, check_known, module_file
from synmask.pipeline.config.benchmarks import BASELINES
from synmask.pipeline.config.checks import check_roberta, check_run
from synmask.pipeline.config.data_files import DataFiles
from synmask.pipeline.config.schema import Config
from synmask.pipeline.config.sections import Experiment, Table
from synmask.pipeline.errors import UserError
from synmask.pipeline.languages import split_direction
from synmask.pipeline.metric_names import Parsing
from synmask.pipeline.paths import PREDICTOR, RUN, TUNED, WEIGHTS, Folder, fill
from synmask.pipeline.tasks import AVERAGE, SUBMISSION

SWEPT = ("valid_bleu_tokenised", "bleu_tokenised", "valid_sacrebleu", "sacrebleu")  # of a sweep's table


@dataclass(frozen=True)
class Training:
    """A training, and all that is made of its model, by the wildcards of its folder.

    Attributes:
        rule: the rule that trains.
        verb: the step that it calls.
        guided: whether the model has a guide.
        pattern: of its folder.
    """

    rule: ClassVar[str]
    verb: ClassVar[str]
    guided: ClassVar[bool] = True
    pattern: ClassVar[Folder]

    @property
    def wildcards(self) -> dict[str, str]:
        return {field.name: str(getattr(self, field.name)) for field in fields(self)}

    @property
    def folder(self) -> str:
        return fill(self.pattern, **self.wildcards)

    def file(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def folders(self, *free: str) -> str:
        """The folders of trainings that take as long, as a pattern: of any seed, and any of `free`."""
        known = {name: value for name, value in self.wildcards.items() if name not in {"seed", *free}}
        return fill(self.pattern, **known)


@dataclass(frozen=True)
class Run(Training):
    """A training for translation."""

    rule = verb = "train"
    pattern = RUN
    corpus: str
    source: str
    target: str
    system: str
    seed: int

    @property
    def direction(self) -> str:
        return f"{self.source}-{self.target}"


@dataclass(frozen=True)
class Predictor(Run):
    """The training of the model that predicts a run's templates."""

    rule = "train_templates"
    guided = False
    pattern = PREDICTOR


@dataclass(frozen=True)
class Tuning(Training):
    """A fine-tuning on a task. Those of all systems take as long."""

    rule = verb = "finetune"
    pattern = TUNED
    benchmark: str
    task: str
    system: str
    seed: int

    @property
    def corpus(self) -> str:
        """The benchmark, where tables and pages have a corpus."""
        return self.benchmark

    @property
    def direction(self) -> str:
        """The task, where pages have a direction."""
        return self.task

    def folders(self, *free: str) -> str:
        return super().folders("system", *free)


@dataclass(frozen=True)
class Pretraining(Training):
    """The training of a RoBERTa's weights."""

    rule = verb = "pretrain"
    pattern = WEIGHTS
    weights: str


@dataclass(frozen=True)
class Continued(Pretraining):
    """The training of weights that start from others."""

    rule, verb = "continue_pretraining", "continue-pretraining"


TRAININGS = {kind.rule: kind for kind in (Predictor, Run, Pretraining, Continued, Tuning)}  # by rule


def training(rule: str, wildcards: Mapping[str, str]) -> Training:
    """The training of a rule's job."""
    kind = TRAININGS[rule]
    return kind(*(field.type(wildcards[field.name]) for field in fields(kind)))


class Column(TypedDict):
    """A column of a table, with its runs: of a direction of a corpus, or of a part of a task.

    Attributes:
        column: the direction, or the column's name in a benchmark's table.
        group: the heading above the columns of one of several corpora.
        runs: system → seeds, in the order of rows.
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


Columns = list[Annotated[Column, AfterValidator(_with_part)]]


# ---- of a target -------------------------------------------------------------------------------------------


def parts(config: Config, target: str) -> tuple[list[str], list[str]]:
    """The experiments and the tables that a target builds.

    These are its own, and the tables whose experiments are all among them.
    """
    entry = config.experiments.get(target)
    names = entry if isinstance(entry, list) else [target]
    experiments = [name for name in names if name in config.experiments]
    listed = [name for name in names if name in config.all_tables]
    covered = [
        name
        for name, table in config.tables.items()
        if table.experiments and {*table.experiments} <= {*experiments}
    ]
    return experiments, list(dict.fromkeys([*listed, *covered]))


def of_target(config: Config, target: str) -> list[Run | Tuning]:
    """Every run that a target shows, once."""
    experiments, tables = parts(config, target)
    runs = [run for name in experiments for run in of_experiment(config, name)]
    runs += [run for name in tables for run in of_columns(columns(config, config.all_tables[name]))]
    return list(dict.fromkeys(runs))


def trainings(config: Config, targets: Iterable[str]) -> list[Training]:
    """Every training that targets need, once: first for translation, each after those it starts from."""
    shown = [run for target in targets for run in of_target(config, target)]
    shown.sort(key=lambda run: isinstance(run, Tuning))
    return list(dict.fromkeys(training for run in shown for training in (*_before(config, run), run)))


def _before(config: Config, run: Run | Tuning) -> Iterator[Training]:
    """The trainings that a run starts from."""
    if isinstance(run, Tuning):
        benchmark = config.benchmarks[run.benchmark]
        yield from _pretraining(config, benchmark.weights_of.get(run.system, benchmark.weights))
    elif config.systems[run.system].templated:
        yield Predictor(run.corpus, run.source, run.target, run.system, run.seed)


def _pretraining(config: Config, weights: str) -> Iterator[Pretraining]:
    """The training of a RoBERTa that is not published, after that of the one it continues."""
    entry = config.weights[weights]
    if entry.continued:
        yield from _pretraining(config, entry.continued.weights)
        yield Continued(weights)
    elif entry.pretrain:
        yield Pretraining(weights)


# ---- of an experiment --------------------------------------------------------------------------------------


def of_experiment(config: Config, name: str) -> list[Run]:
    """The runs of an experiment, by direction, system and seed."""
    entry = config.plain_experiments[name]
    keys = product(entry.directions, entry.systems, entry.seeds or config.seeds)
    return [Run(entry.corpus, *split_direction(direction), system, seed) for direction, system, seed in keys]


def induces(config: Config, run: Run, syntax: str = "distances") -> bool:
    """Whether a run's system induces distances (trees), or "heads", too (P_D)."""
    return syntax in config.systems[run.system].options_class.induces


def is_parsed(config: Config, run: Run) -> bool:
    """Whether a run induces trees that can be compared with gold trees."""
    return induces(config, run) and DataFiles(config).gold_trees(run.corpus, run.source) is not None


# ---- of a table --------------------------------------------------------------------------------------------


def tables(config: Config) -> dict[str, Table]:
    """All tables: one of each experiment with `translation` among its tables, and the entries of `tables`."""
    shown = {n: entry for n, entry in config.plain_experiments.items() if "translation" in entry.tables}
    return {name: own_table(name, entry) for name, entry in shown.items()} | config.all_tables


def own_table(name: str, entry: Experiment) -> Table:
    """An experiment's own table: its systems, with those that only papers report after the first."""
    first, *others = entry.systems
    table = Table(title=entry.title, experiments=(name,), systems=(first, *entry.peers, *others))
    return table.model_copy(update={"metrics": SWEPT}) if entry.sweep else table


def scores_trees(table: Table) -> bool:
    """Whether a table shows the scores of trees, and nothing else."""
    return bool({*table.metrics} & {*get_args(Parsing)})


def columns(config: Config, table: Table) -> list[Column]:
    """The columns of a table, with the runs that it reads."""
    return _of_tasks(config, table) if table.benchmark else _of_experiments(config, table)


def of_columns(shown: Iterable[Column]) -> list[Run | Tuning]:
    """The runs of columns, in their order, once; trivial baselines have none."""
    runs: dict[Run | Tuning, None] = {}
    for column in shown:
        trained = ((system, seed) for system, seeds in column["runs"].items() for seed in seeds)
        for system, seed in trained:
            if "task" not in column:
                runs[Run(column["corpus"], *split_direction(column["column"]), system, seed)] = None
            elif system not in BASELINES:
                runs[Tuning(column["corpus"], column["task"], system, seed)] = None
    return [*runs]


def _of_experiments(config: Config, table: Table) -> list[Column]:
    """A column per corpus and direction, with the runs of all experiments; of trees, those that have some."""
    groups: dict[tuple[str, str], str] = {}
    seeds: dict[tuple[str, str, str], set[int]] = {}
    for name in table.experiments:
        entry = config.plain_experiments[name]
        for direction in entry.directions:
            groups.setdefault((entry.corpus, direction), entry.title)
        for run in of_experiment(config, name):
            if not scores_trees(table) or is_parsed(config, run):
                seeds.setdefault((run.corpus, run.direction, run.system), set()).add(run.seed)
    several = len({corpus for corpus, _ in groups}) > 1
    return [
        {
            "corpus": corpus,
            "column": direction,
            "group": title if several else "",
            "runs": {
                system: sorted(seeds[corpus, direction, system])
                for system in table.systems
                if (corpus, direction, system) in seeds
            },
        }
        for (corpus, direction), title in groups.items()
    ]


def _of_tasks(config: Config, table: Table) -> list[Column]:
    """A column per task (two for MNLI), and their average if the table has all tasks.

    The trivial baselines have one run, with seed 0.
    """
    seeds = tuning_seeds(config, table.benchmark)
    runs = {system: seeds for system in table.systems if system in config.systems}
    runs |= {name: [0] for name in BASELINES}
    shown: list[Column] = [
        {"corpus": table.benchmark, "column": column, "group": "", "task": task, "part": part, "runs": runs}
        for task, entry in config.tasks_of(table).items()
        for part, column in zip(entry.parts, entry.columns, strict=True)
    ]
    if table.tasks is None:
        average = {"corpus": table.benchmark, "column": AVERAGE, "group": "", "task": None, "runs": {}}
        shown.append(average)
    return shown


def tuning_seeds(config: Config, benchmark: str) -> list[int]:
    return list(config.benchmarks[benchmark].seeds or config.seeds)


def of_submission(config: Config, benchmark: str, system: str) -> list[tuple[Tuning, str]]:
    """The runs of a system that answer GLUE's test sets, each with a test set."""
    answers = product(SUBMISSION.values(), tuning_seeds(config, benchmark))
    return [(Tuning(benchmark, task, system, seed), part) for (task, part), seed in answers]


# ---- of a file ---------------------------------------------------------------------------------------------


def check_request(config: Config, wildcards: Mapping[str, str]) -> None:
    """Check the wildcards of a file in results/, which may be of a run that no target has.

    Raises:
        UserError: they name something that is not there, or a run that cannot work.
    """
    given = wildcards.get
    corpus, benchmark = config.corpora.get(given("corpus")), config.benchmarks.get(given("benchmark"))
    experiment = config.plain_experiments.get(given("experiment"))
    task = benchmark and benchmark.tasks.get(given("task"))
    parts = [*task.rows, *task.test_rows] if task else []
    parses = (DataFiles(config).task_parses(given("benchmark"), given("task"), part) for part in parts)
    try:
        if int(given("seed") or 1) >= SEED_LIMIT:
            raise Fault((), f"seed {given('seed')}: must be below {SEED_LIMIT}")
        for noun, known, *names in (
            ("direction", corpus and corpus.possible_directions, "source", "target"),
            ("language pair", corpus and ["-".join(corpus.languages)], "first", "second"),
            ("direction", experiment and experiment.directions, "direction"),
            ("task", benchmark and benchmark.tasks, "task"),
            ("part", parts, "part"),
            ("file of sentences", {*map(os.path.basename, chain(*parses))}, "number"),
        ):
            if known and all(map(given, names)):
                check_known((), noun, known, "-".join(map(given, names)))
        if corpus and given("target") and given("system"):
            check_run(config, (), given("corpus"), f"{given('source')}-{given('target')}", given("system"))
        if benchmark and given("system"):
            check_roberta(config, (), given("system"), given("benchmark"))
        if "." in (metric := given("metric") or ""):
            with at(metric):
                module_file(metric)
    except Fault as fault:
        raise UserError(fault.line) from None
