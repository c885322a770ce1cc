"""The whole configuration, and the narrow slices of it that the workflow's rules depend on.

Slices are JSON with sorted keys, so that a change reruns only the steps that it concerns.
"""

import json
import os
from collections.abc import Mapping
from functools import cached_property, reduce
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError, ValidationInfo, field_validator

from synmask.options import GuideOptions
from synmask.pipeline.config import base, sections
from synmask.pipeline.config import benchmarks as nlu
from synmask.pipeline.config.base import key
from synmask.pipeline.config.faults import S, first_fault, validate
from synmask.pipeline.config.sections import Experiment, Table
from synmask.pipeline.files import flatten
from synmask.pipeline.guidance import TemplateCut, option_names, options_from
from synmask.pipeline.published import Peer
from synmask.pipeline.run_settings import RunSettings

# Reserved names of folders: in results/, in the folder of a direction, and beside the Snakefile.
RESULTS_FOLDERS = {"benchmarks", "figures", "logs", "tables", "weights"}
DIRECTION_FOLDERS = {"benchmarks", "bin", "bpe", "clean", "logs", "syntax", "text", "tokens"}
PROJECT_FOLDERS = {
    *("benchmarks", "build", "config", "data", "docs", "downloads", "profiles", "report", "results", "site"),
    *("slurm", "src", "studies", "tests", "workflow"),
}
RESERVED = {
    "corpora": RESULTS_FOLDERS | {"corenlp"},  # also a folder of downloads
    "benchmarks": RESULTS_FOLDERS,
    "systems": DIRECTION_FOLDERS,
    "experiments": PROJECT_FOLDERS,
}

Group = Annotated[list[base.Name], AfterValidator(base.distinct), Field(min_length=1)]


class Config(base.Section):
    """Every key of config.yaml, of config/*.yaml, and of files that are laid over them."""

    targets: base.Distinct[base.Name] = key("experiments and tables that `snakemake` builds", min_length=1)
    data_dir: base.PathText = key("the folder of downloads, apart from results/", "data")
    mirrors: dict[base.Name, base.Mirror] = key(
        "download: a folder or URL with its files, {multi30k: /data/multi30k}", {}
    )
    seeds: base.Distinct[base.Seed] = key("seeds of weights, batches, dropout and masking", min_length=1)
    training: sections.CorpusTraining = key(
        "for all corpora, which override key by key", sections.CorpusTraining
    )
    decoding: sections.Decoding = key("beam search, for all corpora", sections.Decoding)
    resources: sections.Resources = key(
        "memory, time and devices that a run asks for, for all corpora", sections.Resources
    )
    corenlp: sections.CoreNLP = key("the parser behind `trees: corenlp`", sections.CoreNLP)
    systems: dict[base.SystemName, sections.System] = key("the rows of tables")
    corpora: dict[base.Name, sections.Corpus] = key("parallel text, and how it is prepared and trained on")
    weights: dict[base.Name, nlu.WeightsSource] = key("RoBERTas to fine-tune (docs/nlu.md)", {})
    benchmarks: dict[base.Name, nlu.Benchmark] = key("tasks of language understanding (docs/nlu.md)", {})
    experiments: dict[base.Name, Experiment | Group] = key(
        "targets; a list of experiments and tables is one, too"
    )
    tables: dict[base.Name, Table] = key(
        "targets that read the runs of several experiments, or benchmarks", {}
    )
    published: base.PathText = key(
        "the file of the papers' numbers, which tables show beside ours", "workflow/published.yaml"
    )
    partial: bool = key("build only tables, from the runs that exist", False)
    any_code: bool = key("continue from checkpoints that other code made (docs/workflow.md)", False)

    @field_validator("data_dir")
    @classmethod
    def _of_downloads_alone(cls, data_dir: str) -> str:
        here, data = Path.cwd(), Path(os.path.abspath(data_dir))
        first = data.relative_to(here).parts[:1] if here in data.parents else ()
        taken = first and (first[0].startswith(".") or first[0] in PROJECT_FOLDERS - {"data", "downloads"})
        if taken or data in (here, *here.parents) or (os.path.exists(data) and not os.path.isdir(data)):
            raise ValueError("cannot be a folder of downloads alone; give another")
        return data_dir

    @field_validator(*RESERVED)
    @classmethod
    def _free_names(cls, entries: dict[str, Any], section: ValidationInfo) -> dict[str, Any]:
        for name in entries:
            seed = section.field_name == "systems" and name.removeprefix("seed").isdigit()
            if seed or name in RESERVED[section.field_name]:
                fault = "a folder has this name, of results or the project; take another"
                raise base.Fault((name,), fault)
        return entries

    @field_validator("experiments")
    @classmethod
    def _flat_groups(cls, experiments: dict[str, Experiment | list[str]]) -> dict:
        for name, entry in experiments.items():
            for member in entry if isinstance(entry, list) else ():
                if isinstance(experiments.get(member), list):
                    raise base.Fault((name,), f"{member!r} is a list itself; name its experiments")
        return experiments

    @field_validator("weights")
    @classmethod
    def _continued_once(cls, weights: dict[str, nlu.WeightsSource]) -> dict[str, nlu.WeightsSource]:
        for name, entry in weights.items():
            if entry.continued:
                path, other = (name, "continued", "weights"), entry.continued.weights
                base.check_known(path, "weights", weights, other)
                if weights[other].continued:
                    fault = f"weights {other!r} are `continued` themselves; start from those before"
                    raise base.Fault(path, fault)
        return weights

    @cached_property
    def plain_experiments(self) -> dict[str, Experiment]:
        """The experiments that run something, without the groups of experiments."""
        return {n: e for n, e in self.experiments.items() if isinstance(e, Experiment)}

    @property
    def named_targets(self) -> dict[str, Any]:
        """The entries that a target can name: experiments, groups of them, tables."""
        return {**self.experiments, **self.all_tables}

    def label(self, system: str, peers: Mapping[str, Peer] = {}) -> str:
        """The label of a system that runs, or that only papers report (`peers`)."""
        return {**peers, **self.systems}[system].label or system

    def reads_words(self, table: Table) -> bool:
        """Whether a system of a benchmark's table reads the parses of its tasks."""
        systems = (self.systems[name] for name in table.systems if name in self.systems)
        return any("words" in system.options_class.reads for system in systems)

    @property
    def languages(self) -> set[str]:
        """The codes of all corpora's languages."""
        return {language for corpus in self.corpora.values() for language in corpus.languages}

    @property
    def single_tables(self) -> dict[str, Table]:
        """For each benchmark table one table per task, named TABLE-TASK."""
        return {
            f"{name}-{task}": table.model_copy(
                update={"tasks": (task,), "title": f"{table.title}: {entry.column}"}
            )
            for name, table in self.tables.items()
            if table.benchmark in self.benchmarks
            for task, entry in self.tasks_of(table).items()
        }

    @cached_property
    def all_tables(self) -> dict[str, Table]:
        """The entries of `tables`, and those of single tasks."""
        return self.tables | self.single_tables

    def tasks_of(self, table: Table) -> dict[str, nlu.NluTask]:
        """The tasks that a table shows, in their order."""
        tasks = self.benchmarks[table.benchmark].tasks
        return {name: task for name, task in tasks.items() if table.tasks is None or name in table.tasks}

    def entries_with(self, section: str, *keys: str) -> list[str]:
        """Names of the entries of a section (corpora, benchmarks, weights) that have one of these keys."""
        entries = getattr(self, section).items()
        return [name for name, entry in entries if any(getattr(entry, key) is not None for key in keys)]

    def resources_key(self, wildcards: Mapping[str, str]) -> tuple[str, ...]:
        """The key of the resources that a training, and the steps after it, request."""
        if weights := wildcards.get("weights"):
            trained = "pretrain" if self.weights[weights].pretrain else "continued"
            return "weights", weights, trained, "resources"
        if benchmark := wildcards.get("benchmark"):
            return "benchmarks", benchmark, "resources"
        return "corpora", wildcards["corpus"], "resources"

    def resources_of(self, wildcards: Mapping[str, str]) -> sections.Resources:
        """The resources at that key."""
        section, name, *rest = self.resources_key(wildcards)
        return reduce(getattr, rest, getattr(self, section)[name])

    def nlu_settings(self, benchmark: str, task: str, system: str) -> nlu.FinetuningSettings:
        """The settings of a fine-tuning: the task's training, and the system."""
        row, entry = self.systems[system], self.benchmarks[benchmark].tasks[task]
        guidance = row.guidance(row.guide_options, row.mlm_weight)
        training = nlu.Finetuning.model_validate(entry.model_dump(include={*nlu.Finetuning.model_fields}))
        return nlu.FinetuningSettings(task=task, training=training, system=guidance)

    def options(self, corpus: str, direction: str, system: str) -> GuideOptions:
        """The options of a system's guide in a run: the system's, overridden by the corpus'."""
        over = self.corpora[corpus].options.get(system, {}).get(direction, {})
        row = self.systems[system]
        return options_from(row.options_class, base.merge(row.options, over))

    def training_of(self, corpus: str, system: str) -> sections.WholeTraining:
        """A system's training on a corpus: the corpus' settings, overridden by the system's."""
        return self._overridden("training", sections.WholeTraining, corpus, system)

    def model_of(self, corpus: str, system: str) -> sections.Model:
        """A system's sizes on a corpus: the corpus', overridden by the system's."""
        return self._overridden("model", sections.Model, corpus, system)

    def _overridden(self, section: str, kind: type[S], corpus: str, system: str) -> S:
        below, over = (getattr(entry, section) for entry in (self.corpora[corpus], self.systems[system]))
        own = over.model_dump(exclude_unset=True)
        with base.at(*(("systems", system) if own else ("corpora", corpus)), section):
            return validate(kind, base.merge(below.model_dump(include={*kind.model_fields}), own))

    def run_settings(self, corpus: str, direction: str, system: str) -> RunSettings:
        """The settings of a training: the corpus', overridden by the system's.

        Raises:
            Fault: they do not fit each other (if no key alone is to blame, without a path), or the corpus has
                no share of the MLM loss for this direction; `load` checks those of all experiments.
        """
        entry, row = self.corpora[corpus], self.systems[system]
        weight = row.mlm_weight
        if weight == "corpus":
            weight = entry.training.mlm_weight
            if isinstance(weight, dict):
                if direction not in weight:
                    path = ("corpora", corpus, "training", "mlm_weight")
                    raise base.Fault(path, f"no value for {direction}")
                weight = weight[direction]
        guidance = row.guidance(self.options(corpus, direction, system), weight)
        model, training = self.model_of(corpus, system), self.training_of(corpus, system)
        try:
            return RunSettings(model=model, training=training, system=guidance, decoding=entry.decoding)
        except ValidationError as error:
            raise first_fault(error, {}) from None

    def template_cut(self, corpus: str, direction: str, system: str) -> dict[str, Any]:
        """How the trees of a system that reads templates are cut."""
        options = self.options(corpus, direction, system)
        return {name: getattr(options, name) for name in option_names(TemplateCut)}

    def template_settings(self, corpus: str, direction: str, system: str) -> RunSettings:
        """`run_settings` of the model that predicts a system's templates: the same without a guide."""
        settings = self.run_settings(corpus, direction, system)
        plain = settings.system.model_copy(update={"guide": "none", "options": {}})
        return settings.model_copy(update={"system": plain})

    def swept_setting(self, experiment: str) -> str | None:
        """The key of the number that an experiment sweeps, such as "system.options.bpe_dim".

        None if it sweeps nothing, or something else than a number.
        """
        entry = self.plain_experiments[experiment]
        if entry.sweep is None:
            return None
        runs = (self.run_settings(entry.corpus, entry.directions[0], name) for name in entry.systems)
        values = (flatten(run.plain()).get(entry.sweep.key) for run in runs)
        return entry.sweep.key if all(type(value) in (int, float) for value in values) else None


def as_json(settings: Any) -> str:
    """Settings as one line of JSON with sorted keys: equal settings are equal strings."""
    return json.dumps(settings.plain() if isinstance(settings, base.Section) else settings, sort_keys=True)
