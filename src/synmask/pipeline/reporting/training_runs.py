"""The training runs that a page shows: which exist, their scores and settings, and which are missing."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from synmask.pipeline.errors import UserError
from synmask.pipeline.files import flatten, read_json
from synmask.pipeline.paths import run_of_folder
from synmask.pipeline.record import check_owner, read_record, read_training_digest
from synmask.pipeline.reporting.metrics import METRICS
from synmask.pipeline.reporting.page_spec import PagePart
from synmask.pipeline.reporting.results import commits
from synmask.pipeline.runs import Run, Tuning, of_columns
from synmask.pipeline.tasks import TASKS

TRANSLATION_SCORES = {f"test.{name}": METRICS[name].label for name in ("sacrebleu", "bleu_tokenised", "chrf")}
TRANSLATION_SCORES["valid.sacrebleu"] = METRICS["valid_sacrebleu"].label
LOG_LINES = 12
TRANSLATED = "hypothesis.test.txt"
FILES = {  # to which a page links, if they exist
    "scores.json": "scores",
    "parse.json": "parsing scores",
    "train.log": "training log",
    "history.csv": "losses by epoch",
    TRANSLATED: "translations",
    "sentences.csv": "counts by sentence",
    "trees.jsonl": "trees",
}


@dataclass
class TrainingRun:
    """One training of an experiment; `scores` is empty if it has not been scored."""

    training: Run | Tuning
    label: str
    folder: Path
    scores: dict[str, Any]
    when: datetime | None

    @property
    def log(self) -> list[str]:
        """The end of the training's log; it is for people, so bytes that are no UTF-8 are replaced."""
        path = self.folder / "train.log"
        text = path.read_text("utf-8", errors="replace") if path.exists() else ""
        return text.splitlines()[-LOG_LINES:]

    def value(self, metric: str) -> float | None:
        """A translation score, such as test.chrf, or a task's own on a part; None without a finite number."""
        part, _, name = metric.partition(".")
        value = self.scores.get("scores", {}).get(part)
        if isinstance(value, dict):
            value = value.get(name or TASKS[self.training.direction].metrics[0])
        return value if isinstance(value, int | float) and math.isfinite(value) else None

    def files(self) -> list[tuple[str, Path]]:
        """The names and paths of the files that exist."""
        there = [(name, self.folder / file) for file, name in FILES.items() if (self.folder / file).exists()]
        predictions = sorted(self.folder.glob("predictions.*.txt"))
        return [*there, *((path.stem.replace(".", ", "), path) for path in predictions)]


def read_runs(spec: PagePart) -> list[TrainingRun]:
    """The runs of an experiment, in the order direction, system, seed.

    Raises:
        UserError: a scores.json is not JSON, has no scores, or is another run's, or files beside it are.
    """
    labels = dict(spec["systems"])
    trainings = [(run, Path(run.folder)) for run in of_columns(spec["columns"])]
    return [TrainingRun(run, labels[run.system], folder, *_read(folder)) for run, folder in trainings]


def _read(folder: Path) -> tuple[dict[str, Any], datetime | None]:
    """The scores of a run, and when they were written; {} and None if it has not been scored."""
    path = folder / "scores.json"
    if not path.exists():
        return {}, None
    scores = read_json(path)
    if not isinstance(scores, dict) or not isinstance(scores.get("scores"), dict):
        raise UserError(f"{path}: no scores in it; delete it and rerun")
    run = run_of_folder(folder)
    training = read_training_digest(folder) if "direction" in run else {}  # of tasks, a page reads no records
    read_record(path, [folder / TRANSLATED, folder / "sentences.csv"], training)
    check_owner(path, {"run": scores}, {key: run[key] for key in run if key in scores})
    written = int(path.stat().st_mtime)  # 0: it was packed without its time
    return scores, datetime.fromtimestamp(written, UTC) if written else None


def summary(runs: Sequence[TrainingRun]) -> dict[str, Any]:
    """How many runs exist, and when, on which devices and with which versions they were made."""
    there = [run for run in runs if run.scores]
    times = [run.when for run in there if run.when]
    packages = pd.DataFrame([run.scores.get("versions") or {} for run in there]).sort_index(axis="columns")
    return {
        "there": len(there),
        "expected": len(runs),
        "first": min(times, default=None),
        "last": max(times, default=None),
        "commits": [*dict.fromkeys(commit for run in there for commit in commits(run.scores))],
        "devices": [*dict.fromkeys(run.scores["device"] for run in there if run.scores.get("device"))],
        "hours": sum(run.scores.get("train_seconds") or 0 for run in there) / 3600,
        "versions": {name: " and ".join(found.dropna().unique()) for name, found in packages.items()},
    }


def settings(runs: Iterable[TrainingRun]) -> dict[str, Any]:
    """The "systems" of runs that exist, and what "shared" and "differing" settings their first runs have:
    dotted name → a value per system, "–" if it has no such setting."""
    by_label: dict[str, dict[str, str]] = {}
    for run in runs:
        parts = {**(run.scores.get("settings") or {}), "decoding": run.scores.get("decoding") or {}}
        texts = ((key, x if isinstance(x, str) else json.dumps(x)) for key, x in flatten(parts).items())
        by_label.setdefault(run.label, dict(texts))
    table = pd.DataFrame(by_label).fillna("–").sort_index()
    alike = table.nunique(axis="columns") == 1
    shared, differing = (table[rows].T.to_dict("list") for rows in (alike, ~alike))
    return {"systems": [*table], "shared": shared, "differing": differing}
