"""The cells of a table as one tidy frame, a row per system, column and metric; and how they are printed."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import pandas as pd
from cyclopts import Parameter
from pydantic import Field

from synmask.pipeline.arguments import Json, Labels, OneOrMore
from synmask.pipeline.config.base import Line, Metric
from synmask.pipeline.display import arrow
from synmask.pipeline.reporting.metrics import METRICS
from synmask.pipeline.runs import Column, Columns

SIGNIFICANT, VERY_SIGNIFICANT = 0.05, 0.01
OF_CSV = [
    "corpus", "column", "metric", "system", "label", "published", "origin", "paper", "mean", "sd", "median",
    "seeds", "asked", "difference", "baseline", "p", "p_test_set", "p_seeds", "best", "best_published",
]  # fmt: skip
NUMBERS = ["published", "mean", "sd", "median", "difference", "change", "p", "p_test_set", "p_seeds"]
MARKS = ["best", "best_published"]
COLUMN = ["corpus", "column", "metric"]
LINES = ("published", "quoted", "here", "median")  # of a system, below each other


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
        runs = expected_runs(self.columns, dict(self.labels))
        return pd.DataFrame(runs, columns=["corpus", "direction", "system", "seed", "label", "group"])


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ScoreOptions(TableOptions):
    """The contents of a table of scores, from its runs."""

    metrics: Annotated[OneOrMore[Metric], Parameter(help="A column each, below each of `columns`.")]
    baseline: Annotated[
        str | None, Parameter(help="The system that significance is tested against, if it is run.")
    ] = None
    sweep: Annotated[bool, Parameter(help="Let the validation set choose among the rows.")] = False
    notes: Annotated[tuple[Line, ...], Parameter(help="Further notes below the table.")] = ()


def cell_of(
    column: Column, metric: str, system: str | None, label: str, runs: pd.DataFrame
) -> dict[str, Any]:
    """A cell without tests: of these runs, but those without a finite score."""
    printing, values = METRICS[metric], scaled(runs, metric)
    return {
        "corpus": column["corpus"],
        "column": column["column"],
        "metric": metric,
        "system": system,
        "label": label,
        "mean": values.mean(),  # NaN without runs
        "sd": values.std() if printing.spread else None,
        "median": values.median() if len(values) > 1 else None,
        "seeds": len(values),
        "asked": 0,
        "diverged": 0,
        "run": system and column.get("task", column["column"]),
        "group": column["group"],
        "head": printing.label,
        "digits": printing.digits,
        "contest": printing.contest,
    }


def scaled(runs: pd.DataFrame, metric: str) -> pd.Series:
    """The finite scores of runs, scaled for print."""
    values = runs[metric] if metric in runs else runs["seed"][:0]
    return values.astype(float).dropna() * METRICS[metric].scale


def frame_of(cells: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """The frame of cells, ordered by column, metric and row.

    Columns beside `OF_CSV`'s (docs/tables.md):
        printed: the published number as its paper prints it.
        change: the difference from the baseline.
        diverged: how many of the runs did.
        run: direction or task of the runs; none of an average or of trivial trees.
        group, head, digits, contest: the heading of the corpus and of the metric; how it is printed; 1 if the
            highest is the best, -1 if the lowest is.
    """
    frame = pd.DataFrame(cells)
    missing = dict.fromkeys({*OF_CSV, *NUMBERS, "printed", "run"} - {*frame})
    missing |= dict.fromkeys({*MARKS} - {*frame}, False)
    return frame.assign(**missing).astype(dict.fromkeys(NUMBERS, float))


def marked(cells: pd.DataFrame) -> pd.DataFrame:
    """With the best of each column marked, as printed, of our means and of published numbers; one alone is
    not the best."""
    marks = {}
    for value, mark in (("mean", "best"), ("published", "best_published")):
        contest = cells["contest"].astype(int)
        pairs = zip((cells[value] * contest).where(contest != 0), cells["digits"], strict=True)
        printed = pd.Series([round(number, digits) for number, digits in pairs], cells.index, dtype=float)
        columns = printed.groupby([cells[key] for key in COLUMN])
        marks[mark] = printed.eq(columns.transform("max")) & columns.transform("count").gt(1)
    return cells.assign(**marks)


def signed(value: float, digits: int = 2) -> str:
    """+0.10, −0.10, but never −0.00."""
    return f"{round(float(value), digits) + 0.0:+.{digits}f}".replace("-", "−")


def probability(p: float) -> str:
    """p 0.012, or p < 0.001."""
    return f"p {p:.3f}" if p >= 0.001 else "p < 0.001"


def text_of(cell: pd.Series) -> str | None:
    """35.80 ± 0.12‡ (−0.09) [4 of 5]: mean, sd, mark, difference, and runs that lack or diverged; or None."""
    digits = cell["digits"]
    if pd.isna(cell["mean"]):
        return None
    text = f"{cell['mean']:z.{digits}f}"  # z: no -0.00
    if pd.notna(cell["sd"]):
        text += f" ± {cell['sd']:.{digits}f}"
    if cell["p"] < SIGNIFICANT:
        text += "‡" if cell["p"] < VERY_SIGNIFICANT else "†"
    if pd.notna(cell["difference"]):
        text += f" ({signed(cell['difference'], digits)})"
    faults = [f"{cell['seeds']} of {cell['asked']}"] if cell["seeds"] < cell["asked"] else []
    faults += [f"{cell['diverged']} diverged"] if cell["diverged"] else []
    return f"{text} [{', '.join(faults)}]" if faults else text


def wide(cells: pd.DataFrame, form: Callable[[pd.Series], str]) -> pd.DataFrame:
    """The table as text: rows per system and line, columns with three levels of heads; NaN without a number.

    Args:
        form: a cell, with its `line`, `text` and `best` → what is printed.
    """
    row = cells.groupby(["system", "label"], sort=False, dropna=False).ngroup()
    of_row = cells["asked"].gt(0).groupby(row)
    quoted = cells["origin"].eq("quoted").groupby(row)
    here = of_row.transform("any") if cells["asked"].any() else ~quoted.transform("any")
    printed = {"text": cells["printed"], "best": cells["best_published"]}
    median = [f"{value:z.{digits}f}" for value, digits in zip(cells["median"], cells["digits"], strict=True)]
    of_lines = {
        "published": cells.assign(**printed)[cells["origin"].eq("measured")],
        "quoted": cells.assign(**printed)[cells["origin"].eq("quoted")],
        "here": cells.assign(text=[text_of(cell) for _, cell in cells.iterrows()])[here],
        "median": cells.assign(text=median, best=False)[cells["metric"].eq("glue") & cells["median"].notna()],
    }
    lines = pd.concat(of_lines, names=["line", "cell"]).reset_index("line")
    lines["y"] = len(LINES) * row.loc[lines.index] + lines["line"].map(LINES.index)
    lines["x"] = cells.groupby(COLUMN, sort=False).ngroup().loc[lines.index]
    lines["text"] = [form(line) if pd.notna(line["text"]) else None for _, line in lines.iterrows()]
    table = lines.pivot(index="y", columns="x", values="text")
    stubs = lines.drop_duplicates("y").set_index("y").loc[table.index, ["label", "line"]]
    heads = lines.drop_duplicates("x").set_index("x").loc[table.columns]
    table.columns = pd.MultiIndex.from_arrays([heads["group"], heads["column"].map(arrow), heads["head"]])
    table.index = pd.MultiIndex.from_frame(stubs)
    return table if {*lines["line"]} != {"here"} else table.droplevel("line")


def expected_runs(columns: Iterable[Column], labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """Every run that a table asks for, in its order, with the label of its row and the group of its column.

    Args:
        labels: system → label, in the order of the rows.
    """
    return [
        {
            "corpus": column["corpus"],
            "direction": column["column"],
            "system": system,
            "seed": seed,
            "label": label,
            "group": column["group"],
        }
        for column in columns
        for system, label in labels.items()
        for seed in column["runs"].get(system, ())
    ]
