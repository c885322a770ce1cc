"""Files that several processes may fetch at once: each writes its own part, and the first one is recorded."""

import errno
import fcntl
import glob
import os
import re
import secrets
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from synmask.pipeline.corpora.archive import recorded


@contextmanager
def written_alone(output: Path, resumed: bool) -> Iterator[BinaryIO]:
    """A file beside `output` that only this process writes: what a killed one left, or a new one.

    A lock (flock) tells whether a file that another process of this machine began is still written. No link
    is followed. The file is removed at the end if it is still there, unless a later call may resume it.

    Args:
        resumed: keep what is there, and what has been written if the block raises.
    """
    host = re.sub(r"[^\w.-]", "_", socket.gethostname())
    start = f".{output.name}.{host}-"
    found = [*filter(None, map(_left_over, output.parent.glob(f"{glob.escape(start)}*.part")))]
    part = found[0] if found else None
    for other in found[1:]:
        with other:
            os.unlink(other.name)
    while part is None:
        part = _locked(output.with_name(f"{start}{secrets.token_hex(4)}.part"), os.O_CREAT | os.O_EXCL)
    if not resumed:
        part.truncate(0)
    try:
        yield part
    finally:
        with suppress(OSError):  # a full disk has been told
            part.close()
        with suppress(FileNotFoundError):  # it has its own name now
            if not (resumed and os.path.getsize(part.name)):
                os.unlink(part.name)


def _left_over(path: Path) -> BinaryIO | None:
    """Open and lock a file of this user's that no process writes; None if it is not one."""
    try:
        if (part := _locked(path, 0)) is None:
            return None
        status = os.fstat(part.fileno())
        own = stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_uid == os.geteuid()
        if own and os.path.samestat(status, os.lstat(path)):  # else its writer has just finished
            return part
        part.close()
    except OSError:  # a link, another user's, or just gone
        pass
    return None


def _locked(path: Path, flags: int) -> BinaryIO | None:
    """Open a file for reading and writing; None if another process has its lock.

    A file system without locks cannot tell: then a new file counts as locked, and an old one as another's.
    """
    safe = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | flags
    part = open(path, "r+b", opener=lambda name, _: os.open(name, safe, 0o666))  # noqa: SIM115
    try:
        fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if isinstance(error, BlockingIOError) or not flags:
            part.close()
            return None
    return part


def recorded_first(record: Path, checksum: str, name: str) -> str:
    """Record a file's checksum, as sha256sum -c reads it, unless one is there → the one there then."""
    temporary = record.with_name(f".{record.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "x", encoding="utf-8") as handle:
            handle.write(f"{checksum}  {name}\n")
            handle.flush()
            os.fsync(handle.fileno())
        os.link(temporary, record)  # which fails if it is there
    except FileExistsError:
        return recorded(record)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):  # a file system without links
            raise
        os.replace(temporary, record)
    finally:
        temporary.unlink(missing_ok=True)
    return checksum
