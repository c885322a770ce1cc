"""The files of each target: tables, figures, pages and models, and the runs that they show."""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from synmask.pipeline.config.base import arrow, sides
from synmask.pipeline.config.published import Published
from synmask.pipeline.config.schema import TASK_LANGUAGE, Config, as_json
from synmask.pipeline.config.sections import Experiment, Table
from synmask.pipeline.config.table_spec import TableSpec, expected_runs, table_names, table_spec, task_files
from synmask.pipeline.files import UserError
from synmask.pipeline.paths import BENCHMARK, FIGURES, METHOD, PAIR, RESULTS, filled, run_file, table_file
from synmask.pipeline.tasks import SUBMISSION

# files of each run that a page reads
PAGE_FILES = ("scores.json", "train.json", "hypothesis.test.txt", "sentences.csv")


def licensed(config: Config, downloads: Iterable[str]) -> str:
    """How to get the licensed files among these downloads, in one line; "" if there are none."""
    missing: dict[str, list[str]] = {}
    for path in downloads:
        name, file = Path(path).parts[-2:]
        if name not in config.mirrors and config.origin(name, file)[0] is None:
            missing.setdefault(name, []).append(file)
    return "; ".join(
        f"{name} is licensed and cannot be downloaded: get {', '.join(sorted(files))}, "
        f"then set `mirrors: {{{name}: FOLDER}}` in config.yaml"
        for name, files in missing.items()
    )


class Targets:
    """The targets of a configuration.

    With `partial` in the configuration, targets use only files that exist, and nothing else is made.

    Args:
        exists: whether a file is there; Snakemake's own looks into a storage, too.
    """

    def __init__(
        self, config: Config, published: Published, exists: Callable[[str], bool] = os.path.exists
    ) -> None:
        self.config, self.published, self.exists = config, published, exists
        self.tables: list[str] = table_names(config)
        self.benchmark_tables = [name for name, table in config.all_tables.items() if table.benchmark]
        self.table_spec: Callable[[str], TableSpec] = cache(partial(table_spec, config, published))

    # ---- all of them ---------------------------------------------------------------------------------------

    def files(self, target: str) -> list[str]:
        """The tables, figures and models of a target; with `partial`, its tables."""
        if self.config.partial:
            return self.target_tables(target)
        files = self.target_tables(target)
        for name in self.config.own_experiments(target):
            files += [*self._drawings(name), *self.run_files(name, "average.pt")]
        return files

    def page(self, target: str) -> list[str]:
        """The page of a target; with `partial`, only if requested by name."""
        paged = target in self.config.experiments or target in self.benchmark_tables
        return [f"{RESULTS}/report-{target}.html"] if paged and not self.config.partial else []

    def target_tables(self, target: str) -> list[str]:
        names = self.config.own_experiments(target)
        tables = [path for name in names for path in self.experiment_tables(name)]
        return list(dict.fromkeys([*tables, *map(table_file, self.config.tables_of(target))]))

    def downloads(self, target: str) -> list[str]:
        """The downloads of a target.

        These are files of its corpora, CoreNLP's jars that tokenise and parse them, and for benchmarks the
        tasks and RoBERTa's weights.
        """
        config, files = self.config, set()
        for table in config.benchmark_tables(target):
            benchmark = config.benchmarks[table.benchmark]
            files.update(config.weights_sources(benchmark.weights))
            tasks, parsed = {*config.tasks_of(table)}, self._parsed_tasks(table)
            if parsed:
                files.update(config.corenlp_jars(TASK_LANGUAGE))
            for task in tasks | parsed if benchmark.folder is None else ():
                files.update(config.task_sources(table.benchmark, task, test=task in tasks))
        for name in config.members(target):
            entry = self.entry(name)
            languages = {language for direction in entry.directions for language in sides(direction)}
            sources = {sides(direction)[0] for direction in entry.directions}
            for parsed in sources | (languages - sources if self._templated(name) else set()):
                if pair := config.parsed_pair(entry.corpus, parsed):
                    files.update(config.corenlp_jars(parsed))
                    languages.update(sides(pair))
            files.update(config.downloads(entry.corpus, languages))
            for language in languages:
                files.update(config.tokeniser_jars(config.corpora[entry.corpus].text.tokeniser_of(language)))
        return sorted(files)

    def own_files(self, target: str) -> list[str]:
        """The user's own text and gold trees that the experiments of a target read."""
        config, files = self.config, set()
        for name in config.members(target):
            entry = self.entry(name)
            corpus = config.corpora[entry.corpus]
            if corpus.files and not corpus.url:
                languages = {language for direction in entry.directions for language in sides(direction)}
                for split, language in itertools.product(corpus.files, languages):
                    files.update(config.raw_files(entry.corpus, split, language))
            if isinstance(corpus.trees, dict) and "parsing" in entry.tables:
                sources = {sides(direction)[0] for direction in entry.directions}
                for split, language in itertools.product(corpus.trees, sources):
                    files.add(config.gold_trees(entry.corpus, split, language))
        return sorted(files)

    def parsed_tasks(self, target: str) -> list[tuple[str, str]]:
        """Benchmark and task of what CoreNLP parses for the systems of a target, or for their weights."""
        tables = self.config.benchmark_tables(target)
        return [(table.benchmark, task) for table in tables for task in sorted(self._parsed_tasks(table))]

    def _parsed_tasks(self, table: Table) -> set[str]:
        if self.config.benchmarks[table.benchmark].generate is not None:
            return set()
        read = self.config.tasks_of(table) if self.config.reads_words(table) else []
        return {*read, *self._continued_on(table)}

    def _continued_on(self, table: Table) -> Iterator[str]:
        """The tasks whose parsed sentences continue the pre-training of a benchmark table's systems."""
        chosen = self.config.benchmarks[table.benchmark].weights_of
        folder = f"{filled(BENCHMARK, benchmark=table.benchmark)}/"
        for system in {*table.systems} & {*chosen}:
            continued = self.config.weights[chosen[system]].continued
            for prefix in itertools.chain(*continued.parses.values()) if continued else ():
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
        return [filled(BENCHMARK + "/submission/{system}.zip", benchmark=name, system=one) for one in systems]

    def submitted_tables(self) -> list[str]:
        """The benchmark tables whose tasks are GLUE's, all of them."""
        return [
            name
            for name, table in self.config.tables.items()
            if table.benchmark and table.tasks is None
            if self.config.benchmarks[table.benchmark].generate is None
        ]

    # ---- an experiment -------------------------------------------------------------------------------------

    def entry(self, experiment: str) -> Experiment:
        return self.config.plain_experiments[experiment]

    def available(self, paths: list[str]) -> list[str]:
        """With `partial`, the files that exist; else all of them."""
        return [path for path in paths if self.exists(path)] if self.config.partial else paths

    def runs(self, experiment: str, direction: str | None = None) -> list[tuple[str, str, int]]:
        """Direction, system and seed of an experiment's runs, in this order."""
        entry = self.entry(experiment)
        directions = [direction] if direction else entry.directions
        return [*itertools.product(directions, entry.systems, self.config.experiment_seeds(experiment))]

    def run_files(
        self, experiment: str, name: str, systems: Iterable[str] | None = None, direction: str | None = None
    ) -> list[str]:
        """This file of an experiment's runs (of some systems, of one direction), in the order of `runs`."""
        corpus, runs = self.entry(experiment).corpus, self.runs(experiment, direction)
        chosen = (run for run in runs if systems is None or run[1] in systems)
        return self.available([run_file(corpus, *run, name) for run in chosen])

    def first_runs(self, experiment: str, direction: str, systems: Iterable[str]) -> list[dict[str, Any]]:
        """The run with the first seed of each of `systems`, in one direction of an experiment."""
        corpus, seed = self.entry(experiment).corpus, self.config.experiment_seeds(experiment)[0]
        run = {"corpus": corpus, "direction": direction, "seed": seed}
        return [run | {"system": system} for system in systems]

    def parsed_files(self, experiment: str, name: str) -> list[str]:
        """This file of every run of an experiment whose system induces trees."""
        return self.run_files(experiment, name, self.inducing(experiment))

    def inducing(self, experiment: str, what: str = "distances") -> list[str]:
        """The systems of an experiment that induce `what`: distances (trees), or heads, too (P_D)."""
        return self.config.inducing(self.entry(experiment).systems, what)

    def _templated(self, experiment: str) -> list[str]:
        """The systems of an experiment that read templates of the target."""
        known = self.config.systems
        return [name for name in self.entry(experiment).systems if known[name].kind.templates]

    def gold_trees(self, experiment: str, direction: str) -> str | None:
        """The gold trees of the validation set's source side."""
        return self.config.gold_trees(self.entry(experiment).corpus, "valid", sides(direction)[0])

    def labels(self, systems: Iterable[str]) -> list[list[str]]:
        """Systems and their labels, in the order of a table's rows."""
        return [[name, self.config.label(name)] for name in systems]

    def experiment_tables(self, experiment: str) -> list[str]:
        chosen = self.entry(experiment).tables
        parsed = "parsing" in chosen and self.parsed_files(experiment, "parse.json")
        return [
            *([table_file(experiment)] if "translation" in chosen else []),
            *([table_file(f"{experiment}-parsing")] if parsed else []),
            *map(table_file, self.config.tables_of(experiment)),
        ]

    def figures(self, experiment: str) -> list[str]:
        stem = f"{FIGURES}/{experiment}"
        files = [f"{stem}-sweep.svg"] if self.config.swept_setting(experiment) else []
        for direction in self.entry(experiment).directions:
            files.append(f"{stem}-{direction}-curves.svg")
            if self.inducing(experiment, "heads"):
                files.append(f"{stem}-{direction}-distribution.svg")
        return files

    def tree_pages(self, experiment: str) -> list[tuple[str, str]]:
        """Heading and path of the pages of induced trees, with gold trees beside them."""
        return [
            (f"Trees, {arrow(name)}", f"{FIGURES}/{experiment}-{name}-trees.html")
            for name in self.entry(experiment).directions
            if self.inducing(experiment) and self.gold_trees(experiment, name)
        ]

    def _drawings(self, experiment: str) -> list[str]:
        return [*self.figures(experiment), *(path for _, path in self.tree_pages(experiment))]

    # ---- a table -------------------------------------------------------------------------------------------

    def table_runs(self, table: str, name: str) -> list[str]:
        """This file of every run of a table, if the table reads it."""
        read = self.table_spec(table)
        runs = expected_runs(read) if name in read["files"] else []
        return self.available([run_file(**run, name=name) for run in runs])

    def table_tasks(self, table: str) -> list[str]:
        """Files that a benchmark's table reads: scores and answers of its runs, scores of its baselines."""
        read = self.table_spec(table)
        return self.available(task_files(read)) if "glue" in read["metrics"] else []

    # ---- a page --------------------------------------------------------------------------------------------

    def page_files(self, page: str) -> list[str]:
        """The files that a page shows; with `partial`, it uses figures as they are."""
        made, tables = not self.config.partial, self._page_benchmarks(page)
        files = [METHOD, *map(table_file, tables)]
        read = (path for table in tables for path in self.table_tasks(table))
        files += [path for path in read if path.endswith("/scores.json")]
        for name in self._page_experiments(page):
            files += self.experiment_tables(name)
            files += [path for shown in PAGE_FILES for path in self.run_files(name, shown)]
            files += self._test_texts(name)
            if "parsing" in self.entry(name).tables:
                files += self.parsed_files(name, "parse.json") + self.parsed_files(name, "parse_counts.json")
            files += self._drawings(name) if made else []
        return files

    def _test_texts(self, experiment: str) -> list[str]:
        """The plain text of an experiment's test sets, beside which a page shows translations."""
        entry = self.entry(experiment)
        paths = [
            filled(f"{PAIR}/text/test.{language}", direction, corpus=entry.corpus)
            for direction in entry.directions
            for language in sides(direction)
        ]
        return self.available(paths)

    def page_spec(self, page: str) -> str:
        parts = [self._experiment_part(name) for name in self._page_experiments(page)]
        parts += map(self._benchmark_part, self._page_benchmarks(page))
        titles = [part["title"] for part in parts]
        target = page.removeprefix("report").removeprefix("-") or "all targets"
        title = " · ".join(titles) if len(titles) <= 3 else target
        contrasts = self._page_contrasts(self._page_experiments(page))
        return as_json(
            {"title": f"Report: {title}", "figures": [METHOD], "experiments": parts, "contrasts": contrasts}
        )

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
            if "parsing" in entry.tables and any(self.gold_trees(name, one) for one in entry.directions):
                trees = {"rival": "right-branching", "trivial": True, "metric": "f1_words"}
                tests += [{"system": system, **trees} for system in self.inducing(name)]
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

    def _page_experiments(self, page: str) -> list[str]:
        """Experiments on a page: results/report.html shows those of `targets`, report-NAME.html of NAME."""
        names = [page.removeprefix("report-")] if page != "report" else self.config.targets
        return list(dict.fromkeys(name for target in names for name in self.config.own_experiments(target)))

    def _page_benchmarks(self, page: str) -> list[str]:
        """Benchmark tables on a page: results/report.html also shows those that were built before."""
        names = [page.removeprefix("report-")] if page != "report" else self.config.targets
        listed = dict.fromkeys(table for name in names for table in self.config.tables_of(name))
        if page != "report":
            return [table for table in listed if table in self.benchmark_tables]
        whole = [name for name in self.benchmark_tables if name in self.config.tables]
        return [name for name in whole if name in listed or self.exists(table_file(name))]

    def _experiment_part(self, name: str) -> dict[str, Any]:
        entry = self.entry(name)
        return {
            "name": name,
            "title": entry.title,
            "corpus": entry.corpus,
            "directions": entry.directions,
            "systems": self.labels(entry.systems),
            "seeds": self.config.experiment_seeds(name),
            "tables": self.experiment_tables(name),
            "figures": self.figures(name),
            "pages": self.tree_pages(name),
        }

    def _benchmark_part(self, name: str) -> dict[str, Any]:
        table = self.config.all_tables[name]
        tasks = self.config.tasks_of(table)
        parts = list(dict.fromkeys(part for task in tasks.values() for part in task.parts))
        return {
            "name": name,
            "title": table.title,
            "corpus": table.benchmark,
            "directions": list(tasks),
            "systems": self.labels(system for system in table.systems if system in self.config.systems),
            "seeds": self.config.benchmark_seeds(table.benchmark),
            "tables": [table_file(name)],
            "figures": [],
            "metrics": {part: part.replace("_", ", ") for part in parts},
        }
