"""Scores of language understanding tasks, by scikit-learn and SciPy, and trivial baselines.

Both libraries are imported where they are used: to load them takes 2 s, and most steps use neither.
"""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from synmask.pipeline.corpora.tasks import Examples
from synmask.pipeline.files import UserError, read_csv, read_lines
from synmask.pipeline.tasks import TASKS, task_named

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import TfidfVectorizer

TASK_METRICS = {  # the first one is a task's score in GLUE's average, and chooses the best checkpoint
    "cola": ("matthews",),
    "sst-2": ("accuracy",),
    "mnli": ("accuracy",),
    "qnli": ("accuracy",),
    "rte": ("accuracy",),
    "mrpc": ("f1", "accuracy"),
    "qqp": ("f1", "accuracy"),
    "sts-b": ("pearson", "spearman"),
    "acceptability": ("matthews",),
    "paraphrase": ("f1", "accuracy"),
    "entailment": ("accuracy",),
    "predicate": ("pearson", "spearman"),
}
EXAMPLES = ["part", "answer", "gold"]  # the columns of examples.csv
TOKEN = r"(?u)\w+|[^\w\s]"  # scikit-learn's own pattern would drop "a" and "I"


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
    compute = _of_labels if TASKS[task].labels else _correlation
    return {metric: 100 * float(compute(metric, gold, predicted)) for metric in TASK_METRICS[task]}


def _of_labels(metric: str, gold: Sequence[str], predicted: Sequence[str]) -> float:
    from sklearn import metrics

    if metric == "matthews":
        constant = 1 in (len({*gold}), len({*predicted}))
        return 0.0 if constant else metrics.matthews_corrcoef(gold, predicted)
    if metric == "f1":
        return metrics.f1_score(gold, predicted, pos_label="1", zero_division=0)
    return metrics.accuracy_score(gold, predicted)


def _correlation(metric: str, gold: Sequence[str], predicted: Sequence[str]) -> float:
    from scipy import stats

    sides = [np.array(side, dtype=np.float64) for side in (gold, predicted)]
    if any(np.ptp(side) == 0 for side in sides):
        return 0.0
    return (stats.pearsonr if metric == "pearson" else stats.spearmanr)(*sides).statistic


def contributions(gold: Sequence[str], answers: Sequence[str]) -> list[np.ndarray]:
    """The parts of N examples in the sums from which `of_sums` computes a task's own score, (N,) each.

    These are 1, whether the answer is right, answer, gold, their squares and their product; labels count as 1
    for "1", and as 0.
    """
    right = np.array([one == other for one, other in zip(gold, answers, strict=True)], dtype=np.float64)
    given, truth = (np.array([_number(value) for value in side]) for side in (answers, gold))
    return [np.ones(len(right)), right, given, truth, given**2, truth**2, given * truth]


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:  # a label that is a word
        return 0.0


def of_sums(task: str, sums: np.ndarray) -> np.ndarray:
    """The task's own score in percent, as `score`, from sums (..., 7) of `contributions` over examples."""
    count, right, given, truth, given_squared, truth_squared, both = np.moveaxis(sums, -1, 0)
    match TASK_METRICS[task][0]:
        case "accuracy":
            return 100 * right / count
        case "f1":
            return 200 * both / np.maximum(given + truth, 1)  # 0 if neither has the label
        case "matthews" | "pearson":  # Matthews' is Pearson's correlation of labels 0 and 1
            spreads = [count * given_squared - given**2, count * truth_squared - truth**2]
            constant = (spreads[0] <= 1e-9 * given_squared) | (spreads[1] <= 1e-9 * truth_squared)
            spread = np.where(constant, 1, spreads[0] * spreads[1])
            return np.where(constant, 0, 100 * (count * both - given * truth) / np.sqrt(spread))
    raise ValueError(f"no test of {TASK_METRICS[task][0]}")


def read_examples(path: Path) -> "pd.DataFrame":
    """Read a run's examples.csv: part, answer and gold label of each example, as text.

    Raises:
        UserError: no such file, or of another kind.
    """
    return read_csv(path, EXAMPLES, "score this run again", dtype=str, keep_default_na=False)


def majority(task: str, train: Examples, dev: Examples) -> dict[str, float]:
    """Scores of always answering the training set's most frequent label, or its mean."""
    labels = TASKS[task].labels
    mean = "" if labels else str(fmean(map(float, train.labels)))
    answer = max(labels, key=train.labels.count, default=mean)  # the first if there are several
    return score(task, dev.labels, [answer] * len(dev.labels))


def bag_of_words(task: str, train: Examples, dev: Examples) -> dict[str, float]:
    """Scores of a linear model that sees the words but not their order.

    A sentence is its tf-idf vector of lower-cased words and marks (scikit-learn's TfidfVectorizer, fitted on
    all training sentences); a pair is u, v, |u - v| and u * v, side by side. LogisticRegression (C = 1), or
    Ridge (alpha = 1) for a regression; both deterministic.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression, Ridge

    if len(set(train.labels)) == 1:  # nothing to learn
        return majority(task, train, dev)
    vectors = TfidfVectorizer(token_pattern=TOKEN)
    vectors.fit(text for texts in train.texts for text in texts)
    if TASKS[task].labels:
        model = LogisticRegression(max_iter=2000).fit(_features(vectors, train), train.labels)
    else:
        model = Ridge(solver="lsqr").fit(_features(vectors, train), np.array(train.labels, dtype=np.float64))
    return score(task, dev.labels, model.predict(_features(vectors, dev)).tolist())


def _features(vectors: "TfidfVectorizer", examples: Examples) -> "csr_matrix":
    """(N, features) of N sentences or pairs."""
    from scipy.sparse import hstack

    sides = [vectors.transform(texts) for texts in zip(*examples.texts, strict=True)]
    if len(sides) == 2:
        first, second = sides
        sides += [abs(first - second), first.multiply(second)]
    return hstack(sides, format="csr")


def read_predictions(task: str, path: str | Path, count: int) -> list[str]:
    """Read the predictions for `count` examples: one label, or for a regression one number, per line.

    Raises:
        UserError: no such file, malformed lines, or another number of lines.
    """
    labels = task_named(task).labels
    lines = list(read_lines(path))
    if len(lines) != count:
        raise UserError(f"{path}: {len(lines)} predictions for {count} examples; predict the same part again")
    known = f"one of {', '.join(labels)}" if labels else "a finite number"
    for number, line in enumerate(lines, start=1):
        if line not in labels if labels else not _finite(line):
            raise UserError(f"{path}, line {number}: {line!r} is not {known}")
    return lines


def _finite(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
