"""Effects, adjusted p-values, verdicts, and how many seeds could tell, against scipy, by hand and by simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from synmask.pipeline.evaluation.contrasts import claim_verdict, effect, holm, seeds_needed, verdict


def test_interval_is_welchs():
    ours, theirs = [40.1, 40.5, 39.9], [39.0, 39.8, 39.2, 39.3]
    found = effect(ours, theirs)
    assert found.difference == pytest.approx(np.mean(ours) - np.mean(theirs))
    variances = np.var(ours, ddof=1) / 3, np.var(theirs, ddof=1) / 4
    freedom = sum(variances) ** 2 / (variances[0] ** 2 / 2 + variances[1] ** 2 / 3)
    reach = stats.t.ppf(0.975, freedom) * math.sqrt(sum(variances))
    assert (found.low, found.high) == pytest.approx((found.difference - reach, found.difference + reach))


def test_interval_against_one_number_is_students():
    found = effect([10.0, 12.0, 14.0], 11.0)
    reach = stats.t.ppf(0.975, 2) * 2 / math.sqrt(3)
    assert found == pytest.approx((1.0, 1 - reach, 1 + reach))


@pytest.mark.parametrize(("ours", "theirs"), [([1.0], [2.0, 3.0]), ([1.0, 2.0], [3.0]), ([1.0], 3.0)])
def test_one_seed_has_no_interval(ours, theirs):
    found = effect(ours, theirs)
    assert (found.low, found.high) == (-math.inf, math.inf)


def test_equal_seeds_have_no_spread():
    assert effect([2.0, 2.0], [1.0, 1.0]) == (1.0, 1.0, 1.0)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []


@pytest.mark.parametrize(
    ("difference", "p", "p_gain", "expected"),
    [
        (1.0, 0.01, 0.01, "holds"),  # though it is less than the paper's
        (-1.0, 0.01, None, "does not hold"),
        (0.1, 0.9, 0.01, "does not hold"),  # the gain as published is excluded
        (0.1, 0.9, 0.4, "cannot tell"),
        (0.1, 0.9, None, "cannot tell"),
    ],
)
def test_verdicts(difference, p, p_gain, expected):
    assert verdict(difference, p, p_gain) == expected


def test_claims_of_several_contrasts():
    assert claim_verdict(["holds", "holds"]) == "holds"
    assert claim_verdict(["holds", "cannot tell"]) == "cannot tell"
    assert claim_verdict(["holds", "cannot tell", "does not hold"]) == "does not hold"


def test_so_many_seeds_find_the_gain_in_four_of_five_experiments():
    ours, theirs = [0.0, 1.0, 2.0], [5.0, 6.0, 7.0]  # standard deviations of 1
    count = seeds_needed(ours, theirs, 1.0, 0.05)
    rng = np.random.default_rng(1)
    sides = rng.normal([[[1.0]], [[0.0]]], 1.0, (2, 20_000, count))
    found = (stats.ttest_ind(*sides, axis=1).pvalue < 0.05).mean()
    fewer = (stats.ttest_ind(*sides[:, :, 1:], axis=1).pvalue < 0.05).mean()
    assert fewer < 0.8 <= found + 0.005
    assert count == 17  # Cohen 1988, table 2.4.1: d = 1.0, power .80, two-sided .05


def test_seeds_are_enough_for_welchs_test_of_unequal_variances():
    count = seeds_needed([0.0, 2.0, 4.0], [0.0, 0.1, 0.2], 4.0, 0.01)
    rng = np.random.default_rng(1)
    sides = rng.normal([[[4.0]], [[0.0]]], [[[2.0]], [[0.1]]], (2, 20_000, count))
    found = (stats.ttest_ind(*sides, axis=1, equal_var=False).pvalue < 0.01).mean()
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
