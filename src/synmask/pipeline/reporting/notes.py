"""The notes below a table: how to read it, missing runs, sources of the numbers."""

import json
from collections.abc import Iterable, Iterator, Sequence

import pandas as pd

from synmask.pipeline.config.base import arrow
from synmask.pipeline.config.published import Published
from synmask.pipeline.evaluation.bootstrap import SAMPLES
from synmask.pipeline.reporting.cells import Cell
from synmask.pipeline.reporting.layout import SIGNIFICANT, VERY_SIGNIFICANT, literal
from synmask.pipeline.reporting.metrics import METRICS
from synmask.pipeline.reporting.runs import CHOICE, RUN, SCORES, VALID_SCORES
from synmask.pipeline.runs import TableSpec, expected_runs


def notes(
    spec: TableSpec,
    published: Published,
    cells: Sequence[Cell],
    runs: pd.DataFrame,
    make: str,
) -> list[str]:
    """The notes, one paragraph each (`layout.note_parts`); `make`: the command that makes missing runs."""
    spec = _with_literal_names(spec)
    parts = [
        _how_to_read(spec, cells),
        _marks(spec, cells),
        _untested(spec, cells),
        _published(spec, published, cells),
        *published.notes({(cell.corpus, cell.metric, cell.system) for cell in cells if cell.paper}),
        *spec["notes"],
        _missing(spec, runs, make),
        _not_finite(spec, runs),
        _diverged(spec, runs),
        *_shared(runs),
        _equal(spec, runs),
        *_signatures(spec, runs),
        _machines(spec, runs),
        _commits(runs),
    ]
    return [part for part in parts if part]


def _how_to_read(spec: TableSpec, cells: Sequence[Cell]) -> str:
    parts = []
    runs = {tuple(seeds) for column in spec["columns"] for seeds in column["runs"].values()} - {(0,)}
    if runs:  # of more than trivial baselines, which have seed 0
        seeds = ", ".join(map(str, *runs)) if len(runs) == 1 else ""
        if max(map(len, runs)) == 1:
            parts.append(f"one seed ({seeds})" if seeds else "one seed each")
        else:
            over = f"seeds {seeds}" if seeds else "the seeds"
            parts.append(f"mean ± sample standard deviation over {over}")
    if any(cell.difference is not None for cell in cells):
        parts.append("in parentheses the difference to the published number")
    if any(0 < cell.seeds < cell.asked for cell in cells):
        parts.append("in brackets how many of the seeds there are, where some lack")
    ours, theirs = any(cell.best for cell in cells), any(cell.best_published for cell in cells)
    if ours and spec["sweep"]:
        parts.append(f"bold: chosen by the highest mean of {METRICS[CHOICE].label}")
    elif ours or theirs:
        apart = ", published and here apart" if ours and theirs else ""
        parts.append(f"bold: the best of each column{apart}")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _marks(spec: TableSpec, cells: Sequence[Cell]) -> str:
    tested = [cell for cell in cells if cell.p is not None]
    if not tested:
        return ""
    label = dict(spec["rows"])[spec["baseline"]]
    units = "examples" if "glue" in spec["metrics"] else "sentences"
    text = f"by a paired bootstrap over {units} and seeds ({SAMPLES:,} samples)"
    alone = [cell.p_seeds is None for cell in tested]
    if all(alone):
        text += "; one seed says nothing about the spread over seeds"
    else:
        text = f"both {text} and by Welch's t-test over the seeds"
        text += "; where there is one seed, by the first alone" if any(alone) else ""
    if min(cell.p for cell in tested) >= SIGNIFICANT:
        return f"No difference from {label} is significant (p < {SIGNIFICANT}) {text}."
    marks = f"† p < {SIGNIFICANT}, ‡ p < {VERY_SIGNIFICANT}"
    return f"{marks} against {label}, {text}. Not corrected for the number of comparisons."


def _with_literal_names(spec: TableSpec) -> TableSpec:
    """The spec with labels and groups escaped for notes."""
    rows = [[system, literal(label)] for system, label in spec["rows"]]
    columns = [{**column, "group": literal(column["group"])} for column in spec["columns"]]
    return {**spec, "rows": rows, "columns": columns}


def _untested(spec: TableSpec, cells: Sequence[Cell]) -> str:
    labels = dict(spec["rows"])
    untested = (cell for cell in cells if cell.baseline and cell.p is None)
    names = (f"{labels[cell.system]} {arrow(cell.column)}" for cell in untested)
    return _listed("Not tested, for want of counts by sentence (score again)", names)


def _published(spec: TableSpec, published: Published, cells: Sequence[Cell]) -> str:
    """The papers that print the numbers, and the origin of quoted ones."""
    printed = [cell for cell in cells if cell.paper]
    papers = dict.fromkeys(cell.paper for cell in printed)
    quoted = dict.fromkeys(cell.system for cell in printed if cell.origin == "quoted")
    if not papers:
        return ""
    text = f"Published numbers: {'; '.join(published.papers[paper] for paper in papers)}."
    if quoted:
        labels = dict(spec["rows"])
        origins = (f"{labels[name]} ({published.cite(published.systems[name].paper)})" for name in quoted)
        text += f" Quoted there, not measured by its authors: {', '.join(origins)}."
    return text


def _missing(spec: TableSpec, runs: pd.DataFrame, make: str) -> str:
    """The missing runs, and the command that makes them."""
    there = set(runs[RUN].itertuples(index=False, name=None))
    parts, missing, expected = [], 0, len(expected_runs(spec))
    for column in spec["columns"]:
        where = " ".join(filter(None, [column["group"], arrow(column["column"])]))
        for system, label in spec["rows"]:
            seeds = column["runs"].get(system, [])
            absent = [s for s in seeds if (column["corpus"], column["column"], system, s) not in there]
            missing += len(absent)
            if absent:
                which = "all seeds" if absent == seeds and len(seeds) > 1 else _seeds(absent)
                parts.append(f"{label} {where} ({which})")
    what = f"all {expected} runs" if missing == expected else "; ".join(parts)
    return f"Missing: {what}. To make what is missing: `{make}`." if missing else ""


def _not_finite(spec: TableSpec, runs: pd.DataFrame) -> str:
    shown = [metric for metric in spec["metrics"] if metric in [*SCORES, *VALID_SCORES]]
    bad = runs[runs[shown].isna().any(axis=1)]
    names = (_named(spec, run) for _, run in bad.iterrows())
    return _listed("No finite score, so left out of the means", names, "; ")


def _shared(runs: pd.DataFrame) -> Iterator[str]:
    """Pairs that the sets of a corpus share."""
    places = runs.dropna(subset=["overlap"]).drop_duplicates(["corpus", "direction", "overlap"])
    for _, run in places.iterrows():
        shared = (f"{count:,} {where}" for where, count in json.loads(run["overlap"]).items() if count)
        where = f"{run['corpus']} {arrow(run['direction'])}"
        yield _listed(f"Pairs that occur in two sets, {where}", shared)


def _diverged(spec: TableSpec, runs: pd.DataFrame) -> str:
    """Runs in the means whose training learned nothing."""
    bad = runs[runs["diverged"].notna()].drop_duplicates(RUN)
    names = (f"{_named(spec, run)}, {run['diverged']}" for _, run in bad.iterrows())
    return _listed("Diverged, but in the means", names, "; ")


def _equal(spec: TableSpec, runs: pd.DataFrame) -> str:
    """Runs of one cell with equal models or answers, although their seeds differ."""
    parts = []
    answers = "answers" if "glue" in spec["metrics"] else "translations"
    for _, cell in runs.groupby(["corpus", "direction", "system"], sort=False):
        for key, what in (("model", "models"), ("answers", answers)):
            twins = cell[cell[key].notna() & cell.duplicated(key, keep=False)]
            if len(twins):
                parts += [f"{what} of {_named(spec, group)}" for _, group in twins.groupby(key, sort=False)]
                break  # equal models translate alike
    return _listed("Equal, although their seeds differ", parts, "; ")


def _named(spec: TableSpec, runs: pd.Series | pd.DataFrame) -> str:
    """A run, or runs of one cell, in words: "Grammar demo De→En (seeds 1, 2)"."""
    run, seeds = (runs, [runs["seed"]]) if isinstance(runs, pd.Series) else (runs.iloc[0], [*runs["seed"]])
    return f"{dict(spec['rows'])[run['system']]} {run['corpus']} {arrow(run['direction'])} ({_seeds(seeds)})"


def _signatures(spec: TableSpec, runs: pd.DataFrame) -> Iterator[str]:
    """sacreBLEU's signature of each score, with its columns if corpora differ in it."""
    for metric in dict.fromkeys(metric.removeprefix("valid_") for metric in spec["metrics"]):
        if metric not in SCORES or runs.empty:
            continue
        for signature, group in runs.groupby(f"signature_{metric}", sort=False):
            columns = dict.fromkeys(zip(group["corpus"], group["direction"], strict=True))
            where = ", ".join(f"{corpus} {arrow(direction)}" for corpus, direction in columns)
            several = runs[f"signature_{metric}"].nunique() > 1
            yield f"{METRICS[metric].label}{f' ({where})' if several else ''}: {signature}."


def _machines(spec: TableSpec, runs: pd.DataFrame) -> str:
    if not {"tokens_per_second", "device_hours", "memory"} & set(spec["metrics"]):
        return ""
    text = _listed("Trained here on", runs["device"])
    meaning = " Hours count every device; memory is the main memory of the training's processes."
    return text and text + meaning


def _commits(runs: pd.DataFrame) -> str:
    """The commits whose code trained and scored the runs."""
    found = [*dict.fromkeys(", ".join(filter(None, runs["commit"].dropna())).split(", "))]
    return _listed("Commit" if len(found) == 1 else "Made by the code of several commits", found)


def _listed(what: str, values: Iterable[object], between: str = ", ") -> str:
    """The known values, each once; "" if there are none."""
    values = list(dict.fromkeys(str(value) for value in values if value and pd.notna(value)))
    return f"{what}: {between.join(values)}." if values else ""


def _seeds(seeds: list[int]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
