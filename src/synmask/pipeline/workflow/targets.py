"""The files of each target: tables, figures, pages, models and downloads, all of the runs in `runs`."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import chain, product
from pathlib import Path
from typing import Any

from synmask.pipeline import runs
from synmask.pipeline.config.benchmarks import BASELINES
from synmask.pipeline.config.data_files import DataFiles
from synmask.pipeline.config.loading import read_published
from synmask.pipeline.config.schema import Config
from synmask.pipeline.config.sections import Experiment, Table
from synmask.pipeline.display import arrow
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import SPLITS
from synmask.pipeline.languages import split_direction
from synmask.pipeline.metric_names import TESTED, is_measured
from synmask.pipeline.paths import BENCHMARK, FIGURES, METHOD, PAIR, RESULTS, TASK, fill, table_file
from synmask.pipeline.runs import Column, Pretraining, Run, Training
from synmask.pipeline.tasks import GLUE_TASKS, SUBMISSION, TASK_LANGUAGE

# files of each run that a page reads
PAGE_FILES = ("scores.json", "train.json", "hypothesis.test.txt", "sentences.csv")
BASELINE_NOTES = (
    "Majority: always the training set's most frequent label (of a regression its mean). Bag of words: a "
    "linear model of the words without their order.",
    "The best epoch is chosen on the set that is scored, as the papers do; the baselines choose nothing.",
)


def licensed(config: Config, downloads: Iterable[str]) -> str:
    """How to get the licensed files among these downloads, in one line; "" if there are none."""
    missing: dict[str, list[str]] = {}
    for path in downloads:
        name, file = Path(path).parts[-2:]
        if name not in config.mirrors and DataFiles(config).origin(name, file)[0] is None:
            missing.setdefault(name, []).append(file)
    return "; ".join(
        f"{name} is licensed and cannot be downloaded: get {', '.join(sorted(files))}, "
        f"then set `mirrors: {{{name}: FOLDER}}` in config.yaml"
        for name, files in missing.items()
    )


def existence(workflow: Any, exists: Callable[[str], bool]) -> Callable[[str], bool]:
    """The test whether a file is there, in a storage, too, by Snakemake's `exists`."""

    def is_there(path: str) -> bool:
        if workflow.storage_settings.default_storage_provider is None:
            return os.path.exists(path)
        with ThreadPoolExecutor(1) as thread:  # in another, since Snakemake asks in a loop of its own
            return thread.submit(exists, path).result()

    return is_there


class Targets:
    """The targets of a configuration.

    With `partial` in the configuration, targets use only files that exist, and nothing else is made.

    Args:
        exists: whether a file is there; Snakemake's own looks into a storage, too.
    """

    def __init__(self, config: Config, exists: Callable[[str], bool] = os.path.exists) -> None:
        self.config, self.exists = config, exists
        self.data, self.published = DataFiles(config), read_published(config.published)
        self.tables: dict[str, Table] = runs.tables(config)
        self.benchmark_tables = [name for name, table in config.all_tables.items() if table.benchmark]
        self.columns: Callable[[str], list[Column]]
        self.columns = cache(lambda table: runs.columns(config, self.tables[table]))

    def files(self, shown: Iterable[Training], *names: str) -> list[str]:
        """These files of runs; with `partial`, those that exist."""
        return self.available(run.file(name) for run in shown for name in names)

    def available(self, paths: Iterable[str]) -> list[str]:
        """These files, each once; with `partial`, those that exist."""
        return [path for path in dict.fromkeys(paths) if not self.config.partial or self.exists(path)]

    # ---- a target ------------------------------------------------------------------------------------------

    def by_name(self) -> Iterator[tuple[str, Callable[[], list[str]]]]:
        """All names that can be built, each with a function that lists its files.

        "all" are the chosen targets, "tables" their tables, "download" what they need from the network,
        "glue-data" the tasks of language understanding as checked TSV, TABLE-submission the answers to the
        test sets of a benchmark's table, as GLUE's server takes them. With `partial`, nothing is downloaded.
        """
        config = self.config
        yield "all", self._all
        yield "tables", lambda: self._of_chosen(self.target_tables)
        if not config.partial:
            yield "download", lambda: self._of_chosen(self.downloads)
            yield "glue-data", self._glue_data
            for name in self._submission_tables():
                yield f"{name}-submission", partial(self.submissions, name)
        for name in (*config.experiments, *config.all_tables):
            yield name, lambda name=name: [*self.target_files(name), *self.page(name)]

    def _all(self) -> list[str]:
        report = [] if self.config.partial else [f"{RESULTS}/report.html"]
        return [*self._of_chosen(self.target_files), *report]

    def _of_chosen(self, files: Callable[[str], list[str]]) -> list[str]:
        return list(dict.fromkeys(path for target in self.config.targets for path in files(target)))

    def target_files(self, target: str) -> list[str]:
        """The tables, figures and models of a target; with `partial`, its tables."""
        experiments, _ = runs.parts(self.config, target)
        drawn = ([*self.drawings(name), *self.files(self.runs(name), "average.pt")] for name in experiments)
        return [*self.target_tables(target), *(() if self.config.partial else chain(*drawn))]

    def page(self, target: str) -> list[str]:
        """The page of a target; with `partial`, only if requested by name."""
        paged = target in self.config.experiments or target in self.benchmark_tables
        return [f"{RESULTS}/report-{target}.html"] if paged and not self.config.partial else []

    def target_tables(self, target: str) -> list[str]:
        experiments, tables = runs.parts(self.config, target)
        own = [path for name in experiments for path in self.experiment_tables(name)]
        return list(dict.fromkeys([*own, *map(table_file, tables)]))

    def downloads(self, target: str) -> list[str]:
        """The sources of a target's runs that come from the network."""
        return [path for path in self.sources(target) if not self.data.is_own(path)]

    def own_files(self, target: str) -> list[str]:
        """The user's own text, parses, tasks and weights that the runs of a target read."""
        return [*filter(self.data.is_own, self.sources(target))]

    def sources(self, target: str) -> list[str]:
        """All that the runs of a target are made from: text, parses, tasks, weights, and CoreNLP's jars."""
        config, data, files = self.config, self.data, set()
        for table in self._benchmark_tables(target):
            files.update(data.weights_sources(config.benchmarks[table.benchmark].weights))
            tasks, parsed = {*config.tasks_of(table)}, self._parsed_tasks(table)
            files.update(data.corenlp_jars(TASK_LANGUAGE) if parsed else ())
            for task in tasks | parsed:
                files.update(data.task_sources(table.benchmark, task, test=task in tasks))
        parses = {(run.corpus, "valid", run.source) for run in self._compared(target)}
        for run in self._translated(target):
            system, languages = config.systems[run.system], {run.source, run.target}
            for language in (run.source, run.target)[: 2 if system.templated else 1]:
                if pair := data.parsed_pair(run.corpus, language):
                    files.update(data.corenlp_jars(language))
                    languages.update(split_direction(pair))
            files.update(data.corpus_sources(run.corpus, languages))
            for language in languages:
                files.update(data.tokeniser_jars(config.corpora[run.corpus].text.tokeniser_of(language)))
            read = [run.source] * bool(system.options_class.reads) + [run.target] * system.templated
            parses.update(product([run.corpus], SPLITS, read))
        for place in parses:
            files.update(path for path in data.parses(*place).values() if not path.startswith(f"{RESULTS}/"))
        for training in runs.trainings(config, [target]):
            if isinstance(training, Pretraining) and (own := config.weights[training.weights].pretrain):
                files.update(*own.text.values())
        return sorted(files)

    def _compared(self, target: str) -> list[Run]:
        """The runs of a target whose trees are compared with gold trees, in tables or on pages."""
        experiments, tables = runs.parts(self.config, target)
        shown = [run for name in experiments for run in self.runs(name)]
        trees = (name for name in tables if runs.scores_trees(self.tables[name]))
        shown += [run for name in trees for run in runs.of_columns(self.columns(name))]
        return [run for run in shown if runs.is_parsed(self.config, run)]

    def _translated(self, target: str) -> Iterable[Run]:
        """One run of each system and direction of a target: all seeds read the same files."""
        shown = (run for run in runs.of_target(self.config, target) if isinstance(run, Run))
        return {run.folders(): run for run in shown}.values()

    def parsed_tasks(self, target: str) -> list[tuple[str, str]]:
        """Benchmark and task of what CoreNLP parses for the systems of a target, or for their weights."""
        tables = self._benchmark_tables(target)
        return [(table.benchmark, task) for table in tables for task in sorted(self._parsed_tasks(table))]

    def _benchmark_tables(self, target: str) -> list[Table]:
        tables = (self.tables[name] for name in runs.parts(self.config, target)[1])
        return [table for table in tables if table.benchmark]

    def _parsed_tasks(self, table: Table) -> set[str]:
        if self.config.benchmarks[table.benchmark].parsed:
            return set()
        read = self.config.tasks_of(table) if self.config.reads_words(table) else []
        return {*read, *self._continued_on(table)}

    def _continued_on(self, table: Table) -> Iterator[str]:
        """The tasks whose parsed sentences continue the pre-training of a benchmark table's systems."""
        chosen = self.config.benchmarks[table.benchmark].weights_of
        folder = f"{fill(BENCHMARK, benchmark=table.benchmark)}/"
        for system in {*table.systems} & {*chosen}:
            continued = self.config.weights[chosen[system]].continued
            for prefix in chain(*continued.parses.values()) if continued else ():
                if prefix.startswith(folder):
                    yield prefix.removeprefix(folder).split("/")[0]

    def submissions(self, table: str) -> list[str]:
        """The zips for GLUE's server of the systems of a benchmark's table.

        Raises:
            UserError: the benchmark lacks a task or the size of a test set.
        """
        name = self.config.all_tables[table].benchmark
        tasks = self.config.benchmarks[name].tasks
        for task, part in SUBMISSION.values():
            if task not in tasks or part not in tasks[task].test_rows:
                key = f"benchmarks.{name}.tasks.{task}.test_rows.{part}"
                raise UserError(f"{key}: missing; GLUE's server wants the answers to all test sets")
        systems = [one for one in self.config.all_tables[table].systems if one in self.config.systems]
        return [fill(BENCHMARK + "/submission/{system}.zip", benchmark=name, system=one) for one in systems]

    def _submission_tables(self) -> list[str]:
        """The benchmark tables whose tasks are GLUE's, all of them."""
        tables = self.config.tables.items()
        return [name for name, table in tables if table.tasks is None and table.benchmark in self._glue()]

    def _glue(self) -> list[str]:
        """The benchmarks whose tasks are GLUE's."""
        return [name for name, entry in self.config.benchmarks.items() if {*entry.tasks} <= {*GLUE_TASKS}]

    def _glue_data(self) -> list[str]:
        return [
            fill(f"{TASK}/{part}.tsv", benchmark=benchmark, task=task)
            for benchmark in self._glue()
            for task, entry in self.config.benchmarks[benchmark].tasks.items()
            for part in entry.rows
        ]

    # ---- an experiment -------------------------------------------------------------------------------------

    def entry(self, experiment: str) -> Experiment:
        return self.config.plain_experiments[experiment]

    def runs(self, experiment: str, direction: str | None = None, induced: str | None = None) -> list[Run]:
        """The runs of an experiment, or those of a direction or of systems that induce distances or heads."""
        return [
            run
            for run in runs.of_experiment(self.config, experiment)
            if direction in (None, run.direction)
            if induced is None or runs.induces(self.config, run, induced)
        ]

    def first_runs(self, experiment: str, direction: str, induced: str = "distances") -> list[Run]:
        """The run with the first seed of each system that induces "distances" or "heads"."""
        first: dict[str, Run] = {}
        for run in self.runs(experiment, direction, induced):
            first.setdefault(run.system, run)
        return [*first.values()]

    def labels(self, systems: Iterable[str]) -> list[list[str]]:
        """Systems and their labels, each once."""
        return [[name, self.config.label(name, self.published.systems)] for name in dict.fromkeys(systems)]

    def experiment_tables(self, experiment: str) -> list[str]:
        chosen = self.entry(experiment).tables
        parsed = "parsing" in chosen and self.files(self.runs(experiment, induced="distances"), "parse.json")
        names = [experiment] * ("translation" in chosen) + [f"{experiment}-parsing"] * bool(parsed)
        return [*map(table_file, [*names, *runs.parts(self.config, experiment)[1]])]

    def figures(self, experiment: str) -> list[str]:
        stem = f"{FIGURES}/{experiment}"
        files = [f"{stem}-sweep.svg"] if self.config.swept_setting(experiment) else []
        for direction in self.entry(experiment).directions:
            files.append(f"{stem}-{direction}-curves.svg")
            if self.runs(experiment, direction, "heads"):
                files.append(f"{stem}-{direction}-distribution.svg")
        return files

    def tree_pages(self, experiment: str) -> list[tuple[str, str]]:
        """Heading and path of the pages of induced trees, with gold trees beside them."""
        return [
            (f"Trees, {arrow(direction)}", f"{FIGURES}/{experiment}-{direction}-trees.html")
            for direction in self.entry(experiment).directions
            if any(runs.is_parsed(self.config, run) for run in self.runs(experiment, direction))
        ]

    def drawings(self, experiment: str) -> list[str]:
        return [*self.figures(experiment), *(path for _, path in self.tree_pages(experiment))]

    # ---- a table -------------------------------------------------------------------------------------------

    def table_files(self, table: str) -> dict[str, list[str]]:
        """The files that a table reads: "scores", "parses", "tasks" and, for tests, "counts"."""
        entry, columns = self.tables[table], self.columns(table)
        shown, read = runs.of_columns(columns), {"scores": [], "parses": [], "tasks": [], "counts": []}
        if entry.benchmark:
            tasks = (column["task"] for column in columns if column["task"])
            baselines = (
                fill(f"{TASK}/baselines.json", benchmark=entry.benchmark, task=task) for task in tasks
            )
            read["tasks"] = [*self.files(shown, "scores.json"), *self.available(baselines)]
            read["counts"] = self.files(shown, "examples.csv")
        elif runs.scores_trees(entry):
            read["parses"] = self.files(shown, "parse.json")
        else:
            names = [f"metric.{metric}.json" for metric in entry.metrics if is_measured(metric)]
            names += ["sentences.csv"] if {*entry.metrics} & {*TESTED} else []
            read |= {"scores": self.files(shown, "scores.json"), "counts": self.files(shown, *names)}
        return read

    def table_options(self, name: str) -> dict[str, Any]:
        """All that a table depends on besides its runs: the options of `synmask table`."""
        table, columns = self.tables[name], self.columns(name)
        labels = [*self.labels(table.systems), *(map(list, BASELINES.items()) if table.benchmark else ())]
        return {
            "title": table.title,
            "metrics": list(table.metrics),
            "sweep": name in self.config.experiments and self.entry(name).sweep is not None,
            "labels": labels,
            "columns": columns,
            "notes": [*BASELINE_NOTES] if table.benchmark else self._without_trees(name),
        }

    def parse_table_options(self, experiment: str) -> dict[str, Any]:
        """The options of `synmask parse-table` that say what an experiment's table of trees shows."""
        title = f"{self.entry(experiment).title}: parsing"
        labels = self.labels(run.system for run in self.runs(experiment, induced="distances"))
        table = Table(title=title, experiments=(experiment,), systems=tuple(dict(labels)))
        return {"title": title, "labels": labels, "columns": runs.columns(self.config, table)}

    def _without_trees(self, table: str) -> list[str]:
        """Why columns of a table of trees have no runs."""
        columns = self.columns(table) if runs.scores_trees(self.tables[table]) else ()
        places = ((column["corpus"], split_direction(column["column"])[0]) for column in columns)
        lacking = (corpus for corpus, source in places if not self.data.gold_trees(corpus, source))
        return [
            f"No runs here: corpora.{name} has no `trees` to compare with." for name in dict.fromkeys(lacking)
        ]

    # ---- a page --------------------------------------------------------------------------------------------

    def page_files(self, page: str) -> list[str]:
        """The files that a page shows; with `partial`, it uses figures as they are."""
        experiments, tables = self._page_parts(page)
        shown = (run for table in tables for run in runs.of_columns(self.columns(table)))
        files = [METHOD, *map(table_file, tables), *self.files(shown, "scores.json")]
        for name in experiments:
            files += [*self.experiment_tables(name), *self.files(self.runs(name), *PAGE_FILES)]
            files += self._test_texts(name)
            if "parsing" in self.entry(name).tables:
                files += self.files(self.runs(name, induced="distances"), "parse.json", "parse_counts.json")
            files += () if self.config.partial else self.drawings(name)
        return files

    def _test_texts(self, experiment: str) -> list[str]:
        """The plain text of an experiment's test sets, beside which a page shows translations."""
        return self.available(
            fill(f"{PAIR}/text/test.{language}", **run.wildcards)
            for run in self.runs(experiment)
            for language in (run.source, run.target)
        )

    def page_spec(self, page: str) -> str:
        """The contents of a page (`PageSpec`) as JSON; it keeps the order of runs."""
        experiments, tables = self._page_parts(page)
        parts = [*map(self._experiment_part, experiments), *map(self._benchmark_part, tables)]
        titles = [part["title"] for part in parts]
        target = page.removeprefix("report").removeprefix("-") or "all targets"
        title = f"Report: {' · '.join(titles) if len(titles) <= 3 else target}"
        contrasts = self._page_contrasts(experiments)
        return json.dumps({"title": title, "figures": [METHOD], "experiments": parts, "contrasts": contrasts})

    def _page_contrasts(self, experiments: Iterable[str]) -> list[dict[str, Any]]:
        """The tests of a page, by corpus (`CorpusContrasts`): each system's BLEU against that of the first of
        its experiment, and the F1 of its trees against right-branching ones."""
        found: dict[str, dict[str, Any]] = {}
        for name in experiments:
            entry = self.entry(name)
            first, *others = entry.systems
            bleu = {"rival": first, "metric": "sacrebleu"}
            gains = {system: self._published_gains(entry.corpus, system, first) for system in others}
            tests = [{"system": system, **bleu, "gain": gains[system]} for system in others]
            if "parsing" in entry.tables:
                trees = {"rival": "right-branching", "trivial": True, "metric": "f1_words"}
                parsed = (run.system for run in self.runs(name) if runs.is_parsed(self.config, run))
                tests += [{"system": system, **trees} for system in dict.fromkeys(parsed)]
            new = {"corpus": entry.corpus, "experiments": [], "contrasts": []}
            part = found.setdefault(entry.corpus, new)
            part["experiments"].append(name)
            part["contrasts"] += [test for test in tests if test not in part["contrasts"]]
        return [*found.values()]

    def _published_gains(self, corpus: str, system: str, baseline: str) -> dict[str, float]:
        """Direction → the paper's gain in BLEU on this corpus, or else on IWSLT14."""
        numbers, gains = self.published.numbers, {}
        for source in ("iwslt14", corpus):
            for direction in self.published.columns(source):
                place = (source, direction, "bleu_tokenised")
                if (ours := numbers.get((*place, system))) and (theirs := numbers.get((*place, baseline))):
                    gains[direction] = round(ours.mean - theirs.mean, 2)
        return gains

    def _page_parts(self, page: str) -> tuple[list[str], list[str]]:
        """The experiments and benchmark tables on a page.

        report-NAME.html has those of NAME; report.html those of `targets`, and tables that were built before.
        """
        if page != "report":
            experiments, tables = runs.parts(self.config, page.removeprefix("report-"))
            return experiments, [name for name in tables if name in self.benchmark_tables]
        parts = [runs.parts(self.config, target) for target in self.config.targets]
        shown = {name for _, tables in parts for name in tables}
        whole = [name for name in self.benchmark_tables if name in self.config.tables]
        tables = [name for name in whole if name in shown or self.exists(table_file(name))]
        return list(dict.fromkeys(chain(*(experiments for experiments, _ in parts)))), tables

    def _experiment_part(self, name: str) -> dict[str, Any]:
        entry = self.entry(name)
        return {
            "name": name,
            "title": entry.title,
            "note": entry.note,
            "systems": self.labels(entry.systems),
            "columns": runs.columns(self.config, runs.own_table(name, entry)),
            "tables": self.experiment_tables(name),
            "figures": self.figures(name),
            "pages": self.tree_pages(name),
        }

    def _benchmark_part(self, name: str) -> dict[str, Any]:
        table = self.config.all_tables[name]
        columns = [column for column in self.columns(name) if column["task"]]
        return {
            "name": name,
            "title": table.title,
            "systems": self.labels(system for system in table.systems if system in self.config.systems),
            "columns": columns,
            "tables": [table_file(name)],
            "figures": [],
            "metrics": {column["part"]: column["part"].replace("_", ", ") for column in columns},
        }
