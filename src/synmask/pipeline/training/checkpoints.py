"""The checkpoints of a run: which training they belong to, whether they are intact, where to resume.

`run`/checkpoints contains:
    last.pt, previous.pt: the state to resume from.
    epoch<N>.pt: the models to average, or the best model.
    average<K>.pt (the mean of the last K models) or best.pt: remains when the others are removed.
    stamp.json: identifies the training.
    finished.pt: summary and history, once all epochs are done, and the `delivered` model's name, once the
        run's outputs are there.

A training that is asked for again after that starts over. The checkpoints before it, as those of another
training, are moved to checkpoints.stale-1 (-2, …) and removed after the new training's first epoch.

No unreadable file is removed: a damaged one is renamed (last.pt.damaged-1, -2, …) and kept; a disk,
network or memory that fails is an error.
"""

import contextlib
import glob
import hashlib
import itertools
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from synmask.pipeline.files import (
    UserError,
    machine_fault,
    named_reads,
    raise_unreadable,
    read_object,
    renamed,
    sha256,
    write_json,
    writing,
)
from synmask.pipeline.owner import IDENTIFYING

if TYPE_CHECKING:
    from synmask.pipeline.training.stage import Stage

# The history of the finished epochs (one row each) → the epochs whose models must exist.
Models = Callable[[Any], Iterable[int]]
FINISHED = "finished.pt"


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
        UserError: there are checkpoints of another training, and `restart` is false; or no file says whose
            they are.
    """
    if not folder.exists():
        _empty_log(folder)
    elif changed := _changed(folder, stamp):
        if not _models(folder):
            shutil.rmtree(folder)
        elif restart:
            _move_aside(folder, f"from other {' and '.join(changed)}")
        else:
            raise UserError(
                f"{folder}: from other {' and '.join(changed)}; to start again, give --restart, which moves "
                "them aside"
            )
    for stale in _stale(folder):
        with contextlib.suppress(UserError):  # it is not known whose they are
            if not folder.exists() and not _changed(stale, stamp):
                os.rename(stale, folder)
                print(f"{folder}: these were in {stale.name}; resuming from them", file=sys.stderr)
                deliver(folder, None)  # they come back because somebody asks for them
    write_json(folder / "stamp.json", stamp)
    for left in folder.glob(".*.tmp"):  # left by a process that was killed while writing
        left.unlink()


def start_again(folder: Path, stamp: dict[str, Any]) -> None:
    """Move the checkpoints of a training aside, which is to start over."""
    _move_aside(folder, "of a training that is asked for again")
    write_json(folder / "stamp.json", stamp)


def _move_aside(folder: Path, why: str) -> None:
    stale = _renamed(folder, "stale")
    _empty_log(folder)
    again = f"starting again, they lie in {stale.name} until an epoch is done"
    print(f"{folder}: {why}; {again}", file=sys.stderr)


def _empty_log(folder: Path) -> None:
    """A training's log, to which each attempt appends its stderr, ends with the training."""
    with contextlib.suppress(OSError):  # there is none, or stderr is closed
        if os.path.samestat(os.fstat(2), os.stat(folder.parent / "train.log")):
            os.ftruncate(2, 0)


def _changed(folder: Path, stamp: dict[str, Any]) -> list[str]:
    """The parts of `stamp` in which the checkpoints in `folder` differ."""
    there = _stamp(folder)
    return [key for key in stamp if there.get(key) != stamp[key]]


def _stamp(folder: Path) -> dict[str, Any]:
    """The stamp of the training of the checkpoints in `folder`; each state to resume from says it, too."""
    path = folder / "stamp.json"
    try:
        return read_object(path)
    except UserError:  # missing or damaged
        if path.exists():
            _keep_damaged(path, "not the record of a training's settings")
        for state in (folder / "last.pt", folder / "previous.pt"):
            if _intact(state) and (stamp := _outline(state).get("stamp")):
                return stamp
    if _models(folder):
        raise UserError(
            f"{path}: missing or damaged, so it is not known of which training these checkpoints are; put it "
            "back, or move the folder away to train from scratch"
        )
    return {}


def _models(folder: Path) -> list[str]:
    """The names of checkpoints in `folder`, damaged ones among them.

    Not by `glob`, which takes a folder that cannot be read for an empty one.
    """
    return [name for name in os.listdir(folder) if ".pt" in name]


def _stale(folder: Path) -> list[Path]:
    return sorted(folder.parent.glob(f"{glob.escape(folder.name)}.stale-*"))


def _renamed(path: Path, why: str) -> Path:
    """Give a file or folder the first free name of PATH.WHY-1, -2, …"""
    numbered = (path.with_name(f"{path.name}.{why}-{number}") for number in itertools.count(1))
    free = next(name for name in numbered if not name.exists())
    os.rename(path, free)
    return free


def _keep_damaged(path: Path, problem: str) -> None:
    kept = _renamed(path, "damaged")
    print(f"{path}: damaged ({problem}); it is kept as {kept.name}", file=sys.stderr)


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


def load(path: Path, advice: str = "move it away and rerun") -> dict[str, Any]:
    """Load a file of `save` onto the CPU. No code in the file is run (`weights_only`).

    Args:
        advice: for a damaged file.
    Raises:
        UserError: the file is missing or damaged.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    problem = fault(path)
    if problem is None:
        try:
            value = _read(path)
            if isinstance(value, dict):
                return value
            problem = f"it holds a {type(value).__name__}"
        except Exception as error:  # the tensors are read only here
            if machine_fault(error):
                raise
            raise_unreadable(path, error)
            problem = type(error).__name__
    raise UserError(f"{path}: damaged checkpoint ({problem}); {advice}")


def save_epoch(folder: Path, epoch: int, model: dict[str, torch.Tensor], stamp: dict[str, Any]) -> None:
    """Save the model of an epoch, with the stamp of its training."""
    save(folder / f"epoch{epoch}.pt", {"model": model, "stamp": stamp})


def epoch_model(path: Path, advice: str = "move it away and rerun") -> dict[str, torch.Tensor]:
    """The model of an epoch, in the folder of its training.

    Raises:
        UserError: the file is missing, damaged, or of another training than stamp.json beside it.
    """
    saved = load(path, advice)
    if "stamp" not in saved or saved["stamp"] != read_object(path.with_name("stamp.json")):
        raise UserError(f"{path}: a model of another training; move it away and rerun to train again")
    return saved["model"]


def _read(path: Path, device: str = "cpu") -> Any:
    with named_reads(path), open(path, "rb") as handle:  # torch's own reader hides the cause of a failure
        return torch.load(handle, map_location=device, weights_only=True)


def fault(path: Path) -> str | None:
    """The damage in a file of `save`; None if it is intact.

    torch writes checksums (CRC-32, like every zip file) but does not compare them.

    Raises:
        OSError, MemoryError, RuntimeError: it could not be read, which says nothing about the file.
    """
    return _damage(path) and _damage(path)  # twice: zipfile takes some failures to read for damage


def _damage(path: Path) -> str | None:
    with named_reads(path), open(path, "rb") as handle:
        try:
            with zipfile.ZipFile(handle) as archive:
                if broken := archive.testzip():
                    return f"wrong checksum of {broken}"
            handle.seek(0)
            torch.load(handle, map_location="meta", weights_only=True)  # all but the tensors' values
        except Exception as error:  # a damaged file can raise anything
            raise_unreadable(path, error)
            if machine_fault(error) and not isinstance(error, OSError):
                raise
            return type(error).__name__
    return None


def _intact(path: Path) -> bool:
    """Whether a file of `save` is there and intact; a damaged one gets another name."""
    if not path.exists():
        return False
    if problem := fault(path):
        _keep_damaged(path, problem)
    return not problem


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
        if _intact(path):
            if (problem := _gap(folder, path, models)) is None:
                return path
            kept = _renamed(path, "unusable")  # else it would become previous.pt
            print(f"{path}: unusable ({problem}); it is kept as {kept.name}", file=sys.stderr)
    return None


def _gap(folder: Path, checkpoint: Path, models: Models) -> str | None:
    """Why a checkpoint is unusable: it is none, or a model that is kept from an earlier epoch is missing."""
    outline = _outline(checkpoint)
    history = outline.get("history")
    if not isinstance(history, list):
        return "it is no checkpoint of a training"
    if not _of_this_training(folder, outline):
        return "it is of another training"
    for epoch in models(history):
        if not _intact(folder / f"epoch{epoch}.pt"):
            return f"epoch{epoch}.pt, a model before it, is missing or damaged"
    return None


def _of_this_training(folder: Path, saved: Mapping[str, Any]) -> bool:
    """Whether a state or a record was saved by the training of stamp.json beside it, whatever its code."""
    here, there = (stamp or {} for stamp in (read_object(folder / "stamp.json"), saved.get("stamp")))
    return all(here.get(part) == there.get(part) for part in IDENTIFYING)


def _outline(checkpoint: Path) -> dict[str, Any]:
    """The parts of a state to resume from besides weights: "history", "stamp", …; none if it is no state."""
    state = _read(checkpoint, "meta")
    extra = state.get("extra_state") if isinstance(state, dict) else None
    return extra if isinstance(extra, dict) else {}


def finished(folder: Path, stage: "Stage") -> dict[str, Any] | None:
    """The `summary` and `history` of a finished training, and which model was `delivered`; None if it is not.

    It is finished when all epochs are done and either its models or `stage.final`, made from them, exist.
    """
    path = folder / FINISHED
    if not _intact(path):
        return None
    done = _read(path)
    if "stamp" in done and not _of_this_training(folder, done):  # records of older versions have none
        kept = _renamed(path, "unusable")
        print(f"{path}: of another training; it is kept as {kept.name}", file=sys.stderr)
        return None
    wanted = stage.models(done["history"])
    if all(_intact(folder / f"epoch{epoch}.pt") for epoch in wanted) or _intact(folder / stage.final):
        return done
    path.unlink()
    names = ", ".join(f"epoch{epoch}.pt" for epoch in wanted)
    print(f"{folder}: one of {names} is missing or damaged", file=sys.stderr)
    return None


def deliver(folder: Path, model: str | None) -> None:
    """Note in the record of a finished training that its outputs are there, `model` among them.

    Asked for again after that, the training starts over, unless another model of it is needed.
    """
    if (folder / FINISHED).exists():
        save(folder / FINISHED, load(folder / FINISHED) | {"delivered": model})


def retire(folder: Path, model: Path, final: str) -> None:
    """Remove the checkpoints in `folder`, but keep a copy of the `model` made from them, as `final`.

    It is no link: what happens to one of the two files must not happen to the other.
    """
    with renamed(folder / final) as temporary:
        shutil.copyfile(model, temporary)
    for path in folder.glob("*.pt"):
        if path.name not in (final, FINISHED):
            path.unlink()
