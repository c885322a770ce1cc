"""Bytes on disks: whole files or none, and errors that name the file. It does not read what the bytes say."""

import errno
import glob
import gzip
import hashlib
import io
import os
import re
import shutil
import socket
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from synmask.pipeline.errors import UserError

STDIN = Path("/dev/stdin")
STDIN_NAMES = frozenset({str(STDIN), "/dev/fd/0", "/proc/self/fd/0"})
BUFFER = 1 << 16  # bytes
DESCRIPTOR_RETRY_SECONDS = 0.001  # seconds between two tries of a descriptor that does not block


@contextmanager
def replacing(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Temporary files beside `paths`; at the end, once all bytes are on the disk, they replace `paths`.

    If the block raises, the temporary files and the folders made for them are removed, and `paths` stay as
    they were. Temporary files that killed processes of this machine left behind are removed. For a link, its
    target is written. A device or a pipe is not replaced but written into.

    Raises:
        OSError: it names the path, also if the disk is full.
        UserError: a path is given twice.
    """
    if len({path.resolve() for path in paths}) < len(paths):
        raise UserError(f"{', '.join(map(str, paths))}: one file for two outputs; give each its own")
    host = re.sub(r"[^\w.-]", "_", socket.gethostname())
    places = {}  # temporary name → path
    made = {folder for path in paths for folder in path.resolve().parents if not os.path.exists(folder)}
    try:
        with naming_write_errors(*paths):
            for path in paths:
                places[_beside(path, host)] = path
            yield list(places)
            written = {new: path for new, path in places.items() if new != path}
            for temporary in written:
                with naming_read_errors(temporary), open(temporary, "rb") as handle:
                    os.fsync(handle.fileno())  # some file systems report a full disk only here
            for temporary, path in written.items():
                os.replace(temporary, path.resolve())
    except OSError as error:
        if (path := places.get(Path(str(error.filename)))) is not None:
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        for temporary, path in places.items():
            with suppress(OSError):  # also of a file that is not there, if the file system is read-only
                if temporary != path:
                    temporary.unlink()
        for folder in sorted(made, reverse=True):  # each after those in it
            with suppress(OSError):  # something is in it, or nothing was made
                folder.rmdir()


def _beside(path: Path, host: str) -> Path:
    """A name beside `path`, or beside its target if it is a link; `path` itself if it is no regular file."""
    if path.exists() and not path.is_file():
        return path
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    start = f".{path.name}.{host}-"
    for left in path.parent.glob(f"{glob.escape(start)}*.tmp"):
        process = left.name.removeprefix(start).removesuffix(".tmp")
        if process.isdecimal() and not _is_alive(int(process)):  # else it is of the machine HOST-something
            left.unlink(missing_ok=True)
    return path.with_name(f"{start}{os.getpid()}.tmp")


@contextmanager
def naming_write_errors(*paths: Path) -> Iterator[None]:
    """Make write errors in the block name `paths`: those of write(2) and NumPy name no file."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
        if error.filename is None and (full or re.search(r"requested and \d+ written", str(error))):
            error.filename = ", ".join(map(str, paths))
        raise


@contextmanager
def naming_read_errors(path: str | Path) -> Iterator[None]:
    """Make read errors in the block name `path`: those of read(2) name no file."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise


class PatientFile(io.FileIO):
    """A file that its errors name, and that waits where its descriptor does not block.

    Python's own files take a read that would block (EAGAIN) for the file's end, and drop what a write that
    would block was given.
    """

    def __init__(self, file: str | Path | int, mode: str, name: str | None = None) -> None:
        is_descriptor = isinstance(file, int)
        super().__init__(file if is_descriptor else str(file), mode, closefd=not is_descriptor)
        self.path = name or str(file)

    def readinto(self, buffer: Any) -> int:
        return self._wait(super().readinto, buffer)

    def write(self, data: Any) -> int:
        return self._wait(super().write, data)

    def readall(self) -> bytes:
        parts, buffer = [], bytearray(BUFFER)
        while count := self.readinto(buffer):
            parts.append(buffer[:count])
        return b"".join(parts)

    def _wait(self, operation: Callable[[Any], int | None], data: Any) -> int:
        with naming_read_errors(self.path):
            while (count := operation(data)) is None:
                time.sleep(DESCRIPTOR_RETRY_SECONDS)
        return count


def open_to_read(path: str | Path) -> io.BufferedReader:
    """Open a file's bytes as a `PatientFile`."""
    return io.BufferedReader(PatientFile(path, "rb"), BUFFER)


def raise_unreadable(path: str | Path, error: Exception) -> None:
    """Raise the read failure behind a reader's `error`; return if the content of `path` is at fault.

    A disk, a network or a permission that fails says nothing about a file's content. Readers may hide such a
    failure, so all bytes are read once more.

    Raises:
        OSError: it names the path.
    """
    behind = error if isinstance(error, OSError) else error.__context__
    with naming_read_errors(path):
        # Bad content makes readers seek before the file's start (EINVAL) or raise errors of their own
        if isinstance(behind, OSError) and behind.errno not in (None, errno.EINVAL):
            raise behind from None
        sha256(path)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is another user's
        pass
    return True


@contextmanager
def whole_folder(output: Path, name: str) -> Iterator[Path]:
    """A temporary folder in `output`; at the end its files move to the same places there.

    If the block raises, `output` keeps the files that it had; without any, it is removed. Files that a killed
    process left are removed.

    Args:
        name: of what is written; two processes must not write the same into one folder.
    """
    temporary = output / f".{name}.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        for path in sorted(temporary.rglob("*")):
            if path.is_file():
                place = output / path.relative_to(temporary)
                place.parent.mkdir(parents=True, exist_ok=True)
                os.replace(path, place)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        with suppress(OSError):  # it has files
            output.rmdir()


@contextmanager
def open_unpacked(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, .gz or plain, or standard input, to read its unpacked bytes."""
    try:
        with _open_to_unpack(path) as handle:
            yield gzip.GzipFile(fileobj=handle) if path.suffix == ".gz" else handle
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path}: damaged gzip file ({error}); fetch it again") from None


def _open_to_unpack(path: Path) -> io.BufferedReader:
    if str(path) not in STDIN_NAMES:
        return open_to_read(path)
    if sys.stdin is None:  # otherwise another file may have descriptor 0
        raise UserError("standard input is closed; give a file, or a pipe")
    return io.BufferedReader(PatientFile(0, "rb", "standard input"), BUFFER)


def size_of(paths: Iterable[str | Path]) -> tuple[int, int] | None:
    """The lines and bytes of texts (.gz or plain), unpacked; None if one cannot be read."""
    lines = size = 0
    try:
        for path in map(Path, paths):
            with open_unpacked(path) as handle:
                for line in handle:
                    lines, size = lines + 1, size + len(line)
    except (OSError, UserError):
        return None
    return lines, size


def sha256(path: str | Path) -> str:
    """The sha256 of a file's bytes, in hexadecimal."""
    with open_to_read(path) as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def text_sha256(path: Path) -> str:
    """`sha256` of the text that was written: unpacked, if the name ends in .gz."""
    with open_unpacked(path) as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
