"""The notes below a table: what makes its numbers doubtful, how to read it, sources of the numbers."""

import json
from collections.abc import Iterable, Iterator, Sequence

import pandas as pd

from synmask.pipeline.display import arrow, isolated
from synmask.pipeline.evaluation.bootstrap import SAMPLES
from synmask.pipeline.metric_names import is_measured
from synmask.pipeline.published import Published
from synmask.pipeline.reporting.cells import SIGNIFICANT, VERY_SIGNIFICANT, ScoreOptions
from synmask.pipeline.reporting.layout import Note
from synmask.pipeline.reporting.metrics import METRICS
from synmask.pipeline.reporting.runs import CHOICE, RUN, SCORES, VALID_SCORES

CELL = ["corpus", "direction", "system"]


def notes(
    options: ScoreOptions, published: Published, cells: pd.DataFrame, runs: pd.DataFrame, make: str
) -> list[Note]:
    """The notes, first what makes numbers doubtful; `make`: the command that makes missing runs."""
    lacking = missing(options.expected, runs)
    scores = [name for name in options.metrics if name in {*SCORES, *VALID_SCORES} or is_measured(name)]
    units, answers = ("examples", "answers") if "glue" in options.metrics else ("sentences", "translations")
    infinite = runs[runs[scores].isna().any(axis=1)].groupby(RUN, sort=False)
    diverged = runs.dropna(subset=["diverged"]).groupby(RUN, sort=False)
    warnings = [
        _listed("No finite score, so left out of the means", (_named(run) for _, run in infinite), "; "),
        _listed(
            "Diverged, but in the means",
            (f"{_named(run)}, {run['diverged'].iloc[0]}" for _, run in diverged),
            "; ",
        ),
        *_of_corpora(runs),
        _listed("Equal, although their seeds differ", _equal(runs, answers), "; "),
    ]
    rest = [
        _how_to_read(options.sweep, cells, runs),
        _marks(isolated(dict(options.labels).get(options.baseline, "")), units, cells.dropna(subset=["p"])),
        _untested(cells),
        *_published(published, cells.dropna(subset=["paper"])),
        *options.notes,
        *_signatures(options.metrics, runs),
        _machines(options.metrics, runs),
        _commits(runs),
    ]
    commands = [Note(f"{lacking} To make what is missing:", make, warning=True)] if lacking else []
    return [*commands, *(Note(text, "", text in warnings) for text in [*warnings, *rest] if text)]


def missing(expected: pd.DataFrame, runs: pd.DataFrame) -> str:
    """The runs that a table asks for and that are not there; "" if all are."""
    absent = expected[~pd.MultiIndex.from_frame(expected[RUN]).isin(pd.MultiIndex.from_frame(runs[RUN]))]
    if len(absent) and len(absent) == len(expected):
        return f"Missing: all {len(expected)} runs."
    cells = absent.groupby(["label", "group", *CELL], sort=False)
    names = (
        f"{' '.join(filter(None, [isolated(label), group, arrow(direction)]))} ({_seeds(cell)})"
        for (label, group, _, direction, _), cell in cells
    )
    return _listed("Missing", names, "; ")


def _how_to_read(sweep: bool, cells: pd.DataFrame, runs: pd.DataFrame) -> str:
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
        parts.append(f"bold: {chosen if sweep else f'the best of each column{apart}'}")
    return f"{'; '.join(parts)}." if parts else ""


def _marks(baseline: str, units: str, tested: pd.DataFrame) -> str:
    if tested.empty:
        return ""
    text = f"by a paired bootstrap over {units} and seeds ({SAMPLES:,} samples)"
    if tested["p_seeds"].notna().any():
        text = f"both {text} and by Welch's t-test over the seeds"
    if tested["p_seeds"].isna().any():
        text += "; one seed, tested by the first alone, says nothing about the spread over seeds"
    marks = f"† p < {SIGNIFICANT}, ‡ p < {VERY_SIGNIFICANT} against {baseline}"
    return f"{marks}, {text}. Not corrected for the number of comparisons."


def _untested(cells: pd.DataFrame) -> str:
    untested = cells[cells["baseline"].notna() & cells["p"].isna()]
    names = (f"{isolated(cell.label)} {arrow(cell.column)}" for cell in untested.itertuples())
    return _listed("Not tested, for want of counts by sentence (score again)", names)


def _published(published: Published, cells: pd.DataFrame) -> Iterator[str]:
    """The papers that print the numbers, and the origin of quoted ones; the papers' own notes."""
    quoted = cells[cells["origin"] == "quoted"].drop_duplicates("system")[["label", "system"]]
    origins = (
        f"{isolated(label)} ({published.cite(published.systems[name].paper)})"
        for label, name in quoted.values
    )
    papers = _listed("Published numbers", map(published.papers.get, cells["paper"]), "; ")
    yield papers + _listed(" Quoted there, not measured by its authors", origins)
    yield from published.notes({*zip(cells["corpus"], cells["metric"], cells["system"], strict=True)})


def _of_corpora(runs: pd.DataFrame) -> Iterator[str]:
    """Pairs that two sets share; a tenth or more of the training pairs that limits of length leave out."""
    for key in ("overlap", "dropped"):
        corpora = runs.dropna(subset=[key]).drop_duplicates(["corpus", "direction", key])
        for corpus, direction, fact in corpora[["corpus", "direction", key]].values:
            where = f"{corpus} {arrow(direction)}"
            if key == "dropped":
                yield f"{where}: {fact}."
            else:
                shared = (f"{count:,} {sets}" for sets, count in json.loads(fact).items() if count)
                yield _listed(f"Pairs that occur in two sets, {where}", shared)


def _equal(runs: pd.DataFrame, answers: str) -> Iterator[str]:
    """Runs of one cell with equal models or answers, although their seeds differ."""
    for _, cell in runs.groupby(CELL, sort=False):
        for key, name in (("model", "models"), ("answers", answers)):
            twins = cell[cell[key].notna() & cell.duplicated(key, keep=False)]
            if len(twins):
                yield from (f"{name} of {_named(group)}" for _, group in twins.groupby(key, sort=False))
                break  # equal models translate alike


def _named(runs: pd.DataFrame) -> str:
    """Runs of one cell in words: "Grammar demo De→En (seeds 1, 2)"."""
    run = runs.iloc[0]
    return f"{isolated(run['label'])} {run['corpus']} {arrow(run['direction'])} ({_seeds(runs)})"


def _signatures(metrics: Sequence[str], runs: pd.DataFrame) -> Iterator[str]:
    """sacreBLEU's signature of each score, with its columns if corpora differ in it."""
    for metric in dict.fromkeys(metric.removeprefix("valid_") for metric in metrics):
        signatures = runs.groupby(f"signature_{metric}", sort=False) if f"signature_{metric}" in runs else ()
        for signature, group in signatures:
            places = group[["corpus", "direction"]].drop_duplicates().values
            where = ", ".join(f"{corpus} {arrow(direction)}" for corpus, direction in places)
            yield f"{METRICS[metric].label}{f' ({where})' if len(signatures) > 1 else ''}: {signature}."


def _machines(metrics: Sequence[str], runs: pd.DataFrame) -> str:
    of_machine = {"tokens_per_second", "device_hours", "memory"} & {*metrics}
    text = _listed("Trained here on", runs["device"]) if of_machine else ""
    return text and f"{text} Hours count every device; memory is the main memory of the training's processes."


def _commits(runs: pd.DataFrame) -> str:
    """The commits whose code trained and scored the runs."""
    commits = [*dict.fromkeys(", ".join(filter(None, runs["commit"].dropna())).split(", "))]
    return _listed("Commit" if len(commits) == 1 else "Made by the code of several commits", commits)


def _listed(head: str, values: Iterable[object], between: str = ", ") -> str:
    """The known values, each once; "" if there are none."""
    known = dict.fromkeys(str(value) for value in values if value and pd.notna(value))
    return f"{head}: {between.join(known)}." if known else ""


def _seeds(runs: pd.DataFrame) -> str:
    return f"seed{'s' if len(runs) > 1 else ''} {', '.join(map(str, runs['seed']))}"
