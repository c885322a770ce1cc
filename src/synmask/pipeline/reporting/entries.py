"""The runs of an experiment as the page shows them: those that exist, their scores, those missing."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from synmask.pipeline.config.schema import flat
from synmask.pipeline.files import UserError, read_json, read_lines
from synmask.pipeline.reporting.metrics import METRICS
from synmask.pipeline.tasks import TASKS

TRANSLATION_SCORES = {f"test.{name}": METRICS[name].label for name in ("sacrebleu", "bleu_tokenised", "chrf")}
TRANSLATION_SCORES["valid.sacrebleu"] = METRICS["valid_sacrebleu"].label
RESULTS = Path("results")  # a folder per corpus
LOG_LINES = 12
FILES = {  # that a run's entry links to, if they exist
    "scores.json": "scores",
    "parse.json": "parsing scores",
    "train.log": "training log",
    "history.csv": "losses by epoch",
    "hypothesis.test.txt": "translations",
    "sentences.csv": "counts by sentence",
    "trees.jsonl": "trees",
}


@dataclass
class TrainingRun:
    """One training of an experiment; `scores` is empty if it has not been scored."""

    direction: str
    system: str
    label: str
    seed: int
    folder: Path
    scores: dict[str, Any] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    when: datetime | None = None

    @property
    def there(self) -> bool:
        return bool(self.scores)

    @property
    def target(self) -> str:
        """The Snakemake target that makes the run."""
        return str(self.folder / "scores.json")

    def value(self, metric: str) -> float | None:
        """A translation score, such as test.chrf, or the task's own score on its part `metric`.

        None if it is missing or not finite (a run that diverged).
        """
        part, _, name = metric.partition(".")
        value = self.scores.get("scores", {}).get(part)
        if isinstance(value, dict):
            value = value.get(name or TASKS[self.direction].metrics[0])
        return value if isinstance(value, int | float) and math.isfinite(value) else None

    @property
    def minutes(self) -> float | None:
        """Duration of the training."""
        seconds = self.scores.get("train_seconds")
        return seconds / 60 if isinstance(seconds, int | float) else None

    def files(self) -> list[tuple[str, Path]]:
        """The names and paths of the files that exist."""
        there = [(name, self.folder / file) for file, name in FILES.items() if (self.folder / file).exists()]
        predictions = sorted(self.folder.glob("predictions.*.txt"))
        return [*there, *((path.stem.replace(".", ", "), path) for path in predictions)]


def read_runs(experiment: Mapping[str, Any]) -> list[TrainingRun]:
    """The runs of an experiment, in the order direction, system, seed.

    Args:
        experiment: `corpus`, `directions`, `systems` (name → label) and `seeds`.
    Raises:
        UserError: a scores.json is not JSON, or has no scores.
    """
    corpus = RESULTS / experiment["corpus"]
    return [
        _read(TrainingRun(direction, system, label, seed, corpus / direction / system / f"seed{seed}"))
        for direction in experiment["directions"]
        for system, label in experiment["systems"].items()
        for seed in experiment["seeds"]
    ]


def _read(run: TrainingRun) -> TrainingRun:
    path = run.folder / "scores.json"
    if path.exists():
        scores = read_json(path)
        if not isinstance(scores, dict) or not isinstance(scores.get("scores"), dict):
            raise UserError(f"{path}: no scores in it; delete it and rerun")
        run.scores = scores
        if written := int(path.stat().st_mtime):  # 0: it was packed without its time
            run.when = datetime.fromtimestamp(written, UTC)
    if (run.folder / "train.log").exists():
        run.log = list(read_lines(run.folder / "train.log"))[-LOG_LINES:]
    return run


def summary(runs: list[TrainingRun]) -> dict[str, Any]:
    """How many runs exist, and when, on which devices and with which versions they were made."""
    there = [run for run in runs if run.there]
    times = [run.when for run in there if run.when]
    return {
        "there": len(there),
        "asked": len(runs),
        "first": min(times, default=None),
        "last": max(times, default=None),
        "commits": _all(there, "commit"),
        "devices": _all(there, "device"),
        "hours": sum(run.scores.get("train_seconds") or 0 for run in there) / 3600,
        "versions": _versions(there),
    }


def _all(runs: list[TrainingRun], key: str) -> list[str]:
    return list(dict.fromkeys(str(run.scores[key]) for run in runs if run.scores.get(key)))


def _versions(runs: list[TrainingRun]) -> dict[str, str]:
    """Package → version, or all versions if runs differ."""
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        for package, version in (run.scores.get("versions") or {}).items():
            found.setdefault(package, {})[version] = None
    return {package: " and ".join(versions) for package, versions in sorted(found.items())}


def settings(runs: list[TrainingRun]) -> dict[str, Any]:
    """Settings by dotted name, of each system's first run that exists.

    Returns:
        {"systems": their labels, "shared": setting → value, "differing": setting → a value per system,
        "–" if it has no such setting}.
    """
    found: dict[str, dict[str, str]] = {}
    for run in runs:
        if run.there and run.label not in found:
            parts = {**(run.scores.get("settings") or {}), "decoding": run.scores.get("decoding") or {}}
            texts = ((key, x if isinstance(x, str) else json.dumps(x)) for key, x in flat(parts).items())
            found[run.label] = dict(texts)
    keys = sorted({key for one in found.values() for key in one})
    values = {key: [one.get(key, "–") for one in found.values()] for key in keys}
    shared = {key: each[0] for key, each in values.items() if len({*each}) == 1}
    differing = {key: each for key, each in values.items() if key not in shared}
    return {"systems": [*found], "shared": shared, "differing": differing}
