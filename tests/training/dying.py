"""Run a verb of the command line and die at a given moment. Started by the fixture `begin` with `WORDS`, `MOMENT` …

Its workers are forks that have imported all; tests/training/test_workers.py starts some as a training does.
"""

import io
import os
import resource
import signal
import sys
from functools import partial
from pathlib import Path

import torch

import synmask.pipeline.cli
from synmask.pipeline.training.trainer import Trainer

words, moment, path, environment = (globals()[name] for name in ("WORDS", "MOMENT", "LOG", "ENVIRONMENT"))


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def at_rename(number, after):
    """Die right before or after the file system sees the rename with this number."""
    replace, count = os.replace, [0]

    def dying(*paths):
        count[0] += 1
        if count[0] == number and not after:
            die()
        replace(*paths)
        if count[0] == number:
            die()

    os.replace = dying


def in_write(number, share):
    """Die when a share of the bytes of the checkpoint with this number is written."""
    save, count = torch.save, [0]

    def dying(value, handle):
        count[0] += 1
        if count[0] < number:
            return save(value, handle)
        whole = io.BytesIO()
        save(value, whole)
        handle.write(whole.getvalue()[: int(whole.tell() * share)])
        handle.flush()
        die()

    torch.save = dying


def at_update(number, what):
    """Send this process a signal while it computes the update with this number."""
    step, count = Trainer.train_step, [0]

    def signalled(*words, **kwargs):
        count[0] += 1
        if count[0] == number:
            os.kill(os.getpid(), what)
        return step(*words, **kwargs)

    Trainer.train_step = signalled


def with_memory(megabytes):
    """Let this process take no more than so much memory on top of what it has."""
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = taken + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def gpu_memory_is_out(number):
    """Raise CUDA's error for a batch that does not fit."""
    compute, count = Trainer.forward, [0]

    def failing(*words, **kwargs):
        count[0] += 1
        if count[0] == number:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")
        return compute(*words, **kwargs)

    Trainer.forward = failing


os.setsid()  # the head of its process group
os.environ.update(environment)
torch.multiprocessing.spawn = partial(torch.multiprocessing.start_processes, start_method="fork")
log = open(path, "a")  # noqa: SIM115 (it lives as long as the process)
os.dup2(log.fileno(), sys.stderr.fileno())
moments = {
    "rename": at_rename,
    "write": in_write,
    "update": at_update,
    "memory": with_memory,
    "gpu memory": gpu_memory_is_out,
}
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
if moment:
    moments[moment.pop("kind")](**moment)
synmask.pipeline.cli.main(words)
