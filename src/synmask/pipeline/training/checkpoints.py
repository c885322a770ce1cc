"""The checkpoints of a run: which training they belong to, whether they are intact, where to resume.

`run`/checkpoints contains:
    last.pt, previous.pt: the state to resume from.
    epoch<N>.pt: the models to average, or the best model.
    average<K>.pt (the mean of the last K models) or best.pt: remains when the others are removed.
    stamp.json: identifies the training.
    finished.json: the summary, once all epochs are done.

Checkpoints of another training are moved to checkpoints.stale-1 (-2, …) and removed after the new training's
first epoch.
"""

import contextlib
import glob
import hashlib
import itertools
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from synmask.pipeline.files import UserError, machine_fault, read_json, renamed, sha256, write_json, writing

if TYPE_CHECKING:
    from synmask.pipeline.training.stage import Stage

# The history of the finished epochs (one row each) → the epochs whose models must exist.
Models = Callable[[Any], Iterable[int]]


def average_file(last: int) -> str:
    """The file name of the average of the last `last` epochs, beside their checkpoints."""
    return f"average{last}.pt"


def digest(paths: Iterable[Path]) -> str:
    """A checksum of the names and contents of files, independent of their order."""
    lines = sorted(f"{path.name} {sha256(path)}" for path in paths)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def claim(folder: Path, stamp: dict[str, Any], restart: bool) -> None:
    """Keep the checkpoints in `folder` if they belong to the training that `stamp` identifies.

    With `restart`, other checkpoints are moved aside. Checkpoints of this training that were moved aside
    before come back, unless another training has saved an epoch since.

    Raises:
        UserError: there are checkpoints of another training, and `restart` is false.
    """
    if changed := _changed(folder, stamp):
        if not any(folder.glob("*.pt")):
            shutil.rmtree(folder)
        else:
            _move_aside(folder, f"{folder}: from other {' and '.join(changed)}", restart)
    for stale in _stale(folder):
        if not folder.exists() and not _changed(stale, stamp):
            os.rename(stale, folder)
            print(f"{folder}: these were in {stale.name}; resuming from them", file=sys.stderr)
    write_json(folder / "stamp.json", stamp)
    for left in folder.glob(".*.tmp"):  # left by a process that was killed while writing
        left.unlink()


def _changed(folder: Path, stamp: dict[str, Any]) -> list[str]:
    """The parts of `stamp` in which the checkpoints in `folder` differ; none without such a folder."""
    there = None
    with contextlib.suppress(UserError):
        there = read_json(folder / "stamp.json")
    if not isinstance(there, dict):
        there = {}
    return [key for key in stamp if there.get(key) != stamp[key]] if folder.exists() else []


def _stale(folder: Path) -> list[Path]:
    return sorted(folder.parent.glob(f"{glob.escape(folder.name)}.stale-*"))


def _move_aside(folder: Path, why: str, restart: bool) -> None:
    if not restart:
        raise UserError(f"{why}; to start again, give --restart, which moves them aside")
    number = next(n for n in itertools.count(1) if not Path(f"{folder}.stale-{n}").exists())
    stale = Path(f"{folder}.stale-{number}")
    os.rename(folder, stale)
    print(f"{why}; starting again, they lie in {stale.name} until an epoch is done", file=sys.stderr)


def drop_stale(folder: Path) -> None:
    """Remove the checkpoints that `claim` moved aside."""
    for stale in _stale(folder):
        shutil.rmtree(stale, ignore_errors=True)


def save(path: Path, value: Any) -> None:
    """Save a value with torch; the file is written whole or not at all."""
    with writing(path, "wb") as handle:
        try:
            torch.save(value, handle)
        except RuntimeError as error:  # torch's error when a file cannot be written, such as on a full disk
            raise error.__context__ if isinstance(error.__context__, OSError) else error from None


def save_last(folder: Path, state: dict[str, Any]) -> None:
    """Write last.pt; the last.pt before it becomes previous.pt."""
    save(folder / "next.pt", state)
    with contextlib.suppress(FileNotFoundError):
        os.replace(folder / "last.pt", folder / "previous.pt")
    os.replace(folder / "next.pt", folder / "last.pt")


def load(path: Path) -> dict[str, Any]:
    """Load a file of `save` onto the CPU. No code in the file is run (`weights_only`).

    Raises:
        UserError: the file is missing or damaged.
    """
    if not path.exists():
        raise UserError(f"{path}: no such file")
    problem = fault(path)
    if problem is None:
        try:
            value = torch.load(path, map_location="cpu", weights_only=True)
            if isinstance(value, dict):
                return value
            problem = f"it holds a {type(value).__name__}"
        except Exception as error:  # torch rejects some names in the file only here
            if machine_fault(error):
                raise
            problem = type(error).__name__
    raise UserError(f"{path}: damaged checkpoint ({problem}); delete it and rerun")


def fault(path: Path) -> str | None:
    """The fault of a file of `save`; None if it is intact.

    torch writes checksums (CRC-32, like every zip file) but does not compare them.
    """
    with open(path, "rb") as handle:
        try:
            with zipfile.ZipFile(handle) as archive:
                if broken := archive.testzip():
                    return f"wrong checksum of {broken}"
            torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except MemoryError:
            raise
        except Exception as error:  # a damaged file can raise anything
            return f"{type(error).__name__}"
    return None


def drop(folder: Path, keep: Collection[int]) -> None:
    """Remove the models of all epochs except `keep`."""
    for path in folder.glob("epoch*.pt"):
        if path.name not in {f"epoch{epoch}.pt" for epoch in keep}:
            path.unlink()


def latest(folder: Path, models: Models) -> Path | None:
    """The checkpoint to resume from; None to start from scratch. Prints a line if it is not the last one.

    A checkpoint is usable only if the models that are kept from earlier epochs exist, too.
    """
    for path in (folder / "last.pt", folder / "previous.pt"):
        if not path.exists():
            continue
        if (problem := fault(path) or _gap(folder, path, models)) is None:
            return path
        print(f"{path}: unusable ({problem}); using the one before", file=sys.stderr)
        path.unlink()  # else it would become previous.pt
    return None


def _gap(folder: Path, checkpoint: Path, models: Models) -> str | None:
    """Why a checkpoint is unusable: it is none, or a model that is kept from an earlier epoch is missing."""
    state = torch.load(checkpoint, map_location="cpu", weights_only=True, mmap=True)
    try:
        history = state["extra_state"]["history"]
    except (KeyError, TypeError, IndexError):
        return "it is no checkpoint of a training"
    for epoch in models(history):
        if not _whole(folder / f"epoch{epoch}.pt"):
            return f"epoch{epoch}.pt, a model before it, is missing or damaged"
    return None


def finished(folder: Path, stage: "Stage") -> dict[str, Any] | None:
    """The `summary` and `history` of a finished training; None if it is not finished.

    It is finished when all epochs are done and either its models or `stage.final`, made from them, exist.

    Raises:
        UserError: finished.json is no record of such a training.
    """
    path = folder / "finished.json"
    if path.exists():
        done = read_json(path)
        if not _is_record(done, stage):
            raise UserError(f"{path}: not the record of a training; delete it and rerun")
        wanted = stage.models(done["history"])
        if all(_whole(folder / f"epoch{epoch}.pt") for epoch in wanted) or _whole(folder / stage.final):
            return done
        path.unlink()
        names = ", ".join(f"epoch{epoch}.pt" for epoch in wanted)
        print(f"{folder}: one of {names} is missing or damaged", file=sys.stderr)
    return None


def _is_record(done: Any, stage: "Stage") -> bool:
    """Whether this is a summary, and a row for each epoch with a number under each head."""
    if not isinstance(done, dict) or done.keys() != {"summary", "history"}:
        return False
    summary, history = done["summary"], done["history"]
    if not isinstance(summary, dict) or not isinstance(history, list) or len(history) != stage.epochs:
        return False
    return all(
        isinstance(row, dict)
        and row.keys() == {*stage.heads}
        and row["epoch"] == epoch
        and all(
            isinstance(value, int | float) or (head, value) == ("mlm_loss", "") for head, value in row.items()
        )
        for epoch, row in enumerate(history, 1)
    )


def _whole(path: Path) -> bool:
    return path.exists() and fault(path) is None


def retire(folder: Path, model: Path, final: str) -> None:
    """Remove the checkpoints in `folder`, but keep the `model` that was made from them, as `final`."""
    with renamed(folder / final) as temporary:
        temporary.unlink(missing_ok=True)
        try:
            os.link(model, temporary)  # takes no space
        except OSError:  # the file system has no hard links
            shutil.copyfile(model, temporary)
    for path in folder.glob("*.pt"):
        if path.name != final:
            path.unlink()
