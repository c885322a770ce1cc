"""The results at the head of a page: systems against their rivals."""

import json
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from synmask.pipeline.display import arrow
from synmask.pipeline.evaluation.significance import LEVEL
from synmask.pipeline.reporting.cells import probability, signed
from synmask.pipeline.reporting.contrasts import ContrastResult, compare_all, read_results
from synmask.pipeline.reporting.metrics import METRICS
from synmask.pipeline.reporting.page_spec import PagePart, PageSpec
from synmask.pipeline.reporting.training_runs import TrainingRun

TITLES = {"sacrebleu": METRICS["sacrebleu"].label, "f1_words": "F1 of trees (words)"}


@dataclass
class Effect:
    """One contrast as the page shows it.

    Attributes:
        add: the command that adds a seed to both sides; "" if no experiment of the page has them.
    """

    contrast: ContrastResult
    label: str
    rival: str
    add: str

    @property
    def seeds(self) -> str:
        """The system's scores."""
        return _by_seed(self.contrast.ours)

    @property
    def rival_seeds(self) -> str:
        """The rival's scores."""
        return _by_seed(self.contrast.theirs)

    @property
    def dots(self) -> list[float]:
        """The difference of each seed from the rival's mean."""
        return [score - self.contrast.rival_mean for score in self.contrast.ours.values()]

    @property
    def outcome(self) -> str:
        """higher, lower, below the paper's gain, or cannot tell."""
        contrast = self.contrast
        if contrast.p < LEVEL:
            return "higher" if contrast.difference > 0 else "lower"
        return "below the paper's gain" if contrast.verdict == "does not hold" else "cannot tell"

    @property
    def sentence(self) -> str:
        """The difference, its interval and its certainty in words."""
        contrast = self.contrast
        text = f"{self.label} against {self.rival}: {contrast.interval}; corrected {probability(contrast.p)}"
        if contrast.gain is not None:
            text += (
                f"; of a gain as large as the paper's {signed(contrast.gain)}, {probability(contrast.p_gain)}"
            )
        return f"{text}: {self.outcome}"

    @property
    def needed(self) -> str:
        """How many seeds per side detect the paper's gain, or else a relevant one."""
        if 1 in (self.contrast.seeds, self.contrast.rival_seeds):
            return "unknown: two seeds per side are needed to say"
        return "more than 10,000" if self.contrast.needed is None else f"{self.contrast.needed:,}"


@dataclass
class Panel:
    """The contrasts of one direction, metric and rival, on one axis from `low` to `high`."""

    title: str
    count: int  # of the contrasts that p is corrected for
    effects: list[Effect]

    def __post_init__(self) -> None:
        near = [
            0.0,
            *(value for effect in self.effects for value in (*effect.dots, effect.contrast.gain or 0.0)),
        ]
        margin = max(max(near) - min(near), 0.5) / 2
        self.low, self.high = min(near) - margin, max(near) + margin

    def at(self, value: float) -> float:
        """Where a value lies on the axis, in percent; what lies outside, at its end."""
        return round(100 * min(max((value - self.low) / (self.high - self.low), 0), 1), 2)

    def cut(self, value: float) -> bool:
        """Whether a value lies outside the axis."""
        return not self.low <= value <= self.high

    @property
    def ticks(self) -> list[float]:
        """Three to seven round values on the axis."""
        span = self.high - self.low
        unit = 10 ** math.floor(math.log10(span / 3))
        step = max(unit * factor for factor in (1, 2, 5) if unit * factor <= span / 3)
        return [
            round(k * step, 6) for k in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)
        ]


def panels(spec: PageSpec, runs: Sequence[TrainingRun]) -> Iterator[Panel]:
    """The results of all contrasts that `spec` asks for and whose runs exist.

    Args:
        runs: of the page; those without counts by sentence, or without a finite score, are left out.
    Raises:
        UserError: a file is damaged, or two runs have other test sentences.
    """
    for asked in spec.get("contrasts", ()):
        of_corpus = (run for run in runs if run.training.corpus == asked["corpus"])
        folders = dict.fromkeys(run.folder for run in of_corpus if _is_counted(run))
        results = [*chain.from_iterable(compare_all(asked["contrasts"], partial(read_results, folders)))]
        experiments = [part for part in spec["experiments"] if part["name"] in asked["experiments"]]
        labels = {name: label for part in experiments for name, label in part["systems"]}
        groups: dict[tuple[str, str, str], list[ContrastResult]] = {}
        for result in results:
            groups.setdefault((result.direction, result.metric, result.rival), []).append(result)
        corpus = f"{asked['corpus']}, " if len(spec["contrasts"]) > 1 else ""
        for (direction, metric, rival), group in groups.items():
            against = f"{labels.get(rival, f'{rival} trees')} ({group[0].rival_mean:.2f})"
            title = f"{corpus}{arrow(direction)}, {TITLES[metric]}: difference from {against}"
            rival_label = labels.get(rival, rival)
            effects = [
                Effect(result, labels[result.system], rival_label, _add_a_seed(result, experiments))
                for result in group
            ]
            yield Panel(title, len(results), effects)


def _is_counted(run: TrainingRun) -> bool:
    """Whether a run has a finite score, and counts by sentence."""
    return run.value("test.sacrebleu") is not None and (run.folder / "sentences.csv").exists()


def _by_seed(scores: Mapping[int, float] | float) -> str:
    if isinstance(scores, float):
        return f"{scores:.2f}"
    return ", ".join(f"{score:.2f} (seed {seed})" for seed, score in scores.items())


def _add_a_seed(contrast: ContrastResult, experiments: Sequence[PagePart]) -> str:
    """The command that makes one more run of each system of the experiment that compares the two."""
    for experiment in experiments:
        runs = {column["column"]: column["runs"] for column in experiment["columns"]}
        if contrast.system in runs.get(contrast.direction, {}):
            seeds_so_far = sorted({*runs[contrast.direction][contrast.system], *contrast.ours})
            settings = json.dumps({experiment["name"]: {"seeds": [*seeds_so_far, seeds_so_far[-1] + 1]}})
            return shlex.join(["snakemake", experiment["name"], "--config", f"experiments={settings}"])
    return ""
