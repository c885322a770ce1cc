"""The cells of a table: the published number, the mean over our seeds, the test against the baseline."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from synmask.pipeline.config.published import Number, Published
from synmask.pipeline.config.table_plan import TESTED, Plan
from synmask.pipeline.evaluation.sentences import OF_SENTENCES, counts_of
from synmask.pipeline.evaluation.significance import Certainty, compare
from synmask.pipeline.evaluation.task_scores import counts_of_examples, of_sums
from synmask.pipeline.files import UserError
from synmask.pipeline.reporting.layout import Value, highest
from synmask.pipeline.reporting.metrics import METRICS
from synmask.pipeline.reporting.runs import chosen


@dataclass
class Cell:
    """One system, column and metric: the published number and the result of our runs."""

    corpus: str
    column: str
    metric: str
    system: str
    label: str
    published: float | None
    published_text: str | None
    origin: str | None  # measured or quoted
    paper: str | None
    mean: float | None
    sd: float | None
    median: float | None
    seeds: int
    asked: int
    difference: float | None  # to the published number
    baseline: str | None  # None: nothing to test
    p: float | None  # None beside a baseline: some run has no counts by sentence
    p_test_set: float | None
    p_seeds: float | None
    best: bool = False  # among our means; in a sweep: the system that validation chooses
    best_published: bool = False


def build_cells(plan: Plan, published: Published, runs: pd.DataFrame) -> list[Cell]:
    """All cells of a table by column, metric and row; the best means, or validation's choice, are marked.

    Args:
        runs: one row per run, as from `runs.read_scores`.
    """
    cells = []
    choice = chosen(runs) if plan["sweep"] else {}
    for column in plan["columns"]:
        counts = cache(partial(_counts, column.get("task"), column.get("part")))
        for metric in plan["metrics"]:
            rows = [_cell(plan, published, runs, counts, column, metric, *row) for row in plan["rows"]]
            if plan["sweep"]:
                for cell in rows:
                    cell.best = choice.get((cell.corpus, cell.column)) == cell.system
            elif METRICS[metric].contest:
                _mark_best(rows, METRICS[metric].digits)
            cells += rows
    return cells


def value_of(cell: Cell, run: tuple[str, str, str] | None, baseline: float | None) -> Value:
    """A cell as a table shows it; `baseline` is the mean to compare with."""
    return Value(
        cell.mean, METRICS[cell.metric].digits, cell.sd, cell.p, cell.p_test_set, cell.p_seeds,
        change=None if cell.p is None or baseline is None else cell.mean - baseline,
        difference=cell.difference, seeds=cell.seeds, asked=cell.asked, best=cell.best, run=run,
    )  # fmt: skip


def _cell(
    plan: Plan,
    published: Published,
    runs: pd.DataFrame,
    counts: Callable[[str, Path], Sequence[np.ndarray] | None],
    column: dict[str, Any],
    metric: str,
    system: str,
    label: str,
) -> Cell:
    corpus, name = column["corpus"], column["column"]
    number: Number | None = published.numbers.get((corpus, name, metric, system))
    place = {"corpus": corpus, "direction": name}
    ours, theirs = (_scored(runs, metric, **place, system=one) for one in (system, plan["baseline"]))
    values = ours["value"]
    mean = values.mean() if len(values) else None
    due = metric in TESTED and system != plan["baseline"] and len(ours) and len(theirs)
    due = due and ours["counts"].notna().all()  # neither an average over columns nor a trivial baseline
    test = _test(counts, column, metric, ours, theirs) if due else None
    return Cell(
        corpus, name, metric, system, label,
        published=number and number.mean,
        published_text=number and number.text,
        origin=number and ("measured" if number.measured else "quoted"),
        paper=number and number.paper,
        mean=mean,
        sd=values.std(ddof=1) if len(values) > 1 and METRICS[metric].spread else None,
        median=values.median() if len(values) > 1 else None,
        seeds=len(values),
        asked=len(column["runs"].get(system, ())),
        difference=mean - number.mean if number and mean is not None else None,
        baseline=plan["baseline"] if due else None,
        p=test and test.p,
        p_test_set=test and test.p_test_set,
        p_seeds=test and test.p_seeds,
    )  # fmt: skip


def _scored(runs: pd.DataFrame, metric: str, **cell: str | None) -> pd.DataFrame:
    """A cell's runs but those that diverged; `value` is the metric, scaled for print."""
    rows = runs if metric in runs else runs[:0].assign(**{metric: None})
    for key, value in cell.items():
        rows = rows[rows[key] == value]
    return rows.assign(value=rows[metric].astype(float) * METRICS[metric].scale).dropna(subset=["value"])


def _test(
    counts: Callable, column: dict[str, Any], metric: str, ours: pd.DataFrame, theirs: pd.DataFrame
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
    if not task:
        return counts_of(path, metric)
    return counts_of_examples(path, task, part)


def _mark_best(cells: Sequence[Cell], digits: int) -> None:
    """Mark the highest of a column's published numbers, and of ours, compared as printed."""
    for value, mark in (("mean", "best"), ("published", "best_published")):
        best = highest((getattr(cell, value) for cell in cells), digits)
        for cell, is_best in zip(cells, best, strict=True):
            setattr(cell, mark, is_best)
