"""The scores of a run, and of trivial baselines, on a task of language understanding."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from synmask.pipeline.arguments import OneOrMore, Parts, RunFolder, TaskName
from synmask.pipeline.corpora.tasks import Examples, read_task
from synmask.pipeline.disk import sha256
from synmask.pipeline.evaluation.task_scores import EXAMPLES, majority, read_predictions, score
from synmask.pipeline.files import csv_text, json_text, write_all, write_json, zip_equal
from synmask.pipeline.record import check_part, checksums, read_run, scores_of, versions_and_commit
from synmask.pipeline.tasks import TASKS

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import TfidfVectorizer

TOKEN = r"(?u)\w+|[^\w\s]"  # scikit-learn's own pattern would drop "a" and "I"


def nlu_score(
    *,
    run: RunFolder,
    task: TaskName,
    parts: Parts,
    gold: OneOrMore[Path],
) -> None:
    """Score predictions for a task of language understanding: Matthews, accuracy, F1, correlations.

    It reads RUN/predictions.PART.txt, and writes RUN/scores.json and, for significance tests,
    RUN/examples.csv, each answer beside the gold one.

    Args:
        gold: TSV of each part.
    """
    record, scores, sums, rows = read_run(run), {}, {}, [EXAMPLES]
    for part, path in zip_equal(parts=parts, gold=gold):
        predictions = run / f"predictions.{part}.txt"
        check_part(predictions, record)
        labels = read_task(task, path).labels
        answers = read_predictions(task, predictions, len(labels))
        scores[part], sums[part] = score(task, labels, answers), sha256(predictions)[:16]
        rows += [[part, *pair] for pair in zip(answers, labels, strict=True)]
    scores = {"task": task, "scores": scores, "answers": sums}
    answers, output, examples = csv_text(rows), run / "scores.json", run / "examples.csv"
    record = scores_of(record, scores, checksums(output, {examples: answers}))
    write_all({output: json_text(record), examples: answers})


def nlu_baselines(
    *, task: TaskName, train: Path, parts: Parts, gold: OneOrMore[Path], corpus: str, output: Path
) -> None:
    """Score two baselines: the most frequent label, and a linear model of the words alone.

    Args:
        train: TSV to learn from.
        gold: TSV of each part to predict.
        corpus: The benchmark.
        output: baselines.json.
    """
    known = read_task(task, train)
    examples = {part: read_task(task, path) for part, path in zip_equal(parts=parts, gold=gold)}
    scores = {
        "majority": {part: majority(task, known.labels, dev.labels) for part, dev in examples.items()},
        "bag-of-words": {part: bag_of_words(task, known, dev) for part, dev in examples.items()},
    }
    write_json(output, {"corpus": corpus, "task": task, "scores": scores} | versions_and_commit())


def bag_of_words(task: str, train: Examples, dev: Examples) -> dict[str, float]:
    """Scores of a linear model that sees the words but not their order.

    A sentence is its tf-idf vector of lower-cased words and marks (scikit-learn's TfidfVectorizer, fitted on
    all training sentences); a pair is u, v, |u - v| and u * v, side by side. LogisticRegression (C = 1), or
    Ridge (alpha = 1) for a regression; both deterministic.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression, Ridge

    if len(set(train.labels)) == 1:  # nothing to learn
        return majority(task, train.labels, dev.labels)
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
