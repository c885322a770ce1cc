"""Trainings that other code has begun or finished: one line names them before anything starts."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from synmask.pipeline import stamps
from synmask.pipeline.display import first_names
from synmask.pipeline.runs import Training
from synmask.pipeline.workflow.jobs import Jobs

ADVICE = "will start again; to keep them instead, add --config any_code=true"
KEPT = "Nothing of the old is deleted before the new is finished"


def line(jobs: Jobs, trainings: Iterable[Training]) -> str:
    """One line on trainings that other code has begun or finished, and how to keep them; "" without any."""
    any_code = jobs.config.any_code
    resumable: dict[int, list[str]] = {}  # epochs to train → epochs done
    lost: dict[int, list[str]] = {}
    finished = 0
    for training in trainings:
        if begun := _begun(training):
            wanted = jobs.stamp(training)
            same = [other for other in begun if not other.differs(wanted)]
            same_code = max((other.epochs for other in same), default=-1)
            others = [other for other in begun if other.differs(wanted) == ["code"]]
            if any(other.finished for other in others):
                finished += not any(other.finished for other in same)
            elif further := [other for other in others if other.half_done and other.epochs > same_code]:
                furthest = max(further, key=lambda other: (not other.saved_by_fairseq, other.epochs))
                runs = lost if furthest.saved_by_fairseq else resumable
                epochs = wanted["settings"]["training"]["max_epochs"]
                runs.setdefault(epochs, []).append(str(furthest.epochs or "?"))
    lines = []
    if resumable and any_code:
        lines.append(f"{_counts(resumable, 'other code')} and will continue (any_code)")
    elif resumable:
        lines.append(
            f"{_counts(resumable, 'other code')} and will start again; to continue them instead, add "
            f"--config any_code=true. {KEPT}"
        )
    if lost:
        lines.append(f"{_counts(lost, 'version 0.2.0')} and will start again, whatever any_code is. {KEPT}")
    if finished:
        runs_are = "1 training run is" if finished == 1 else f"{finished} training runs are"
        lines.append(
            f"{runs_are} finished by other code and "
            + ("will count as finished if their data stay the same (any_code)" if any_code else ADVICE)
        )
    return "; ".join(lines)


def _counts(runs: Mapping[int, list[str]], by: str) -> str:
    """The number of trainings by epochs to train, and the epochs that are done of each."""
    count = sum(map(len, runs.values()))
    where = "; ".join(f"epoch {first_names(done)} of {epochs}" for epochs, done in runs.items())
    return (
        f"{'1 training run is' if count == 1 else f'{count} training runs are'} half done by {by} ({where})"
    )


def next_epoch(jobs: Jobs, training: Training) -> int | None:
    """The epoch at which a training resumes; None if it would start."""
    half_done = [folder for folder in _begun(training) if folder.half_done]
    same = (folder for folder in half_done if not folder.differs(jobs.stamp(training)))
    return max((folder.epochs + 1 for folder in same), default=None)


def _begun(training: Training) -> list[stamps.CheckpointFolder]:
    """The checkpoints in a training's folder; none if it cannot be read, which the training will report."""
    with suppress(OSError):
        return stamps.checkpoint_folders(Path(training.folder))
    return []
