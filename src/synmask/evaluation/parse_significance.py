"""Test whether two kinds of trees differ in F1: a paired bootstrap over sentences and seeds."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

SAMPLES, SEED = 1000, 1


class Counts(NamedTuple):
    """Span counts of one run's trees, (N,) per sentence: `matched`, and `both`, predicted + gold."""

    matched: np.ndarray
    both: np.ndarray


class Difference(NamedTuple):
    f1: float  # in percentage points
    p: float


def paired_bootstrap(
    ours: Sequence[Counts], theirs: Sequence[Counts], *, samples: int = SAMPLES
) -> Difference:
    """Test the difference of the mean (over runs) of the corpus F1.

    Each sample draws N sentences with replacement, the same for all runs, and for each side as many runs as
    it has, with replacement. So p covers sentences and seeds (with one run per side, sentences only). p is
    the share of samples whose difference is at least as far from the samples' mean as the real difference is
    from 0, with the real one counted as a sample (as in sacreBLEU, except that equal systems get p = 1).

    Args:
        ours, theirs: the runs (seeds) of each side, of the same N sentences.
    Raises:
        ValueError: a side has no run, or the numbers of sentences differ.
    """
    sizes = {len(array) for run in (*ours, *theirs) for array in run}
    if not ours or not theirs or len(sizes) != 1:
        raise ValueError(f"ours, theirs: expected runs of the same sentences, got {sorted(sizes)} sentences")
    count = sizes.pop()
    weights = _weights(count, samples)
    rng = np.random.default_rng(SEED + 1)
    means = [_drawn(_f1(runs, weights), rng) for runs in (ours, theirs)]
    differences = means[0] - means[1]
    everything = np.ones((1, count))
    real = float(_f1(ours, everything).mean() - _f1(theirs, everything).mean())
    as_far = np.abs(differences - differences.mean()) >= abs(real)
    return Difference(real, (int(as_far.sum()) + 1) / (samples + 1))


@functools.lru_cache(maxsize=4)
def _weights(count: int, samples: int) -> np.ndarray:
    """(S, N) how often each sample contains each sentence."""
    rng = np.random.default_rng(SEED)
    draws = (rng.integers(0, count, count) for _ in range(samples))
    return np.stack([np.bincount(draw, minlength=count) for draw in draws]).astype(np.float64)


def _f1(runs: Sequence[Counts], weights: np.ndarray) -> np.ndarray:
    """(S, N) how often each sample contains each sentence → (S, K) corpus F1 of each run, in percent."""
    matched, both = (np.stack(arrays).astype(np.float64) for arrays in zip(*runs, strict=True))
    return 200 * (weights @ matched.T) / np.maximum(weights @ both.T, 1)


def _drawn(f1: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(S, K) → (S,) the mean over K of a sample's runs, drawn with replacement."""
    return np.take_along_axis(f1, rng.integers(0, f1.shape[1], f1.shape), axis=1).mean(1)
