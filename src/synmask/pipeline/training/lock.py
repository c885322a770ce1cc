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

from synmask.pipeline.disk import naming_read_errors, naming_write_errors
from synmask.pipeline.errors import TryAgain, UserError

HEARTBEAT_SECONDS = 20.0  # seconds between two signs of life
STALE_SECONDS = 90.0  # seconds without a sign, after which an owner on another machine counts as dead


@contextlib.contextmanager
def run_lock(run: Path) -> Iterator[Callable[[], None]]:
    """Hold `run`/lock while the block runs. Yields a function to call before writing: it checks the lock.

    File locks (flock) decide where they work across machines. They do not work on every shared file system,
    so the owner also renews the file's time stamp, and a process that finds the lock of another machine waits
    for a new time stamp. Time stamps are compared only with each other, never with a clock.

    Raises:
        TryAgain: another process works on the run (the message names it).
        UserError: the lock is another user's file, without permission to write it; from the function: the
            run's folder is gone.
    """
    path = run / "lock"
    run.mkdir(parents=True, exist_ok=True)
    myself = _own_record()
    handle = _acquire(path, myself)
    done = threading.Event()
    beat = threading.Thread(target=_heartbeat, args=(handle, done), daemon=True)
    beat.start()
    try:
        yield partial(_check_lock, path, myself)
    finally:
        done.set()
        beat.join()
        with contextlib.suppress(OSError):
            if path.read_text() == myself:
                path.unlink()
        os.close(handle)


def _check_lock(path: Path, myself: str) -> None:
    """A suspended machine counts as dead after a while; when it resumes, it must not write."""
    try:
        with naming_read_errors(path):
            name = path.read_text(errors="replace")
    except FileNotFoundError:
        raise UserError(
            f"{path}: it, or its folder, was removed or moved while this run used it; move the folder back, "
            "if it was moved, and run it again"
        ) from None
    if name != myself:
        raise _lock_error(path)


def _acquire(path: Path, myself: str) -> int:
    while True:
        handle = _open(path)
        try:
            works, owner = _try_flock(handle, path), _read_owner(path)
            certain = works and owner.get("boot", _boot()) == _boot()
            if owner:
                if not certain:
                    _wait_for_heartbeat(handle, path, owner)
                print(f"{path}: {_owner_name(owner)} is gone; taking over", file=sys.stderr)
            if _is_same_file(handle, path):  # otherwise its owner has finished and removed it
                _write_owner(handle, path, myself)
                if not certain:  # another process may have found it, too
                    time.sleep(STALE_SECONDS / 50)
                    _check_lock(path, myself)
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except PermissionError:
        if not path.exists():
            raise
        raise UserError(
            f"{path} belongs to user {path.stat().st_uid} ({_owner_name(_read_owner(path))}), and you may "
            "not write it; let that user finish the run or remove the file; in a group, set `umask 002`"
        ) from None


def _write_owner(handle: int, path: Path, myself: str) -> None:
    """Write the owner's name. On a full disk, remove the lock: it would stop others for nothing."""
    try:
        with naming_write_errors(path):
            os.ftruncate(handle, 0)
            os.pwrite(handle, myself.encode(), 0)
            os.fsync(handle)  # for other machines
    except OSError:
        path.unlink(missing_ok=True)
        raise


def _try_flock(handle: int, path: Path) -> bool:
    """Lock the file → whether the file system supports it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _lock_error(path) from None
    except OSError:
        return False
    return True


def _is_same_file(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _wait_for_heartbeat(handle: int, path: Path, owner: dict[str, str]) -> None:
    """Wait for a sign of life of the lock's owner; raise a `TryAgain` if there is one."""
    print(f"{path}: left by {_owner_name(owner)}; watching it for {STALE_SECONDS:.0f} s", file=sys.stderr)
    before, end = os.fstat(handle).st_mtime_ns, time.monotonic() + STALE_SECONDS
    while time.monotonic() < end and _is_same_file(handle, path):
        time.sleep(STALE_SECONDS / 100)
        # opening it refreshes what the server reports
        with contextlib.suppress(FileNotFoundError), open(path):
            if path.stat().st_mtime_ns != before:
                raise _lock_error(path)


def _lock_error(path: Path) -> TryAgain:
    owner = _read_owner(path)
    cancel = f", or end it: scancel {owner['job']}" if owner.get("job") else ""
    return TryAgain(f"{path.parent}: {_owner_name(owner)} works on this run; wait for it to finish{cancel}")


def _owner_name(owner: dict[str, str]) -> str:
    return owner.get("name", "another process")


def _read_owner(path: Path) -> dict[str, str]:
    """The owner recorded in the lock; empty if it ended before it wrote its name."""
    try:
        owner = json.loads(path.read_text(errors="replace"))
    except (OSError, ValueError):
        return {}
    return owner if isinstance(owner, dict) else {}


def _own_record() -> str:
    job, started = os.environ.get("SLURM_JOB_ID", ""), time.strftime("%Y-%m-%d %H:%M:%S")
    name = f"process {os.getpid()} on {socket.gethostname()}, started {started}"
    return json.dumps({"name": f"SLURM job {job}, {name}" if job else name, "job": job, "boot": _boot()})


def _boot() -> str:
    """An identifier of this machine since its last start."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:  # not Linux
        return socket.gethostname()


def _heartbeat(handle: int, done: threading.Event) -> None:
    while not done.wait(HEARTBEAT_SECONDS):
        with contextlib.suppress(OSError):
            os.utime(handle)
