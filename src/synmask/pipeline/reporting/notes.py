"""The notes below a table: what makes its numbers doubtful, how to read it, sources of the numbers."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import get_args

import pandas as pd

from synmask.pipeline.display import arrow, isolate
from synmask.pipeline.evaluation.bootstrap import SAMPLES
from synmask.pipeline.evaluation.significance import LEVEL
from synmask.pipeline.metric_names import Cost, is_measured
from synmask.pipeline.published import Published
from synmask.pipeline.reporting.cells import CELL, VERY_SIGNIFICANT, ScoreOptions
from synmask.pipeline.reporting.metrics import METRICS
from synmask.pipeline.reporting.results import CHOICE, RUN, SCORES, VALID_SCORES


def notes(
    options: ScoreOptions, published: Published, cells: pd.DataFrame, runs: pd.DataFrame, output: Path
) -> tuple[list[str], list[str]]:
    """The warnings and the notes of a table."""
    scores = [name for name in options.metrics if name in {*SCORES, *VALID_SCORES} or is_measured(name)]
    units = "examples" if "glue" in options.metrics else "sentences"
    infinite = runs[runs[scores].isna().any(axis=1)]
    diverged = (f"{'; '.join(_by_cell(part))}, {why}" for why, part in runs.groupby("diverged", sort=False))
    untested = cells[cells["baseline"].notna() & cells["p"].isna()].itertuples()
    names = (f"{isolate(cell.label)} {arrow(cell.column)}" for cell in untested)
    commits = [*dict.fromkeys(", ".join(runs["commit"].dropna()).split(", "))]
    warnings = [
        missing_runs(options.expected, runs, output),
        list_once("No finite score, so left out of the means", _by_cell(infinite), "; "),
        list_once("Diverged, but in the means", diverged, "; "),
        *_of_corpora(runs),
    ]
    rest = [
        how_to_read(cells, runs, f"chosen by the highest mean of {METRICS[CHOICE].label}" * options.sweep),
        significance(isolate(options.labels[0][1]), units, cells),
        list_once("Not tested, for want of counts by sentence (score again)", names),
        *_published(published, cells.dropna(subset=["paper"])),
        *options.notes,
        *_signatures(options.metrics, runs),
        list_once("Trained here on", runs["device"] if {*get_args(Cost)} & {*options.metrics} else ()),
        list_once("Commit" if len(commits) == 1 else "Made by the code of several commits", commits),
    ]
    return [*filter(None, warnings)], [*filter(None, rest)]


def missing_runs(expected: pd.DataFrame, runs: pd.DataFrame, output: Path) -> str:
    """The runs that a table asks for and that are not there, and how to make them; "" if all are there."""
    absent = expected[~pd.MultiIndex.from_frame(expected[RUN]).isin(pd.MultiIndex.from_frame(runs[RUN]))]
    if absent.empty:
        return ""
    missing = f"all {len(expected)} runs" if len(absent) == len(expected) else "; ".join(_by_cell(absent))
    table = re.sub(r"^\.snakemake/storage/.*?(?=results/)", "", str(output))  # as its user calls it
    return f"Missing: {missing}. To make what is missing: snakemake {table}.md"


def how_to_read(cells: pd.DataFrame, runs: pd.DataFrame, bold: str = "") -> str:
    """The meaning of the parts of a cell; `bold`: if not the best of each column."""
    seeds = ", ".join(map(str, sorted({*runs["seed"]} - {0})))  # 0: of trivial baselines
    spread = "Mean ± sample standard deviation over seeds {}" if cells["seeds"].max() > 1 else "One seed ({})"
    parts = {
        spread.format(seeds): seeds,
        "in parentheses the difference to the published number": cells["difference"].notna().any(),
        f"bold: {bold or 'the best of each column'}": cells[["best", "best_published"]].any(axis=None),
    }
    text = "; ".join(part for part, applies in parts.items() if applies)
    return f"{text}." if text else ""


def significance(baseline: str, units: str, cells: pd.DataFrame, t_test: str = "Welch's") -> str:
    """The meaning of the marks; "" without tests."""
    tested = cells.dropna(subset=["p"])
    if tested.empty:
        return ""
    text = f"by a paired bootstrap over {units} and seeds ({SAMPLES:,} samples)"
    if tested["p_seeds"].notna().any():
        text = f"both {text} and by {t_test} t-test over the seeds"
    if tested["p_seeds"].isna().any():
        text += "; one seed, tested by the first alone, says nothing about the spread over seeds"
    marks = f"† p < {LEVEL}, ‡ p < {VERY_SIGNIFICANT} against {baseline}"
    return f"{marks}, {text}. Not corrected for the number of comparisons."


def _published(published: Published, cells: pd.DataFrame) -> Iterator[str]:
    """The papers that print the numbers, and the origin of quoted ones; the papers' own notes."""
    quoted = cells[cells["origin"] == "quoted"].drop_duplicates("system")[["label", "system"]]
    origins = (
        f"{isolate(label)} ({published.cite(published.systems[name].paper)})" for label, name in quoted.values
    )
    papers = list_once("Published numbers", map(published.papers.get, cells["paper"]), "; ")
    yield papers + list_once(" Quoted there, not measured by its authors", origins)
    yield from published.notes({*zip(cells["corpus"], cells["metric"], cells["system"], strict=True)})


def _of_corpora(runs: pd.DataFrame) -> Iterator[str]:
    """Pairs that two sets share; a tenth or more of the training pairs that limits of length leave out."""
    for key, head in {"overlap": "Pairs that occur in two sets, ", "dropped": ""}.items():
        for corpus, direction, fact in runs[["corpus", "direction", key]].dropna().drop_duplicates().values:
            yield f"{head}{corpus} {arrow(direction)}: {fact}."


def _by_cell(runs: pd.DataFrame) -> Iterator[str]:
    """The runs of each cell in words: "Grammar De→En (seeds 1, 2)"."""
    for (label, group, _, direction, _), cell in runs.groupby(["label", "group", *CELL], sort=False):
        name = " ".join(filter(None, [isolate(label), group, arrow(direction)]))
        yield f"{name} (seed{'s' if len(cell) > 1 else ''} {', '.join(map(str, cell['seed']))})"


def _signatures(metrics: Sequence[str], runs: pd.DataFrame) -> Iterator[str]:
    """sacreBLEU's signature of each score, with its columns if corpora differ in it."""
    for metric in dict.fromkeys(metric.removeprefix("valid_") for metric in metrics):
        signatures = runs.groupby(f"signature_{metric}", sort=False) if f"signature_{metric}" in runs else ()
        for signature, group in signatures:
            places = group[["corpus", "direction"]].drop_duplicates().values
            where = ", ".join(f"{corpus} {arrow(direction)}" for corpus, direction in places)
            yield f"{METRICS[metric].label}{f' ({where})' if len(signatures) > 1 else ''}: {signature}."


def list_once(head: str, values: Iterable[object], between: str = ", ") -> str:
    """The known values, each once; "" if there are none."""
    known = dict.fromkeys(str(value) for value in values if value and pd.notna(value))
    return f"{head}: {between.join(known)}." if known else ""
