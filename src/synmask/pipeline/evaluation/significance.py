"""Test a system against the baseline: over the test set (sacreBLEU's paired test) and over the seeds."""

import logging
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from synmask.pipeline.files import read_aligned

logging.getLogger("sacrebleu").setLevel(logging.WARNING)  # keep stderr for errors
TRIALS = 10_000  # sacreBLEU's own number


class Certainty(NamedTuple):
    """The certainty of a difference between two systems: `p` is the larger of the other two."""

    p: float
    p_test_set: float
    p_seeds: float | None  # None with one seed


def compare(
    hypothesis: str | Path, baseline: str | Path, reference: str | Path, metric: BLEU
) -> dict[str, Any]:
    """Paired approximate randomisation of two translations of one test set (Riezler and Maxwell 2005).

    sacreBLEU counts the shuffles with a *larger* difference than the real one, so identical translations
    would get p = 1/10001. If two translations differ in k sentences, at least 2 of the 2^k ways to swap them
    give exactly the real difference, so p is never below 2^(1-k).

    Args:
        metric: from `bleu.bleu`, for plain text or tokens, like the three files.
    Returns:
        {"difference": BLEU of the hypothesis minus that of the baseline, "p", "signature"}.
    Raises:
        UserError: the files differ in their number of lines, or are empty.
    """
    ours, theirs, references = read_aligned(
        (hypothesis, baseline, reference), "give three files on the same test set"
    )
    test = PairedTest([("baseline", theirs), ("system", ours)], {"BLEU": metric}, [references], "ar", TRIALS)
    signatures, scores = test()
    before, after = scores["BLEU"]
    changed = sum(one != other for one, other in zip(ours, theirs, strict=True))
    return {
        "difference": after.score - before.score,
        "p": min(1.0, max(after.p_value, 2.0 ** (1 - changed))),
        "signature": str(signatures["BLEU"]),
    }


def over_seeds(
    pairs: Sequence[tuple[float, float]], system: Sequence[float], baseline: Sequence[float]
) -> Certainty:
    """Test K pairs of runs, one per seed, by `over_test_set` and `seeds_differ`; significance requires both.

    Args:
        pairs: difference and p-value of each pair, from `compare`.
        system, baseline: the K scores of each.
    """
    p_test_set, p_seeds = over_test_set(pairs), seeds_differ(system, baseline)
    return Certainty(p_test_set if p_seeds is None else max(p_test_set, p_seeds), p_test_set, p_seeds)


def over_test_set(pairs: Sequence[tuple[float, float]]) -> float:
    """Combine the two-sided p-values of K pairs of runs, one per seed.

    Those whose difference has another sign than the mean difference count as 1; then p = K/k · p_(k), where
    p_(k) is the k-th smallest and k = floor(K/2) + 1, so that more than half of the pairs must agree. This
    bound (Rüger 1978) holds under any dependence between the K tests, which share the test set. Sentences of
    several seeds are never pooled.
    """
    count = len(pairs)
    mean = fmean(difference for difference, _ in pairs)
    agreeing = sorted(p if difference * mean > 0 else 1.0 for difference, p in pairs)
    majority = count // 2 + 1
    return min(1.0, count / majority * agreeing[majority - 1])


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
