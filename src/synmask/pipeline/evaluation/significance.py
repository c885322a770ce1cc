"""Whether and by how much two systems differ, over sentences and over seeds; the seeds needed to tell."""

import math
import warnings
from bisect import bisect_left
from collections.abc import Callable, Sequence
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np

from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation.bootstrap import ROUNDING, SAMPLES, f1, paired_bootstrap

LEVEL = 0.05
POWER = 0.8
MAX_SEEDS = 10_000


class Difference(NamedTuple):
    """A difference of means, its 95% interval over seeds, and the p of the test over each.

    With one seed on a side, the interval is infinite and `p_seeds` None. `p_test_set` is 0 if only the seeds
    are compared.
    """

    difference: float
    low: float
    high: float
    p_seeds: float | None
    p_test_set: float = 0.0

    @property
    def p(self) -> float:
        """The larger p."""
        return max(self.p_seeds or 0.0, self.p_test_set)


def compare(
    scores: Sequence[float],
    rivals: Sequence[float] | float,
    counts: Sequence[np.ndarray],
    rival_counts: Sequence[np.ndarray],
    *,
    names: str,
    score: Callable[[np.ndarray], np.ndarray] = f1,
    gain: float = 0.0,
    samples: int = SAMPLES,
) -> Difference:
    """By how much two systems' mean scores differ from a `gain`: `paired_bootstrap` and `compare_seeds`.

    Args:
        scores, rivals: one per seed; a rival without seeds, such as a trivial tree, has one number.
        counts, rival_counts, score, samples: as for `paired_bootstrap`.
        names: of the systems.
    Raises:
        UserError: the systems were not scored on the same sentences.
    """
    try:
        p_test_set = paired_bootstrap(counts, rival_counts, score=score, gain=gain, samples=samples)
    except ValueError as error:
        raise UserError(f"{names}: not scored on the same sentences ({error}); score them again") from None
    return compare_seeds([value - gain for value in scores], rivals)._replace(p_test_set=p_test_set)


def compare_seeds(system: Sequence[float], rival: Sequence[float] | float) -> Difference:
    """The mean of `system` minus that of `rival`, each with one score per seed, or one constant.

    The test is Welch's, two-sided, or Student's against a constant. Without any spread, p is 1 for equal
    means, else 0.
    """
    from scipy import stats  # imported here: it takes a second

    sides = [system] if isinstance(rival, float | int) else [system, rival]
    difference = fmean(system) - (rival if len(sides) == 1 else fmean(rival))
    if any(len(side) < 2 for side in sides):
        return Difference(difference, -math.inf, math.inf, None)
    if all(max(side) - min(side) < ROUNDING for side in sides):
        return Difference(difference, difference, difference, float(abs(difference) < ROUNDING))
    with warnings.catch_warnings():  # where one side has no spread, the test is that of the other's
        warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)
        if len(sides) == 1:
            test = stats.ttest_1samp(system, rival)
            low, high = (float(end) - rival for end in test.confidence_interval())
        else:
            test = stats.ttest_ind(system, rival, equal_var=False)
            low, high = map(float, test.confidence_interval())
    return Difference(difference, low, high, float(test.pvalue))


def holm(values: Sequence[float]) -> list[float]:
    """p-values → p-values adjusted for their number (Holm 1979), in the same order."""
    order = np.argsort(values, kind="stable")
    factors = np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(np.minimum(1, factors * np.array(values, dtype=float)[order]))
    return adjusted.tolist()


def seeds_needed(
    system: Sequence[float], rival: Sequence[float] | float, gain: float, level: float
) -> int | None:
    """The fewest seeds per side with which a t-test detects a true difference of `gain` 4 times out of 5.

    Computed from the noncentral t distribution with the variances of the given scores. None if there are too
    few scores, or if it takes more than 10,000 seeds. This is the test over the seeds alone: the one over the
    test set may need more sentences, whatever the number of seeds.

    Args:
        level: two-sided, of one contrast (0.05 divided by the number of contrasts).
    """
    from scipy import stats

    sides = [system] if isinstance(rival, float | int) else [system, rival]
    if gain == 0 or any(len(side) < 2 for side in sides):
        return None
    variances = [stdev(side) ** 2 for side in sides]
    variance = sum(variances)
    sides_worth = variance**2 / sum(part**2 for part in variances) if variance else len(sides)

    def power(count: int) -> float:
        freedom = sides_worth * (count - 1)  # Welch's
        centre = abs(gain) / math.sqrt(variance / count) if variance else math.inf
        return float(stats.nct.sf(stats.t.isf(level / 2, freedom), freedom, min(centre, 1e3)))

    counts = range(2, MAX_SEEDS + 1)
    fewest = bisect_left(counts, POWER, key=power)
    return counts[fewest] if fewest < len(counts) else None
