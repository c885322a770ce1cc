"""Data-parallel workers: processes of one machine that make each update together."""

import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.multiprocessing import ProcessExitedException, ProcessRaisedException

from synmask.pipeline.files import TryAgain, UserError, machine_fault


def start(work: Callable[..., None], count: int, words: tuple[Any, ...], name: str, cut: str) -> None:
    """Run `work(rank, *words)` in `count` processes that form a group of torch.distributed.

    Args:
        name: of the training; `cut`: what a bus error means; for messages.

    Raises:
        UserError, TryAgain: of a worker; or a worker was killed.
    """
    # else each warns that it has found no unused parameter (`Learner`)
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    try:
        torch.multiprocessing.spawn(_joined, (count, port, work, words), nprocs=count)
    except ProcessExitedException as error:
        if error.signal_name == "SIGBUS":
            raise UserError(f"{name}: {cut}") from None
        ending = error.signal_name or f"exit code {error.exit_code}"
        raise UserError(
            f"{name}: worker {error.error_index} ended with {ending} (SIGKILL is often too little memory: "
            "resources.mem_mb); the same command resumes from the last checkpoint"
        ) from None
    except ProcessRaisedException as error:
        if fault := re.search(r"\.(UserError|TryAgain): (.+)", str(error)):
            raise (TryAgain if fault[1] == "TryAgain" else UserError)(fault[2]) from None
        raise


def _joined(rank: int, count: int, port: int, work: Callable[..., None], words: tuple[Any, ...]) -> None:
    try:
        with _group(rank, count, port):
            work(rank, *words)
    except Exception as error:
        if line := machine_fault(error):  # a worker can send only text to its parent
            raise UserError(line) from None
        raise


@contextmanager
def _group(rank: int, count: int, port: int) -> Iterator[None]:
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(rank)
    address = f"tcp://127.0.0.1:{port}"
    torch.distributed.init_process_group(
        "nccl" if cuda else "gloo", init_method=address, rank=rank, world_size=count
    )
    yield
    torch.distributed.destroy_process_group()
