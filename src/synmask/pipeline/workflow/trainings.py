"""The trainings that targets need, each as a job of the workflow: its rule and wildcards."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from synmask.pipeline.config.base import sides
from synmask.pipeline.config.loading import read_published
from synmask.pipeline.config.schema import Config
from synmask.pipeline.config.table_spec import expected_runs, table_spec
from synmask.pipeline.paths import PREDICTOR, RUN, TASK, TUNED, WEIGHTS, filled

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

    @classmethod
    def of_run(cls, rule: str, corpus: str, direction: str, system: str, **seed: str) -> "Training":
        """A training for translation; without a seed, with any."""
        source, target = sides(direction)
        return cls(rule, {"corpus": corpus, "source": source, "target": target, "system": system} | seed)

    @property
    def folder(self) -> str:
        return filled(TRAININGS[self.rule], **self.wildcards)

    @property
    def direction(self) -> str:
        return f"{self.wildcards['source']}-{self.wildcards['target']}"

    @property
    def alike(self) -> str:
        """The folders of trainings that take as long, as a pattern.

        They have any seed; those for translation any direction, fine-tunings any system.
        """
        free = {"seed", "source", "target"} | ({"system"} if self.rule == "finetune" else set())
        known = {name: value for name, value in self.wildcards.items() if name not in free}
        return filled(TRAININGS[self.rule], **known)


def trainings(config: Config, targets: Iterable[str]) -> list[Training]:
    """Every training that `targets` (experiments, tables, groups of them) need, once.

    Those for translation come first, then RoBERTas that are pre-trained, then fine-tunings.
    """
    targets = list(targets)
    jobs = [*_translating(config, targets), *_pretraining(config, targets), *_tuning(config, targets)]
    return [*{job.folder: job for job in jobs}.values()]


def _translating(config: Config, targets: Iterable[str]) -> Iterator[Training]:
    """For each run of an experiment or a table; a system that reads templates has two trainings."""
    published = read_published(config.published)
    for target in targets:
        runs = []
        for name in config.own_experiments(target):
            entry, seeds = config.plain_experiments[name], config.experiment_seeds(name)
            runs += product([entry.corpus], entry.directions, entry.systems, seeds)
        for name in config.tables_of(target):
            if config.all_tables[name].experiments:
                runs += (tuple(run.values()) for run in expected_runs(table_spec(config, published, name)))
        for *run, seed in runs:
            for rule in ("train_templates", "train") if config.systems[run[2]].kind.templates else ("train",):
                yield Training.of_run(rule, *run, seed=str(seed))


def _pretraining(config: Config, targets: Iterable[str]) -> Iterator[Training]:
    """RoBERTas that are not published; those that others continue come first."""
    wanted = []
    for table in config.benchmark_tables(*targets):
        entry = config.benchmarks[table.benchmark]
        wanted += [entry.weights_of.get(system, entry.weights) for system in table.systems]
    entries = [config.weights[name] for name in wanted]
    wanted += [entry.continued.weights for entry in entries if entry.continued]
    for name in wanted[::-1]:
        if config.weights[name].pretrain:
            yield Training("pretrain", {"weights": name})
        elif config.weights[name].continued:
            yield Training("continue_pretraining", {"weights": name})


def _tuning(config: Config, targets: Iterable[str]) -> Iterator[Training]:
    for table in config.benchmark_tables(*targets):
        systems = [system for system in table.systems if system in config.systems]
        seeds = config.benchmark_seeds(table.benchmark)
        for task, system, seed in product(config.tasks_of(table), systems, seeds):
            names = {"benchmark": table.benchmark, "task": task, "system": system, "seed": str(seed)}
            yield Training("finetune", names)


def parsed_tasks(config: Config, targets: Iterable[str]) -> list[tuple[str, str]]:
    """Benchmark and task of what CoreNLP parses for the systems of `targets`, or for their weights."""
    targets = list(targets)
    tables = [table for table in config.benchmark_tables(*targets) if config.reads_words(table)]
    read = [(table.benchmark, task) for table in tables for task in config.tasks_of(table)]
    for job in _pretraining(config, targets):
        read += continued_on(config, job.wildcards["weights"])
    return [job for job in dict.fromkeys(read) if config.benchmarks[job[0]].generate is None]


def continued_on(config: Config, weights: str) -> list[tuple[str, str]]:
    """Benchmark and task of the parsed sentences that these weights' pre-training continues on."""
    continued = config.weights[weights].continued
    prefixes = [prefix for part in continued.parses.values() for prefix in part] if continued else []
    found = (re.match(re.sub(r"{\w+}", "([^/]+)", f"{TASK}/"), prefix) for prefix in prefixes)
    return [match.groups() for match in found if match and match[1] in config.benchmarks]
