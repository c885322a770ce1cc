"""The checkpoints of a run's trainings: where they lie, whether they are intact, where to resume.

`run`/checkpoints/`stamps.folder_name(stamp)` belongs to the training with this stamp (see stamps.py); to
resume is to find this folder. It contains:
    last.pt, previous.pt: the state to resume from.
    epoch<N>.pt: the models to average, or the best model.
    average<K>.pt (the mean of the last K models) or best.pt: remains when the others are removed.
    history.csv: the finished epochs; stamp.json: the stamp. Other modules read both.
    finished.pt: summary and history, once all epochs are done.

To train a finished training again makes another folder, NAME-2, NAME-3, …, of which the last one counts.
Folders of the run's other trainings stay until a training finishes.

No unreadable file is removed: a damaged one is renamed (last.pt.damaged-1, -2, …) and kept; a disk,
network or memory that fails is an error.
"""

import contextlib
import hashlib
import itertools
import math
import os
import re
import shutil
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from synmask.pipeline import stamps
from synmask.pipeline.disk import replacing, sha256
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_object, write_json
from synmask.pipeline.record import IDENTIFYING
from synmask.pipeline.stamps import FINISHED, LAST, Stamp
from synmask.pipeline.training.torch_files import (
    checkpoint_damage,
    load_checkpoint,
    read_checkpoint,
    save_checkpoint,
)

if TYPE_CHECKING:
    from synmask.pipeline.arguments import TrainingOptions
    from synmask.pipeline.training.stage import Stage


def average_file(last: int) -> str:
    """The file name of the average of the last `last` epochs, beside their checkpoints."""
    return f"average{last}.pt"


def files_checksum(paths: Iterable[Path]) -> str:
    """A checksum of the names and contents of files, independent of their order."""
    lines = sorted(f"{path.name} {sha256(path)}" for path in paths)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def open_folder(stage: "Stage", run: Path, stamp: Stamp, options: "TrainingOptions") -> Path:
    """The folder of the training that `stamp` identifies; it is made if there is none.

    With the option `again`, a finished training gets another folder. With `any_code`, checkpoints of other
    code go on if they have more updates than those of this code.
    """
    root, name = run / "checkpoints", stamps.folder_name(stamp)
    _sort_old_layout(root)
    begun = stamps.checkpoint_folders(run)
    numbered = re.compile(rf"{name}(-\d+)?")
    same = sorted(
        (training.folder for training in begun if numbered.fullmatch(training.folder.name)), key=_number
    )
    for folder in same[-1:]:
        write_json(folder / "stamp.json", stamp)  # it may be damaged; the folder's name says the same
    if options.any_code:
        others = [
            training.folder
            for training in begun
            if training.folder not in same and training.differs(stamp) == ["code"]
        ]
        furthest = max([*same[-1:], *others], key=lambda training: _updates(training, stage), default=None)
        if furthest in others:
            same.append(root / _next_name(name, same))
            os.rename(furthest, same[-1])
            print(f"{run}: going on with checkpoints that other code made", file=sys.stderr)
    if not same or (options.again and read_finished(same[-1], stage)):
        _announce(run, begun, stamp)
        same.append(root / _next_name(name, same))
    folder = same[-1]
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "stamp.json", stamp)
    for left in folder.glob(".*.tmp"):  # left by a process that was killed while writing
        left.unlink()
    return folder


def _number(folder: Path) -> int:
    return int(folder.name.partition("-")[2] or 1)


def _next_name(name: str, same: Sequence[Path]) -> str:
    return f"{name}-{_number(same[-1]) + 1}" if same else name


def _updates(folder: Path, stage: "Stage") -> float:
    """The number of updates of the training in this folder."""
    if read_finished(folder, stage):
        return math.inf
    state = latest_checkpoint(folder, stage)
    attempts = _read_meta(state).get("attempts") if state else None
    return attempts[-1]["updates"] if attempts else 0


def _announce(run: Path, others: Iterable[stamps.CheckpointFolder], stamp: Stamp) -> None:
    """Empty the run's log, and print which trainings the new one will replace."""
    with contextlib.suppress(OSError):  # there is none, or stderr is closed
        if os.path.samestat(os.fstat(2), os.stat(run / "train.log")):  # each attempt appends its stderr
            os.ftruncate(2, 0)
    for other in others:
        changed = " and ".join(other.differs(stamp))
        print(
            f"{run}: a training {f'with other {changed}' if changed else 'before'} has done {other.epochs} "
            f"epochs; {other.folder} stays until this one is finished",
            file=sys.stderr,
        )


def _sort_old_layout(root: Path) -> None:
    """Move checkpoints that lie in `root` itself, as of older versions, into the folder of their training."""
    try:
        folder = root / stamps.folder_name(read_object(root / "stamp.json"))
    except UserError:  # there are none, or their training is unknown
        return
    folder.mkdir(exist_ok=True)
    files = [path for path in root.iterdir() if path.is_file() and path.name != "stamp.json"]
    for path in (*files, root / "stamp.json"):  # last the stamp, which says that not all are moved
        os.rename(path, folder / path.name)


def trained_folder(run: Path) -> Path:
    """The folder of the checkpoints from which the outputs of a run were made.

    Raises:
        UserError: the run has no train.json.
    """
    name = read_object(run / "train.json").get("checkpoints", "")  # older versions had no folders
    return run / "checkpoints" / Path(str(name)).name


def remove_other_trainings(folder: Path) -> None:
    """Remove the checkpoints of the run's other trainings."""
    for other in folder.parent.iterdir():
        if other.is_dir() and other != folder:
            shutil.rmtree(other, ignore_errors=True)


def _rename_faulty(path: Path, fault: str, reason: str) -> None:
    """Give a file the first free name of PATH.FAULT-1, -2, …, and print why."""
    numbered = (path.with_name(f"{path.name}.{fault}-{number}") for number in itertools.count(1))
    kept = next(name for name in numbered if not name.exists())
    os.rename(path, kept)
    print(f"{path}: {fault} ({reason}); it is kept as {kept.name}", file=sys.stderr)


def save_last(folder: Path, state: dict[str, Any]) -> None:
    """Write last.pt; the last.pt before it becomes previous.pt."""
    save_checkpoint(folder / "next.pt", state)
    with contextlib.suppress(FileNotFoundError):
        os.replace(folder / LAST, folder / "previous.pt")
    os.replace(folder / "next.pt", folder / LAST)


def save_epoch(folder: Path, epoch: int, model: dict[str, torch.Tensor], stamp: Stamp) -> None:
    """Save the model of an epoch, with the stamp of its training."""
    save_checkpoint(folder / f"epoch{epoch}.pt", {"model": model, "stamp": stamp})


def load_epoch_model(path: Path, advice: str = "move it away and rerun") -> dict[str, torch.Tensor]:
    """The model of an epoch, in the folder of its training.

    Raises:
        UserError: the file is missing, damaged, or of another training than stamp.json beside it.
    """
    saved = load_checkpoint(path, advice)
    if not _of_this_training(path.parent, saved):
        raise UserError(f"{path}: a model of another training; move it away and rerun to train again")
    return saved["model"]


def load_final_model(
    path: Path, training: str | None, advice: str = "rerun to train again"
) -> dict[str, torch.Tensor]:
    """The model that `keep_final_only` kept.

    Args:
        training: the `training_digest` that it must carry, if it carries one.

    Raises:
        UserError: the file is missing, damaged, or of another training.
    """
    advice = f"move it away, then {advice}"
    saved = load_checkpoint(path, advice)
    if training != saved.get("training", training):
        raise UserError(f"{path}: the model of another training; {advice}")
    return saved["model"]


def _check_intact(path: Path) -> bool:
    """Whether a file of `save_checkpoint` is there and intact; a damaged one gets another name."""
    if not path.exists():
        return False
    if problem := checkpoint_damage(path):
        _rename_faulty(path, "damaged", problem)
    return not problem


def remove_epochs(folder: Path, keep: Collection[int]) -> None:
    """Remove the models of all epochs except `keep`."""
    for path in folder.glob("epoch*.pt"):
        if path.name not in {f"epoch{epoch}.pt" for epoch in keep}:
            path.unlink()


def latest_checkpoint(folder: Path, stage: "Stage") -> Path | None:
    """The checkpoint to resume from; None to start from scratch. Prints a line if it is not the last one.

    A checkpoint is usable only if the models that are kept from earlier epochs exist, too.
    """
    for path in (folder / LAST, folder / "previous.pt"):
        if _check_intact(path):
            if (problem := _why_unusable(folder, path, stage)) is None:
                return path
            _rename_faulty(path, "unusable", problem)  # else it would become previous.pt
    return None


def _why_unusable(folder: Path, checkpoint: Path, stage: "Stage") -> str | None:
    """Why a checkpoint is unusable: it is none, or a model that is kept from an earlier epoch is missing."""
    outline = _read_meta(checkpoint)
    if "extra_state" in outline:
        return "an older version of synmask saved it, by fairseq's trainer"
    history = outline.get("history")
    if not isinstance(history, list):
        return "it is no checkpoint of a training"
    if not _of_this_training(folder, outline):
        return "it is of another training"
    for epoch in stage.kept_epochs(history):
        if not _check_intact(folder / f"epoch{epoch}.pt"):
            return f"epoch{epoch}.pt, a model before it, is missing or damaged"
    return None


def _of_this_training(folder: Path, saved: Mapping[str, Any]) -> bool:
    """Whether a state or a record was saved by the training of stamp.json beside it, whatever its code."""
    own, saved_stamp = (stamp or {} for stamp in (read_object(folder / "stamp.json"), saved.get("stamp")))
    return all(own.get(part) == saved_stamp.get(part) for part in IDENTIFYING)


def _read_meta(checkpoint: Path) -> dict[str, Any]:
    """A state to resume from without the values of its weights; empty if the file is none."""
    state = read_checkpoint(checkpoint, "meta")
    return state if isinstance(state, dict) else {}


def read_finished(folder: Path, stage: "Stage") -> dict[str, Any] | None:
    """The `summary` and `history` of a finished training; None if it is not.

    It is finished when all epochs are done and its models exist, or `stage.final_model`, made from them.
    """
    path = folder / FINISHED
    if not _check_intact(path):
        return None
    done = read_checkpoint(path)
    if "stamp" in done and not _of_this_training(folder, done):  # records of older versions have none
        _rename_faulty(path, "unusable", "it is of another training")
        return None
    epochs = stage.kept_epochs(done["history"])
    if all(_check_intact(folder / f"epoch{epoch}.pt") for epoch in epochs) or _check_intact(
        folder / stage.final_model
    ):
        return done
    path.unlink()
    names = ", ".join(f"epoch{epoch}.pt" for epoch in epochs)
    print(f"{folder}: one of {names} is missing or damaged", file=sys.stderr)
    return None


def keep_final_only(folder: Path, model: Path, final: str) -> None:
    """Remove the checkpoints in `folder`, but keep the `model` made from them as `final`, too.

    It is a hard link where the file system has them, since models are large. All files here are written each
    time and renamed, so that one of the two stays when the other is made again or removed.
    """
    final_file = folder / final
    if not (final_file.exists() and final_file.samefile(model)):
        with replacing([final_file]) as (temporary,):
            try:
                os.link(model.resolve(), temporary)
            except OSError:  # such as another file system, or one without links
                shutil.copyfile(model, temporary)
    for path in folder.glob("*.pt"):
        if path.name not in (final, FINISHED):
            path.unlink()
