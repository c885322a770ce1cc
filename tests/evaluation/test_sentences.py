"""BLEU from counts of sentences equals sacreBLEU's."""

import numpy as np
import pandas as pd
import pytest
from sacrebleu.metrics import BLEU

from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation import sentences
from synmask.pipeline.evaluation.bleu import COUNTS, TOKENISED, bleu_of_counts, sentence_counts

WORDS = ["der", "alte", "Mann", "geht", "heute", "mit", "seinem", "Hund", "durch", "den", "grünen", "Wald"]


@pytest.fixture
def texts():
    """60 references, and hypotheses that share most of their words."""
    random = np.random.default_rng(3)
    references = [" ".join(random.choice(WORDS, random.integers(1, 13))) + "." for _ in range(60)]
    hypotheses = [
        " ".join(word if random.random() < 0.8 else "Katze" for word in line.split()) for line in references
    ]
    return hypotheses, references


@pytest.fixture
def counted(texts, tmp_path):
    """How a run's file is made: (name, hypotheses) → its path."""
    _, references = texts

    def make(name, hypotheses, **options):
        metrics = ("sacrebleu", "bleu_tokenised")
        counts = [sentence_counts(metric, hypotheses, references, "en", **options)[0] for metric in metrics]
        rows = pd.DataFrame(np.hstack(counts), columns=[*COUNTS, *TOKENISED])
        rows.assign(log_probability=-1.5, tokens=3).to_csv(tmp_path / f"{name}.csv", index=False)
        return tmp_path / f"{name}.csv"

    return make


def test_sums_of_counts_give_sacrebleu(texts, counted):
    hypotheses, references = texts
    rows = sentences.read_sentences(counted("a", hypotheses))
    for chosen in (slice(None), slice(5, 9), [2]):
        expected = BLEU().corpus_score(
            np.array(hypotheses)[chosen].tolist(), [np.array(references)[chosen].tolist()]
        )
        sums = rows[COUNTS].to_numpy()[chosen].sum(axis=0)
        assert bleu_of_counts(sums) == pytest.approx(expected.score, abs=1e-9)


def test_many_sums_at_once_give_what_sacrebleu_gives_for_each():
    """Also without matches of an order, without n-grams of an order, and without any word."""
    random = np.random.default_rng(5)
    ngrams = np.maximum(random.integers(0, 6, (500, 1)) - np.arange(4), 0)
    matches = random.integers(0, ngrams + 1)
    sums = np.hstack([matches, ngrams, ngrams[:, :1], random.integers(1, 8, (500, 1))])
    expected = [
        BLEU.compute_bleu([*row[:4]], [*row[4:8]], int(row[8]), int(row[9]), smooth_method="exp").score
        for row in sums
    ]
    assert (ngrams[:, 0] == 0).any()
    assert ((matches[:, 1] == 0) & (matches[:, 0] > 0)).any()
    assert bleu_of_counts(sums) == pytest.approx(expected, abs=1e-9)
    assert bleu_of_counts(sums.reshape(5, 100, 10)).ravel() == pytest.approx(expected, abs=1e-9)


def test_case_counts_unless_it_is_not_to(texts, counted):
    upper = [line.upper() for line in texts[1]]
    assert bleu_of_counts(sentences.counts_of(counted("a", upper), "sacrebleu").sum(axis=0)) < 20
    lowered = counted("b", upper, lowercase=True)
    assert bleu_of_counts(sentences.counts_of(lowered, "sacrebleu").sum(axis=0)) == pytest.approx(100)


def test_files_that_do_not_fit_are_named(tmp_path):
    with pytest.raises(UserError, match=r"gone\.csv: no such file"):
        sentences.read_sentences(tmp_path / "gone.csv")
    for text, message in (
        ("", "not a table"),
        ("matches_1\n3\n", "no column matches_2"),
        (",".join(COUNTS), "no sentence"),
    ):
        (tmp_path / "bad.csv").write_text(text)
        with pytest.raises(UserError, match=rf"bad\.csv: {message}"):
            sentences.read_sentences(tmp_path / "bad.csv")


def test_files_of_older_versions_are_read(texts, counted, tmp_path):
    rows = sentences.read_sentences(counted("a", texts[0]))
    for older, known in ((rows[COUNTS], 1), (rows.drop(columns=TOKENISED), 2), (rows, 3)):
        older.to_csv(tmp_path / "older.csv", index=False)
        assert sentences.read_sentences(tmp_path / "older.csv").equals(older)
        found = [sentences.counts_of(tmp_path / "older.csv", metric) for metric in sentences.OF_SENTENCES]
        assert sum(counts is not None for counts in found) == known
