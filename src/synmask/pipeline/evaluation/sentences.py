"""The scores of a run by sentence (sentences.csv), and of parts of a test set.

BLEU of a set of sentences follows from sums over them: matching and all n-grams, lengths. A row has these ten
counts of a test sentence, of sacreBLEU and of tokenised BLEU, how probable the model finds its reference, and
the name of its set, if there are several.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation.bleu import COUNTS, TOKENISED, Texts, bleu_of_counts, score, sentence_counts
from synmask.pipeline.files import read_csv, read_lines

if TYPE_CHECKING:
    import pandas as pd

SET = "set"
PROBABILITY = ["log_probability", "tokens"]  # of a reference: the sum over its sub-words and their number


def read_probabilities(path: str | Path, sentences: int) -> np.ndarray:
    """Read the `PROBABILITY` of each reference, (sentences, 2), as `decode` writes it.

    Raises:
        UserError: no such file, of another kind, or of another number of sentences.
    """
    advice = "decode again"
    rows = read_csv(path, PROBABILITY, advice, dtype=np.float64)
    if len(rows) != sentences:
        raise UserError(f"{path}: {len(rows)} log-probabilities for {sentences} references; {advice}")
    return np.ascontiguousarray(rows[PROBABILITY])  # sums then add row after row


def perplexity(sums: np.ndarray) -> np.ndarray:
    """Sums of `PROBABILITY` (..., 2) over sentences → perplexity per sub-word (...)."""
    return np.exp(-sums[..., 0] / sums[..., 1])


OF_SENTENCES = {  # metric → the columns from whose sums it follows, and how
    "sacrebleu": (COUNTS, bleu_of_counts),
    "bleu_tokenised": (TOKENISED, bleu_of_counts),
    "perplexity": (PROBABILITY, perplexity),
}


def counts_of(path: Path, metric: str) -> np.ndarray | None:
    """(N, D) the counts of a sentences.csv from whose sums a metric follows; None if it lacks them.

    Raises:
        UserError: as `read_sentences`.
    """
    rows, (columns, _) = read_sentences(path), OF_SENTENCES[metric]
    return rows[columns].to_numpy() if {*columns} <= {*rows} else None


def sets_of_sentences(sets: Iterable[tuple[str, Path]], sentences: int) -> list[str]:
    """The set of each sentence of joined files, given as name and file, in their order; [] without sets.

    Raises:
        UserError: a file cannot be read, or together they do not have as many lines as `sentences`.
    """
    sets = [*sets]
    of_lines = [name for name, path in sets for _ in read_lines(path)]
    if sets and len(of_lines) != sentences:
        files = ", ".join(str(path) for _, path in sets)
        raise UserError(f"{files}: {len(of_lines)} lines for {sentences} sentences; prepare the text again")
    return of_lines


def score_sets(
    of_sets: Sequence[str], plain: Texts, tokens: Texts, probable: np.ndarray, **kwargs: Any
) -> dict[str, dict[str, Any]]:
    """Set → number of sentences, scores and perplexity.

    Args:
        of_sets: the set of each sentence.
        plain, tokens, kwargs: as for `bleu.score`.
        probable: `PROBABILITY` of each sentence.
    """
    by_set = {}
    for name in dict.fromkeys(of_sets):
        rows = [number for number, of_sentence in enumerate(of_sets) if of_sentence == name]
        part = [tuple([lines[row] for row in rows] for lines in texts) for texts in (plain, tokens)]
        by_set[name] = {"sentences": len(rows), **score(*part, **kwargs)["scores"]}
        by_set[name]["perplexity"] = float(perplexity(probable[rows].sum(axis=0)))
    return by_set


def sentence_rows(
    plain: Texts, tokens: Texts, probable: np.ndarray, of_sets: Sequence[str], **kwargs: Any
) -> Iterator[list[Any]]:
    """The rows of sentences.csv, the first with the names of its columns; arguments as of `score_sets`."""
    named = [[name] for name in of_sets] or [[]] * len(plain[0])
    yield [*COUNTS, *TOKENISED, *PROBABILITY, *([SET] if of_sets else [])]
    texts = {"sacrebleu": plain, "bleu_tokenised": tokens}
    counts = np.hstack([sentence_counts(metric, *pair, **kwargs)[0] for metric, pair in texts.items()])
    for row, (log_probability, pieces), name in zip(counts.tolist(), probable.tolist(), named, strict=True):
        yield [*row, log_probability, int(pieces), *name]


def read_sentences(path: Path) -> "pd.DataFrame":
    """Read a run's sentences.csv; files of older versions lack `TOKENISED` and perhaps `PROBABILITY`.

    Raises:
        UserError: no such file, or of another kind.
    """
    dtypes = dict.fromkeys([*COUNTS, *TOKENISED, "tokens"], np.int64) | {"log_probability": np.float64}
    rows = read_csv(path, COUNTS, "decode and score this run again", dtype=dtypes, keep_default_na=False)
    if rows.empty:
        raise UserError(f"{path}: no sentence in it; decode and score this run again")
    return rows
