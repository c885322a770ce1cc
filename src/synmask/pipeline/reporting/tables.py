"""Tables of published numbers beside ours: CSV, Markdown, LaTeX, JSON."""

import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from synmask.pipeline.arguments import Json
from synmask.pipeline.config.base import TESTED, is_measured
from synmask.pipeline.config.loading import read_published
from synmask.pipeline.config.published import Published
from synmask.pipeline.evaluation.measure import measured_file, ratio, read_measured
from synmask.pipeline.evaluation.sentences import OF_SENTENCES, counts_of
from synmask.pipeline.evaluation.significance import Certainty, compare
from synmask.pipeline.evaluation.task_scores import counts_of_examples, of_sums
from synmask.pipeline.files import UserError
from synmask.pipeline.record import read_record
from synmask.pipeline.reporting import runs as results
from synmask.pipeline.reporting.cells import OF_CSV, frame_of, marked
from synmask.pipeline.reporting.layout import Table, write_tables
from synmask.pipeline.reporting.metrics import METRICS
from synmask.pipeline.reporting.notes import notes
from synmask.pipeline.runs import Column, TableSpec, expected_runs

PROTOCOL = "paper"  # the paper's own count of parsing scores
OF_RUN = [*results.RUN, *results.COSTS, "device_hours", "memory", *results.SCORES, *results.VALID_SCORES]
OF_RUN += results.SIGNATURES
FOR_NOTES = ["overlap", "dropped", "counts", *results.OUTPUTS]  # and tests
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
    # of a storage, what a user calls it
    name = re.sub(r"^\.snakemake/storage/.*?(?=results/)", "", str(output))
    paragraphs = notes(spec, known, cells, runs, make=f"snakemake {name}.md")
    table = Table(spec["title"], cells, paragraphs, dict(spec["rows"]).get(spec["baseline"], ""))
    write_tables(output, [table], {".csv": cells[OF_CSV], ".runs.csv": runs.drop(columns=FOR_NOTES)})


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
        for metric in filter(is_measured, spec["metrics"]):
            runs = _with_measured(runs, metric)
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


def _with_measured(runs: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The runs with a metric that stands in files of its own, and its signature; NaN for runs without."""
    paths = {path: measured_file(path, metric) for path in runs["counts"]}
    found = {path: read_measured(file) for path, file in paths.items() if file.exists()}
    columns = {metric: "score", f"signature_{metric}": "signature"}
    runs = runs.assign(
        **{
            name: [found[path][key] if path in found else None for path in runs["counts"]]
            for name, key in columns.items()
        }
    )
    results.check_same(runs[runs[metric].notna()], ["corpus", "direction"], f"signature_{metric}")
    return runs


def _cells(spec: TableSpec, published: Published, runs: pd.DataFrame) -> pd.DataFrame:
    """All cells of a table; the best means, or validation's choice, are marked."""
    counts = [cache(partial(_counts, column.get("task"), column.get("part"))) for column in spec["columns"]]
    cells = frame_of(
        _cell(spec, published, runs, of_column, column, metric, system) | {"label": label}
        for column, of_column in zip(spec["columns"], counts, strict=True)
        for metric in spec["metrics"]
        for system, label in spec["rows"]
    )
    if not spec["sweep"]:
        return marked(cells)
    choice = results.chosen(runs)
    places = cells[["corpus", "column", "system"]].itertuples(index=False, name=None)
    return cells.assign(best=[choice.get((corpus, column)) == system for corpus, column, system in places])


def _cell(
    spec: TableSpec,
    published: Published,
    runs: pd.DataFrame,
    counts: Counts,
    column: Column,
    metric: str,
    system: str,
) -> dict[str, Any]:
    corpus, name, printing = column["corpus"], column["column"], METRICS[metric]
    number = published.numbers.get((corpus, name, metric, system))
    here = runs[(runs["corpus"] == corpus) & (runs["direction"] == name)]
    ours, theirs = (_scored(here, metric, side) for side in (system, spec["baseline"]))
    values, mean = ours["value"], ours["value"].mean()  # NaN without runs
    due = (
        (metric in TESTED or is_measured(metric)) and system != spec["baseline"] and len(ours) and len(theirs)
    )
    due = due and ours["counts"].notna().all()  # neither an average over columns nor a trivial baseline
    cell = {
        "corpus": corpus,
        "column": name,
        "metric": metric,
        "system": system,
        "mean": mean,
        "sd": values.std(ddof=1) if printing.spread else None,
        "median": values.median() if len(values) > 1 else None,
        "seeds": len(values),
        "asked": len(_expected_seeds(spec, column, system)),
        "diverged": int(ours["diverged"].notna().sum()),
        "baseline": spec["baseline"] if due else None,
        "run": column.get("task", name),
        "group": column["group"],
        "head": ("test " if f"valid_{metric}" in spec["metrics"] else "") + printing.label,
        "digits": printing.digits,
        "contest": printing.contest,
    }
    if number:
        cell |= {"published": number.mean, "printed": number.text, "paper": number.paper}
        cell |= {"origin": "measured" if number.measured else "quoted", "difference": mean - number.mean}
    if due and (test := _test(counts, column, metric, ours, theirs)):
        cell |= test._asdict() | {"change": mean - theirs["value"].mean()}
    return cell


def _expected_seeds(spec: TableSpec, column: Column, system: str) -> set[int]:
    """The seeds of a cell: of an average over columns, those of all columns."""
    averaged = spec["columns"] if column.get("task", "") is None else [column]
    return {seed for each in averaged for seed in each["runs"].get(system, ())}


def _scored(runs: pd.DataFrame, metric: str, system: str | None) -> pd.DataFrame:
    """A system's runs but those that diverged; `value` is the metric, scaled for print."""
    rows = runs[runs["system"] == system]
    values = rows[metric].astype(float) * METRICS[metric].scale if metric in rows else None
    return rows.assign(value=values).dropna(subset=["value"]).astype({"value": float})


def _test(
    counts: Counts, column: Column, metric: str, ours: pd.DataFrame, theirs: pd.DataFrame
) -> Certainty | None:
    """The runs of a cell against the baseline's; None if a run has no counts."""
    sides = [[counts(metric, path) for path in side["counts"]] for side in (ours, theirs)]
    if any(run is None for side in sides for run in side):
        return None
    if column.get("task"):
        score = partial(of_sums, column["task"])
    else:
        score = ratio if is_measured(metric) else OF_SENTENCES[metric][1]
    try:
        return compare(ours["value"].tolist(), theirs["value"].tolist(), *sides, score=score)
    except ValueError as error:
        names = f"{column['column']}, {ours['system'].iloc[0]} and {theirs['system'].iloc[0]}"
        raise UserError(f"{names}: not scored on the same test set ({error}); score them again") from None


def _counts(task: str | None, part: str | None, metric: str, path: Path) -> Sequence[np.ndarray] | None:
    """The counts of a run from whose sums the metric follows, (N,) each; None if they are not known."""
    if is_measured(metric):
        return np.array(read_measured(measured_file(path, metric))["counts"])
    if not path.exists():
        return None
    read_record(path.with_name("scores.json"), [path])
    if not task:
        return counts_of(path, metric)
    return counts_of_examples(path, task, part)
