"""Read the results of runs as tables: scores.json, parse.json, peak memory.

All functions that read raise a UserError if a file is missing, is not JSON, or lacks a key; those that check
or read tasks, if runs that a table puts together are not alike, or one is given twice.
"""

import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from operator import itemgetter
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd

from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation.bootstrap import f1
from synmask.pipeline.evaluation.measure import metric_file, ratio, read_metric
from synmask.pipeline.evaluation.sentences import OF_SENTENCES, counts_of
from synmask.pipeline.evaluation.task_scores import counts_of_examples, of_sums
from synmask.pipeline.files import read_json
from synmask.pipeline.metric_names import Translation, Validation, is_measured
from synmask.pipeline.record import first_difference, read_record
from synmask.pipeline.reporting.metrics import ATTACHMENT, DEPENDENCIES, PARSE_SCORES
from synmask.pipeline.runs import Column
from synmask.pipeline.tasks import AVERAGE, TASKS

RUN = ["corpus", "direction", "system", "seed"]
SCORES = list(get_args(Translation))  # of the test set
VALID_SCORES = list(get_args(Validation))
SIGNATURES = [f"signature_{metric}" for metric in SCORES]
CHOICE = "valid_bleu_tokenised"  # a sweep's criterion: the paper's metric, never on the test set
COSTS = ["parameters", "tokens_per_second", "train_seconds", "workers", "device", "commit", "diverged"]
SETTINGS = ["settings", "decoding"]  # as JSON with sorted keys
AS_JSON = {*SETTINGS, "weights"}


def commits(run: Mapping[str, Any]) -> list[str]:
    """The commits whose code made a scores.json: of each attempt of the training, then of the scores."""
    steps = [*(run.get("attempts") or ()), run]  # older versions recorded no attempts
    return [*dict.fromkeys(step["commit"] for step in steps if step.get("commit"))]


def _facts(run: Mapping[str, Any]) -> dict[str, Any]:
    """The training in a scores.json, with all its commits, and the settings as JSON."""
    costs = {key: run.get(key) for key in COSTS} | {"commit": ", ".join(commits(run)) or None}
    return costs | {key: json.dumps(run.get(key), sort_keys=True) for key in SETTINGS}


def read_scores(paths: Iterable[Path], measured: Sequence[str] = ()) -> pd.DataFrame:
    """The runs of scores.json files, one row each: run, scores, signatures, settings and costs.

    Scores of the validation set begin with "valid_". A score that is not finite is NaN. `memory` is the
    training's peak in MiB, NaN if it was not recorded; `device_hours` counts all devices. `counts` reads the
    counts by sentence of a metric, as `read_counts` does.

    Args:
        measured: metrics that stand in files of their own beside scores.json.
    """
    rows = []
    for path in paths:
        with _contents(path) as run:
            row = {key: run[key] for key in RUN} | _facts(run)
            for metric in SCORES:
                row[metric] = _finite(run["scores"]["test"][metric])
                row[f"valid_{metric}"] = _finite(run["scores"]["valid"][metric])
                row[f"signature_{metric}"] = run["signatures"][metric]
            for metric in measured:
                file = metric_file(Path(path), metric)
                result = read_metric(file) if file.exists() else {}
                row |= {metric: result.get("score"), f"signature_{metric}": result.get("signature")}
            shared = sorted((run.get("overlap") or {}).items())
            row["overlap"] = ", ".join(f"{count:,} {sets}" for sets, count in shared if count) or None
            row["dropped"] = run.get("dropped")
            row["counts"] = cache(partial(read_counts, Path(path).with_name("sentences.csv")))
            row["device_hours"] = (row["train_seconds"] or math.nan) * (row["workers"] or 1) / 3600
            row["memory"] = _finite(run.get("memory"))
        rows.append(row)
    return pd.DataFrame(rows)


def score_of(metric: str, task: str | None = None) -> Callable[[np.ndarray], np.ndarray]:
    """How a metric, or a task's own score, follows from sums of counts."""
    if task:
        return partial(of_sums, task)
    if is_measured(metric):
        return ratio
    return OF_SENTENCES[metric][1] if metric in OF_SENTENCES else f1


def read_counts(
    path: Path, metric: str, task: str | None = None, part: str | None = None
) -> np.ndarray | None:
    """(N, D) the counts of a run's sentences from whose sums a score follows; None if they are not known.

    Args:
        path: sentences.csv, or examples.csv of a part of a task; beside it the files of `measure`.

    Raises:
        UserError: the file is another run's, or of another kind.
    """
    if is_measured(metric):
        return np.transpose(read_metric(metric_file(path, metric))["counts"])
    if not path.exists():
        return None
    read_record(path.with_name("scores.json"), [path])
    return counts_of_examples(path, task, part) if task else counts_of(path, metric)


def read_parse_scores(paths: Iterable[Path], protocol: str) -> pd.DataFrame:
    """The `parse_rows` of parse.json files by one protocol."""
    rows = []
    for path in paths:
        scores = [row for row in parse_rows(path) if row["protocol"] == protocol]
        if not scores:
            raise UserError(f"{path}: no {protocol} in protocols; make it again")
        rows += scores
    table = pd.DataFrame(rows, columns=[*RUN, "tree", *PARSE_SCORES, "counts"])
    check_once(table, "tree")
    return table


def parse_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of one parse.json: run, "protocol", "tree", number of "counted" sentences or words, scores.

    Their `counts` read the (N, 2) counts of `bootstrap.f1` from the parse_counts.json beside it; None where
    it has none.
    """
    known = cache(partial(_read_spans, path))
    with _contents(path) as run:
        head = {key: run[key] for key in RUN}
        parts = [(name, part["sentences"], part, PARSE_SCORES) for name, part in run["protocols"].items()]
        if heads := run.get("dependencies"):
            parts.append((DEPENDENCIES, heads["words"], heads, ATTACHMENT))
        for protocol, counted, part, keys in parts:
            for tree, scores in part["rows"].items():
                where = {"protocol": protocol, "counted": counted, "tree": tree}
                spans = (protocol, tree.removesuffix("-with-punctuation"))
                where["counts"] = lambda _metric, spans=spans: known().get(spans)
                yield head | where | {key: _finite(scores[key]) for key in keys}


def _read_spans(parse: Path) -> dict[tuple[str, str], np.ndarray]:
    """Protocol and kind of tree → the counts by sentence in the parse_counts.json beside a parse.json."""
    known, path = {}, parse.with_name("parse_counts.json")
    read_record(parse, [path])
    with _contents(path) as run:
        for protocol, trees in run["counts"].items():
            itemgetter("gold", "induced", "right-branching")(trees)  # all there
            gold = np.array(trees.pop("gold"))
            for tree, spans in trees.items():
                matched, predicted = (np.array(spans[key]) for key in ("matched", "predicted"))
                known[protocol, tree] = np.stack((matched, predicted + gold), axis=1)
    return known


def read_tasks(paths: Iterable[Path], columns: Sequence[Column]) -> pd.DataFrame:
    """Tasks of language understanding, one row per run and column; `glue` is the task's own score.

    Each file is a run's scores.json, or a task's baselines.json, whose rows have seed 0. `direction` is the
    name of the column; `counts` reads the counts by example (`read_counts`), if the run has answers.
    """
    names = {(c["corpus"], c["task"], c["part"]): c["column"] for c in columns if c.get("task")}
    rows = []
    for path in paths:
        with _contents(path) as run:
            trained = "system" in run
            head = {"corpus": run["corpus"], "seed": run.get("seed", 0)} | _facts(run)
            head["weights"] = json.dumps(run.get("start"), sort_keys=True)
            answers = Path(path).with_name("examples.csv")
            systems = {run["system"]: run["scores"]} if trained else run["scores"]
            parts = ((system, *part) for system, parts in systems.items() for part in parts.items())
            for system, part, scores in parts:
                name = names.get((run["corpus"], run["task"], part), f"{run['task']} {part}")
                read = cache(partial(read_counts, answers, task=run["task"], part=part))
                row = {"direction": name, "system": system, "counts": read if trained else None}
                rows.append(head | row | {"glue": _finite(scores[TASKS[run["task"]].metrics[0]])})
    table = pd.DataFrame(rows)
    check_alike(table)
    check_same(table, ["corpus", "system"], "weights")  # also what an average over tasks puts together
    check_same(pd.DataFrame(_starts(table), columns=[*table, "name"]), ["name"], "weights")
    return table


def _starts(runs: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The runs once for each of the weights that they start from, also where others continue these."""
    for run in runs.to_dict("records"):
        start = json.loads(run["weights"])
        while start:
            yield run | {"name": start["weights"], "weights": json.dumps(start, sort_keys=True)}
            start = start.get("start")


def select_expected(runs: pd.DataFrame, expected: pd.DataFrame) -> pd.DataFrame:
    """`runs` in the order of those that a table asks for, with the labels of its rows.

    Raises:
        UserError: a run is not in the table.
    """
    known = pd.MultiIndex.from_frame(runs[RUN]).isin(pd.MultiIndex.from_frame(expected[RUN]))
    if not known.all():
        raise UserError(f"{describe(runs[~known].iloc[0])}: not in this table; leave the file out")
    return expected.astype(dict.fromkeys(RUN, object)).merge(runs.astype(dict.fromkeys(RUN, object)), on=RUN)


def add_average(runs: pd.DataFrame, columns: Sequence[Column]) -> pd.DataFrame:
    """`runs`, and if the table has an average, a row per system and seed that has all columns."""
    names = {column["column"] for column in columns if column.get("task")}
    if len(names) == len(columns):
        return runs
    of_seed = ["corpus", "system", "seed"]
    whole = runs.groupby(of_seed, sort=False).filter(lambda group: {*group["direction"]} == names)
    means = whole.groupby(of_seed, sort=False)["glue"].mean(skipna=False)
    return pd.concat([runs, means.reset_index().assign(direction=AVERAGE)], ignore_index=True)


def choose_systems(runs: pd.DataFrame) -> dict[tuple[str, str], str]:
    """(corpus, direction) → the system that validation chooses: that with the highest mean of `CHOICE`.

    Runs without a finite score do not count. If fewer than two systems have one, nothing is chosen.
    """
    finite = runs.dropna(subset=[CHOICE]).astype({CHOICE: float})
    means = finite.groupby(["corpus", "direction", "system"], sort=False)[CHOICE].mean()
    places = means.groupby(level=["corpus", "direction"])
    return {place: group.idxmax()[-1] for place, group in places if len(group) > 1}


def check_alike(runs: pd.DataFrame) -> None:
    """Check that runs of a cell were trained alike, and runs of a column decoded and scored alike."""
    check_once(runs)
    signatures = [key for key in runs if key.startswith("signature_")]
    check_same(runs, ["corpus", "direction"], "decoding", *signatures)
    check_same(runs, ["corpus", "direction", "system"], "settings")


def check_once(runs: pd.DataFrame, *keys: str) -> None:
    """Check that no run is given twice; `keys`: what tells apart the rows of one run."""
    twice = runs[runs.duplicated([*RUN, *keys])]
    if len(twice):
        raise UserError(f"{describe(twice.iloc[0])}: given twice; name each run once")


def describe(run: pd.Series | dict[str, Any]) -> str:
    """A run in words: "grammar on demo de-en, seed 1"."""
    return f"{run['system']} on {run['corpus']} {run['direction']}, seed {run['seed']}"


def check_same(runs: pd.DataFrame, by: Sequence[str], *keys: str) -> None:
    """Check that runs that agree in `by` agree in those of `keys`, too, that they have."""
    for (_, group), key in itertools.product(runs.groupby([*by], sort=False), keys):
        different = group.dropna(subset=[key]).drop_duplicates(key)
        if len(different) > 1:
            values = different[key].iloc[:2]
            if key in AS_JSON:
                values = first_difference(*map(json.loads, values))
            names = (describe(different.iloc[place]) for place in range(2))
            sides = (f"{name} ({value})" for name, value in zip(names, values, strict=True))
            raise UserError(f"{key} differ between {' and '.join(sides)}; make the older run again")


def _finite(value: Any) -> float:
    """The value, or NaN if it is not a finite number (the training diverged)."""
    return value if isinstance(value, int | float) and math.isfinite(value) else math.nan


@contextmanager
def _contents(path: Path) -> Iterator[dict[str, Any]]:
    """The contents of a run's file; a key that the block does not find is reported as missing in it."""
    contents = read_json(path)
    try:
        yield contents
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: no {error} in it; delete it and make it again") from None
