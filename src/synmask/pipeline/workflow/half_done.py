"""Trainings that other code has half done: one line names them before anything starts."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from synmask.pipeline import stamps
from synmask.pipeline.workflow.terminal import some


def line(jobs: Iterable[tuple[Path, Callable[[], stamps.Stamp]]], any_code: bool) -> str:
    """One line on trainings that could continue what other code began, and how; empty if there are none.

    Args:
        jobs: each training's folder, and its stamp without the data, which need not be there yet; it is
            computed only if something has begun in the folder.
        any_code: the key of the configuration: whether they go on.
    """
    places: dict[int, list[str]] = {}  # epochs to train → epochs done
    for run, stamp in jobs:
        if begun := _begun(run):
            wanted = stamp()
            same_code = max((one.epochs for one in begun if not one.differs(wanted)), default=-1)
            others = (one.epochs for one in begun if one.half_done and one.differs(wanted) == ["code"])
            if (done := max(others, default=-1)) > same_code:
                places.setdefault(wanted["settings"]["training"]["max_epochs"], []).append(str(done or "?"))
    count = sum(map(len, places.values()))
    if not count:
        return ""
    where = "; ".join(f"epoch {some(done)} of {epochs}" for epochs, done in places.items())
    what = "1 training run is" if count == 1 else f"{count} training runs are"
    if any_code:
        return f"{what} half done by other code ({where}) and will continue (any_code)"
    return (
        f"{what} half done by other code ({where}) and will start again; to continue them instead, add "
        "--config any_code=true. Nothing of the old is deleted before the new is finished"
    )


def next_epoch(run: Path, stamp: Callable[[], stamps.Stamp]) -> int | None:
    """The epoch at which a training resumes; None if it would start.

    Args:
        stamp: its stamp without the data; it is computed only if something is half done in the folder.
    """
    half_done = [training for training in _begun(run) if training.half_done]
    return max((training.epochs + 1 for training in half_done if not training.differs(stamp())), default=None)


def _begun(run: Path) -> list[stamps.Training]:
    """The trainings in a folder; none if it cannot be read, which the training itself will report."""
    with suppress(OSError):
        return stamps.of_run(run)
    return []
