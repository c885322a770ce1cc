"""Metrics that only some tables ask for: TER (by sacreBLEU), and functions of the user's."""

import math
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sacrebleu.metrics import TER

from synmask.pipeline.arguments import Lowercase, RunFolder, on_gpus
from synmask.pipeline.config.base import Measured, module_file
from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation.bleu import read_texts, sacrebleu_code, sentence_counts
from synmask.pipeline.files import write_json
from synmask.pipeline.languages import split_direction
from synmask.pipeline.record import read_record, read_run, run_names, versions_and_commit

SPLIT = "test"


@on_gpus
def measure(
    *, run: RunFolder, metric: Measured, sources: Path, references: Path, lowercase: Lowercase = False
) -> None:
    """Score a run's translations of the test set by one more metric: writes RUN/metric.METRIC.json.

    Args:
        metric: ter, or a function of yours by its dotted name (docs/tables.md).
        sources: Plain source text.
        references: Plain reference text.
    """
    record = read_run(run, "direction")
    translations = run / f"hypothesis.{SPLIT}.txt"
    read_record(translations.with_suffix(".json"), [translations], record)
    texts = read_texts(translations, references, sources)
    language = split_direction(record["direction"])[1]
    counts, signature = metric_counts(metric, *texts, language=language, lowercase=lowercase)
    facts = {"metric": metric, "score": float(ratio(counts.sum(axis=0))), "signature": signature}
    owner = {"run": run_names(record), "training": record.get("training")}
    facts |= versions_and_commit() | {"counts": counts.T.tolist()}
    write_json(metric_file(translations, metric), owner | facts)


def metric_file(beside: Path, metric: str) -> Path:
    """The file of a metric in a run's folder, beside another."""
    return beside.with_name(f"metric.{metric}.json")


def read_metric(path: Path) -> dict[str, Any]:
    """The result of `measure`: "score", "signature", and "counts" (2, N).

    Raises:
        UserError: no such file, or another run's, or it lacks a key.
    """
    result = read_record(path)
    if missing := {"score", "signature", "counts"} - {*result}:
        raise UserError(f"{path}: no {min(missing)} in it; delete it and make it again")
    return result


def metric_counts(
    metric: str,
    hypotheses: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str] | None,
    *,
    language: str,
    lowercase: bool = False,
) -> tuple[np.ndarray, str]:
    """Counts of each segment from whose sums the metric follows (`results.score_of`); its signature.

    sacreBLEU has `bleu.COUNTS` (N, 10). The others have two (N, 2), whose `ratio` is the score: TER edits and
    words of the reference, a function of the user's its value and 1, so its score is the mean.

    Args:
        sources: None if they are not known.
        language: the target's. TER takes single characters for words in Chinese and Japanese.
        lowercase: give functions lower-cased text; TER never depends on case.

    Raises:
        UserError: the function does not exist, fails, or does not return a finite number per segment.
    """
    if metric == "sacrebleu":
        return sentence_counts(metric, hypotheses, references, language, lowercase=lowercase)
    if metric == "ter":
        asian = sacrebleu_code(language) in ("zh", "ja")
        ter = TER(normalized=asian, asian_support=asian)
        scores = [
            ter.sentence_score(*pair) for pair in zip(hypotheses, ([r] for r in references), strict=True)
        ]
        rows = [(100 * score.num_edits, score.ref_length) for score in scores]
        return np.array(rows, dtype=float), str(ter.get_signature())
    texts = [hypotheses, references, sources]
    if lowercase:
        texts = [text and [line.lower() for line in text] for text in texts]
    values = _values(metric, len(hypotheses), [text and [*text] for text in texts])
    return np.stack([values, np.ones(len(values))], axis=1), "the mean over all segments"


def ratio(sums: np.ndarray) -> np.ndarray:
    """Sums of the counts of `metric_counts` (..., 2) → scores (...)."""
    return sums[..., 0] / np.maximum(sums[..., 1], 1)


def _values(name: str, segments: int, texts: Sequence[list[str] | None]) -> np.ndarray:
    """The values (segments,) of the user's function of this name."""
    function = _function(name)
    with _in_one_line(name):
        values = [math.nan if isinstance(value, str | None) else float(value) for value in function(*texts)]
    if len(values) != segments:
        raise UserError(
            f"{name}: returned {len(values):,} values for {segments:,} segments; return a number for each"
        )
    if wrong := [number for number, value in enumerate(values, start=1) if not math.isfinite(value)]:
        raise UserError(f"{name}: segment {wrong[0]:,} has no finite number; return one for each")
    return np.array(values)


def _function(name: str) -> Callable[..., Any]:
    """The function of this dotted name."""
    module, _, function = name.rpartition(".")
    try:
        module_file(name)  # also lets modules be imported from this folder
    except ValueError as error:
        raise UserError(f"{name}: {error}") from None
    with _in_one_line(name):
        loaded = import_module(module)
    if not callable(loaded := getattr(loaded, function, None)):
        raise UserError(f"{name}: {module} has no function {function!r}")
    return loaded


@contextmanager
def _in_one_line(name: str) -> Iterator[None]:
    """Name an error of the user's function, and the line of his code where it was raised."""
    try:
        yield
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)[1:]
        own = [frame for frame in frames if not frame.filename.startswith((sys.prefix, sys.base_prefix, "<"))]
        where = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
        raise UserError(f"{name}: {type(error).__name__}: {error}{where}") from error
