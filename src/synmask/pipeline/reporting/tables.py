"""Tables of published numbers beside ours: CSV, Markdown, LaTeX, JSON."""

import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from synmask.pipeline.config.loading import read_published
from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation.measure import measured_file, ratio, read_measured
from synmask.pipeline.evaluation.sentences import OF_SENTENCES, counts_of
from synmask.pipeline.evaluation.significance import compare
from synmask.pipeline.evaluation.task_scores import counts_of_examples, of_sums
from synmask.pipeline.metric_names import TESTED, is_measured
from synmask.pipeline.published import Published
from synmask.pipeline.record import read_record
from synmask.pipeline.reporting import runs as results
from synmask.pipeline.reporting.cells import OF_CSV, ScoreOptions, cell_of, frame_of, marked, scaled
from synmask.pipeline.reporting.layout import Table, write_tables
from synmask.pipeline.reporting.notes import notes
from synmask.pipeline.runs import Column

PROTOCOL = "paper"  # the paper's own count of parsing scores
OF_RUN = [*results.RUN, *results.COSTS, "device_hours", "memory", *results.SCORES, *results.VALID_SCORES]
OF_RUN += results.SIGNATURES
FOR_NOTES = ["overlap", "dropped", "counts", *results.OUTPUTS]  # and tests
Counts = Callable[[str, Path], Sequence[np.ndarray] | None]


def write_table(
    *,
    options: ScoreOptions,
    published: Path,
    scores: tuple[Path, ...] = (),
    parses: tuple[Path, ...] = (),
    tasks: tuple[Path, ...] = (),
    output: Path,
) -> None:
    """Make a table from the given runs: CSV, Markdown and LaTeX.

    It shows published numbers, mean and standard deviation over seeds, and significance.

    Args:
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
    runs = _gather(options, scores, parses, tasks)
    cells = _cells(options, known, runs)
    # of a storage, what a user calls it
    name = re.sub(r"^\.snakemake/storage/.*?(?=results/)", "", str(output))
    paragraphs = notes(options, known, cells, runs, make=f"snakemake {name}.md")
    baseline = dict(options.labels).get(options.baseline, "")
    by_run = runs.drop(columns=[*FOR_NOTES, "label", "group"])
    write_tables(
        output,
        [Table(options.title, cells, paragraphs, baseline)],
        {".csv": cells[OF_CSV], ".runs.csv": by_run},
    )


def _gather(
    options: ScoreOptions, scores: Sequence[Path], parses: Sequence[Path], tasks: Sequence[Path]
) -> pd.DataFrame:
    """All given runs, one row each, in the table's order."""
    columns = [*OF_RUN, *FOR_NOTES]
    runs = pd.DataFrame(columns=columns)
    if scores:
        read = results.read_scores(scores)
        results.check_alike(read)
        runs = read[columns]
        for metric in filter(is_measured, options.metrics):
            runs = _with_measured(runs, metric)
    if parses:
        runs = runs.merge(results.read_parse_scores(parses, PROTOCOL), on=results.RUN, how="outer")
    if tasks:
        runs = results.read_tasks(tasks, options.columns).reindex(columns=[*columns, "glue"])
    runs = results.of_table(runs, options.expected)
    return results.averaged(runs, options.columns) if tasks else runs


def _with_measured(runs: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The runs with a metric that stands in files of its own, and its signature; NaN for runs without."""
    files = [measured_file(path, metric) for path in runs["counts"]]
    found = [read_measured(file) if file.exists() else {} for file in files]
    columns = {metric: "score", f"signature_{metric}": "signature"}
    runs = runs.assign(**{name: [part.get(key) for part in found] for name, key in columns.items()})
    results.check_same(runs[runs[metric].notna()], ["corpus", "direction"], f"signature_{metric}")
    return runs


def _cells(options: ScoreOptions, published: Published, runs: pd.DataFrame) -> pd.DataFrame:
    """All cells of a table; the best means, or validation's choice, are marked."""
    counts = [cache(partial(_counts, column.get("task"), column.get("part"))) for column in options.columns]
    cells = frame_of(
        _cell(options, published, runs, of_column, column, metric, *row)
        for column, of_column in zip(options.columns, counts, strict=True)
        for metric in options.metrics
        for row in options.labels
    )
    if not options.sweep:
        return marked(cells)
    choice = results.chosen(runs)
    places = cells[["corpus", "column", "system"]].itertuples(index=False, name=None)
    return cells.assign(best=[choice.get((corpus, column)) == system for corpus, column, system in places])


def _cell(
    options: ScoreOptions,
    published: Published,
    runs: pd.DataFrame,
    counts: Counts,
    column: Column,
    metric: str,
    system: str,
    label: str,
) -> dict[str, Any]:
    here = runs[runs["corpus"].eq(column["corpus"]) & runs["direction"].eq(column["column"])]
    ours, theirs = (_finite(here[here["system"] == side], metric) for side in (system, options.baseline))
    cell = cell_of(column, metric, system, label, ours)
    asked = options.expected[options.expected["system"].eq(system)]
    if column.get("task", "") is not None:  # else an average, over all columns
        asked = asked[asked["corpus"].eq(column["corpus"]) & asked["direction"].eq(column["column"])]
    cell |= {"asked": asked["seed"].nunique(), "diverged": int(ours["diverged"].notna().sum())}
    if f"valid_{metric}" in options.metrics:
        cell["head"] = f"test {cell['head']}"
    if number := published.numbers.get((column["corpus"], column["column"], metric, system)):
        cell |= {"published": number.mean, "printed": number.text, "paper": number.paper}
        cell |= {
            "origin": "measured" if number.measured else "quoted",
            "difference": cell["mean"] - number.mean,
        }
    due = (
        (metric in TESTED or is_measured(metric)) and system != options.baseline and len(ours) and len(theirs)
    )
    if due and ours["counts"].notna().all():  # neither an average over columns nor a trivial baseline
        cell |= {"baseline": options.baseline} | _test(counts, column, metric, ours, theirs)
    return cell


def _finite(runs: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The runs with a finite score."""
    return runs.loc[scaled(runs, metric).index]


def _test(
    counts: Counts, column: Column, metric: str, ours: pd.DataFrame, theirs: pd.DataFrame
) -> dict[str, float]:
    """The runs of a cell against the baseline's; empty if a run has no counts."""
    sides = [[counts(metric, path) for path in side["counts"]] for side in (ours, theirs)]
    if any(run is None for side in sides for run in side):
        return {}
    task, score = column.get("task"), ratio if is_measured(metric) else None
    score = partial(of_sums, task) if task else score or OF_SENTENCES[metric][1]
    values, rivals = scaled(ours, metric), scaled(theirs, metric)
    try:
        test = compare([*values], [*rivals], *sides, score=score)
    except ValueError as error:
        names = f"{column['column']}, {ours['system'].iloc[0]} and {theirs['system'].iloc[0]}"
        raise UserError(f"{names}: not scored on the same test set ({error}); score them again") from None
    return test._asdict() | {"change": values.mean() - rivals.mean()}


def _counts(task: str | None, part: str | None, metric: str, path: Path) -> Sequence[np.ndarray] | None:
    """The counts of a run from whose sums the metric follows, (N,) each; None if they are not known."""
    if is_measured(metric):
        return np.array(read_measured(measured_file(path, metric))["counts"])
    if is_measured(metric):
        return np.array(read_measured(measured_file(path, metric))["counts"])
    if not path.exists():
        return None
    read_record(path.with_name("scores.json"), [path])
    return counts_of_examples(path, task, part) if task else counts_of(path, metric)
