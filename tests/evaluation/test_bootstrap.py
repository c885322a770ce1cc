"""The paired bootstrap: equal systems, clear and unclear differences, seeds that disagree."""

import numpy as np
import pytest
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from synmask.pipeline.evaluation import bootstrap
from synmask.pipeline.evaluation.bleu import bleu_of_counts, sentence_counts
from synmask.pipeline.evaluation.bootstrap import f1, paired_bootstrap
from synmask.pipeline.evaluation.parseval import _percent


def counts(matched, both):
    """(N, 2) matched spans, and those of both trees together, of N sentences."""
    return np.stack((matched, np.broadcast_to(both, np.shape(matched))), axis=1)


def corpus_f1(runs):
    return [float(f1(run.sum(axis=0))) for run in runs]


def run(rng, rate, sentences=300):
    """Trees of 10 spans per sentence, gold trees of 5; each gold span is found at `rate`."""
    return counts(rng.binomial(5, rate, sentences), 15)


def test_equal_systems_do_not_differ():
    rng = np.random.default_rng(0)
    runs = [run(rng, 0.4)]
    assert paired_bootstrap(runs, runs) == 1
    for one in range(1, 8):
        for other in range(1, 8):
            assert paired_bootstrap(runs * one, runs * other) == 1


def test_a_clear_difference_and_none():
    rng = np.random.default_rng(0)
    one, other, far = ([run(rng, rate) for _ in range(3)] for rate in (0.4, 0.4, 0.5))
    found = paired_bootstrap(far, one)
    assert found == pytest.approx(1 / 1001)
    assert paired_bootstrap(one, other) > 0.05
    assert paired_bootstrap(far, one) == found


def test_a_difference_as_large_as_the_gain_and_one_far_below():
    rng = np.random.default_rng(0)
    one, far = ([run(rng, rate) for _ in range(3)] for rate in (0.4, 0.5))
    real = np.mean(corpus_f1(far)) - np.mean(corpus_f1(one))
    assert paired_bootstrap(far, one, gain=real) == 1
    assert paired_bootstrap(far, one, gain=2 * real) == paired_bootstrap(far, one)
    assert paired_bootstrap(far, one, gain=real + 0.2) > 0.2


def test_false_alarms_are_as_rare_as_p_says():
    rng = np.random.default_rng(1)
    p = [paired_bootstrap([run(rng, 0.4, 100)], [run(rng, 0.4, 100)], samples=200) for _ in range(200)]
    assert np.mean(np.array(p) < 0.05) < 0.1
    assert np.mean(np.array(p) < 0.5) == pytest.approx(0.5, abs=0.12)


def test_what_one_seed_shows_may_be_the_seed():
    rng = np.random.default_rng(2)
    spread = [run(rng, rate) for rate in (0.2, 0.6, 0.3, 0.5, 0.44)]
    stable = [run(rng, 0.38) for _ in range(5)]
    assert paired_bootstrap(spread[1:2], stable[:1]) < 0.01
    assert paired_bootstrap(spread, stable) > 0.05


def test_p_is_that_of_samples_drawn_one_by_one(monkeypatch):
    """Whatever the number of samples that are held at once."""
    rng = np.random.default_rng(5)
    ours, theirs = ([run(rng, rate, 40) for rate in rates] for rates in ((0.42, 0.47), (0.4, 0.41, 0.43)))
    sentences, seeds = np.random.default_rng(1), np.random.default_rng(2)
    draws = [sentences.integers(0, 40, 40) for _ in range(99)]
    means = []
    for runs in (ours, theirs):
        chosen = seeds.integers(0, len(runs), (99, len(runs)))
        f1s = [[float(f1(one[draw].sum(axis=0))) for one in runs] for draw in draws]
        means.append([np.mean([row[k] for k in ks]) for row, ks in zip(f1s, chosen, strict=True)])
    differences = np.subtract(*means)
    real = np.mean(corpus_f1(ours)) - np.mean(corpus_f1(theirs))
    expected = (np.sum(np.abs(differences - differences.mean()) >= abs(real)) + 1) / 100
    assert 0.02 < expected < 0.5
    for weights in (1, 300, 2**20):
        monkeypatch.setattr(bootstrap, "WEIGHTS", weights)
        assert paired_bootstrap(ours, theirs, samples=99) == expected


def test_p_is_sacrebleus_by_randomisation_and_twice_its_bootstraps_which_counts_one_side():
    rng = np.random.default_rng(6)
    lines = [" ".join(rng.choice([*"abcdefghij"], 9)) for _ in range(300)]
    worse, better = (
        [" ".join("x" if rng.random() < rate else word for word in line.split()) for line in lines]
        for rate in (0.30, 0.291)
    )
    systems = [("worse", worse), ("better", better)]
    randomised, one_sided = (
        PairedTest(systems, {"BLEU": BLEU()}, [lines], test_type=name, n_samples=2000)()[1]["BLEU"][1].p_value
        for name in ("ar", "bs")
    )
    runs = [sentence_counts("sacrebleu", text, lines, "en")[0] for text in (better, worse)]
    p = paired_bootstrap(runs[:1], runs[1:], score=bleu_of_counts, samples=2000)
    assert p == pytest.approx(randomised, rel=0.2)
    assert p == pytest.approx(2 * one_sided, rel=0.2)


def test_pairing_is_by_sentence():
    rng = np.random.default_rng(3)
    hard = rng.random(300)
    base = counts(rng.binomial(5, hard), 15)
    better = counts(np.minimum(base[:, 0] + (rng.random(300) < 0.1), 5), 15)
    shuffled = counts(rng.permutation(better[:, 0]), 15)
    assert paired_bootstrap([better], [base]) < 0.01
    assert paired_bootstrap([shuffled], [base]) > 0.1


def test_other_scores_follow_from_their_own_sums():
    rng = np.random.default_rng(4)
    words = rng.integers(5, 20, 200)
    one, far = (counts(rng.binomial(words, rate), words) for rate in (0.4, 0.5))
    found = paired_bootstrap([far], [one], score=lambda sums: sums[..., 0] / sums[..., 1])
    assert found < 0.01
    gain = (far[:, 0].sum() - one[:, 0].sum()) / words.sum()
    assert paired_bootstrap([far], [one], score=lambda sums: sums[..., 0] / sums[..., 1], gain=gain) == 1


def test_a_single_sentence_tells_nothing():
    """All samples of it are alike, so that any difference would seem certain."""
    one, other = (counts([matched], 10) for matched in (1, 5))
    assert paired_bootstrap([other], [one]) == 1
    assert paired_bootstrap([other], [one], gain=3.0) == 1


def test_f1_without_spans_is_that_of_parseval():
    assert corpus_f1([counts(np.zeros(3), 0), counts(np.ones(3), 4)]) == [100, 50]
    assert f1(np.array([[0, 0], [0, 2], [1, 2]])).tolist() == [_percent(0, 0), _percent(0, 2), _percent(2, 2)]


def test_other_sentences_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"\[299, 300\]"):
        paired_bootstrap([run(rng, 0.4)], [run(rng, 0.4, 299)])
    with pytest.raises(ValueError, match="runs"):
        paired_bootstrap([], [run(rng, 0.4)])
