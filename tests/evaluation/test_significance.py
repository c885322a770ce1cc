"""The test of two systems: what sentences and what seeds may and may not make significant."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp, ttest_ind

from synmask.pipeline.evaluation.bootstrap import Counts, corpus_f1, paired_bootstrap
from synmask.pipeline.evaluation.significance import compare, seeds_differ

RNG = np.random.default_rng(1)
NEAR, FAR = (
    [Counts(RNG.binomial(5, rate, 300), np.full(300, 15)) for rate in rates]
    for rates in ((0.40, 0.42, 0.41), (0.50, 0.51, 0.53))
)


def between(ours, theirs, **how):
    return compare(corpus_f1(ours), corpus_f1(theirs), ours, theirs, **how)


def test_p_is_the_larger_of_both():
    found = between(FAR, NEAR)
    assert found.p_test_set == paired_bootstrap(FAR, NEAR).p
    assert found.p_seeds == ttest_ind(corpus_f1(FAR), corpus_f1(NEAR), equal_var=False).pvalue
    assert found.p == max(found.p_test_set, found.p_seeds) < 0.01
    blurred = [NEAR[0], FAR[0], FAR[2]]
    assert between(blurred, NEAR).p == between(blurred, NEAR).p_seeds > 0.05


def test_a_gain_is_taken_off_in_both_tests():
    gain = np.mean(corpus_f1(FAR)) - np.mean(corpus_f1(NEAR))
    assert between(FAR, NEAR, gain=gain)[1:] == pytest.approx((1, 1))


def test_one_seed_says_nothing_about_seeds():
    found = between(FAR[:1], NEAR[:1])
    assert found == (found.p_test_set, found.p_test_set, None)


def test_one_system_under_two_names_does_not_differ():
    assert between(NEAR, NEAR) == (1, 1, 1)
    assert between(NEAR[:1], NEAR[:1]) == (1, 1, None)


def test_against_what_has_no_seeds():
    (tree,) = corpus_f1(NEAR[:1])
    found = compare(corpus_f1(FAR), tree, FAR, NEAR[:1])
    assert found.p_seeds == pytest.approx(ttest_1samp(corpus_f1(FAR), tree).pvalue)


def test_seeds_against_one_number():
    assert seeds_differ([10.0, 12.0, 14.0], 9.0) == pytest.approx(ttest_1samp([10.0, 12.0, 14.0], 9.0).pvalue)
    assert seeds_differ([10.0], 9.0) is seeds_differ([10.0, 12.0], [9.0]) is None
    assert (seeds_differ([9.0, 9.0], 9.0), seeds_differ([9.0, 9.0], 8.0)) == (1.0, 0.0)
