"""BLEU from counts of sentences equals sacreBLEU's; intervals and groups over them."""

import numpy as np
import pandas as pd
import pytest
from sacrebleu.metrics import BLEU

from synmask.pipeline.evaluation import sentences
from synmask.pipeline.evaluation.bleu import COUNTS, SOURCE, TOKENISED, bleu_of_counts, sentence_counts
from synmask.pipeline.evaluation.sentences import Run
from synmask.pipeline.files import UserError

WORDS = ["der", "alte", "Mann", "geht", "heute", "mit", "seinem", "Hund", "durch", "den", "grünen", "Wald"]


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def texts():
    """60 references, hypotheses that share most of their words, and sources of 1 to 12 words."""
    random = np.random.default_rng(3)
    references = [" ".join(random.choice(WORDS, random.integers(1, 13))) + "." for _ in range(60)]
    hypotheses = [
        " ".join(word if random.random() < 0.8 else "Katze" for word in line.split()) for line in references
    ]
    sources = [line.replace("Hund", "Hu@@ nd").replace("Wald", "Wa@@ l@@ d") for line in references]
    return hypotheses, references, sources


@pytest.fixture
def counted(texts, tmp_path):
    """How a run's file is made: (name, hypotheses) → its path."""
    _, references, sources = texts

    def make(name, hypotheses, **options):
        plain, source = (hypotheses, references), write(tmp_path / f"{name}.bpe", sources)
        counts = sentence_counts(plain, plain, source, language="en", **options)
        rows = pd.DataFrame(counts, columns=[*COUNTS, *TOKENISED, *SOURCE])
        rows.assign(log_probability=-1.5, tokens=3).to_csv(tmp_path / f"{name}.csv", index=False)
        return tmp_path / f"{name}.csv"

    return make


def test_sums_of_counts_give_sacrebleu(texts, counted):
    hypotheses, references, _ = texts
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
    assert sentences.intervals({Run("de-en", "a", 1): counted("a", upper)})["bleu"][0] < 20
    lowered = counted("b", upper, lowercase=True)
    assert sentences.intervals({Run("de-en", "a", 1): lowered})["bleu"][0] == pytest.approx(100)


def test_words_and_split_words_of_the_source(texts, counted):
    rows = sentences.read_sentences(counted("a", texts[0]))
    assert rows["source_words"].tolist() == [len(line.split()) for line in texts[1]]
    split = [sum(word.startswith(("Hund", "Wald")) for word in line.split()) for line in texts[1]]
    assert rows["split_words"].tolist() == split
    assert max(split) > 1


def test_an_interval_spreads_about_the_mean_of_the_seeds(texts, counted):
    hypotheses, references, _ = texts
    better = [h if i % 2 else r for i, (h, r) in enumerate(zip(hypotheses, references, strict=True))]
    runs = {Run("de-en", "a", 1): counted("a1", hypotheses), Run("de-en", "a", 2): counted("a2", better)}
    table = sentences.intervals(runs)
    expected = [BLEU().corpus_score(lines, [references]).score for lines in (hypotheses, better)]
    assert table["bleu"].tolist() == pytest.approx(expected)
    assert table["mean"].tolist() == pytest.approx([sum(expected) / 2] * 2)
    assert (table["low"] < table["mean"]).all()
    assert (table["mean"] < table["high"]).all()
    assert sentences.intervals(runs).equals(table)  # the resamples are always the same
    # about the standard deviation that resampling by hand gives
    random, samples = np.random.default_rng(7), []
    for _ in range(200):
        drawn = random.integers(0, 60, 60)
        scores = [
            BLEU().corpus_score([side[i] for i in drawn], [[references[i] for i in drawn]]).score
            for side in (hypotheses, better)
        ]
        samples.append(np.mean(scores))
    width = table["high"][0] - table["low"][0]
    assert width / np.std(samples) == pytest.approx(3.92, rel=0.25)


def test_a_translation_that_is_the_reference_has_no_spread(texts, counted):
    table = sentences.intervals({Run("de-en", "a", 1): counted("a", texts[1])})
    assert table[["mean", "low", "high"]].to_numpy() == pytest.approx(100)


@pytest.mark.parametrize("column", ["source_words", "split_words"])
def test_groups_hold_their_sentences_and_no_others(texts, counted, column):
    hypotheses, references, _ = texts
    path = counted("a", hypotheses)
    values = sentences.read_sentences(path)[column]
    table = sentences.by_source({Run("de-en", "a", 1): path}, column).set_index("group")
    begins = sentences.GROUPS[column]
    assert table["sentences"].sum() == 60
    for place, low in enumerate(begins):
        high = begins[place + 1] if place + 1 < len(begins) else 10**9
        chosen = [i for i, value in enumerate(values) if low <= value < high]
        name = f"{low}+" if high == 10**9 else f"{low}" if high == low + 1 else f"{low}–{high - 1}"
        if not chosen:
            assert name not in table.index
            continue
        expected = (
            BLEU().corpus_score([hypotheses[i] for i in chosen], [[references[i] for i in chosen]]).score
        )
        assert table.loc[name, "bleu"] == pytest.approx(expected)
        assert table.loc[name, "sentences"] == len(chosen)


def test_seeds_of_other_sentences_are_refused(texts, counted, tmp_path):
    first = counted("a", texts[0])
    other = sentences.read_sentences(first).iloc[1:]
    other.to_csv(tmp_path / "other.csv", index=False)
    with pytest.raises(UserError, match="different test sentences"):
        sentences.intervals({Run("de-en", "a", 1): first, Run("de-en", "a", 2): tmp_path / "other.csv"})


def test_files_that_do_not_fit_are_named(tmp_path):
    two = write(tmp_path / "two", ["a", "b"])
    with pytest.raises(UserError, match=r"two has 2 lines, its translation 1; decode the test set again"):
        next(sentence_counts((["a"], ["a"]), (["a"], ["a"]), two, language="en"))
    with pytest.raises(UserError, match=r"gone\.csv: no such file"):
        sentences.read_sentences(tmp_path / "gone.csv")
    for text in ("", "matches_1\n3\n", "what,is\nthis,file\n"):
        (tmp_path / "bad.csv").write_text(text)
        with pytest.raises(UserError, match=r"bad\.csv: not a table of counts"):
            sentences.read_sentences(tmp_path / "bad.csv")


def test_files_of_older_versions_are_read(texts, counted, tmp_path):
    rows = sentences.read_sentences(counted("a", texts[0]))
    for older in (rows[[*COUNTS, *SOURCE]], rows.drop(columns=TOKENISED), rows):
        older.to_csv(tmp_path / "older.csv", index=False)
        assert sentences.read_sentences(tmp_path / "older.csv").equals(older)
