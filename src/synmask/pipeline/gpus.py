"""GPUs of one machine, shared by the jobs that Snakemake starts there side by side.

Snakemake counts GPUs (`snakemake --resources gpu=4`) but does not say which job has which. A job that needs
some takes a lock on each; the kernel releases it when the job ends, in whatever way.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import takewhile
from pathlib import Path

from filelock import FileLock, Timeout

from synmask.pipeline.errors import UserError

POLL_SECONDS = 1.0  # seconds between two looks for free GPUs


def visible_gpus() -> list[str]:
    """The GPUs this process may use: those that CUDA takes from CUDA_VISIBLE_DEVICES, or else all numbers."""
    existing = _gpu_numbers()
    if "CUDA_VISIBLE_DEVICES" not in os.environ:
        return existing
    from torch.cuda import _parse_visible_devices  # imported here: it takes a second

    chosen = map(str, _parse_visible_devices())
    return [*takewhile(lambda gpu: not existing or gpu in existing or not gpu.isdecimal(), chosen)]


def _gpu_numbers() -> list[str]:
    """The numbers of this machine's GPUs; none if the driver does not list them."""
    query = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        return []


@contextmanager
def lease(count: int) -> Iterator[list[str]]:
    """Lock `count` of the visible GPUs for the block; it and its child processes see only these.

    Call it before CUDA is initialised. Waits until that many are free; if fewer are visible, locks all of
    them. With `count` 0, or without a GPU, nothing changes: an existing GPU may be used, shared with other
    processes. Locks belong to the user and, within a SLURM job, to the job, whose GPUs may be numbered from 0
    again.

    Raises:
        UserError: the folder of the locks belongs to another user.
    """
    gpus = visible_gpus() if count else []
    count = min(count, len(gpus))
    if not count:
        yield []
        return
    with ExitStack() as held:
        taken = _wait_for_gpus(gpus, count, held)
        before = os.environ.get("CUDA_VISIBLE_DEVICES")
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(taken)
        try:
            yield taken
        finally:
            if before is None:
                del os.environ["CUDA_VISIBLE_DEVICES"]
            else:
                os.environ["CUDA_VISIBLE_DEVICES"] = before


def _wait_for_gpus(gpus: list[str], count: int, held: ExitStack) -> list[str]:
    folder, reported = _lock_folder(), False
    while True:
        with ExitStack() as locks:  # all or none, so that two waiting jobs cannot block each other
            if len(taken := _lock_free_gpus(folder, gpus, count, locks)) == count:
                held.push(locks.pop_all())
                return taken
        if not reported:
            print(f"waiting for {count} of the GPUs {', '.join(gpus)}", file=sys.stderr, flush=True)
            reported = True
        time.sleep(POLL_SECONDS)


def _lock_free_gpus(folder: Path, gpus: list[str], count: int, locks: ExitStack) -> list[str]:
    """Lock up to `count` GPUs that are free."""
    taken: list[str] = []
    for gpu in gpus:
        name = f"{os.environ.get('SLURM_JOB_ID', 'machine')}-{gpu.replace('/', '-')}"
        with suppress(Timeout):
            if len(taken) < count:
                locks.enter_context(FileLock(folder / name).acquire(blocking=False))
                taken.append(gpu)
    return taken


def _lock_folder() -> Path:
    """The user's folder of locks, on this machine's own disk."""
    folder = Path(tempfile.gettempdir()) / f"synmask-gpus-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.lstat().st_uid != os.getuid():
        raise UserError(f"{folder}: belongs to another user; remove it or set TMPDIR to another folder")
    return folder
