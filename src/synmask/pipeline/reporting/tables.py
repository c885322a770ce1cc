"""Tables of published numbers beside ours: CSV, Markdown, LaTeX, JSON."""

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd

from synmask.pipeline.arguments import Json
from synmask.pipeline.config.base import TESTED, arrow
from synmask.pipeline.config.loading import read_published
from synmask.pipeline.config.published import Published
from synmask.pipeline.evaluation.sentences import OF_SENTENCES, counts_of
from synmask.pipeline.evaluation.significance import Certainty, compare
from synmask.pipeline.evaluation.task_scores import counts_of_examples, of_sums
from synmask.pipeline.files import UserError
from synmask.pipeline.record import read_record
from synmask.pipeline.reporting import runs as results
from synmask.pipeline.reporting.cells import Cell
from synmask.pipeline.reporting.layout import Layout, Value, highest, write_csv, write_tables
from synmask.pipeline.reporting.metrics import METRICS
from synmask.pipeline.reporting.notes import notes
from synmask.pipeline.runs import Column, TableSpec, expected_runs

PROTOCOL = "paper"  # the paper's own count of parsing scores
OF_CELL = [
    "corpus", "column", "metric", "system", "label", "published", "origin", "paper", "mean", "sd", "median",
    "seeds", "asked", "difference", "baseline", "p", "p_test_set", "p_seeds", "best", "best_published",
]  # fmt: skip
OF_RUN = [*results.RUN, *results.COSTS, "device_hours", "memory", *results.SCORES, *results.VALID_SCORES]
OF_RUN += results.SIGNATURES
FOR_NOTES = ["overlap", "counts", *results.OUTPUTS]  # and tests
Counts = Callable[[str, Path], Sequence[np.ndarray] | None]


def write_table(
    *,
    spec: Json[TableSpec],
    published: Path,
    scores: tuple[Path, ...],
    parses: tuple[Path, ...],
    tasks: tuple[Path, ...] = (),
    output: Path,
) -> None:
    """Make a table from the given runs: CSV, Markdown and LaTeX.

    It shows published numbers, mean and standard deviation over seeds, and significance.

    Args:
        spec: Rows, columns and the runs that the table needs.
        published: published.yaml.
        scores: scores.json of the runs; sentences.csv beside each, if it exists, for tests.
        parses: parse.json of the runs.
        tasks: scores.json and baselines.json of tasks of language understanding; examples.csv likewise.
        output: Prefix of .csv (a row per cell), .runs.csv (a row per run), .md, .tex and .json.

    Raises:
        UserError: a file is missing or lacks a key; a run is given twice or is not of the table; runs of one
            cell were trained with different settings, or runs of one column decoded or scored differently.
    """
    known = read_published(published)
    runs = _gather(spec, scores, parses, tasks)
    cells = _cells(spec, known, runs)
    write_csv(output, pd.DataFrame(map(asdict, cells))[OF_CELL])
    write_csv(f"{output}.runs", runs.drop(columns=FOR_NOTES))
    table = _layout(spec, cells)
    # of a storage, what a user calls it
    name = re.sub(r"^\.snakemake/storage/.*?(?=results/)", "", str(output))
    table.notes = notes(spec, known, cells, runs, make=f"snakemake {name}.md")
    write_tables(output, [table])


def _gather(
    spec: TableSpec, scores: Sequence[Path], parses: Sequence[Path], tasks: Sequence[Path]
) -> pd.DataFrame:
    """All given runs, one row each, in the table's order."""
    columns = [*OF_RUN, *FOR_NOTES]
    runs = pd.DataFrame(columns=columns)
    if scores:
        read = results.read_scores(scores)
        results.check_alike(read)
        runs = read[columns]
    if parses:
        runs = runs.merge(results.read_parse_scores(parses, PROTOCOL), on=results.RUN, how="outer")
    if tasks:
        runs = results.read_tasks(tasks, spec["columns"]).reindex(columns=[*columns, "glue"])
    order = {tuple(run.values()): position for position, run in enumerate(expected_runs(spec))}
    places = [order.get(run) for run in runs[results.RUN].itertuples(index=False, name=None)]
    if None in places:
        run = results.describe(runs.iloc[places.index(None)])
        raise UserError(f"{run}: not in this table; leave the file out")
    runs = runs.iloc[np.argsort(places, kind="stable")].reset_index(drop=True)
    return results.averaged(runs, spec["columns"]) if tasks else runs


def _cells(spec: TableSpec, published: Published, runs: pd.DataFrame) -> list[Cell]:
    """All cells of a table by column, metric and row; the best means, or validation's choice, are marked."""
    cells = []
    choice = results.chosen(runs) if spec["sweep"] else {}
    for column in spec["columns"]:
        counts = cache(partial(_counts, column.get("task"), column.get("part")))
        for metric in spec["metrics"]:
            rows = [_cell(spec, published, runs, counts, column, metric, *row) for row in spec["rows"]]
            if spec["sweep"]:
                for cell in rows:
                    cell.best = choice.get((cell.corpus, cell.column)) == cell.system
            elif METRICS[metric].contest:
                for value, mark in (("mean", "best"), ("published", "best_published")):
                    best = highest((getattr(cell, value) for cell in rows), METRICS[metric].digits)
                    for cell, is_best in zip(rows, best, strict=True):
                        setattr(cell, mark, is_best)
            cells += rows
    return cells


def _cell(
    spec: TableSpec,
    published: Published,
    runs: pd.DataFrame,
    counts: Counts,
    column: Column,
    metric: str,
    system: str,
    label: str,
) -> Cell:
    corpus, name, kind = column["corpus"], column["column"], METRICS[metric]
    number = published.numbers.get((corpus, name, metric, system))
    here = runs[(runs["corpus"] == corpus) & (runs["direction"] == name)]
    ours, theirs = (_scored(here, metric, one) for one in (system, spec["baseline"]))
    values = ours["value"]
    mean = values.mean() if len(values) else None
    due = metric in TESTED and system != spec["baseline"] and len(ours) and len(theirs)
    due = due and ours["counts"].notna().all()  # neither an average over columns nor a trivial baseline
    test = _test(counts, column, metric, ours, theirs) if due else None
    direction = column.get("task", name)  # None: an average over columns
    return Cell(
        mean, kind.digits,
        sd=values.std(ddof=1) if len(values) > 1 and kind.spread else None,
        p=test and test.p,
        p_test_set=test and test.p_test_set,
        p_seeds=test and test.p_seeds,
        change=test and mean - theirs["value"].mean(),
        difference=mean - number.mean if number and mean is not None else None,
        seeds=len(values),
        asked=len(_expected_seeds(spec, column, system)),
        run=(corpus, direction, system) if direction else None,
        corpus=corpus,
        column=name,
        metric=metric,
        system=system,
        label=label,
        published=number and number.mean,
        published_text=number and number.text,
        origin=number and ("measured" if number.measured else "quoted"),
        paper=number and number.paper,
        median=values.median() if len(values) > 1 else None,
        baseline=spec["baseline"] if due else None,
    )  # fmt: skip


def _expected_seeds(spec: TableSpec, column: Column, system: str) -> set[int]:
    """The seeds of a cell: of an average over columns, those of all columns."""
    average = column.get("task", "") is None
    columns = spec["columns"] if average else [column]
    return {seed for one in columns for seed in one["runs"].get(system, ())}


def _scored(runs: pd.DataFrame, metric: str, system: str | None) -> pd.DataFrame:
    """A system's runs but those that diverged; `value` is the metric, scaled for print."""
    rows = runs[runs["system"] == system]
    found = rows[metric].astype(float) * METRICS[metric].scale if metric in rows else None
    return rows.assign(value=found).dropna(subset=["value"])


def _test(
    counts: Counts, column: Column, metric: str, ours: pd.DataFrame, theirs: pd.DataFrame
) -> Certainty | None:
    """The runs of a cell against the baseline's; None if a run has no counts."""
    sides = [[counts(metric, path) for path in side["counts"]] for side in (ours, theirs)]
    if any(run is None for side in sides for run in side):
        return None
    score = partial(of_sums, column["task"]) if column.get("task") else OF_SENTENCES[metric][1]
    try:
        return compare(ours["value"].tolist(), theirs["value"].tolist(), *sides, score=score)
    except ValueError as error:
        names = f"{column['column']}, {ours['system'].iloc[0]} and {theirs['system'].iloc[0]}"
        raise UserError(f"{names}: not scored on the same test set ({error}); score them again") from None


def _counts(task: str | None, part: str | None, metric: str, path: Path) -> Sequence[np.ndarray] | None:
    """The counts of a run from whose sums the metric follows, (N,) each; None if they are not known."""
    if not path.exists():
        return None
    read_record(path.with_name("scores.json"), [path])
    if not task:
        return counts_of(path, metric)
    return counts_of_examples(path, task, part)


def _layout(spec: TableSpec, cells: Sequence[Cell]) -> Layout:
    """Per system, a row of published numbers and a row of numbers measured here."""
    heads = [
        (column["group"], arrow(column["column"]), _named(metric, spec["metrics"]))
        for column in spec["columns"]
        for metric in spec["metrics"]
    ]
    nothing_asked = not any(cell.asked for cell in cells)
    with_kinds = any(cell.published_text for cell in cells) or "glue" in spec["metrics"]
    table = Layout(spec["title"], ["System", *([""] if with_kinds else [])], heads)
    table.baseline = dict(spec["rows"]).get(spec["baseline"], "")
    for system, label in spec["rows"]:
        row = [cell for cell in cells if cell.system == system]
        origins = {cell.origin for cell in row}
        for origin, word in (("measured", "published"), ("quoted", "quoted")):
            if origin in origins:
                table.rows.append(([label, word], [_printed(cell, origin) for cell in row]))
        if any(cell.asked for cell in row) or (nothing_asked and "quoted" not in origins):
            table.rows.append(([label, *(["here"] if with_kinds else [])], row))
            if "glue" in spec["metrics"] and any(cell.median is not None for cell in row):
                table.rows.append(([label, "median"], [Value(cell.median, cell.digits) for cell in row]))
    return table


def _named(metric: str, metrics: Sequence[str]) -> str:
    """A metric's label; it says "test" if the table also has the validation score."""
    return ("test " if f"valid_{metric}" in metrics else "") + METRICS[metric].label


def _printed(cell: Cell, origin: str) -> Value:
    """The published number of this origin."""
    here = cell.origin == origin
    return Value(printed=cell.published_text, best=cell.best_published) if here else Value()
