"""Trainings that other code has begun or finished: one line names them before anything starts."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from synmask.pipeline import stamps
from synmask.pipeline.display import first_names
from synmask.pipeline.runs import Training
from synmask.pipeline.workflow.jobs import Jobs

KEEP = "add --config any_code=true"
KEPT = "Nothing of the old is deleted before the new is finished"


def line(jobs: Jobs, trainings: Iterable[Training]) -> str:
    """One line on trainings that other code has begun or finished, and how to keep them; "" without any."""
    resumable, lost, finished = [], [], 0
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
                epochs = wanted["settings"]["training"]["max_epochs"]
                runs = lost if furthest.saved_by_fairseq else resumable
                runs.append(f"epoch {furthest.epochs or '?'} of {epochs}")
    any_code, lines = jobs.config.any_code, []
    if resumable:
        will = "continue (any_code)" if any_code else f"start again; to continue them instead, {KEEP}. {KEPT}"
        where = first_names(resumable)
        lines.append(f"{_runs_are(len(resumable))} half done by other code ({where}) and will {will}")
    if lost:
        count, will = _runs_are(len(lost)), f"start again, whatever any_code is. {KEPT}"
        lines.append(f"{count} half done by version 0.2.0 ({first_names(lost)}) and will {will}")
    if finished:
        will = f"start again; to keep them instead, {KEEP}"
        will = "count as finished if their data stay the same (any_code)" if any_code else will
        lines.append(f"{_runs_are(finished)} finished by other code and will {will}")
    return "; ".join(lines)


def _runs_are(count: int) -> str:
    return "1 training run is" if count == 1 else f"{count} training runs are"


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
