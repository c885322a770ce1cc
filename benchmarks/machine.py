"""Shared by the benchmarks: the machine, child processes, and the time and memory of a step.

`python benchmarks/machine.py` prints the machine and the commit as a table.
"""

import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # read when torch is loaded: else its profiler prints lines

import torch
from torch.profiler import ProfilerActivity, profile

from synmask.pipeline.cpu.processor import CPU
from synmask.pipeline.provenance import processor

ROOT = Path(__file__).resolve().parents[1]
TURN = 0.02  # seconds
Step = Callable[[], Any]


def described(*packages: str, device: str = "cpu", threads: int = 1) -> str:
    """Machine, threads and versions: the first line of what a benchmark prints."""
    versions = [f"Python {platform.python_version()}", *(f"{one} {version(one)}" for one in packages)]
    return f"{name(device)}, {threads} thread{'s' if threads > 1 else ''}, {', '.join(versions)}"


def name(device: str) -> str:
    """The name of the GPU, or of the processor, and what PyTorch is masked to."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    hidden = "" if CPU.capability in processor() else f" masked to {CPU.capability}"
    return processor() + hidden


def run(words: list[str], folder: Path = ROOT) -> tuple[float, float, str]:
    """CPU seconds (user and system), peak memory in MB, and what a Python command says."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, *words]
    child = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    output = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} failed: {output[-500:]}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, output


def seconds(steps: Sequence[Step], device: torch.device | str, turns: int = 5) -> list[float]:
    """The median time of each step over `turns`; on a CPU in CPU seconds, which other work disturbs less.

    A turn repeats a short step for TURN seconds, so that the step finds its own data in the caches.
    """
    cuda = torch.device(device).type == "cuda"
    clock = time.perf_counter if cuda else time.process_time

    def turn(step: Step, times: int) -> float:
        start = clock()
        for _ in range(times):
            step()
        if cuda:
            torch.cuda.synchronize()
        return (clock() - start) / times

    for step in steps:
        turn(step, 1)
    counts = [max(1, int(TURN / turn(step, 1))) for step in steps]
    spent = [[turn(step, count) for step, count in zip(steps, counts, strict=True)] for _ in range(turns)]
    return [statistics.median(times) for times in zip(*spent, strict=True)]


def peak_bytes(step: Step, device: torch.device | str) -> int:
    """The peak memory of a step, beyond the memory that is in use before it.

    On the CPU, it is computed from the allocator's events, so temporary memory of operators counts, too.
    """
    if torch.device(device).type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        held = torch.cuda.memory_allocated()
        step()
        return torch.cuda.max_memory_allocated() - held
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step()
    events = [e for e in profiler.profiler.kineto_results.events() if e.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


if __name__ == "__main__":
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout
    print(f"| measured on |\n|---|\n| {described('torch', 'fairseq')}, commit {commit.strip()} |")
