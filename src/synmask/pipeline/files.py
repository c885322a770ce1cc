"""Reading and writing: strict UTF-8 in, whole files or none out, errors a user can act on."""

import csv
import errno
import glob
import gzip
import hashlib
import io
import json
import os
import re
import reprlib
import shutil
import socket
import stat
import sys
import time
import traceback
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

STDIN = Path("/dev/stdin")
STDIN_NAMES = frozenset({str(STDIN), "/dev/fd/0", "/proc/self/fd/0"})
BUFFER = 1 << 16  # bytes
RETRY_SECONDS = 0.001  # seconds between two tries of a descriptor that does not block
ENDLESS = ((1, 5), (1, 8), (1, 9))  # Linux' numbers of these devices
# Messages of torch, the loader of shared libraries and the system
NO_MEMORY = re.compile(
    r"out of memory|can(no|')t allocate memory|std::bad_alloc|failed to map segment|can't start new thread",
    re.I,
)
# Module → what it was doing, for errors that name no file
ACTIONS = {
    "multiprocessing.synchronize": "making a lock between processes, in /dev/shm",
    "multiprocessing.shared_memory": "making memory that processes share, in /dev/shm",
    "multiprocessing": "starting a process, or speaking to it",
    "concurrent": "starting a process, or speaking to it",
    "subprocess": "starting another program",
    "tempfile": "making a temporary file (in TMPDIR, or else /tmp)",
    "socket": "opening a connection",
    "select": "waiting for another program",
}


class UserError(Exception):
    """A fault the user can fix. Its text is one line: what is wrong, where, and what to do.

    The command line prints it without a traceback and exits with 1. No URL in it has a password.
    """

    def __init__(self, text: object = "") -> None:
        super().__init__(without_passwords(str(text)))


def without_passwords(text: str) -> str:
    """The text with user names, passwords and queries masked in its URLs.

    >>> without_passwords("cannot fetch https://me:secret@example.org/a.tgz?key=1 (no answer)")
    'cannot fetch https://***@example.org/a.tgz?*** (no answer)'
    """
    text = re.sub(r"(\w://)([^\s/@]*:\S*|[^\s/@]*)@", r"\1***@", text)  # a password may have slashes
    return re.sub(r"(\w://[^\s?#]*\?)[^\s;,)']+", r"\1***", text)


class TryAgain(UserError):
    """A temporary fault, such as a training that was stopped; the same command works later.

    The command line exits with `EXIT_CODE`, which `sysexits.h` calls EX_TEMPFAIL.
    """

    EXIT_CODE = 75


def machine_fault(error: BaseException) -> str | None:
    """One line for a fault of the machine (disk space, permission, memory); None for any other error."""
    if text := _out_of_memory(error):
        where = "on the GPU" if "CUDA" in text else "for this job"
        named = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
        return (
            f"{named}not enough memory {where}; give it more (resources.mem_mb, another machine), or make "
            "batches smaller (training.batch.tokens, decoding.max_tokens)"
        )
    if isinstance(error, IsADirectoryError) and error.filename:
        return f"{error.filename}: a folder; give the name of a file"
    if isinstance(error, OSError):
        return f"{error.filename or _done_at(error)}: {error.strerror or error}"
    return None


def _done_at(error: OSError) -> str:
    """The operation in which the system raised an error without a file name."""
    places = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    for module in reversed(places):
        for name, what in ACTIONS.items():
            if module == name or module.startswith(f"{name}."):
                return what
    ours = [module for module in places if module.startswith("synmask.")]
    return f"reading or writing in {ours[-1]}" if ours else "reading or writing"


def _out_of_memory(error: BaseException | None) -> str | None:
    """The text of the error, or of one of its causes, if it reports a lack of memory."""
    while error is not None:
        text = str(error)
        if isinstance(error, MemoryError) or NO_MEMORY.search(text):
            return text or "memory"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return None


@contextmanager
def renamed(path: Path) -> Iterator[Path]:
    """A temporary name beside `path` that becomes `path` at the end; see `all_renamed`."""
    with all_renamed([path]) as (temporary,):
        yield temporary


@contextmanager
def all_renamed(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Temporary files beside `paths`; at the end, once all bytes are on the disk, they replace `paths`.

    If the block raises, the temporary files are removed and `paths` stay as they were. Temporary files that
    killed processes of this machine left behind are removed. For a link, its target is written. A device or a
    pipe is not replaced but written into.

    Raises:
        OSError: it names the path, also if the disk is full.
        UserError: a path is given twice.
    """
    if len({path.resolve() for path in paths}) < len(paths):
        raise UserError(f"{', '.join(map(str, paths))}: one file for two outputs; give each its own")
    host = re.sub(r"[^\w.-]", "_", socket.gethostname())
    places = {}  # temporary name → path
    try:
        with named_errors(*paths):
            for path in paths:
                places[_beside(path, host)] = path
            yield list(places)
            written = {new: path for new, path in places.items() if new != path}
            for temporary in written:
                with named_reads(temporary), open(temporary, "rb") as handle:
                    os.fsync(handle.fileno())  # some file systems report a full disk only here
            for temporary, path in written.items():
                os.replace(temporary, path.resolve())
    except OSError as error:
        if (path := places.get(Path(str(error.filename)))) is not None:
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        for temporary, path in places.items():
            if temporary != path:
                temporary.unlink(missing_ok=True)


def _beside(path: Path, host: str) -> Path:
    """A name beside `path`, or beside its target if it is a link; `path` itself if it is no regular file."""
    if path.exists() and not path.is_file():
        return path
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    start = f".{path.name}.{host}-"
    for left in path.parent.glob(f"{glob.escape(start)}*.tmp"):
        process = left.name.removeprefix(start).removesuffix(".tmp")
        if process.isdecimal() and not _alive(int(process)):  # else it is of the machine HOST-something
            left.unlink(missing_ok=True)
    return path.with_name(f"{start}{os.getpid()}.tmp")


@contextmanager
def named_errors(*paths: Path) -> Iterator[None]:
    """Make write errors in the block name `paths`: those of write(2) and NumPy name no file."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
        if error.filename is None and (full or re.search(r"requested and \d+ written", str(error))):
            error.filename = ", ".join(map(str, paths))
        raise


@contextmanager
def named_reads(path: str | Path) -> Iterator[None]:
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
        with named_reads(self.path):
            while (count := operation(data)) is None:
                time.sleep(RETRY_SECONDS)
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
    with named_reads(path):
        # Bad content makes readers seek before the file's start (EINVAL) or raise errors of their own
        if isinstance(behind, OSError) and behind.errno not in (None, errno.EINVAL):
            raise behind from None
        sha256(path)


def _alive(process: int) -> bool:
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

    If the block raises, `output` keeps the files that it had. Files that a killed process left are removed.

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


@contextmanager
def writing(path: str | Path, mode: str = "w") -> Iterator[IO]:
    """Open a temporary file beside `path` for writing; it becomes `path` at the end; see `all_writing`."""
    with all_writing([path], mode) as (handle,):
        yield handle


@contextmanager
def all_writing(paths: Sequence[str | Path], mode: str = "w") -> Iterator[list[IO]]:
    """Open temporary files beside `paths`; at the end all of these are there or none, as `all_renamed` says.

    Text is UTF-8 with "\\n" line ends; a name ending in .gz is compressed (without a time stamp, so
    that the same text gives the same bytes); `mode` is "w" or "wb".
    """
    paths = [Path(path) for path in paths]
    with all_renamed(paths) as temporaries, ExitStack() as stack:
        yield [
            stack.enter_context(_opened(temporary, mode, packed=path.suffix == ".gz"))
            for path, temporary in zip(paths, temporaries, strict=True)
        ]


@contextmanager
def _opened(path: Path, mode: str, packed: bool) -> Iterator[IO]:
    with ExitStack() as stack:
        handle: IO = stack.enter_context(io.BufferedWriter(PatientFile(path, "wb")))
        if packed:
            handle = stack.enter_context(gzip.GzipFile("", "wb", fileobj=handle, mtime=0))
        if "b" not in mode:
            handle = stack.enter_context(io.TextIOWrapper(handle, encoding="utf-8", newline="\n"))
        yield handle


def check_regular(path: str | Path) -> None:
    """Check that a file of our own, if it is there, is no pipe or device, which might be read for ever.

    Raises:
        UserError: it is one.
    """
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise UserError(f"{path}: a pipe or a device, not a file; remove it, and run again")


def endless(path: str | Path) -> bool:
    """Whether it is a device that can be read for ever: /dev/zero, /dev/random, /dev/urandom."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):  # no such file; no file's name
        return False
    return stat.S_ISCHR(found.st_mode) and (os.major(found.st_rdev), os.minor(found.st_rdev)) in ENDLESS


def read_lines(path: str | Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file (.gz or plain) without their line ends; only "\\n" ends a line.

    A byte order mark at the start and a carriage return before the line end are dropped. Standard input
    (`STDIN`) is read from its descriptor: a socket cannot be opened by name.

    Raises:
        UserError: the file is missing, is not UTF-8 (named with its line), or is a damaged .gz.
    """
    path = Path(path)
    try:
        with unpacked(path) as handle:
            for number, line in enumerate(handle, start=1):
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                yield text.removesuffix("\n").removesuffix("\r")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        what = f"not UTF-8 ({error.reason}); convert the file first"
        raise UserError(f"{path}, line {number}: {what}") from None


def line_key(text: str) -> str:
    """A key for a text, the same before and after the text was a line of a file.

    `read_lines` drops a byte order mark at a file's start and a carriage return at a line's end.
    """
    return text.lstrip("\ufeff").rstrip("\r")


@contextmanager
def unpacked(path: Path) -> Iterator[IO[bytes]]:
    try:
        with _open_to_unpack(path) as handle:
            if path.suffix == ".gz":
                with gzip.GzipFile(fileobj=handle) as unpacked:
                    yield unpacked
            else:
                yield handle
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path}: damaged gzip file ({error}); fetch it again") from None


def _open_to_unpack(path: Path) -> io.BufferedReader:
    if str(path) not in STDIN_NAMES:
        return open_to_read(path)
    if sys.stdin is None:  # otherwise another file may have descriptor 0
        raise UserError("standard input is closed; give a file, or a pipe")
    return io.BufferedReader(PatientFile(0, "rb", "standard input"), BUFFER)


def read_pairs(source: str | Path, target: str | Path) -> Iterator[tuple[str, str]]:
    """Yield the line pairs of two aligned files.

    Raises:
        UserError: a file is missing, damaged or not UTF-8, or, after the last pair, they differ in length.
    """
    counts = [0, 0]
    for pair in zip_longest(read_lines(source), read_lines(target)):
        for side, line in enumerate(pair):
            counts[side] += line is not None
        if counts[0] == counts[1]:
            yield pair
    if counts[0] != counts[1]:
        raise UserError(
            f"{source} has {counts[0]} lines, {target} has {counts[1]}: "
            "line n of one must translate line n of the other"
        )


def read_aligned(paths: Sequence[str | Path], advice: str) -> list[list[str]]:
    """The lines of files that must have equally many.

    Raises:
        UserError: a file is missing, damaged or not UTF-8; or they differ in length or are empty: then the
            message ends with `advice`.
    """
    sides = [list(read_lines(path)) for path in paths]
    if len({*map(len, sides)}) > 1 or not sides[0]:
        other = next((n for n, side in enumerate(sides) if len(side) != len(sides[0])), None)
        if other is None:
            raise UserError(f"{paths[0]}: empty; {advice}")
        count, against = len(sides[0]), len(sides[other])
        counts = f"{count:,} {'line' if count == 1 else 'lines'} against {against:,}"
        raise UserError(f"{paths[0]}, {paths[other]}: {counts}; {advice}")
    return sides


def write_lines(path: str | Path, lines: Iterable[str]) -> None:
    """Write `lines`, each with a line end, as a whole or not at all."""
    write_all_lines({Path(path): lines})


def write_all_lines(files: Mapping[Path, Iterable[str]]) -> None:
    """Write the lines of each file, each with a line end; in the end all the files are there, or none."""
    with all_writing([*files]) as handles:
        for handle, lines in zip(handles, files.values(), strict=True):
            handle.writelines(f"{line}\n" for line in lines)


def write_json(path: str | Path, value: Any) -> None:
    """Write `value` as `json_text` has it, as a whole or not at all."""
    with writing(path) as handle:
        handle.write(json_text(value))


def json_text(value: Any) -> str:
    """`value` as indented JSON with sorted keys and a line end."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """`rows` as the text of a CSV file with "\\n" line ends."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def read_json(path: str | Path) -> Any:
    """The value in a JSON file.

    Raises:
        UserError: no such file, or not JSON.
    """
    try:
        with open_to_read(path) as handle:
            return json.loads(handle.read().decode("utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except ValueError as error:
        raise UserError(f"{path}: not JSON ({error}); delete it and rerun") from None


def read_object(path: str | Path) -> dict[str, Any]:
    """The keys and values in a JSON file.

    Raises:
        UserError: no such file, or it holds something else.
    """
    values = read_json(path)
    if not isinstance(values, dict):
        raise UserError(
            f"{path}: expected keys and values, found {reprlib.repr(values)}; delete it and rerun"
        )
    return values


def read_csv(path: str | Path, columns: Iterable[str], advice: str, **kwargs: Any) -> "pd.DataFrame":
    """Read a CSV file that has these columns; `kwargs`: for pandas.

    Raises:
        UserError: no such file, or of another kind; the message ends with `advice`.
    """
    import pandas as pd  # imported here: it takes 0.4 s, and most steps read no table

    try:
        with named_reads(path):
            rows = pd.read_csv(path, **kwargs)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; {advice}") from None
    except ValueError as error:
        raise UserError(f"{path}: not a table ({error}); {advice}") from None
    if lacking := [column for column in columns if column not in rows]:
        raise UserError(f"{path}: no column {', '.join(lacking)}; {advice}")
    return rows


def sha256(path: str | Path) -> str:
    """The sha256 of a file's bytes, in hexadecimal."""
    with open_to_read(path) as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def text_sha256(path: Path) -> str:
    """`sha256` of the text that was written: unpacked, if the name ends in .gz."""
    with unpacked(path) as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
