"""Tables of published numbers beside ours: CSV, Markdown, LaTeX, JSON."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from synmask.pipeline.config import read_published
from synmask.pipeline.config.table_plan import Plan, asked_runs
from synmask.pipeline.files import UserError
from synmask.pipeline.options import Json
from synmask.pipeline.reporting.cells import Cell, build_cells, value_of
from synmask.pipeline.reporting.layout import Layout, Value, arrow, write_csv, write_tables
from synmask.pipeline.reporting.metrics import METRICS
from synmask.pipeline.reporting.notes import notes
from synmask.pipeline.reporting.runs import (
    COSTS,
    OUTPUTS,
    RUN,
    SCORES,
    VALID_SCORES,
    averaged,
    check_alike,
    describe,
    read_parse_scores,
    read_scores,
    read_tasks,
)

PROTOCOL = "paper"  # the paper's own count of parsing scores


def write_table(
    *,
    plan: Json[Plan],
    published: Path,
    scores: tuple[Path, ...],
    parses: tuple[Path, ...],
    tasks: tuple[Path, ...] = (),
    output: Path,
) -> None:
    """Make a table from the given runs: CSV, Markdown and LaTeX.

    It shows published numbers, mean and standard deviation over seeds, and significance.

    Args:
        plan: Rows, columns and the runs that the table needs.
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
    runs = _gather(plan, scores, parses, tasks)
    cells = build_cells(plan, known, runs)
    write_csv(output, pd.DataFrame(map(asdict, cells)).drop(columns="published_text"))
    write_csv(f"{output}.runs", runs.drop(columns=[*OUTPUTS, "overlap", "counts"]))  # notes have the first
    table = _layout(plan, cells)
    name = re.sub(
        r"^\.snakemake/storage/.*?(?=results/)", "", str(output)
    )  # of a storage, what a user calls it
    table.notes = notes(plan, known, cells, runs, make=f"snakemake {name}.md")
    write_tables(output, [table])


def _gather(
    plan: Plan, scores: Sequence[Path], parses: Sequence[Path], tasks: Sequence[Path]
) -> pd.DataFrame:
    """All given runs, one row each, in the table's order."""
    signatures = [f"signature_{metric}" for metric in SCORES]
    columns = [*RUN, *COSTS, "overlap", "counts", *OUTPUTS]
    columns += ["device_hours", "memory", *SCORES, *VALID_SCORES, *signatures]
    runs = pd.DataFrame(columns=columns)
    if scores:
        read = read_scores(scores)
        check_alike(read)
        runs = read[columns]
    if parses:
        runs = runs.merge(read_parse_scores(parses, PROTOCOL), on=RUN, how="outer")
    if tasks:
        runs = read_tasks(tasks, plan["columns"]).reindex(columns=[*columns, "glue"])
    order = {tuple(run.values()): position for position, run in enumerate(asked_runs(plan))}
    places = [order.get(run) for run in runs[RUN].itertuples(index=False, name=None)]
    if None in places:
        raise UserError(f"{describe(runs.iloc[places.index(None)])}: not in this table; leave the file out")
    runs = runs.iloc[sorted(range(len(places)), key=places.__getitem__)].reset_index(drop=True)
    return averaged(runs, plan["columns"]) if tasks else runs


def _layout(plan: Plan, cells: Sequence[Cell]) -> Layout:
    """Per system, a row of published numbers and a row of numbers measured here."""
    places = [(column, metric) for column in plan["columns"] for metric in plan["metrics"]]
    heads = [
        (column["group"], arrow(column["column"]), _named(metric, plan["metrics"]))
        for column, metric in places
    ]
    nothing_asked = not any(cell.asked for cell in cells)
    with_kinds = any(cell.published_text for cell in cells) or "glue" in plan["metrics"]
    table = Layout(plan["title"], ["System", *([""] if with_kinds else [])], heads)
    table.baseline = dict(plan["rows"]).get(plan["baseline"], "")
    rows = {system: [cell for cell in cells if cell.system == system] for system, _ in plan["rows"]}
    baseline = [cell.mean for cell in rows.get(plan["baseline"], ())] or [None] * len(places)
    for system, label in plan["rows"]:
        row = rows[system]
        origins = {cell.origin for cell in row}
        for origin, word in (("measured", "published"), ("quoted", "quoted")):
            if origin in origins:
                table.rows.append(([label, word], [_published(cell, origin) for cell in row]))
        if any(cell.asked for cell in row) or (nothing_asked and "quoted" not in origins):
            runs = [_run(column, system) for column, _ in places]
            values = list(map(value_of, row, runs, baseline))
            table.rows.append(([label, *(["here"] if with_kinds else [])], values))
            if "glue" in plan["metrics"] and any(cell.median is not None for cell in row):
                medians = [Value(cell.median, METRICS[cell.metric].digits) for cell in row]
                table.rows.append(([label, "median"], medians))
    return table


def _run(column: dict[str, Any], system: str) -> tuple[str, str, str] | None:
    """Corpus, direction (or task) and system of a number; None for an average over columns."""
    direction = column.get("task", column["column"])
    return (column["corpus"], direction, system) if direction else None


def _named(metric: str, metrics: Sequence[str]) -> str:
    """A metric's label; it says "test" if the table also has the validation score."""
    return ("test " if f"valid_{metric}" in metrics else "") + METRICS[metric].label


def _published(cell: Cell, origin: str) -> Value:
    here = cell.origin == origin
    return Value(printed=cell.published_text, best=cell.best_published) if here else Value()
