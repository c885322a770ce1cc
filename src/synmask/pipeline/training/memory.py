"""The memory of a training: how to use less on a CPU, and its measured peak."""

import multiprocessing
import os
import resource
import sys
from pathlib import Path

import torch

from synmask.kernels import load_kernel

MIB = 2**20
CACHED_PRODUCTS = "256"  # of products, whose code oneDNN keeps; by default 1,024, which takes 0.5 GB


def save_memory() -> None:
    """Take less memory on a CPU: for large tensors, if kernel.cpp was built, and for oneDNN's code."""
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", CACHED_PRODUCTS)
    if library := load_kernel(__package__, Path(__file__).with_name("kernel.cpp")):
        library.use_blocks()


class PeakMemory:
    """The peak memory of this call's processes, in memory that all of them share."""

    def __init__(self, processes: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.resident = context.RawArray("d", processes)
        self.gpu = context.RawArray("d", processes)

    def note(self, process: int) -> None:
        """Measure the process with this number, which calls it."""
        self.resident[process] = peak_resident()
        if torch.cuda.is_available():
            self.gpu[process] = torch.cuda.max_memory_reserved() / MIB

    def total(self) -> dict[str, float]:
        """MiB: resident in all processes (`memory`), and on the fullest GPU (`gpu_memory`)."""
        return {"memory": round(sum(self.resident), 1), "gpu_memory": round(max(self.gpu), 1)}


def peak_resident() -> float:
    """The most memory that was resident in this process, in MiB."""
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024
    except (OSError, IndexError):  # not Linux; elsewhere the value may be that of the process before exec
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MIB
