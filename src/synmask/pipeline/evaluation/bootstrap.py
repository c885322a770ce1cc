"""A paired bootstrap over sentences and seeds: do two systems differ in F1, BLEU or another score of sums?"""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

SAMPLES, SEED = 1000, 1
WEIGHTS = 2**20  # drawn at once: 8 MiB, which stay in the processor's cache
ROUNDING = 1e-9  # equal means of two and of three equal scores may differ by less


def f1(sums: np.ndarray) -> np.ndarray:
    """Sums over sentences of matched and of predicted + gold spans (..., 2) → corpus F1 in percent (...).

    It is 100 where no tree has a span that counts.
    """
    matched, both = sums[..., 0], sums[..., 1]
    return np.where(both > 0, 200 * matched / np.maximum(both, 1), 100.0)


def paired_bootstrap(
    ours: Sequence[np.ndarray],
    theirs: Sequence[np.ndarray],
    *,
    score: Callable[[np.ndarray], np.ndarray] = f1,
    gain: float = 0.0,
    samples: int = SAMPLES,
) -> float:
    """p of a test whether the difference of the mean (over runs) of a score is `gain`.

    Each sample draws N sentences with replacement, the same for all runs, and for each side as many runs as
    it has, with replacement. p is the share of samples whose difference is at least as far from the samples'
    mean as the real difference is from the gain, on either side, with the real one counted as a sample. So p
    is never below 1/(samples + 1). Equal systems get p = 1, and so does a single sentence, whose samples are
    all alike. `sacrebleu --paired-bs` counts samples on one side only: its p is about half as large.

    Two or three runs, drawn again, vary less than new runs would: their spread needs a test of its own
    (`significance.compare_seeds`).

    Args:
        ours, theirs: of each run (seed) of a side, D counts of each of the same N sentences, (N, D).
        score: sums of counts over sentences (..., D) → scores (...).
    Raises:
        ValueError: a side has no run, or the numbers of sentences differ.
    """
    sizes = {*map(len, (*ours, *theirs))}
    if not ours or not theirs or len(sizes) != 1:
        raise ValueError(f"ours, theirs: expected runs of the same sentences, got {sorted(sizes)} sentences")
    count = sizes.pop()
    if count < 2:
        return 1.0
    tables = [np.ascontiguousarray(np.stack(runs)) for runs in (ours, theirs)]  # (K, N, D): row after row
    real = float(np.subtract(*(score(table.sum(axis=1)).mean() for table in tables)))
    weights = (part.astype(np.float64) for part in _weights(count, samples))
    parts = [[score(part @ table) for table in tables] for part in weights]
    rng = np.random.default_rng(SEED + 1)
    means = [_draw_runs(np.concatenate(side, axis=1), rng) for side in zip(*parts, strict=True)]
    differences = means[0] - means[1]
    away = abs(real - gain)
    as_far = np.abs(differences - differences.mean()) >= (away if away >= ROUNDING else 0)
    return (int(as_far.sum()) + 1) / (samples + 1)


@lru_cache(maxsize=2)  # all comparisons on a test set draw the same samples
def _weights(count: int, samples: int) -> list[np.ndarray]:
    """How often each of some samples contains each sentence, (s, N), for all samples in turn."""
    rng = np.random.default_rng(SEED)
    step, parts = max(WEIGHTS // count, 1), []
    for start in range(0, samples, step):
        size = min(step, samples - start)
        draws = rng.integers(0, count, (size, count)) + count * np.arange(size)[:, None]
        weights = np.bincount(draws.ravel(), minlength=size * count).reshape(size, count)
        parts.append(weights.astype(np.min_scalar_type(weights.max())))
    return parts


def _draw_runs(scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(K, S) → (S,) the mean over K of a sample's runs, drawn with replacement."""
    return np.take_along_axis(scores.T, rng.integers(0, len(scores), scores.T.shape), axis=1).mean(1)
