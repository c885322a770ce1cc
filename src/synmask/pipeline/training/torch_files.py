"""Files of torch: written whole or not at all, and read without running the code in them."""

import zipfile
from pathlib import Path
from typing import Any

import torch

from synmask.pipeline.disk import open_to_read, raise_unreadable
from synmask.pipeline.errors import UserError, machine_fault
from synmask.pipeline.files import writing


def save_checkpoint(path: Path, value: Any) -> None:
    """Save a value with torch; the file is written whole or not at all."""
    with writing(path, "wb") as handle:
        try:
            torch.save(value, handle)
        except RuntimeError as error:  # torch's error when a file cannot be written, such as on a full disk
            raise error.__context__ if isinstance(error.__context__, OSError) else error from None


def load_checkpoint(path: Path, advice: str = "move it away and rerun") -> dict[str, Any]:
    """Load a file of `save_checkpoint` onto the CPU. No code in the file is run (`weights_only`).

    Args:
        advice: for a damaged file.
    Raises:
        UserError: the file is missing or damaged.
    """
    if not path.is_file():
        fault = "a folder; give the model file in it" if path.is_dir() else "no such file"
        raise UserError(f"{path}: {fault}")
    value, problem = _read_checked(path, "cpu")
    if problem is None and not isinstance(value, dict):
        problem = f"it holds a {type(value).__name__}"
    if problem:
        raise UserError(f"{path}: damaged checkpoint ({problem}); {advice}")
    return value


def read_checkpoint(path: Path, device: str = "cpu") -> Any:
    """Load an intact file of `save_checkpoint` onto a device; "meta" leaves the values of tensors out."""
    with open_to_read(path) as handle:  # torch's own reader hides the cause of a failure
        return torch.load(handle, map_location=device, weights_only=True)


def checkpoint_damage(path: Path) -> str | None:
    """The damage in a file of `save_checkpoint`; None if it is intact.

    torch writes checksums (CRC-32, like every zip file) but does not compare them.

    Raises:
        OSError, MemoryError, RuntimeError: it could not be read, which says nothing about the file.
    """
    return _read_checked(path, "meta")[1]  # all but the tensors' values


def _read_checked(path: Path, device: str) -> tuple[Any, str | None]:
    """The value in an intact file, and None; or None, and the damage."""
    value, damage = _read_once(path, device)
    if damage:  # zipfile takes some failures to read for damage
        return _read_once(path, device)
    return value, None


def _read_once(path: Path, device: str) -> tuple[Any, str | None]:
    with open_to_read(path) as handle:
        try:
            with zipfile.ZipFile(handle) as archive:
                if broken := archive.testzip():
                    return None, f"wrong checksum of {broken}"
            handle.seek(0)
            return torch.load(handle, map_location=device, weights_only=True), None
        except Exception as error:  # a damaged file can raise anything
            raise_unreadable(path, error)
            if machine_fault(error) and not isinstance(error, OSError):
                raise
            return None, type(error).__name__
