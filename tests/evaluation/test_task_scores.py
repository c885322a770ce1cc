import itertools
import json
import random
import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics

from synmask.pipeline.cli import main
from synmask.pipeline.corpora.tasks import Examples, write_task
from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation.score_tasks import bag_of_words
from synmask.pipeline.evaluation.task_scores import (
    best_constant,
    contributions,
    counts_of_examples,
    majority,
    of_sums,
    read_predictions,
    score,
)
from synmask.pipeline.tasks import TASKS


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_every_task_has_the_metrics_of_its_kind():
    for task in TASKS.values():
        assert (task.metrics == ("pearson", "spearman")) == (not task.labels)
        assert ("f1" in task.metrics) <= (task.labels == ("0", "1"))
    first = [
        TASKS[name].metrics[0] for name in ("cola", "sst-2", "mnli", "qnli", "rte", "mrpc", "qqp", "sts-b")
    ]
    assert first == ["matthews", *["accuracy"] * 4, "f1", "f1", "pearson"]  # those of the paper's table


@pytest.mark.parametrize(
    ("task", "gold", "predicted", "expected"),
    [
        # from the documentation of matthews_corrcoef, accuracy_score, pearsonr and spearmanr; the other
        # correlations by hand
        ("cola", "1 1 1 0", "1 0 1 1", {"matthews": -100 / 3}),
        ("mnli", "neutral entailment contradiction neutral", "neutral contradiction entailment neutral", {"accuracy": 50}),
        ("sts-b", "1 2 3 4 5 6 7", "10 9 2.5 6 4 3 2", {"pearson": -82.8503883588428, "spearman": -2200 / 28}),
        ("predicate", "1 2 3 4 5", "5 6 7 8 7", {"pearson": 83.205029434, "spearman": 82.07826816681233}),
        # by hand: 2 true positives, 1 false one, 1 missed
        ("mrpc", "1 1 1 0", "1 0 1 1", {"f1": 200 / 3, "accuracy": 50}),
        ("qqp", "0 0 0 1", "0 0 0 0", {"f1": 0, "accuracy": 75}),  # F1 of label 1, not of the larger one
        ("paraphrase", "0 0", "0 0", {"f1": 0, "accuracy": 100}),
        ("acceptability", "1 1 0", "1 1 1", {"matthews": 0}),  # from here on: not defined, so 0
        ("cola", "1 1", "1 1", {"matthews": 0}),
        ("sts-b", "1 2 3", "2.5 2.5 2.5", {"pearson": 0, "spearman": 0}),
        ("sts-b", "2", "3", {"pearson": 0, "spearman": 0}),
    ],
)  # fmt: skip
def test_published_examples_and_what_is_not_defined(task, gold, predicted, expected):
    found = score(task, gold.split(), predicted.split())
    assert found == pytest.approx(expected)
    assert list(found) == list(TASKS[task].metrics)
    assert all(type(value) is float for value in found.values())


@pytest.mark.parametrize("task", TASKS)
def test_scores_are_those_of_scikit_learn_and_scipy(task):
    theirs = {
        "matthews": metrics.matthews_corrcoef,
        "accuracy": metrics.accuracy_score,
        "f1": lambda gold, given: metrics.f1_score(gold, given, pos_label="1"),
        "pearson": lambda gold, given: stats.pearsonr(gold, given).statistic,
        "spearman": lambda gold, given: stats.spearmanr(gold, given).statistic,
    }
    draw, labels = random.Random(1), TASKS[task].labels
    for count in (5, 50, 500):
        gold, given = (
            [draw.choice(labels) if labels else f"{draw.randint(0, 50) / 10}" for _ in range(count)]
            for _ in range(2)
        )
        sides = (gold, given) if labels else ([*map(float, gold)], [*map(float, given)])
        expected = {metric: 100 * theirs[metric](*sides) for metric in TASKS[task].metrics}
        assert score(task, gold, given) == pytest.approx(expected, rel=1e-12)
    if not labels:  # nearly constant answers
        given = [f"{2.5 + number % 7 * 1e-4:.4f}" for number in range(500)]
        expected = 100 * stats.pearsonr(sides[0], [*map(float, given)]).statistic
        assert score(task, gold, given)["pearson"] == pytest.approx(expected, rel=1e-6)


def test_scores_need_as_many_predictions_as_labels():
    with pytest.raises(ValueError, match="predicted: 1 given for 2 gold labels"):
        score("cola", ["0", "1"], ["0"])
    with pytest.raises(ValueError, match="predicted: 0 given for 0"):
        score("cola", [], [])


def examples(*rows):
    return Examples(tuple(row[:-1] for row in rows), tuple(row[-1] for row in rows))


def test_the_majority_is_that_of_the_training_set():
    train = examples(("a", "b", "1"), ("a", "c", "1"), ("a", "d", "0"))
    dev = examples(("x", "y", "0"), ("x", "z", "0"), ("y", "z", "1"))
    assert majority("mrpc", train.labels, dev.labels) == pytest.approx({"f1": 50, "accuracy": 100 / 3})
    tie = examples(("a", "b", "1"), ("a", "c", "0"))
    assert majority("mrpc", tie.labels, dev.labels)["accuracy"] == pytest.approx(200 / 3)  # the first label
    numbers = examples(("a", "b", "1.5"), ("a", "c", "4"))
    assert majority("sts-b", numbers.labels, numbers.labels) == {"pearson": 0, "spearman": 0}


@pytest.mark.parametrize(
    ("task", "gold", "expected"),
    [
        ("mnli", ["neutral", "neutral", "entailment", "contradiction", "neutral"], 60.0),
        ("qqp", ["0", "0", "0", "1"], 40.0),  # always 1: precision 1/4, recall 1
        ("qqp", ["0", "0"], 0.0),
        ("cola", ["1", "1", "0"], 0.0),
        ("sts-b", ["1.5", "4.0000", "0"], 0.0),
    ],
)
def test_the_best_constant_answer_is_that_of_the_part_itself(task, gold, expected):
    assert best_constant(task, gold) == pytest.approx(expected)


WORDS = ["the", "old", "dog", "and", "a", "young", "cat", "saw", "many", "small", "houses", "today", "."]


def sentences(seed, count):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(3, 9))) for _ in range(count)]


def test_the_bag_of_words_sees_words_and_not_their_order():
    """Single-letter words and marks count, too."""

    def labelled(texts, order=lambda text: text):
        return examples(*((order(text), "1" if {"a", "."} & {*text.split()} else "0") for text in texts))

    train, dev = labelled(sentences(1, 300)), sentences(2, 100)
    assert bag_of_words("cola", train, labelled(dev))["matthews"] > 95
    backwards = labelled(dev, order=lambda text: " ".join(reversed(text.split())))
    assert bag_of_words("cola", train, labelled(dev)) == bag_of_words("cola", train, backwards)
    ordered = [f"{x} {y}" for x, y in itertools.product(WORDS, WORDS)]
    rows = examples(*((text, str(int(text < " ".join(text.split()[::-1])))) for text in ordered))
    assert bag_of_words("cola", rows, rows)["matthews"] < 30


def test_the_bag_of_words_compares_the_sentences_of_a_pair():
    texts = sentences(3, 600)
    pairs = [(x, y if number % 2 else x) for number, (x, y) in enumerate(itertools.pairwise(texts))]
    rows = [(x, y, "1" if x == y else "0") for x, y in pairs]
    found = bag_of_words("qqp", examples(*rows[:400]), examples(*rows[400:]))
    assert found["f1"] > 95
    shares = [
        (x, y, f"{5 * len({*x.split()} & {*y.split()}) / 12:.3f}") for x, y in itertools.pairwise(texts)
    ]
    assert bag_of_words("sts-b", examples(*shares[:400]), examples(*shares[400:]))["pearson"] > 90
    one_label = examples(*(row for row in rows if row[-1] == "1"))
    assert bag_of_words("qqp", one_label, examples(*rows)) == majority(
        "qqp", one_label.labels, examples(*rows).labels
    )


@pytest.mark.parametrize(
    ("task", "lines", "message"),
    [
        ("cola", "1\n", "p.txt: 1 predictions for 2 examples; predict the same part again"),
        ("cola", "", "p.txt: 0 predictions for 2 examples"),
        ("cola", "1\n2\n", "p.txt, line 2: '2' is not one of 0, 1"),
        ("sts-b", "1\nhigh\n", "p.txt, line 2: 'high' is not a finite number"),
        ("sts-b", "nan\n1\n", "p.txt, line 1: 'nan' is not a finite number"),
        ("colla", "1\n1\n", "no task 'colla'; there are cola, sst-2"),
    ],
)
def test_bad_predictions_are_one_line(tmp_path, task, lines, message):
    (tmp_path / "p.txt").write_text(lines)
    with pytest.raises(UserError) as error:
        read_predictions(task, tmp_path / "p.txt", 2)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_verbs_write_scores_and_where_they_come_from(tmp_path, capsys):
    names = ("train.tsv", "dev.tsv", "predictions.dev.txt", "train.json", "scores.json", "baselines.json")
    train, dev, predicted, run, scores, baselines = (tmp_path / name for name in names)
    write_task("cola", [("Dogs bark.", "1"), ("Bark dogs.", "0"), ("Cats sleep.", "1")], train)
    write_task("cola", [("Dogs sleep.", "1"), ("Sleep dogs.", "0")], dev)
    predicted.write_text("1\n0\n")
    run.write_text('{"updates": 7, "seed": 3, "settings": {}}')
    of_part = ["--task", "cola", "--parts", "dev", "--gold", str(dev)]
    scoring = ["nlu-score", *of_part, "--run", str(tmp_path)]
    main(scoring)
    found = json.loads(scores.read_text())
    assert found["scores"] == {"dev": {"matthews": 100.0}}
    assert (found["task"], found["seed"], found["updates"]) == ("cola", 3, 7)
    assert {"scikit-learn", "scipy"} <= set(found["versions"])
    assert {"commit", "command"} <= set(found)
    assert (tmp_path / "examples.csv").read_text() == "part,answer,gold\ndev,1,1\ndev,0,0\n"
    main(["nlu-baselines", *of_part, "--train", str(train), "--corpus", "c", "--output", str(baselines)])
    answers = json.loads(baselines.read_text())["scores"]
    assert answers["majority"] == {"dev": {"matthews": 0.0}}
    assert set(answers["bag-of-words"]["dev"]) == {"matthews"}
    predicted.write_text("1\n")
    with pytest.raises(SystemExit) as left:
        main(scoring)
    assert left.value.code == 1
    assert capsys.readouterr().err.startswith("synmask nlu-score: ")


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("count", [1, 2, 60])
def test_the_tasks_own_score_follows_from_sums_over_examples(task, count):
    draw, labels = random.Random(3), TASKS[task].labels
    for trial in range(20):
        gold, answers = (
            [draw.choice(labels) if labels else f"{draw.uniform(0, 5):.3f}" for _ in range(count)]
            for _ in range(2)
        )
        if trial % 4 == 0:  # all alike: no correlation; perhaps without the label of F1
            answers = answers[:1] * count
        sums = contributions(task, gold, answers).sum(axis=0)
        assert of_sums(task, sums) == pytest.approx(score(task, gold, answers)[TASKS[task].metrics[0]])
        many = of_sums(task, np.stack([sums, 2 * sums]))  # as a bootstrap asks
        assert many == pytest.approx([of_sums(task, sums)] * 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "No columns"),
        ("part,answer\ndev,1\n", "no column gold"),
        ("part,answer,gold\ndev,1,x\n", "an answer that is none of cola's"),
    ],
)
def test_what_is_no_table_of_answers_is_one_line(tmp_path, text, message):
    path = tmp_path / "examples.csv"
    with pytest.raises(UserError, match=r"examples\.csv: no such file; score this run again"):
        counts_of_examples(path, "cola", "dev")
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        counts_of_examples(path, "cola", "dev")
