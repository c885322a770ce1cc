"""The scores of a run besides BLEU of whole splits: perplexity, scores of test sets, rows by sentence."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from synmask.pipeline.evaluation.bleu import COUNTS, SOURCE, TOKENISED, Texts, score, sentence_counts
from synmask.pipeline.files import UserError, read_lines

PROBABILITY = ["log_probability", "tokens"]  # of a reference: the sum over its sub-words and their number
SET = "set"


def read_probabilities(path: str | Path, sentences: int) -> np.ndarray:
    """Read the `PROBABILITY` of each reference, (sentences, 2), as `decode` writes it.

    Raises:
        UserError: no such file, of another kind, or of another number of sentences.
    """
    head, *lines = [*read_lines(path)] or [""]
    try:
        rows = [[float(cell) for cell in line.split(",")] for line in lines]
        found = np.array(rows).reshape(sentences, len(PROBABILITY))
    except ValueError:
        head = ""
    if head != ",".join(PROBABILITY):
        raise UserError(f"{path}: not the log-probabilities of {sentences} references; decode again")
    return found


def perplexity(sums: np.ndarray) -> np.ndarray:
    """Sums of `PROBABILITY` (..., 2) over sentences → perplexity per sub-word (...)."""
    return np.exp(-sums[..., 0] / sums[..., 1])


def members(sets: Iterable[tuple[str, Path]], sentences: int) -> list[str]:
    """The set of each sentence of joined files, given as name and file, in their order; [] without sets.

    Raises:
        UserError: a file cannot be read, or together they do not have as many lines as `sentences`.
    """
    sets = [*sets]
    found = [name for name, path in sets for _ in read_lines(path)]
    if sets and len(found) != sentences:
        files = ", ".join(str(path) for _, path in sets)
        raise UserError(f"{files}: {len(found)} lines for {sentences} sentences; prepare the text again")
    return found


def score_sets(
    of_sets: Sequence[str], plain: Texts, tokens: Texts, probable: np.ndarray, **how: Any
) -> dict[str, dict[str, Any]]:
    """Set → number of sentences, scores and perplexity.

    Args:
        of_sets: the set of each sentence.
        plain, tokens, how: as for `bleu.score`.
        probable: `PROBABILITY` of each sentence.
    """
    found = {}
    for name in dict.fromkeys(of_sets):
        rows = [number for number, one in enumerate(of_sets) if one == name]
        part = [tuple([lines[row] for row in rows] for lines in texts) for texts in (plain, tokens)]
        found[name] = {"sentences": len(rows), **score(*part, **how)["scores"]}
        found[name]["perplexity"] = float(perplexity(probable[rows].sum(axis=0)))
    return found


def sentence_rows(
    plain: Texts, tokens: Texts, source: Path, probable: np.ndarray, of_sets: Sequence[str], **how: Any
) -> Iterator[list[Any]]:
    """The rows of sentences.csv, the first with the names of its columns; as `score_sets`.

    Raises:
        UserError: as `sentence_counts`.
    """
    named = [[name] for name in of_sets] or [[]] * len(plain[0])
    yield [*COUNTS, *TOKENISED, *SOURCE, *PROBABILITY, *([SET] if of_sets else [])]
    counts = sentence_counts(plain, tokens, source, **how)
    for row, (log_probability, pieces), name in zip(counts, probable.tolist(), named, strict=True):
        yield [*row, log_probability, int(pieces), *name]
