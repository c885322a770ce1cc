"""The test of two systems: what sentences and seeds may make significant, against scipy, by hand and by simulation."""

import math

import numpy as np
import pytest
from scipy.stats import t, ttest_1samp, ttest_ind

from synmask.pipeline.evaluation.bootstrap import f1, paired_bootstrap
from synmask.pipeline.evaluation.significance import compare, compare_seeds, holm, seeds_needed

RNG = np.random.default_rng(1)
NEAR, FAR = (
    [np.stack((RNG.binomial(5, rate, 300), np.full(300, 15)), axis=1) for rate in rates]
    for rates in ((0.40, 0.42, 0.41), (0.50, 0.51, 0.53))
)


def corpus_f1(runs):
    return [float(f1(run.sum(axis=0))) for run in runs]


def between(ours, theirs, **kwargs):
    return compare(corpus_f1(ours), corpus_f1(theirs), ours, theirs, names="far and near", **kwargs)


def test_p_is_the_larger_of_both():
    found = between(FAR, NEAR)
    assert found.p_test_set == paired_bootstrap(FAR, NEAR)
    assert found.p_seeds == ttest_ind(corpus_f1(FAR), corpus_f1(NEAR), equal_var=False).pvalue
    assert found.p == max(found.p_test_set, found.p_seeds) < 0.01
    blurred = [NEAR[0], FAR[0], FAR[2]]
    assert between(blurred, NEAR).p == between(blurred, NEAR).p_seeds > 0.05


def test_a_gain_is_taken_off_in_both_tests():
    gain = np.mean(corpus_f1(FAR)) - np.mean(corpus_f1(NEAR))
    found = between(FAR, NEAR, gain=gain)
    assert (found.p_test_set, found.p_seeds) == pytest.approx((1, 1))


def test_one_seed_says_nothing_about_seeds():
    found = between(FAR[:1], NEAR[:1])
    assert (found.p, found.p_seeds) == (found.p_test_set, None)
    assert (found.low, found.high) == (-math.inf, math.inf)


def test_one_system_under_two_names_does_not_differ():
    for seeds, p_seeds in ((3, 1), (1, None)):
        found = between(NEAR[:seeds], NEAR[:seeds])
        assert (found.difference, found.p, found.p_test_set, found.p_seeds) == (0, 1, 1, p_seeds)


def test_against_what_has_no_seeds():
    (tree,) = corpus_f1(NEAR[:1])
    found = compare(corpus_f1(FAR), tree, FAR, NEAR[:1], names="far and a tree")
    assert found.p_seeds == pytest.approx(ttest_1samp(corpus_f1(FAR), tree).pvalue)


def test_interval_is_welchs():
    ours, theirs = [40.1, 40.5, 39.9], [39.0, 39.8, 39.2, 39.3]
    found = compare_seeds(ours, theirs)
    assert found.difference == pytest.approx(np.mean(ours) - np.mean(theirs))
    variances = np.var(ours, ddof=1) / 3, np.var(theirs, ddof=1) / 4
    freedom = sum(variances) ** 2 / (variances[0] ** 2 / 2 + variances[1] ** 2 / 3)
    reach = t.ppf(0.975, freedom) * math.sqrt(sum(variances))
    assert (found.low, found.high) == pytest.approx((found.difference - reach, found.difference + reach))


def test_interval_against_one_number_is_students():
    found = compare_seeds([10.0, 12.0, 14.0], 11.0)
    reach = t.ppf(0.975, 2) * 2 / math.sqrt(3)
    p = ttest_1samp([10.0, 12.0, 14.0], 11.0).pvalue
    assert found == pytest.approx((1.0, 1 - reach, 1 + reach, p, 0.0))


@pytest.mark.parametrize(("ours", "theirs"), [([1.0], [2.0, 3.0]), ([1.0, 2.0], [3.0]), ([1.0], 3.0)])
def test_one_seed_has_no_interval(ours, theirs):
    found = compare_seeds(ours, theirs)
    assert (found.low, found.high, found.p_seeds) == (-math.inf, math.inf, None)


@pytest.mark.filterwarnings("error")
def test_one_side_without_spread_is_tested_in_silence():
    found = compare_seeds([30.0, 30.0], [31.0, 32.0])
    assert found.p == pytest.approx(ttest_1samp([31.0, 32.0], 30.0).pvalue)
    assert seeds_needed([30.0, 30.0], [31.0, 32.0], 1.0, 0.05) > 2
    assert found.difference == -1.5


def test_equal_seeds_have_no_spread():
    assert compare_seeds([2.0, 2.0], [1.0, 1.0]) == (1.0, 1.0, 1.0, 0.0, 0.0)
    assert compare_seeds([9.0, 9.0], 9.0) == (0.0, 0.0, 0.0, 1.0, 0.0)


@pytest.mark.parametrize("score", [0.1, 79.7786, 100 / 3])
def test_equal_systems_do_not_differ_by_rounding(score):
    """The mean of six equal numbers is not always that of two."""
    for seeds in range(2, 12):
        assert compare_seeds([score] * seeds, [score] * 2).p == 1
        assert compare_seeds([score + 0.7 - 0.7] * seeds, score).p == 1
    assert compare_seeds([score + 1e-6] * 3, [score] * 2).p == 0


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []


def test_so_many_seeds_find_the_gain_in_four_of_five_experiments():
    ours, theirs = [0.0, 1.0, 2.0], [5.0, 6.0, 7.0]  # standard deviations of 1
    count = seeds_needed(ours, theirs, 1.0, 0.05)
    rng = np.random.default_rng(1)
    sides = rng.normal([[[1.0]], [[0.0]]], 1.0, (2, 20_000, count))
    found = (ttest_ind(*sides, axis=1).pvalue < 0.05).mean()
    fewer = (ttest_ind(*sides[:, :, 1:], axis=1).pvalue < 0.05).mean()
    assert fewer < 0.8 <= found + 0.005
    assert count == 17  # Cohen 1988, table 2.4.1: d = 1.0, power .80, two-sided .05


def test_seeds_are_enough_for_welchs_test_of_unequal_variances():
    count = seeds_needed([0.0, 2.0, 4.0], [0.0, 0.1, 0.2], 4.0, 0.01)
    rng = np.random.default_rng(1)
    sides = rng.normal([[[4.0]], [[0.0]]], [[[2.0]], [[0.1]]], (2, 20_000, count))
    found = (ttest_ind(*sides, axis=1, equal_var=False).pvalue < 0.01).mean()
    assert found > 0.79  # pooled degrees of freedom ask for fewer seeds, and find fewer


def test_fewer_seeds_find_larger_gains_and_one_sample():
    counts = [seeds_needed([0.0, 1.0, 2.0], [5.0, 6.0, 7.0], gain, 0.05) for gain in (0.5, 1.0, 4.0)]
    assert counts == sorted(counts, reverse=True)
    assert seeds_needed([0.0, 1.0, 2.0], 0.0, 1.0, 0.05) == 10  # of one sample
    assert seeds_needed([1.0, 1.0], [2.0, 2.0], 0.1, 0.05) == 2


def test_what_nobody_can_tell():
    assert seeds_needed([1.0], [2.0, 3.0], 1.0, 0.05) is None
    assert seeds_needed([0.0, 50.0], [0.0, 50.0], 0.1, 0.05) is None
    assert seeds_needed([0.0, 1.0], [0.0, 1.0], 0.0, 0.05) is None
