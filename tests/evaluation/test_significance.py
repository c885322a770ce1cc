"""The paired test against all ways of swapping sentences; what seeds may and may not make significant."""

import itertools
import random

import numpy as np
import pytest
from sacrebleu.metrics import BLEU
from scipy.stats import ttest_1samp, ttest_ind

from synmask.pipeline.evaluation.bleu import bleu
from synmask.pipeline.evaluation.significance import compare, over_seeds, over_test_set, seeds_differ
from synmask.pipeline.files import UserError, write_lines

WORDS = [f"w{number}" for number in range(12)]


def sentences(count, seed):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(6, 12))) for _ in range(count)]


def noisy(lines, share, seed):
    rng = random.Random(seed)
    return [" ".join("x" if rng.random() < share else word for word in line.split()) for line in lines]


@pytest.fixture
def tested(tmp_path):
    def run(ours, theirs, references, **how):
        paths = [tmp_path / name for name in ("ours", "theirs", "references")]
        for path, lines in zip(paths, (ours, theirs, references), strict=True):
            write_lines(path, lines)
        return compare(*paths, bleu("bleu_tokenised", "de", **how))

    return run


def test_p_is_the_share_of_swaps_with_as_large_a_difference(tested):
    references = sentences(10, 1)
    ours, theirs = noisy(references, 0.1, 2), noisy(references, 0.3, 3)
    metric = BLEU(tokenize="none", force=True)

    def difference(swapped):
        sides = [(b, a) if swap else (a, b) for a, b, swap in zip(ours, theirs, swapped, strict=True)]
        one, other = (
            metric.corpus_score(list(side), [references]).score for side in zip(*sides, strict=True)
        )
        return one - other

    real = difference([False] * 10)
    everything = [abs(difference(swapped)) for swapped in itertools.product([False, True], repeat=10)]
    exact = np.mean([value >= abs(real) - 1e-9 for value in everything])
    result = tested(ours, theirs, references)
    assert result["difference"] == pytest.approx(real)
    assert 0.01 < exact < 0.5
    assert result["p"] == pytest.approx(exact, abs=0.01)
    assert "ar:10000" in result["signature"]


def test_identical_translations_do_not_differ(tested):
    references = sentences(30, 1)
    ours = noisy(references, 0.2, 2)
    assert tested(ours, ours, references) | {"signature": ""} == {
        "difference": 0.0,
        "p": 1.0,
        "signature": "",
    }


@pytest.mark.parametrize(("changed", "least"), [(1, 1.0), (2, 0.5), (4, 0.125)])
def test_a_few_changed_sentences_are_not_significant(tested, changed, least):
    """sacreBLEU alone says p = 0.0001 where one sentence in a hundred differs."""
    references = sentences(100, 1)
    ours = noisy(references, 0.2, 2)
    theirs = noisy(ours[:changed], 0.9, 3) + ours[changed:]
    assert tested(ours, theirs, references)["p"] >= least


def test_a_clear_difference_is_significant_either_way(tested):
    references = sentences(60, 1)
    good, bad = noisy(references, 0.05, 2), noisy(references, 0.4, 3)
    better, worse = tested(good, bad, references), tested(bad, good, references)
    assert better["p"] == worse["p"] < 0.01
    assert better["difference"] == -worse["difference"] > 0


def test_case_counts_unless_told_otherwise(tested):
    references = sentences(20, 1)
    shouted = [line.upper() for line in references]
    assert tested(shouted, references, references)["difference"] < -50
    assert tested(shouted, references, references, lowercase=True)["difference"] == 0


def test_files_of_different_lengths_are_refused(tested):
    with pytest.raises(UserError, match=r"ours 2, .*theirs 1, .*references 2; give three files"):
        tested(["a", "b"], ["a"], ["a", "b"])
    with pytest.raises(UserError, match=r"ours 0, .*theirs 0, .*references 0; give three files"):
        tested([], [], [])


def test_one_seed_says_nothing_about_seeds():
    assert over_seeds([(1.0, 0.03)], [31.0], [30.0]) == (0.03, 0.03, None)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([(1, 0.01), (1, 0.04)], 0.04),  # two: both must agree
        ([(1, 0.01), (1, 0.04), (1, 0.9)], 3 / 2 * 0.04),
        ([(1, 0.01), (1, 0.02), (1, 0.04), (1, 0.9), (1, 0.8)], 5 / 3 * 0.04),
        ([(1, 0.01), (1, 0.9), (1, 0.9)], 1.0),
        ([(3, 0.01), (-1, 0.001)], 1.0),  # a seed that says the opposite
        ([(0, 0.01), (0, 0.01)], 1.0),
    ],
)
def test_more_than_half_of_the_seeds_must_agree(pairs, expected):
    assert over_test_set(pairs) == pytest.approx(expected)


def test_the_seeds_are_compared_by_welchs_test():
    system, baseline = [31.0, 31.4, 31.1], [30.0, 30.9, 30.2]
    pairs = [(one - other, 1e-4) for one, other in zip(system, baseline, strict=True)]
    expected = ttest_ind(system, baseline, equal_var=False).pvalue
    result = over_seeds(pairs, system, baseline)
    assert result.p_seeds == pytest.approx(expected)
    assert result.p == max(result.p_seeds, result.p_test_set) == result.p_seeds


def test_systems_without_any_spread():
    assert over_seeds([(0.0, 1.0)] * 2, [30.0, 30.0], [30.0, 30.0]).p == 1.0
    assert over_seeds([(1.0, 0.001)] * 2, [31.0, 31.0], [30.0, 30.0]).p == pytest.approx(0.001)


def test_seeds_against_one_number():
    assert seeds_differ([10.0, 12.0, 14.0], 9.0) == pytest.approx(ttest_1samp([10.0, 12.0, 14.0], 9.0).pvalue)
    assert seeds_differ([10.0], 9.0) is seeds_differ([10.0, 12.0], [9.0]) is None
    assert (seeds_differ([9.0, 9.0], 9.0), seeds_differ([9.0, 9.0], 8.0)) == (1.0, 0.0)
