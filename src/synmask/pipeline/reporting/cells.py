"""The cells of a table as one tidy frame, a row per column, metric and system; and how they are printed."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Annotated, Any

import pandas as pd
from cyclopts import Parameter
from pydantic import Field

from synmask.pipeline.arguments import Json, Labels, OneOrMore
from synmask.pipeline.config.base import Line, Metric
from synmask.pipeline.display import arrow
from synmask.pipeline.evaluation.significance import LEVEL, compare
from synmask.pipeline.metric_names import TESTED, is_measured
from synmask.pipeline.published import Number
from synmask.pipeline.reporting.metrics import METRICS
from synmask.pipeline.reporting.results import score_of
from synmask.pipeline.runs import Column, Columns

VERY_SIGNIFICANT = 0.01  # below `LEVEL`
CELL = ["corpus", "direction", "system"]  # of its runs
COLUMN = ["corpus", "column", "metric"]
OF_CSV = [
    *COLUMN, "system", "label", "published", "origin", "paper", "mean", "sd", "median", "seeds", "asked",
    "difference", "baseline", "p", "p_test_set", "p_seeds", "best", "best_published",
]  # fmt: skip
COLUMNS = [*OF_CSV, "group", "run", "printed", "change", "diverged"]
NUMBERS = ["published", "mean", "sd", "median", "difference", "change", "p", "p_test_set", "p_seeds"]
LINES = ["published", "quoted", "here", "median"]  # of a system, below each other


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """The rows and columns of a table, and the runs that it asks for."""

    title: Annotated[Line, Parameter(help="Heading of the table.")]
    labels: Labels
    columns: Annotated[
        Json[Annotated[Columns, Field(min_length=1)]],
        Parameter(help="Columns with their runs, as JSON: corpus, column, group, runs (system → seeds)."),
    ]

    @cached_property
    def expected(self) -> pd.DataFrame:
        """The runs, one row each, in the table's order."""
        runs = [
            (column["corpus"], column["column"], system, seed, label, column["group"])
            for column, (system, label) in product(self.columns, self.labels)
            for seed in column["runs"].get(system, ())
        ]
        return pd.DataFrame(runs, columns=[*CELL, "seed", "label", "group"])


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ScoreOptions(TableOptions):
    """The contents of a table of scores, from its runs; the first system is the baseline of its tests."""

    metrics: Annotated[OneOrMore[Metric], Parameter(help="A column each, below each of `columns`.")]
    sweep: Annotated[bool, Parameter(help="Let the validation set choose among the rows.")] = False
    notes: Annotated[tuple[Line, ...], Parameter(help="Further notes below the table.")] = ()


def cells_of(
    options: TableOptions,
    metrics: Sequence[str],
    runs: pd.DataFrame,
    baseline: str | None,
    published: Mapping[tuple[str, ...], Number],
) -> pd.DataFrame:
    """The cells of a table: for each column, metric and row, from the runs with a finite score.

    Args:
        runs: with a column per metric, and `counts`: metric → a run's counts by sentence, for tests; or none.
        published: (corpus, column, metric, system) → number.
    """
    runs = runs.reindex(columns=list(dict.fromkeys([*runs, *metrics, "diverged"])))
    scores = runs.melt([*CELL, "seed", "counts", "diverged"], metrics, "metric").dropna(subset=["value"])
    scores["value"] = scores["value"].astype(float) * [METRICS[name].scale for name in scores["metric"]]
    by_cell = dict(iter(scores.groupby([*CELL, "metric"], sort=False)))
    cells = []
    for column, metric, (system, label) in product(options.columns, metrics, options.labels):
        place, run = (column["corpus"], column["column"]), column.get("task", column["column"])
        asked = (column if run else options.columns[0])["runs"]  # an average: those of any task
        ours, rivals = (by_cell.get((*place, name, metric), scores[:0]) for name in (system, baseline))
        values = ours["value"]
        cell = dict(zip(COLUMN, (*place, metric), strict=True)) | {
            "system": system,
            "label": label,
            "mean": values.mean(),  # NaN without runs
            "sd": values.std() if METRICS[metric].spread else None,
            "median": values.median() if len(values) > 1 else None,
            "seeds": len(values),
            "asked": len(asked.get(system, ())),
            "diverged": int(ours["diverged"].notna().sum()),
            "group": column["group"],
            "run": run,
        }
        if number := published.get((*place, metric, system)):
            cell |= {"published": number.mean, "printed": number.text, "paper": number.paper}
            cell["origin"] = "measured" if number.measured else "quoted"
            cell["difference"] = cell["mean"] - number.mean
        if system != baseline and len(ours) and len(rivals):
            cell |= _tested(metric, column, ours, rivals)
        cells.append(cell)
    return mark_best(frame_of(cells))


def _tested(metric: str, column: Column, ours: pd.DataFrame, rivals: pd.DataFrame) -> dict[str, Any]:
    """The difference of a cell's runs from the baseline's; without numbers if a run lacks its counts."""
    if not (metric in TESTED or is_measured(metric)) or ours["counts"].isna().any():
        return {}  # an average over columns and what needs no training have no counts
    baseline, scores = rivals["system"].iloc[0], [*rivals["value"]]
    sides = [[counts(metric) for counts in side["counts"]] for side in (ours, rivals)]
    if any(run is None for side in sides for run in side):
        return {"baseline": baseline}
    test = compare(
        [*ours["value"]],
        scores[0] if [*rivals["seed"]] == [0] else scores,  # a trivial tree has no seeds
        *sides,
        names=f"{column['column']}, {ours['system'].iloc[0]} and {baseline}",
        score=score_of(metric, column.get("task")),
    )
    probabilities = {key: getattr(test, key) for key in ("p", "p_test_set", "p_seeds")}
    return {"baseline": baseline, "change": test.difference} | probabilities


def frame_of(cells: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """The frame of cells, ordered by column, metric and row.

    Beside `OF_CSV` (docs/tables.md), it has the heading of the corpus (`group`), the direction or task of the
    runs (`run`; of an average none), the published number as its paper prints it, the difference from the
    baseline (`change`), and how many runs diverged.
    """
    frame = pd.DataFrame(cells, columns=COLUMNS).astype(dict.fromkeys(NUMBERS, float))
    return frame.assign(**{mark: frame[mark].eq(True) for mark in ("best", "best_published")})


def mark_best(cells: pd.DataFrame) -> pd.DataFrame:
    """With the best of each column marked, as printed, of our means and of published numbers; one alone is
    not the best."""
    for value, mark in (("mean", "best"), ("published", "best_published")):
        numbers = (cells["metric"], cells["system"], cells[value])
        ranks = pd.Series(map(_rank, *numbers), cells.index, dtype=float)
        columns = ranks.groupby([cells[key] for key in COLUMN])
        best = ranks.eq(columns.transform("max")) & columns.transform("count").gt(1)
        cells = cells.assign(**{mark: best})
    return cells


def _rank(metric: str, system: str, value: float) -> float:
    """A number as printed, or less where the lowest is the best; NaN if it cannot be the best."""
    contest = METRICS[metric].contest if system != "oracle trees" else 0
    return round(contest * value, METRICS[metric].digits) if contest else math.nan


def signed(value: float, digits: int = 2) -> str:
    """+0.10, −0.10, but never −0.00."""
    return f"{round(float(value), digits) + 0.0:+.{digits}f}".replace("-", "−")


def probability(p: float) -> str:
    """p 0.012, or p < 0.001."""
    return f"p {p:.3f}" if p >= 0.001 else "p < 0.001"


def text_of(cell: Mapping[str, Any]) -> str | None:
    """35.80 ± 0.12‡ (−0.09) [4 of 5]: mean, sd, mark, difference, and runs that lack or diverged; or None."""
    digits = METRICS[cell["metric"]].digits
    if pd.isna(cell["mean"]):
        return None
    text = f"{cell['mean']:z.{digits}f}"  # z: no -0.00
    if pd.notna(cell["sd"]):
        text += f" ± {cell['sd']:.{digits}f}"
    if cell["p"] < LEVEL:
        text += "‡" if cell["p"] < VERY_SIGNIFICANT else "†"
    if pd.notna(cell["difference"]):
        text += f" ({signed(cell['difference'], digits)})"
    faults = [f"{cell['seeds']} of {cell['asked']}"] if cell["seeds"] < cell["asked"] else []
    faults += [f"{cell['diverged']} diverged"] if cell["diverged"] else []
    return f"{text} [{', '.join(faults)}]" if faults else text


def _lines(cell: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The cell once for each line of its system that it has, with its text, and whether this is the best."""
    if pd.notna(cell["printed"]):
        line = "published" if cell["origin"] == "measured" else "quoted"
        yield cell | {"line": line, "text": cell["printed"], "best": cell["best_published"]}
    if cell["asked"] or cell["seeds"]:
        yield cell | {"line": "here", "text": text_of(cell)}
    if cell["metric"] == "glue" and pd.notna(cell["median"]):
        median = f"{cell['median']:z.{METRICS['glue'].digits}f}"
        yield cell | {"line": "median", "text": median, "best": False}


def as_text(cells: pd.DataFrame, form: Callable[[Mapping[str, Any]], str]) -> pd.DataFrame:
    """The table as text: rows per label and line, columns per group, direction and metric; NaN: no number.

    Levels of heads without text are left out, and the lines' names if all are ours. `form` prints a cell,
    which has a `line` and its `text`, too.
    """
    metrics = {*cells["metric"]}
    heads = {name: "test " * (f"valid_{name}" in metrics) + METRICS[name].label for name in metrics}
    cells = cells.assign(
        x=cells.groupby(COLUMN, sort=False).ngroup(),
        y=cells.groupby(["system", "label"], sort=False).ngroup(),
        head=cells["metric"].map(heads),
        column=cells["column"].map(arrow),
    )
    texts = pd.DataFrame(
        line | {"place": LINES.index(line["line"]), "text": line["text"] and form(line)}
        for cell in cells.to_dict("records")
        for line in _lines(cell)
    )
    index, levels = ["y", "place", "label", "line"], ["group", "column", "head"]
    table = texts.pivot(index=index, columns=["x", *levels], values="text").droplevel(["y", "place"])
    shown = [level for level in levels if texts[level].any()]
    table.columns = pd.MultiIndex.from_frame(table.columns.to_frame()[shown])
    return table if {*texts["line"]} != {"here"} else table.droplevel("line")
