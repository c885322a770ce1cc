"""Test whether two systems differ: over test sentences and seeds together, and over the seeds alone."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from synmask.pipeline.evaluation.bootstrap import SAMPLES, f1, paired_bootstrap


class Certainty(NamedTuple):
    """The certainty of a difference between two systems: `p` is the larger of the other two."""

    p: float
    p_test_set: float
    p_seeds: float | None  # None if a side has one seed


def compare(
    scores: Sequence[float],
    rivals: Sequence[float] | float,
    counts: Sequence[Sequence[np.ndarray]],
    rival_counts: Sequence[Sequence[np.ndarray]],
    *,
    score: Callable[[np.ndarray], np.ndarray] = f1,
    gain: float = 0.0,
    samples: int = SAMPLES,
) -> Certainty:
    """Test whether two systems' mean scores differ by `gain`: `paired_bootstrap` and `seeds_differ`.

    Args:
        scores, rivals: one per seed; a rival without seeds, such as a trivial tree, has one number.
        counts, rival_counts, score, samples: as for `paired_bootstrap`.
    Raises:
        ValueError: as `paired_bootstrap`.
    """
    p_test_set = paired_bootstrap(counts, rival_counts, score=score, gain=gain, samples=samples).p
    p_seeds = seeds_differ([one - gain for one in scores], rivals)
    return Certainty(p_test_set if p_seeds is None else max(p_test_set, p_seeds), p_test_set, p_seeds)


def seeds_differ(system: Sequence[float], baseline: Sequence[float] | float) -> float | None:
    """Two-sided p of Welch's t-test between the scores of seeds, or of Student's against one number.

    None if a side has one seed. Without any spread: 1 for equal means, else 0.
    """
    from scipy import stats  # here, because it takes a second

    constant = not isinstance(baseline, Sequence)
    sides = [system] if constant else [system, baseline]
    if any(len(side) < 2 for side in sides):
        return None
    if all(len({*side}) == 1 for side in sides):
        return float(system[0] == (baseline if constant else baseline[0]))
    if constant:
        return float(stats.ttest_1samp(system, baseline).pvalue)
    return float(stats.ttest_ind(system, baseline, equal_var=False).pvalue)
