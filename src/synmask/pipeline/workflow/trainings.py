"""The trainings that targets need, each as a job of the workflow: its rule and wildcards."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from synmask.pipeline.config.base import sides
from synmask.pipeline.config.loading import read_published
from synmask.pipeline.config.schema import Config
from synmask.pipeline.config.table_spec import expected_runs, table_spec
from synmask.pipeline.paths import PREDICTOR, RUN, TUNED, WEIGHTS, filled

# Rules that train → the folder of a run.
TRAININGS = {
    "train_templates": PREDICTOR,
    "train": RUN,
    "pretrain": WEIGHTS,
    "continue_pretraining": WEIGHTS,
    "finetune": TUNED,
}


@dataclass(frozen=True)
class Training:
    """A job of one of the rules in `TRAININGS`, by the values of its wildcards."""

    rule: str
    wildcards: Mapping[str, str]

    @property
    def folder(self) -> str:
        return filled(TRAININGS[self.rule], **self.wildcards)

    def folders(self, *free: str) -> str:
        """The folders of trainings that take as long, as a pattern.

        They have any seed, fine-tunings any system; `free`: other wildcards that may differ, too.
        """
        free = (*free, "seed", *(["system"] if self.rule == "finetune" else []))
        known = {name: value for name, value in self.wildcards.items() if name not in free}
        return filled(TRAININGS[self.rule], **known)


def trainings(config: Config, targets: Iterable[str]) -> list[Training]:
    """Every training that `targets` (experiments, tables, groups of them) need, once.

    Those for translation come first, then fine-tunings, each after the pre-training of its weights.
    """
    targets = list(targets)
    jobs = [*_translating(config, targets), *_tuning(config, targets)]
    return [*{job.folder: job for job in jobs}.values()]


def _translating(config: Config, targets: list[str]) -> Iterator[Training]:
    """For each run of an experiment or a table; a system that reads templates has two trainings."""
    published, runs = read_published(config.published), []
    for target in targets:
        for name in config.own_experiments(target):
            entry, seeds = config.plain_experiments[name], config.experiment_seeds(name)
            runs += product([entry.corpus], entry.directions, entry.systems, seeds)
        for name in config.tables_of(target):
            if config.all_tables[name].experiments:
                runs += (run.values() for run in expected_runs(table_spec(config, published, name)))
    for corpus, direction, system, seed in runs:
        source, target = sides(direction)
        run = {"corpus": corpus, "source": source, "target": target, "system": system, "seed": str(seed)}
        if config.systems[system].kind.templates:
            yield Training("train_templates", run)
        yield Training("train", run)


def _tuning(config: Config, targets: list[str]) -> Iterator[Training]:
    for table in config.benchmark_tables(*targets):
        name, benchmark = table.benchmark, config.benchmarks[table.benchmark]
        for system in table.systems:
            yield from _pretraining(config, benchmark.weights_of.get(system, benchmark.weights))
        systems = [system for system in table.systems if system in config.systems]
        for task, system, seed in product(config.tasks_of(table), systems, config.benchmark_seeds(name)):
            yield Training("finetune", {"benchmark": name, "task": task, "system": system, "seed": str(seed)})


def _pretraining(config: Config, weights: str) -> Iterator[Training]:
    """A RoBERTa that is not published, after the one that it continues."""
    entry = config.weights[weights]
    if entry.continued:
        yield from _pretraining(config, entry.continued.weights)
        yield Training("continue_pretraining", {"weights": weights})
    elif entry.pretrain:
        yield Training("pretrain", {"weights": weights})
