"""The notes below a table: what makes its numbers doubtful, how to read it, sources of the numbers."""

import json
from collections.abc import Iterable, Iterator

import pandas as pd

from synmask.pipeline.config.base import arrow, is_measured
from synmask.pipeline.config.published import Published
from synmask.pipeline.display import isolated
from synmask.pipeline.evaluation.bootstrap import SAMPLES
from synmask.pipeline.reporting.cells import SIGNIFICANT, VERY_SIGNIFICANT
from synmask.pipeline.reporting.layout import Note
from synmask.pipeline.reporting.metrics import METRICS
from synmask.pipeline.reporting.runs import CHOICE, RUN, SCORES, VALID_SCORES
from synmask.pipeline.runs import TableSpec, expected_runs


def notes(
    spec: TableSpec, published: Published, cells: pd.DataFrame, runs: pd.DataFrame, make: str
) -> list[Note]:
    """The notes, first what makes numbers doubtful; `make`: the command that makes missing runs."""
    spec = {**spec, "rows": [(system, isolated(label)) for system, label in spec["rows"]]}
    missing = _missing(spec, runs)
    warnings = [
        _not_finite(spec, runs),
        _diverged(spec, runs),
        *_shared(runs),
        *_dropped(runs),
        _equal(spec, runs),
    ]
    printed = cells.dropna(subset=["paper"])
    rest = [
        _how_to_read(spec, cells, runs),
        _marks(spec, cells),
        _untested(cells),
        _published(spec, published, printed),
        *published.notes({*zip(printed["corpus"], printed["metric"], printed["system"], strict=True)}),
        *spec["notes"],
        *_signatures(spec, runs),
        _machines(spec, runs),
        _commits(runs),
    ]
    commands = [Note(f"{missing} To make what is missing:", make, warning=True)] if missing else []
    return [*commands, *(Note(text, "", text in warnings) for text in [*warnings, *rest] if text)]


def _how_to_read(spec: TableSpec, cells: pd.DataFrame, runs: pd.DataFrame) -> str:
    seeds = sorted({*runs["seed"]} - {0})  # 0: of trivial baselines
    parts = []
    if seeds:
        which = ", ".join(map(str, seeds))
        spread = f"Mean ± sample standard deviation over seeds {which}"
        parts.append(spread if cells["seeds"].max() > 1 else f"One seed ({which})")
    if cells["difference"].notna().any():
        parts.append("in parentheses the difference to the published number")
    if cells["diverged"].any() or (cells["seeds"].gt(0) & cells["seeds"].lt(cells["asked"])).any():
        parts.append("in brackets how many of the runs there are, or diverged")
    if cells[["best", "best_published"]].any(axis=None):
        chosen = f"chosen by the highest mean of {METRICS[CHOICE].label}"
        apart = ", published and here apart" if cells["best_published"].any() else ""
        parts.append(f"bold: {chosen if spec['sweep'] else f'the best of each column{apart}'}")
    return f"{'; '.join(parts)}." if parts else ""


def _marks(spec: TableSpec, cells: pd.DataFrame) -> str:
    tested = cells.dropna(subset=["p"])
    if tested.empty:
        return ""
    units = "examples" if "glue" in spec["metrics"] else "sentences"
    text = f"by a paired bootstrap over {units} and seeds ({SAMPLES:,} samples)"
    if tested["p_seeds"].notna().any():
        text = f"both {text} and by Welch's t-test over the seeds"
    if tested["p_seeds"].isna().any():
        text += "; one seed, tested by the first alone, says nothing about the spread over seeds"
    marks = f"† p < {SIGNIFICANT}, ‡ p < {VERY_SIGNIFICANT} against {dict(spec['rows'])[spec['baseline']]}"
    return f"{marks}, {text}. Not corrected for the number of comparisons."


def _untested(cells: pd.DataFrame) -> str:
    untested = cells[cells["baseline"].notna() & cells["p"].isna()]
    names = (f"{isolated(cell.label)} {arrow(cell.column)}" for cell in untested.itertuples())
    return _listed("Not tested, for want of counts by sentence (score again)", names)


def _published(spec: TableSpec, published: Published, cells: pd.DataFrame) -> str:
    """The papers that print the numbers, and the origin of quoted ones."""
    labels, quoted = dict(spec["rows"]), cells.loc[cells["origin"] == "quoted", "system"].unique()
    origins = (f"{labels[name]} ({published.cite(published.systems[name].paper)})" for name in quoted)
    papers = _listed("Published numbers", map(published.papers.get, cells["paper"]), "; ")
    return papers + _listed(" Quoted there, not measured by its authors", origins)


def _missing(spec: TableSpec, runs: pd.DataFrame) -> str:
    there = {*runs[RUN].itertuples(index=False, name=None)}
    expected = [tuple(run.values()) for run in expected_runs(spec)]
    absent: dict[tuple[str, str, str], list[int]] = {}
    for *cell, seed in (run for run in expected if run not in there):
        absent.setdefault(tuple(cell), []).append(seed)
    if expected and runs.empty:
        return f"Missing: all {len(expected)} runs."
    labels = dict(spec["rows"])
    groups = {(column["corpus"], column["column"]): column["group"] for column in spec["columns"]}
    names = (
        f"{labels[system]} {f'{groups[corpus, column]} {arrow(column)}'.strip()} ({_seeds(seeds)})"
        for (corpus, column, system), seeds in absent.items()
    )
    return _listed("Missing", names, "; ")


def _not_finite(spec: TableSpec, runs: pd.DataFrame) -> str:
    shown = [m for m in spec["metrics"] if m in [*SCORES, *VALID_SCORES] or is_measured(m)]
    names = (_named(spec, run) for _, run in runs[runs[shown].isna().any(axis=1)].iterrows())
    return _listed("No finite score, so left out of the means", names, "; ")


def _diverged(spec: TableSpec, runs: pd.DataFrame) -> str:
    """Runs in the means whose training learned nothing."""
    bad = runs.dropna(subset=["diverged"]).drop_duplicates(RUN)
    names = (f"{_named(spec, run)}, {run['diverged']}" for _, run in bad.iterrows())
    return _listed("Diverged, but in the means", names, "; ")


def _shared(runs: pd.DataFrame) -> Iterator[str]:
    """Pairs that the sets of a corpus share."""
    places = runs.dropna(subset=["overlap"]).drop_duplicates(["corpus", "direction", "overlap"])
    for _, run in places.iterrows():
        shared = (f"{count:,} {where}" for where, count in json.loads(run["overlap"]).items() if count)
        yield _listed(f"Pairs that occur in two sets, {run['corpus']} {arrow(run['direction'])}", shared)


def _dropped(runs: pd.DataFrame) -> Iterator[str]:
    """A tenth or more of the training pairs of a corpus that its limits of length leave out."""
    places = runs.dropna(subset=["dropped"]).drop_duplicates(["corpus", "direction", "dropped"])
    for _, run in places.iterrows():
        yield f"{run['corpus']} {arrow(run['direction'])}: {run['dropped']}."


def _equal(spec: TableSpec, runs: pd.DataFrame) -> str:
    """Runs of one cell with equal models or answers, although their seeds differ."""
    parts = []
    answers = "answers" if "glue" in spec["metrics"] else "translations"
    for _, cell in runs.groupby(["corpus", "direction", "system"], sort=False):
        for key, name in (("model", "models"), ("answers", answers)):
            twins = cell[cell[key].notna() & cell.duplicated(key, keep=False)]
            if len(twins):
                parts += [f"{name} of {_named(spec, group)}" for _, group in twins.groupby(key, sort=False)]
                break  # equal models translate alike
    return _listed("Equal, although their seeds differ", parts, "; ")


def _named(spec: TableSpec, runs: pd.Series | pd.DataFrame) -> str:
    """A run, or runs of one cell, in words: "Grammar demo De→En (seeds 1, 2)"."""
    run, seeds = (runs, [runs["seed"]]) if isinstance(runs, pd.Series) else (runs.iloc[0], [*runs["seed"]])
    return f"{dict(spec['rows'])[run['system']]} {run['corpus']} {arrow(run['direction'])} ({_seeds(seeds)})"


def _signatures(spec: TableSpec, runs: pd.DataFrame) -> Iterator[str]:
    """sacreBLEU's signature of each score, with its columns if corpora differ in it."""
    for metric in dict.fromkeys(metric.removeprefix("valid_") for metric in spec["metrics"]):
        if f"signature_{metric}" not in runs or runs.empty:
            continue
        signatures = runs.groupby(f"signature_{metric}", sort=False)
        for signature, group in signatures:
            places = group[["corpus", "direction"]].drop_duplicates().itertuples(index=False, name=None)
            where = ", ".join(f"{corpus} {arrow(direction)}" for corpus, direction in places)
            yield f"{METRICS[metric].label}{f' ({where})' if len(signatures) > 1 else ''}: {signature}."


def _machines(spec: TableSpec, runs: pd.DataFrame) -> str:
    of_machine = {"tokens_per_second", "device_hours", "memory"} & {*spec["metrics"]}
    text = _listed("Trained here on", runs["device"]) if of_machine else ""
    meaning = " Hours count every device; memory is the main memory of the training's processes."
    return text and text + meaning


def _commits(runs: pd.DataFrame) -> str:
    """The commits whose code trained and scored the runs."""
    commits = [*dict.fromkeys(", ".join(filter(None, runs["commit"].dropna())).split(", "))]
    return _listed("Commit" if len(commits) == 1 else "Made by the code of several commits", commits)


def _listed(head: str, values: Iterable[object], between: str = ", ") -> str:
    """The known values, each once; "" if there are none."""
    known = dict.fromkeys(str(value) for value in values if value and pd.notna(value))
    return f"{head}: {between.join(known)}." if known else ""


def _seeds(seeds: list[int]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
