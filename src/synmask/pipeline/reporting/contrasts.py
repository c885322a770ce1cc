"""Contrasts between the runs of systems: differences, both tests, Holm's correction, verdicts."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import Literal

import pandas as pd
from pydantic import Field

from synmask.pipeline.config.base import Line, Section, SystemName
from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation.sentences import OF_SENTENCES
from synmask.pipeline.evaluation.significance import LEVEL, Difference, compare, holm, seeds_needed
from synmask.pipeline.reporting.cells import signed
from synmask.pipeline.reporting.runs import check_alike, read_counts, read_parse_scores, read_scores, score_of

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
        rival_seeds: 0 for trivial trees, whose score is one number in `theirs`.
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
    difference: float
    low: float
    high: float
    p_test_set: float
    p_seeds: float
    gain: float | None
    p_gain_test_set: float | None
    p_gain_seeds: float | None
    needed: int | None = None
    p: float = 1.0
    p_gain: float | None = None
    verdict: Verdict = "cannot tell"
    ours: list[float] = field(default_factory=list)
    theirs: list[float] | float = 0.0

    @property
    def sign(self) -> int:
        """-1 if lower is better."""
        return -1 if self.metric == "perplexity" else 1

    @property
    def interval(self) -> str:
        """The difference and its 95% interval over the seeds: +0.08 [−0.67, +0.82]."""
        ends = f"[{signed(self.low)}, {signed(self.high)}]" if isfinite(self.low) else "(one seed)"
        return f"{signed(self.difference)} {ends}"


class Runs:
    """The results of a corpus' runs, given as their folders: …/DIRECTION/SYSTEM/seedN (`paths.existing`)."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self.folders: dict[tuple[str, str], dict[int, Path]] = {}
        for folder in sorted(folders, key=lambda path: int(path.name.removeprefix("seed"))):
            direction, system, seed = folder.parts[-3:]
            self.folders.setdefault((direction, system), {})[int(seed.removeprefix("seed"))] = folder

    def directions(self) -> list[str]:
        return sorted({direction for direction, _ in self.folders})

    def seeds(self, direction: str, system: str, name: str) -> dict[int, Path]:
        """Seed → its file of this name, if it exists."""
        files = {seed: path / name for seed, path in self.folders.get((direction, system), {}).items()}
        return {seed: path for seed, path in files.items() if path.exists()}

    def scores(self, metric: str, direction: str, system: str, row: str = "induced") -> list[float]:
        """The score of each seed; `row` names the kind of trees."""
        if metric == "sacrebleu":
            if not (paths := self.seeds(direction, system, "scores.json")):
                return []
            scores = read_scores(paths.values())
            check_alike(scores)
            return [*scores["sacrebleu"]]
        return [*self._parses(metric, direction, system, row)["f1"]]

    def counts(self, metric: str, direction: str, system: str, row: str = "induced") -> list:
        """For each seed, the counts per sentence; the score is computed from their sums."""
        if metric in OF_SENTENCES:
            paths = self.seeds(direction, system, "scores.json").values()
            counts = {path: read_counts(path.with_name("sentences.csv"), metric) for path in paths}
            for path in (path for path in paths if counts[path] is None):
                raise UserError(f"{path.parent}/sentences.csv: no counts for {metric}; score it again")
            return [*counts.values()]
        return [counts(metric) for counts in self._parses(metric, direction, system, row)["counts"]]

    def _parses(self, metric: str, direction: str, system: str, row: str) -> pd.DataFrame:
        paths = self.seeds(direction, system, "parse.json").values()
        return read_parse_scores(paths, metric.removeprefix("f1_"), row)


def compare_all(contrasts: Sequence[Contrast], runs: Runs) -> list[list[ContrastResult]]:
    """For each contrast, its results in each direction in which both sides have runs.

    p-values are corrected by Holm's method, over all tests of no difference, and over all tests of a gain.
    """
    by_contrast = [[*_compared(contrast, runs)] for contrast in contrasts]
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
        result.needed = seeds_needed(result.ours, result.theirs, wanted, LEVEL / len(flat))
    return by_contrast


def _compared(contrast: Contrast, runs: Runs) -> Iterator[ContrastResult]:
    for direction in runs.directions():
        ours, theirs = _sides(contrast, runs.scores, direction)
        if ours and theirs:
            rival_mean = fmean(theirs)
            rival_seeds = 0 if contrast.trivial else len(theirs)
            theirs = rival_mean if contrast.trivial else theirs
            counts, rival_counts = _sides(contrast, runs.counts, direction)
            test = partial(
                compare,
                ours,
                theirs,
                counts,
                rival_counts[:1] if contrast.trivial else rival_counts,  # alike for all runs
                names=f"{direction}, {contrast.system} and {contrast.rival}",
                score=score_of(contrast.metric),
                samples=SAMPLES,
            )
            gain, tested = contrast.gain.get(direction), test()
            p_gain = (None, None) if gain is None else _both(test(gain=gain))
            yield ContrastResult(
                direction, contrast.system, contrast.rival, contrast.metric,
                len(ours), rival_seeds, fmean(ours), rival_mean, *tested[:3], *_both(tested),
                gain, *p_gain, ours=ours, theirs=theirs,
            )  # fmt: skip


def _both(test: Difference) -> tuple[float, float]:
    """p over the sentences, and over the seeds: 1 with too few of them."""
    return test.p_test_set, 1.0 if test.p_seeds is None else test.p_seeds


def _sides(contrast: Contrast, read: Callable, direction: str) -> tuple[list, list]:
    """The runs of both sides, read by `read`; trivial trees are in the files of the system."""
    metric, row = contrast.metric, contrast.row
    rival = (contrast.system, contrast.rival) if contrast.trivial else (contrast.rival, row)
    return read(metric, direction, contrast.system, row), read(metric, direction, *rival)


def verdict(difference: float, p: float, p_gain: float | None) -> Verdict:
    """Whether a contrast confirms a claimed gain, by the adjusted p of `ContrastResult`.

    It "holds" if the difference is positive and significant. It "does not hold" if the difference is negative
    and significant, or significantly smaller than the paper's gain. Else we "cannot tell".
    """
    if p < LEVEL:
        return "holds" if difference > 0 else "does not hold"
    return "does not hold" if p_gain is not None and p_gain < LEVEL else "cannot tell"
