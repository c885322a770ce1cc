"""Dependency accuracy of induced heads and of trivial ones."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from synmask.pipeline.errors import UserError
from synmask.pipeline.syntax import treebank

RANDOM_SEEDS = range(5)
ROWS = ("induced", "left-neighbour", "right-neighbour", *("random" for _ in RANDOM_SEEDS))


def read_heads(path: Path, lengths: Iterable[int]) -> Iterator[list[int]]:
    """Yield gold heads, one sentence per line: for each word the number of its head, from 1, 0 = root.

    Args:
        lengths: the number of words of each sentence.
    Raises:
        UserError: a line is malformed, or there are more or fewer lines than sentences.
    """
    for line, (heads, words) in enumerate(zip_longest(treebank.read_head_lines(path), lengths), start=1):
        if heads is None or words is None:
            count = "fewer" if heads is None else "more"
            raise UserError(f"{path}: {count} lines than gold trees, at line {line}; parse the text again")
        if len(heads) != words or max(heads, default=0) > words:
            raise UserError(f"{path}, line {line}: expected {words} heads from 0 to {words}; parse it again")
        yield heads


def attachment(
    gold: Sequence[Sequence[int]], induced: Sequence[Sequence[int]], counted: np.ndarray
) -> dict[str, Any]:
    """The words with the right head, in percent.

    Directed: the induced head is the gold head (the root's is 0). Undirected: also right if the word is the
    gold head of the induced head (Klein and Manning 2004), and this one counts. Rows beside "induced":
    "left-neighbour" and "right-neighbour", the counted word before or after (the first, or last, is the
    root), and "random", any other word of the sentence or the root (mean of 5 seeds).

    Args:
        gold, induced: for each sentence its words' heads, from 1, 0 = root.
        counted: (W,) bool, of all words; punctuation is left out.
    Returns:
        {"words": number of counted words, "rows": {row: {"directed", "undirected"}}}.
    """
    sizes = np.array([len(heads) for heads in gold])
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)  # for each word, the first word of its sentence
    truth, others = _joined(gold), np.repeat(sizes, sizes)
    position, words = np.arange(len(truth)) - first + 1, int(counted.sum())
    rows = [_joined(induced), *_neighbours(counted, first)]
    for seed in RANDOM_SEEDS:
        drawn = np.random.default_rng(seed).integers(0, others)  # 0 … n-1: the root and all words but itself
        rows.append(drawn + (drawn >= position))
    right = [_right(truth, heads, first, position, counted) for heads in rows]
    percent = [{name: 100 * (count / words) for name, count in row.items()} for row in right]
    return {"words": words, "rows": mean_by_name([*zip(ROWS, percent, strict=True)])}


def mean_by_name(rows: list[tuple[str, Any]]) -> dict[str, Any]:
    """The rows, numbers or dicts of numbers, by name; rows with the same name (random) are averaged."""
    groups: dict[str, list] = {}
    for name, row in rows:
        groups.setdefault(name, []).append(row)
    return {
        name: {key: fmean(row[key] for row in group) for key in group[0]}
        if isinstance(group[0], dict)
        else fmean(group)
        for name, group in groups.items()
    }


def _right(
    truth: np.ndarray, heads: np.ndarray, first: np.ndarray, position: np.ndarray, counted: np.ndarray
) -> dict[str, int]:
    directed = heads == truth
    head = first + np.maximum(heads, 1) - 1
    back = (heads > 0) & counted[head] & (truth[head] == position)
    right = {"directed": directed, "undirected": directed | back}
    return {name: int(words[counted].sum()) for name, words in right.items()}


def _neighbours(counted: np.ndarray, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The heads if each counted word depends on the counted word before it, or after it."""
    words = np.flatnonzero(counted)
    same = first[words[1:]] == first[words[:-1]]
    left, right = np.zeros((2, len(counted)), dtype=np.int64)
    left[words[1:][same]] = (words[:-1] - first[words[:-1]] + 1)[same]
    right[words[:-1][same]] = (words[1:] - first[words[1:]] + 1)[same]
    return left, right


def _joined(heads: Sequence[Sequence[int]]) -> np.ndarray:
    return np.array([head for line in heads for head in line], dtype=np.int64)
