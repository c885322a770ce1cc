"""The checkpoints of a run: whose they are, whether they are whole, which one to go on from.

In `run`/checkpoints lie last.pt and previous.pt, to go on from; epoch<N>.pt, the models to average, or the
best one; average<K>.pt, the mean of the last K of them, or best.pt, which stays when the others are removed;
stamp.json, what training they come from; finished.json, its summary, once all epochs are done.

Those of another training are moved to checkpoints.stale-1 (-2, …) and go when the new one has saved an epoch.
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

from synmask.files import UserError, machine_fault, read_json, renamed, sha256, write_json, writing

if TYPE_CHECKING:
    from synmask.training.stage import Stage

# The epochs (their history, a row each) that are done → those of them whose models must be there.
Models = Callable[[Any], Iterable[int]]


def average_file(last: int) -> str:
    """What the average of the last `last` epochs is called beside their checkpoints."""
    return f"average{last}.pt"


def digest(paths: Iterable[Path]) -> str:
    """A checksum of the names and the content of files, whatever their order."""
    lines = sorted(f"{path.name} {sha256(path)}" for path in paths)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def claim(folder: Path, stamp: dict[str, Any], restart: bool) -> None:
    """Keep the checkpoints in `folder` if they are of the training that `stamp` tells.

    Others are moved aside, if `restart` allows it. If the training's own were moved aside before, and it has
    saved no epoch since, they come back.

    Raises:
        UserError: there are checkpoints of another training, and no `restart`.
    """
    if changed := _changed(folder, stamp):
        if not any(folder.glob("*.pt")):
            shutil.rmtree(folder)
        else:
            _move_aside(folder, f"{folder}: from other {' and '.join(changed)}", restart)
    for stale in _stale(folder):
        if not folder.exists() and not _changed(stale, stamp):
            os.rename(stale, folder)
            print(f"{folder}: these were in {stale.name}; going on with them", file=sys.stderr)
    write_json(folder / "stamp.json", stamp)
    for left in folder.glob(".*.tmp"):  # of a process that was killed while it wrote
        left.unlink()


def _changed(folder: Path, stamp: dict[str, Any]) -> list[str]:
    """In what the training whose checkpoints lie in `folder`, if it exists, differs from that of `stamp`."""
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
    """Write what torch can save, whole or not at all."""
    with writing(path, "wb") as handle:
        try:
            torch.save(value, handle)
        except RuntimeError as error:  # torch's complaint of a file that could not be written, such as: full
            raise error.__context__ if isinstance(error.__context__, OSError) else error from None


def save_last(folder: Path, state: dict[str, Any]) -> None:
    """Write last.pt, after what had that name has become previous.pt."""
    save(folder / "next.pt", state)
    with contextlib.suppress(FileNotFoundError):
        os.replace(folder / "last.pt", folder / "previous.pt")
    os.replace(folder / "next.pt", folder / "last.pt")


def load(path: Path) -> dict[str, Any]:
    """What `save` wrote, on the CPU. No code in the file is run (`weights_only`).

    Raises:
        UserError: no such file, or damaged.
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
        except Exception as error:  # names in the file that torch minds here alone
            if machine_fault(error):
                raise
            problem = type(error).__name__
    raise UserError(f"{path}: damaged checkpoint ({problem}); delete it and rerun")


def fault(path: Path) -> str | None:
    """What is wrong with a file of `save`, None if it is whole.

    torch itself does not compare the checksums that it writes (CRC-32, as every zip file has them).
    """
    with open(path, "rb") as handle:
        try:
            with zipfile.ZipFile(handle) as archive:
                if broken := archive.testzip():
                    return f"wrong checksum of {broken}"
            torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except MemoryError:
            raise
        except Exception as error:  # what a damaged file makes of these two is not limited
            return f"{type(error).__name__}"
    return None


def drop(folder: Path, keep: Collection[int]) -> None:
    """Remove the models of all epochs but those of `keep`."""
    for path in folder.glob("epoch*.pt"):
        if path.name not in {f"epoch{epoch}.pt" for epoch in keep}:
            path.unlink()


def latest(folder: Path, models: Models) -> Path | None:
    """The checkpoint to go on from, None to start from nothing; says so when it is not the last one.

    A checkpoint is of use only if the models that training has made before it and wants are there, too.
    """
    for path in (folder / "last.pt", folder / "previous.pt"):
        if not path.exists():
            continue
        if (problem := fault(path) or _gap(folder, path, models)) is None:
            return path
        print(f"{path}: of no use ({problem}); going back to the one before", file=sys.stderr)
        path.unlink()  # so that it does not become previous.pt
    return None


def _gap(folder: Path, checkpoint: Path, models: Models) -> str | None:
    """Which model that training has made before `checkpoint` and that is wanted is not there."""
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
    """`summary` and `history` of a training that has nothing left to do, None if it has.

    It is done when all epochs are, and its models are there, or the file `stage.final` that was made of them.

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
    """Remove what training left, but keep the `model` that was made of it, as `final` in its folder."""
    with renamed(folder / final) as temporary:
        temporary.unlink(missing_ok=True)
        try:
            os.link(model, temporary)  # takes no space
        except OSError:  # the file system has no hard links
            shutil.copyfile(model, temporary)
    for path in folder.glob("*.pt"):
        if path.name != final:
            path.unlink()
