"""How large a difference between two systems is, how sure it is, and how many seeds would tell."""

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Literal, NamedTuple

LEVEL = 0.05
POWER = 0.8
MOST = 10_000  # seeds; more are not counted
Verdict = Literal["holds", "does not hold", "cannot tell"]


class Effect(NamedTuple):
    """A difference of means, with its 95% interval over seeds (infinite with one seed a side)."""

    difference: float
    low: float
    high: float


def effect(system: Sequence[float], baseline: Sequence[float] | float) -> Effect:
    """The mean of `system` minus that of `baseline`, a score a seed, or one number that has no seeds.

    The interval is Welch's, or Student's where the baseline is one number.
    """
    from scipy import stats  # here, because it takes a second

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


def verdict(found: Effect, p: float, gain: float | None) -> Verdict:
    """What a contrast says of a claimed gain.

    It holds if the difference is positive and significant. It does not if it is negative and significant, or
    if the whole interval lies below the gain that the paper reports. Else there is too little evidence.

    Args:
        p: adjusted for the number of contrasts.
        gain: None where the claim has no number.
    """
    if p < LEVEL:
        return "holds" if found.difference > 0 else "does not hold"
    return "does not hold" if gain is not None and found.high < gain else "cannot tell"


def together(parts: Sequence[Verdict]) -> Verdict:
    """A claim holds if all its contrasts do, and does not if one does not."""
    if "does not hold" in parts:
        return "does not hold"
    return "holds" if {*parts} == {"holds"} else "cannot tell"


def seeds_needed(
    system: Sequence[float], baseline: Sequence[float] | float, gain: float, level: float
) -> int | None:
    """The fewest seeds a side with which a t-test finds a true difference of `gain` in 4 of 5 experiments.

    By the noncentral t distribution, with the variances of the scores that are there; None: there are too few
    of them, or it takes more than 10,000.

    Args:
        level: two-sided, of one contrast (0.05 divided by the number of contrasts).
    """
    from scipy import stats

    sides = [system] if not isinstance(baseline, Sequence) else [system, baseline]
    if gain == 0 or any(len(side) < 2 for side in sides):
        return None
    variance = sum(stdev(side) ** 2 for side in sides)

    def power(count: int) -> float:
        freedom = len(sides) * (count - 1)
        centre = abs(gain) / math.sqrt(variance / count) if variance else math.inf
        return float(stats.nct.sf(stats.t.isf(level / 2, freedom), freedom, min(centre, 1e3)))

    low, high = 1, 2
    while power(high) < POWER:
        low, high = high, 2 * high
        if low > MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return high
