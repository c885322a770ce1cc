"""Tables of published numbers beside ours: CSV, Markdown, LaTeX, JSON."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from synmask.pipeline.config.loading import read_published
from synmask.pipeline.errors import UserError
from synmask.pipeline.metric_names import is_measured
from synmask.pipeline.reporting import results
from synmask.pipeline.reporting.cells import OF_CSV, ScoreOptions, cells_of
from synmask.pipeline.reporting.layout import PrintedTable, write_tables
from synmask.pipeline.reporting.metrics import PARSE_SCORES
from synmask.pipeline.reporting.notes import notes

OF_RUN = [*results.RUN, *results.COSTS, "device_hours", "memory", *results.SCORES, *results.VALID_SCORES]
OF_RUN += results.SIGNATURES
FOR_NOTES = ["overlap", "dropped", "counts"]  # and tests


def write_table(
    *,
    options: ScoreOptions,
    published: Path,
    scores: tuple[Path, ...] = (),
    parses: tuple[Path, ...] = (),
    tasks: tuple[Path, ...] = (),
    output: Path,
) -> None:
    """Make a table of published numbers beside means and deviations of runs, with significance.

    Args:
        published: published.yaml.
        scores: scores.json of the runs; sentences.csv beside each, if it exists, for tests.
        parses: parse.json of the runs.
        tasks: scores.json and baselines.json of tasks of language understanding; examples.csv likewise.
        output: Prefix of .csv (a row per cell), .runs.csv (a row per run), .md, .tex and .json.

    Raises:
        UserError: a file is missing or lacks a key; a run is given twice or is not of the table, or the table
            has none and no number; runs of one cell were trained with different settings, or runs of one
            column decoded or scored differently.
    """
    known = read_published(published)
    runs = _gather(options, scores, parses, tasks)
    baseline, label = options.labels[0]
    cells = cells_of(options, options.metrics, runs, baseline, known.numbers)
    if not cells["asked"].any() and cells["printed"].isna().all():
        raise UserError(f"{output}: no experiment runs its systems, no paper has their numbers; add some")
    if options.sweep:
        chosen = [*map(results.choose_systems(runs).get, zip(cells["corpus"], cells["column"], strict=True))]
        cells = cells.assign(best=cells["system"].eq(chosen), best_published=False)
    table = PrintedTable(options.title, cells, *notes(options, known, cells, runs, output), label)
    by_run = runs.drop(columns=[*FOR_NOTES, "label", "group"])
    write_tables(output, [table], {".csv": cells[OF_CSV], ".runs.csv": by_run})


def _gather(
    options: ScoreOptions, scores: Sequence[Path], parses: Sequence[Path], tasks: Sequence[Path]
) -> pd.DataFrame:
    """All given runs, one row each, in the table's order."""
    columns = [*OF_RUN, *FOR_NOTES]
    runs = pd.DataFrame(columns=columns)
    if scores:
        metrics = [metric for metric in options.metrics if is_measured(metric)]
        runs = results.read_scores(scores, metrics)
        results.check_alike(runs)
        runs = runs[[*columns, *metrics, *(f"signature_{metric}" for metric in metrics)]]
    if parses:
        trees = results.read_parse_scores(parses, protocol="paper")
        induced = trees.loc[trees["tree"] == "induced", [*results.RUN, *PARSE_SCORES]]
        runs = runs.merge(induced, on=results.RUN, how="outer")
    if tasks:
        runs = results.read_tasks(tasks, options.columns).reindex(columns=[*columns, "glue"])
    runs = results.select_expected(runs, options.expected)
    return results.add_average(runs, options.columns) if tasks else runs
