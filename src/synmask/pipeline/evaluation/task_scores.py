"""Scores of language understanding tasks, from sums over examples."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np

from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_csv, read_lines
from synmask.pipeline.tasks import TASKS, task_of

EXAMPLES = ["part", "answer", "gold"]  # the columns of examples.csv


def score(task: str, gold: Sequence[str], predicted: Sequence[str]) -> dict[str, float]:
    """The task's metrics for N predictions, in percent; F1 is for label 1.

    A correlation that is undefined, because one side is constant, counts as 0.

    Args:
        gold, predicted: (N), labels, or numbers for a regression, as written in the files.
    Raises:
        ValueError: there are none, or the sides differ in length.
    """
    if not gold or len(gold) != len(predicted):
        raise ValueError(f"predicted: {len(predicted)} given for {len(gold)} gold labels")
    sides, scores = [_numbers(task, side) for side in (gold, predicted)], {}
    for metric in TASKS[task].metrics:
        truth, answers = map(_ranks, sides) if metric == "spearman" else sides
        if not TASKS[task].labels:
            truth, answers = truth - truth.mean(), answers - answers.mean()  # more exact
        scores[metric] = float(_of_sums(metric, np.sum(_parts(truth, answers), axis=1)))
    return scores


def _numbers(task: str, labels: Iterable[str]) -> np.ndarray:
    return np.array([*map(TASKS[task].number, labels)], dtype=float)


def _ranks(values: np.ndarray) -> np.ndarray:
    """The rank of each value, from 1; equal ones share the mean of theirs."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[places]


def contributions(task: str, gold: Iterable[str], answers: Iterable[str]) -> np.ndarray:
    """(N, 7) the parts of N examples in the sums from which `of_sums` computes a task's own score.

    These are 1, whether the answer is right, answer, gold, their squares and their product; labels count as
    their places, so "1" as 1.
    """
    return np.stack(_parts(_numbers(task, gold), _numbers(task, answers)), axis=1)


def _parts(truth: np.ndarray, answers: np.ndarray) -> list[np.ndarray]:
    return [np.ones(len(truth)), truth == answers, answers, truth, answers**2, truth**2, answers * truth]


def of_sums(task: str, sums: np.ndarray) -> np.ndarray:
    """The task's own score in percent, as `score`, from sums (..., 7) of `contributions` over examples."""
    return _of_sums(TASKS[task].metrics[0], sums)


def _of_sums(metric: str, sums: np.ndarray) -> np.ndarray:
    count, right, answers, truth, answers_squared, truth_squared, both = np.moveaxis(sums, -1, 0)
    if metric == "accuracy":
        return 100 * right / count
    if metric == "f1":
        return 200 * both / np.maximum(answers + truth, 1)  # 0 if neither has the label
    # Matthews' is Pearson's correlation of labels 0 and 1, Spearman's that of ranks
    spreads = [count * answers_squared - answers**2, count * truth_squared - truth**2]
    constant = (spreads[0] <= 1e-9 * answers_squared) | (spreads[1] <= 1e-9 * truth_squared)
    spread = np.where(constant, 1, spreads[0] * spreads[1])
    return np.where(constant, 0, 100 * (count * both - answers * truth) / np.sqrt(spread))


def counts_of_examples(path: Path, task: str, part: str) -> np.ndarray:
    """The `contributions` of the examples of one part in a run's examples.csv.

    Raises:
        UserError: no such file, or of another kind.
    """
    rows = read_csv(path, EXAMPLES, "score this run again", dtype=str, keep_default_na=False)
    rows = rows[rows["part"] == part]
    try:
        return contributions(task, rows["gold"], rows["answer"])
    except ValueError:
        raise UserError(f"{path}: an answer that is none of {task}'s; score this run again") from None


def majority(task: str, train: Sequence[str], dev: Sequence[str]) -> dict[str, float]:
    """Scores, for the labels of `dev`, of always answering the most frequent one of `train`, or its mean."""
    labels = TASKS[task].labels
    mean = "" if labels else str(fmean(map(float, train)))
    answer = max(labels, key=train.count, default=mean)  # the first if there are several
    return score(task, dev, [answer] * len(dev))


def best_constant(task: str, gold: Sequence[str]) -> float:
    """The task's own score of the best answer that is the same for all N examples, in percent.

    It bounds what a model reaches that tells none of them apart; so it is chosen by `gold` itself, (N).
    """
    metric, answers = TASKS[task].metrics[0], TASKS[task].labels or ["0"]  # any number correlates alike
    return max(score(task, gold, [answer] * len(gold))[metric] for answer in answers)


def read_predictions(task: str, path: str | Path, count: int) -> list[str]:
    """Read the predictions for `count` examples: one label, or for a regression one number, per line.

    Raises:
        UserError: no such file, malformed lines, or another number of lines.
    """
    layout, lines = task_of(task), list(read_lines(path))
    if len(lines) != count:
        raise UserError(f"{path}: {len(lines)} predictions for {count} examples; predict the same part again")
    for number, line in enumerate(lines, start=1):
        try:
            layout.number(line)
        except ValueError:
            known = f"one of {', '.join(layout.labels)}" if layout.labels else "a finite number"
            raise UserError(f"{path}, line {number}: {line!r} is not {known}") from None
    return lines
