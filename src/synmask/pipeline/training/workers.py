"""Data-parallel workers, which make each update together: processes of one machine, or of several."""

import os
import re
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch.multiprocessing import ProcessExitedException, ProcessRaisedException

from synmask.pipeline.errors import TryAgain, UserError, machine_fault


class WorkerPlace(NamedTuple):
    """The place of this process among workers: `local` counts those of its machine, whose GPU it takes."""

    rank: int
    count: int
    local: int
    address: str  # of rank 0: HOST:PORT


def launched_worker(variables: Mapping[str, str] = os.environ) -> WorkerPlace | None:
    """The place that torchrun, or srun with several tasks, has given this process; None without them."""
    if int(variables.get("WORLD_SIZE", 1)) > 1:
        rank, count, local = (int(variables[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
        return WorkerPlace(rank, count, local, "{MASTER_ADDR}:{MASTER_PORT}".format_map(variables))
    if int(variables.get("SLURM_STEP_NUM_TASKS", 1)) > 1:
        names = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID")
        list_hosts = ["scontrol", "show", "hostnames", variables["SLURM_STEP_NODELIST"]]
        host = subprocess.run(list_hosts, capture_output=True, text=True, check=True).stdout.split()[0]
        port = 20000 + int(variables["SLURM_JOB_ID"]) % 10000  # the same in all tasks
        return WorkerPlace(*(int(variables[name]) for name in names), f"{host}:{port}")
    return None


@contextmanager
def worker_group(place: WorkerPlace | None, name: str) -> Iterator[None]:
    """While the block runs, this process is a worker of the group of its `place`, if it has one.

    Raises:
        TryAgain: another worker has ended.
    """
    if place is None:
        yield
        return
    try:
        with _group(place):
            yield
    except RuntimeError as error:  # or torch's DistError, which is one
        lost = re.search("closed by peer|reset by peer|gloo|NCCL", str(error))
        if not (lost or isinstance(error, torch.distributed.DistError)):
            raise
        fault = "another worker has ended, or did not come; see its message. The same command resumes"
        raise TryAgain(f"{name}: {fault}") from error


def broadcast(value: Any) -> Any:
    """The `value` of the worker with rank 0, in all workers."""
    values = [value]
    torch.distributed.broadcast_object_list(values)
    return values[0]


def start_workers(
    work: Callable[..., None], count: int, args: tuple[Any, ...], name: str, bus_error: str
) -> None:
    """Run `work(rank, *args)` in `count` processes that form a group of torch.distributed.

    Args:
        name: of the training; `bus_error`: what a bus error means; for messages.

    Raises:
        UserError, TryAgain: of a worker; or a worker was killed.
    """
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # as synmask/__main__.py does
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    try:
        torch.multiprocessing.spawn(_join_group, (count, port, work, args), nprocs=count)
    except ProcessExitedException as error:
        if error.signal_name == "SIGBUS":
            raise UserError(f"{name}: {bus_error}") from None
        ending = error.signal_name or f"exit code {error.exit_code}"
        raise UserError(
            f"{name}: worker {error.error_index} ended with {ending} (SIGKILL is often too little memory: "
            "resources.mem_mb); the same command resumes from the last checkpoint"
        ) from None
    except ProcessRaisedException as error:
        if fault := re.search(r"\.(UserError|TryAgain): (.+)", str(error)):
            raise (TryAgain if fault[1] == "TryAgain" else UserError)(fault[2]) from None
        raise


def _join_group(rank: int, count: int, port: int, work: Callable[..., None], args: tuple[Any, ...]) -> None:
    try:
        with _group(WorkerPlace(rank, count, rank, f"127.0.0.1:{port}")):
            work(rank, *args)
    except Exception as error:
        if line := machine_fault(error):  # a worker can send only text to its parent
            raise UserError(line) from None
        raise


@contextmanager
def _group(place: WorkerPlace) -> Iterator[None]:
    cuda = torch.cuda.is_available()
    if cuda:  # srun may show each task its own GPU alone
        torch.cuda.set_device(place.local % torch.cuda.device_count())
    kwargs = {"init_method": f"tcp://{place.address}", "rank": place.rank, "world_size": place.count}
    torch.distributed.init_process_group("nccl" if cuda else "gloo", **kwargs)
    yield
    torch.distributed.destroy_process_group()
