"""The size and certainty of a difference between two systems, and the seeds needed to detect it."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Literal, NamedTuple

LEVEL = 0.05
POWER = 0.8
MOST = 10_000  # seeds
Verdict = Literal["holds", "does not hold", "cannot tell"]


class Effect(NamedTuple):
    """A difference of means, with its 95% interval over seeds (infinite with one seed per side)."""

    difference: float
    low: float
    high: float


def effect(system: Sequence[float], baseline: Sequence[float] | float) -> Effect:
    """The mean of `system` minus that of `baseline`, each with one score per seed, or one constant.

    The interval is Welch's, or Student's if the baseline is a constant.
    """
    from scipy import stats  # imported here, as it takes a second

    constant = not isinstance(baseline, Sequence)
    difference = fmean(system) - (baseline if constant else fmean(baseline))
    if len(system) < 2 or (not constant and len(baseline) < 2):
        return Effect(difference, -math.inf, math.inf)
    if len({*system}) == 1 and (constant or len({*baseline}) == 1):
        return Effect(difference, difference, difference)
    if constant:
        low, high = stats.ttest_1samp(system, baseline).confidence_interval()
        return Effect(difference, float(low) - baseline, float(high) - baseline)
    low, high = stats.ttest_ind(system, baseline, equal_var=False).confidence_interval()
    return Effect(difference, float(low), float(high))


def holm(values: Sequence[float]) -> list[float]:
    """p-values → p-values adjusted for their number (Holm 1979), in the same order."""
    order = sorted(range(len(values)), key=lambda place: values[place])
    adjusted, largest = [0.0] * len(values), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(values) - rank) * values[place]))
        adjusted[place] = largest
    return adjusted


def verdict(difference: float, p: float, p_gain: float | None) -> Verdict:
    """Whether a contrast confirms a claimed gain.

    It "holds" if the difference is positive and significant. It "does not hold" if the difference is negative
    and significant, or significantly smaller than the paper's gain. Else we "cannot tell".

    Args:
        p: of no difference, adjusted for the number of contrasts.
        p_gain: of a difference as large as the paper's gain or larger, adjusted for the number of contrasts
            with a gain; None if the claim has no number.
    """
    if p < LEVEL:
        return "holds" if difference > 0 else "does not hold"
    return "does not hold" if p_gain is not None and p_gain < LEVEL else "cannot tell"


def claim_verdict(parts: Sequence[Verdict]) -> Verdict:
    """A claim holds if all its contrasts hold, and does not hold if one of them does not."""
    if "does not hold" in parts:
        return "does not hold"
    return "holds" if {*parts} == {"holds"} else "cannot tell"


def seeds_needed(
    system: Sequence[float], baseline: Sequence[float] | float, gain: float, level: float
) -> int | None:
    """The fewest seeds per side with which a t-test detects a true difference of `gain` 4 times out of 5.

    Computed from the noncentral t distribution with the variances of the given scores. None if there are too
    few scores, or if it takes more than 10,000 seeds. This is the test over the seeds alone: the one over the
    test set may need more sentences, whatever the number of seeds.

    Args:
        level: two-sided, of one contrast (0.05 divided by the number of contrasts).
    """
    from scipy import stats

    sides = [system] if not isinstance(baseline, Sequence) else [system, baseline]
    if gain == 0 or any(len(side) < 2 for side in sides):
        return None
    variances = [stdev(side) ** 2 for side in sides]
    variance = sum(variances)
    sides_worth = variance**2 / sum(one**2 for one in variances) if variance else len(sides)

    def power(count: int) -> float:
        freedom = sides_worth * (count - 1)  # Welch's
        centre = abs(gain) / math.sqrt(variance / count) if variance else math.inf
        return float(stats.nct.sf(stats.t.isf(level / 2, freedom), freedom, min(centre, 1e3)))

    counts = range(2, MOST + 1)
    fewest = bisect_left(counts, POWER, key=power)
    return counts[fewest] if fewest < len(counts) else None
