"""One process per run: a lock that names its owner and is released when the owner dies."""

import contextlib
import fcntl
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from synmask.pipeline.files import TryAgain, UserError, named_errors, named_reads

BEAT = 20.0  # seconds between two signs of life
PATIENCE = 90.0  # seconds without a sign, after which an owner on another machine counts as dead
NAMELESS = 2.0  # the same for a lock without a name, which its owner writes at once


@contextlib.contextmanager
def locked(run: Path) -> Iterator[Callable[[], None]]:
    """Hold `run`/lock while the block runs. Yields a function to call before writing: it checks the lock.

    File locks (flock) decide where they work across machines. They do not work on every shared file system,
    so the owner also renews the file's time stamp, and a process that finds the lock of another machine waits
    for a new time stamp. Time stamps are compared only with each other, never with a clock.

    Raises:
        TryAgain: another process works on the run (the message names it).
        UserError: the lock belongs to another user, and only that user may write it; from the function: the
            run's folder is gone.
    """
    path = run / "lock"
    run.mkdir(parents=True, exist_ok=True)
    myself = _myself()
    handle = _acquire(path, myself)
    done = threading.Event()
    beat = threading.Thread(target=_beat, args=(handle, done), daemon=True)
    beat.start()
    try:
        yield partial(_check, path, myself)
    finally:
        done.set()
        beat.join()
        with contextlib.suppress(OSError):
            if _owner(path) == myself:
                path.unlink(missing_ok=True)
        os.close(handle)


def _check(path: Path, myself: dict[str, str]) -> None:
    """A machine that was suspended for long counts as dead; when it resumes, it must not write."""
    try:
        owner = _owner(path)
    except FileNotFoundError:
        raise UserError(
            f"{path}: it, or its folder, was removed or moved while this run used it; move the folder back, "
            "if it was moved, and run it again"
        ) from None
    if owner != myself:
        raise _taken(path)


def _acquire(path: Path, myself: dict[str, str]) -> int:
    while True:
        try:
            handle, new = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666), True
        except FileExistsError:
            with contextlib.suppress(FileNotFoundError):  # its owner has just finished
                handle, new = _open(path), False
        try:
            works = _flock(handle, path)
            watched = not new and _take_over(handle, path, works)
            if _is(handle, path):  # otherwise its owner has finished and removed it
                _sign(handle, path, myself)
                if watched:  # another process may have watched it, too
                    time.sleep(PATIENCE / 50)
                    _check(path, myself)
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR)
    except PermissionError:
        raise UserError(
            f"{path} belongs to user {path.stat().st_uid} ({_name(_owner_if_any(path))}), who alone may "
            "write it; have them finish the run or remove the file, and set `umask 002` for a group"
        ) from None


def _sign(handle: int, path: Path, myself: dict[str, str]) -> None:
    """Write the owner's name. On a full disk, remove the lock: it would stop others without need."""
    try:
        with named_errors(path):
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps(myself).encode(), 0)
            os.fsync(handle)  # for other machines
    except OSError:
        path.unlink(missing_ok=True)
        raise


def _flock(handle: int, path: Path) -> bool:
    """Lock the file; False if the file system does not support it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _taken(path) from None
    except OSError:
        return False
    return True


def _is(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _take_over(handle: int, path: Path, works: bool) -> bool:
    """Make sure that the lock's owner is dead, and print so; True if the file had to be watched."""
    owner = _owner_if_any(path)
    watch = not (works and owner.get("boot") == _boot())
    if watch:
        patience = PATIENCE if owner else NAMELESS
        print(f"{path}: left by {_name(owner)}; watching it for {patience:.0f} s", file=sys.stderr)
        before, end = os.fstat(handle).st_mtime_ns, time.monotonic() + patience
        while time.monotonic() < end and _is(handle, path):
            time.sleep(patience / 100)
            with contextlib.suppress(FileNotFoundError), open(path):  # opening it asks the server again
                if path.stat().st_mtime_ns != before:
                    raise _taken(path)
    print(f"{path}: {_name(owner)} is gone; taking over", file=sys.stderr)
    return watch


def _taken(path: Path) -> TryAgain:
    owner = _owner_if_any(path)
    cancel = f", or end it: scancel {owner['job']}" if owner.get("job") else ""
    return TryAgain(f"{path.parent}: {_name(owner)} works on this run; wait for it to finish{cancel}")


def _name(owner: dict[str, str]) -> str:
    if not owner:
        return "another process"
    job = f"SLURM job {owner['job']}, " if owner.get("job") else ""
    return f"{job}process {owner['process']} on {owner['host']}, started {owner['started']}"


def _owner(path: Path) -> dict[str, str]:
    """Who the lock says that it belongs to; nothing if its owner did not come to write its name."""
    with named_reads(path):
        text = path.read_text(encoding="utf-8", errors="replace")
    try:
        owner = json.loads(text)
    except ValueError:
        return {}
    return owner if isinstance(owner, dict) and {*_myself()} <= {*owner} else {}


def _owner_if_any(path: Path) -> dict[str, str]:
    try:
        return _owner(path)
    except OSError:
        return {}


def _myself() -> dict[str, str]:
    return {
        "host": socket.gethostname(),
        "boot": _boot(),
        "process": str(os.getpid()),
        "job": os.environ.get("SLURM_JOB_ID", ""),
        "started": time.strftime("%Y-%m-%d %H:%M:%S"),
    }


def _boot() -> str:
    """An identifier of this machine since its last start."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:  # not Linux
        return socket.gethostname()


def _beat(handle: int, done: threading.Event) -> None:
    while not done.wait(BEAT):
        with contextlib.suppress(OSError):
            os.utime(handle)
