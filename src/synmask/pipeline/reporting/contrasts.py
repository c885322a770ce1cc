"""Contrasts between the runs of systems: differences, both tests, Holm's correction, verdicts."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf, isfinite
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from synmask.pipeline.config.base import Line, Section, SystemName
from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation.significance import LEVEL, Difference, compare, holm, seeds_needed
from synmask.pipeline.reporting.cells import signed
from synmask.pipeline.reporting.results import (
    RUN,
    check_alike,
    describe,
    read_parse_scores,
    read_scores,
    score_of,
)

SAMPLES = 10_000  # of a test: Holm's correction needs small p
RELEVANT = {"sacrebleu": 0.5, "perplexity": -0.1}  # gains, if the paper names none; of F1 and heads:
RELEVANT_POINTS = 5.0
Verdict = Literal["holds", "does not hold", "cannot tell"]


class Contrast(Section):
    """A system against another, or against trees that need no parser.

    Attributes:
        rival: a system, or a row of parse.json, such as right-branching.
        trivial: whether the rival is such trees.
        metric: sacrebleu, f1_words or f1_paper.
        row: the system's own row of parse.json.
        gain: the difference between the paper's numbers, by direction.
    """

    system: SystemName
    rival: Line
    trivial: bool = False
    metric: Line
    row: Line = "induced"
    gain: dict[Line, float] = Field(default_factory=dict)


@dataclass
class ContrastResult:
    """One contrast in one direction: the scores of its seeds and the results of the tests.

    Attributes:
        rival_seeds: 0 for trivial trees.
        ours, theirs: seed → score; of trivial trees one score.
        p_gain_test_set, p_gain_seeds: of a difference as large as the gain.
        needed: seeds per side, by the test over the seeds.
        p: the larger p, adjusted for the number of contrasts.
        p_gain: likewise, for the number of contrasts with a gain; 1 if it is reached.
    """

    direction: str
    system: str
    rival: str
    metric: str
    seeds: int
    rival_seeds: int
    mean: float
    rival_mean: float
    difference: float = 0.0
    low: float = -inf
    high: float = inf
    p_test_set: float = 1.0
    p_seeds: float = 1.0
    gain: float | None = None
    p_gain_test_set: float | None = None
    p_gain_seeds: float | None = None
    needed: int | None = None
    p: float = 1.0
    p_gain: float | None = None
    verdict: Verdict = "cannot tell"
    ours: dict[int, float] = field(default_factory=dict)
    theirs: dict[int, float] | float = 0.0

    @property
    def sign(self) -> int:
        """-1 if lower is better."""
        return -1 if self.metric == "perplexity" else 1

    @property
    def sides(self) -> tuple[list[float], list[float] | float]:
        """The scores of both sides, as tests take them."""
        alone = isinstance(self.theirs, float)
        return [*self.ours.values()], self.theirs if alone else [*self.theirs.values()]

    @property
    def interval(self) -> str:
        """The difference and its 95% interval over the seeds: +0.08 [−0.67, +0.82]."""
        ends = f"[{signed(self.low)}, {signed(self.high)}]" if isfinite(self.low) else "(one seed)"
        return f"{signed(self.difference)} {ends}"


def read_results(folders: Iterable[Path], metric: str) -> pd.DataFrame:
    """The results of a corpus' runs in one metric of `Contrast`, one row per run and kind of trees.

    Columns: those of `RUN`; tree, "induced" for translations, too; score; counts, a function of the metric
    → (N, D) counts by sentence from whose sums the score follows, or None if they are not known.

    Args:
        folders: of the runs; those that were not scored by this metric are left out.

    Raises:
        UserError: a file is damaged, or runs are not alike (`check_alike`).
    """
    name = "scores.json" if metric == "sacrebleu" else "parse.json"
    paths = [path for folder in folders if (path := folder / name).exists()]
    columns = [*RUN, "tree", "score", "counts"]
    if not paths:
        return pd.DataFrame(columns=columns)
    if metric == "sacrebleu":
        results = read_scores(paths).assign(tree="induced")
        check_alike(results)
    else:
        results = read_parse_scores(paths, metric.removeprefix("f1_"))
    return results.rename(columns={metric: "score", "f1": "score"})[columns]


def compare_all(
    contrasts: Sequence[Contrast], read: Callable[[str], pd.DataFrame]
) -> list[list[ContrastResult]]:
    """For each contrast, its results in each direction in which both sides have runs.

    p-values are corrected by Holm's method, over all tests of no difference, and over all tests of a gain.

    Args:
        read: metric → results as of `read_results`.
    """
    results = {metric: read(metric) for metric in dict.fromkeys(contrast.metric for contrast in contrasts)}
    by_contrast = [[*_compared(contrast, results[contrast.metric])] for contrast in contrasts]
    flat = [result for group in by_contrast for result in group]
    for result, p in zip(
        flat, holm([max(result.p_test_set, result.p_seeds) for result in flat]), strict=True
    ):
        result.p = p
    claimed = [result for result in flat if result.gain is not None]
    smaller = [
        max(result.p_gain_test_set, result.p_gain_seeds)
        if result.sign * (result.difference - result.gain) < 0
        else 1.0
        for result in claimed
    ]
    for result, p in zip(claimed, holm(smaller), strict=True):
        result.p_gain = p
    for result in flat:
        result.verdict = verdict(result.sign * result.difference, result.p, result.p_gain)
        wanted = result.gain or RELEVANT.get(result.metric, RELEVANT_POINTS)
        result.needed = seeds_needed(*result.sides, wanted, LEVEL / len(flat))
    return by_contrast


def _compared(contrast: Contrast, results: pd.DataFrame) -> Iterator[ContrastResult]:
    own = (contrast.system, contrast.row)
    rival = (contrast.system, contrast.rival) if contrast.trivial else (contrast.rival, contrast.row)
    for direction, here in results.sort_values("seed", kind="stable").groupby("direction"):
        runs = {side: rows.to_dict("records") for side, rows in here.groupby(["system", "tree"])}
        ours, theirs = runs.get(own, []), runs.get(rival, [])
        if contrast.trivial and ours and not theirs:
            raise UserError(
                f"{describe(ours[0])}: no {contrast.rival} for {contrast.metric}; name another rival"
            )
        if not ours or not theirs:
            continue
        scores, rival_scores = ({run["seed"]: run["score"] for run in side} for side in (ours, theirs))
        rival_mean, rival_seeds = fmean(rival_scores.values()), len(theirs)
        if contrast.trivial:  # alike for all runs
            theirs, rival_scores, rival_seeds = theirs[:1], rival_mean, 0
        result = ContrastResult(
            direction, contrast.system, contrast.rival, contrast.metric,
            len(ours), rival_seeds, fmean(scores.values()), rival_mean,
            gain=contrast.gain.get(direction), ours=scores, theirs=rival_scores,
        )  # fmt: skip
        counts = [[counts_by_sentence(run, contrast.metric) for run in side] for side in (ours, theirs)]
        names = f"{direction}, {contrast.system} and {contrast.rival}"
        test = partial(
            compare, *result.sides, *counts, names=names, score=score_of(contrast.metric), samples=SAMPLES
        )
        tested = test()
        result.difference, result.low, result.high = tested[:3]
        result.p_test_set, result.p_seeds = _both(tested)
        if result.gain is not None:
            result.p_gain_test_set, result.p_gain_seeds = _both(test(gain=result.gain))
        yield result


def counts_by_sentence(run: Mapping[str, Any], metric: str) -> np.ndarray:
    """(N, D) the counts of a row of `read_results`."""
    counts = run["counts"](metric)
    if counts is None:
        raise UserError(f"{describe(run)}: no counts by sentence for {metric}, {run['tree']}; score it again")
    return counts


def _both(test: Difference) -> tuple[float, float]:
    """p over the sentences, and over the seeds: 1 with too few of them."""
    return test.p_test_set, 1.0 if test.p_seeds is None else test.p_seeds


def verdict(difference: float, p: float, p_gain: float | None) -> Verdict:
    """Whether a contrast confirms a claimed gain, by the adjusted p of `ContrastResult`.

    It "holds" if the difference is positive and significant. It "does not hold" if the difference is negative
    and significant, or significantly smaller than the paper's gain. Else we "cannot tell".
    """
    if p < LEVEL:
        return "holds" if difference > 0 else "does not hold"
    return "does not hold" if p_gain is not None and p_gain < LEVEL else "cannot tell"
