"""The trainings that have checkpoints in a run's folder: what each depends on, and how far it has come.

A training's stamp holds all that its result depends on: "settings", "seed", "data" (a checksum) and "code" (a
digest). Its checkpoints lie in the folder `run`/checkpoints/`folder_name(stamp)`, with the stamp in
stamp.json and the finished epochs in history.csv. Before there were such folders, they lay in
`run`/checkpoints itself.
"""

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from synmask.pipeline.errors import UserError
from synmask.pipeline.files import json_text, read_object

Stamp = Mapping[str, Any]
NAME_DIGITS = 12
LAST, FINISHED = "last.pt", "finished.pt"  # the state to resume from; the record of all epochs


def folder_name(stamp: Stamp) -> str:
    """The name of the folder of a training's checkpoints."""
    return hashlib.sha256(json_text(stamp).encode()).hexdigest()[:NAME_DIGITS]


@dataclass(frozen=True)
class CheckpointFolder:
    """A training that has begun; `stamp` is empty if stamp.json is missing or damaged."""

    folder: Path
    stamp: Stamp

    def differs(self, stamp: Stamp) -> list[str]:
        """The parts of `stamp` in which this training is another one."""
        return [part for part in stamp if self.stamp.get(part) != stamp[part]]

    @property
    def half_done(self) -> bool:
        """Whether it can be resumed, and is not finished."""
        return (self.folder / LAST).exists() and not self.finished

    @property
    def finished(self) -> bool:
        return (self.folder / FINISHED).exists()

    @property
    def saved_by_fairseq(self) -> bool:
        """Whether fairseq's trainer saved its state, as in version 0.2.0: it cannot be resumed."""
        with suppress(OSError, BadZipFile), ZipFile(self.folder / LAST) as archive:
            pickles = [name for name in archive.namelist() if name.endswith("/data.pkl")]
            return any(b"extra_state" in archive.read(name) for name in pickles)
        return False

    @property
    def epochs(self) -> int:
        """How many epochs are done; 0 if no history.csv says so."""
        try:
            return max(0, (self.folder / "history.csv").read_bytes().count(b"\n") - 1)
        except FileNotFoundError:
            return 0


def checkpoint_folders(run: Path) -> list[CheckpointFolder]:
    """The trainings that have begun in a run's folder, by their names.

    Raises:
        OSError: the folder cannot be read, which does not mean that it is empty.
    """
    root = run / "checkpoints"
    try:
        names = sorted(os.listdir(root))
    except FileNotFoundError:
        return []
    folders = [root / name for name in names if (root / name).is_dir()]
    if "stamp.json" in names:
        folders.append(root)
    return [CheckpointFolder(folder, _stamp(folder / "stamp.json")) for folder in folders]


def _stamp(path: Path) -> Stamp:
    try:
        return read_object(path)
    except UserError:  # missing or damaged
        return {}
