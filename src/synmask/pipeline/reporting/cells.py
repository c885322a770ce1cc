"""The cells of a table: the published number, the mean over our seeds, the test against the baseline."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from synmask.pipeline.config.published import Number, Published
from synmask.pipeline.config.table_plan import Plan
from synmask.pipeline.evaluation.significance import Certainty, over_seeds
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
    baseline: str | None
    p: float | None
    p_test_set: float | None
    p_seeds: float | None
    best: bool = False  # among our means; in a sweep: the system that validation chooses
    best_published: bool = False


def build_cells(plan: Plan, published: Published, runs: pd.DataFrame, tests: pd.DataFrame) -> list[Cell]:
    """All cells of a table by column, metric and row; the best means, or validation's choice, are marked.

    Args:
        runs: one row per run, as from `runs.read_scores`.
        tests: one row per run and metric, as from `runs.read_comparisons`.
    """
    cells = []
    choice = chosen(runs) if plan["sweep"] else {}
    for column in plan["columns"]:
        for metric in plan["metrics"]:
            rows = [_cell(plan, published, runs, tests, column, metric, *row) for row in plan["rows"]]
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
    tests: pd.DataFrame,
    column: dict[str, Any],
    metric: str,
    system: str,
    label: str,
) -> Cell:
    corpus, name = column["corpus"], column["column"]
    number: Number | None = published.numbers.get((corpus, name, metric, system))
    place = {"corpus": corpus, "direction": name}
    values, rivals = (_values(runs, metric, **place, system=one) for one in (system, plan["baseline"]))
    mean = values.mean() if len(values) else None
    tested = _where(tests, **place, system=system, baseline=plan["baseline"], metric=metric)
    test = _test(tested, values, rivals)
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
        baseline=plan["baseline"] if test else None,
        p=test and test.p,
        p_test_set=test and test.p_test_set,
        p_seeds=test and test.p_seeds,
    )  # fmt: skip


def _where(table: pd.DataFrame, **values: str | None) -> pd.DataFrame:
    """The rows with these values."""
    for key, value in values.items():
        table = table[table[key] == value]
    return table


def _values(runs: pd.DataFrame, metric: str, **cell: str | None) -> pd.Series:
    """A metric of a cell's runs by seed, scaled for print, without runs that diverged."""
    if metric not in runs:
        return pd.Series(dtype=float)
    return _where(runs, **cell).set_index("seed")[metric].astype(float).dropna() * METRICS[metric].scale


def _test(tests: pd.DataFrame, ours: pd.Series, theirs: pd.Series) -> Certainty | None:
    """Scores by seed against the baseline's, over the tested seeds that both have; None if there are none."""
    tests = tests[tests["seed"].isin(ours.index) & tests["seed"].isin(theirs.index)]
    if tests.empty:
        return None
    pairs = [*zip(tests["difference"], tests["p"], strict=True)]
    return over_seeds(pairs, ours[tests["seed"]].tolist(), theirs[tests["seed"]].tolist())


def _mark_best(cells: Sequence[Cell], digits: int) -> None:
    """Mark the highest of a column's published numbers, and of ours, compared as printed."""
    for value, mark in (("mean", "best"), ("published", "best_published")):
        best = highest((getattr(cell, value) for cell in cells), digits)
        for cell, is_best in zip(cells, best, strict=True):
            setattr(cell, mark, is_best)
