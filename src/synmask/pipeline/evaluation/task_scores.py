"""Scores of language understanding tasks, by scikit-learn and SciPy, and trivial baselines.

Both libraries are imported where they are used: to load them takes 2 s, and most steps use neither.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from synmask.pipeline.corpora.tasks import TASKS, Examples, task_named
from synmask.pipeline.files import UserError, read_lines

if TYPE_CHECKING:
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
TRIALS = 10_000  # per test, as in sacreBLEU
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


def compare(
    task: str, gold: Sequence[str], predicted: Sequence[str], baseline: Sequence[str]
) -> dict[str, Any]:
    """Paired approximate randomisation of two systems' answers to N examples (Riezler and Maxwell 2005).

    Each trial swaps the answers to an example at random; p is the share of trials in which the task's own
    score differs by at least the real difference. All scores follow from sums over examples, so a trial only
    moves the contributions of swapped examples.

    Returns:
        {"difference" (percent, `predicted` minus `baseline`), "p", "signature"}: see `significance.compare`.
    """
    ours, theirs = (_contributions(task, gold, answers) for answers in (predicted, baseline))
    measure = partial(_from_sums, task, _contributions(task, gold, gold).sum(0), len(gold))
    differing = (ours != theirs).any(1)
    change = (theirs - ours)[differing]
    ours, theirs = ours.sum(0), theirs.sum(0)
    real = abs(measure(ours) - measure(theirs))
    random, larger = np.random.default_rng(12345), 0  # sacreBLEU's seed
    for trials in np.diff([*range(0, TRIALS, 500), TRIALS]):
        moved = (random.random((trials, len(change))) < 0.5).astype(float) @ change
        larger += int((abs(measure(ours + moved) - measure(theirs - moved)) >= real - 1e-9).sum())
    return {
        "difference": 100 * float(measure(ours) - measure(theirs)),
        "p": (larger + 1) / (TRIALS + 1),
        "signature": f"ar:{TRIALS}|seed:12345",
    }


def _contributions(task: str, gold: Sequence[str], answers: Sequence[str]) -> np.ndarray:
    """(N, k) each example's contribution to the sums from which the task's own score follows."""
    if TASK_METRICS[task][0] == "pearson":
        truth, given = (np.array(side, dtype=np.float64) for side in (gold, answers))
        return np.stack([given, given**2, given * truth], axis=1)
    right = np.array([one == other for one, other in zip(gold, answers, strict=True)])
    yes = np.array(answers) == "1"
    return np.stack([right, right & yes, yes], axis=1).astype(float)


def _from_sums(task: str, gold: np.ndarray, count: int, sums: np.ndarray) -> np.ndarray:
    """The task's own score (0 to 1) from sums (..., k) of `_contributions`; `gold`: the gold labels' sums."""
    first, second, third = np.moveaxis(np.asarray(sums, dtype=np.float64), -1, 0)
    match TASK_METRICS[task][0]:
        case "accuracy":
            return first / count
        case "f1":
            either = third + gold[2]
            return 2 * second / np.where(either, either, 1)  # 0 if neither has the label
        case "matthews":  # second: true positives, third: predicted positives
            spread = third * (count - third) * gold[2] * (count - gold[2])
            return _ratio(second * count - third * gold[2], spread)
        case "pearson":
            spread = (second * count - first**2) * (gold[1] * count - gold[0] ** 2)
            return _ratio(third * count - first * gold[0], spread)
    raise ValueError(f"no test of {TASK_METRICS[task][0]}")


def _ratio(numerator: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """numerator / √spread, or 0 without spread."""
    return np.where(spread > 1e-9, numerator / np.sqrt(np.maximum(spread, 1e-9)), 0.0)


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
    for number, line in enumerate(lines, start=1):
        if labels and line not in labels:
            raise UserError(f"{path}, line {number}: unknown label {line!r}; expected {', '.join(labels)}")
        if not labels and not _finite(line):
            raise UserError(f"{path}, line {number}: {line!r} is not a finite number")
    return lines


def _finite(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
