"""Shared by the benchmarks: the machine, child processes, and the time and memory of steps that take turns.

`python benchmarks/machine.py` prints the machine and the commit as a table.
"""

import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # read when torch is loaded: else its profiler prints lines

import torch
from torch.profiler import ProfilerActivity, profile

from synmask.pipeline.cpu.processor import CPU
from synmask.pipeline.provenance import processor

ROOT = Path(__file__).resolve().parents[1]
TURNS = 7  # of each contestant, one after another: a ratio is the median of the turns'
SHORTEST = 0.02  # seconds of a turn
MASKED = bool({"ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA"} & {*os.environ})  # to a lesser kind of processor
Step = Callable[[], Any]


def described(*packages: str, device: str = "cpu", threads: int = 1) -> str:
    """Machine, threads and versions: the first line of what a benchmark prints."""
    versions = [f"Python {platform.python_version()}", *(f"{one} {version(one)}" for one in packages)]
    return f"{name(device)}, {threads} thread{'s' if threads > 1 else ''}, {', '.join(versions)}"


def name(device: str) -> str:
    """The name of the GPU, or of the processor, and what PyTorch is masked to."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    return processor() + (f" masked to {CPU.capability}" if MASKED else "")


class Spread(NamedTuple):
    """The turns' ratios of two contestants: the median, the lowest and the highest."""

    median: float
    least: float
    most: float

    def __str__(self) -> str:
        digits = 2 if self.median < 10 else 0
        return "{:.{d}f} ({:.{d}f}–{:.{d}f})".format(*self, d=digits)


@dataclass
class Times:
    """The seconds of one contestant's turns: CPU time of the process, and the clock's."""

    device: str = "cpu"
    cpu: list[float] = field(default_factory=list)
    clock: list[float] = field(default_factory=list)

    @contextmanager
    def turn(self, steps: int = 1) -> Iterator[None]:
        """Time what is done inside, which is so many steps, as one turn."""
        self._wait()
        cpu, clock = time.process_time(), time.perf_counter()
        yield
        self._wait()
        self.cpu.append((time.process_time() - cpu) / steps)
        self.clock.append((time.perf_counter() - clock) / steps)

    def _wait(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()

    @property
    def seconds(self) -> list[float]:
        """CPU time, which other work disturbs less; the clock where a GPU or threads work."""
        return self.clock if self.device == "cuda" or torch.get_num_threads() > 1 else self.cpu

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def shown(self, digits: int = 3, value: Callable[[float], float] = lambda seconds: seconds) -> str:
        """The medians: of CPU time, and in brackets of the clock's."""
        cpu, clock = (value(statistics.median(times)) for times in (self.cpu, self.clock))
        return f"{cpu:.{digits}f} ({clock:.{digits}f})"

    def of(self, rival: "Times") -> Spread:
        """This contestant's time as a share of a rival's, turn by turn."""
        ratios = [ours / theirs for ours, theirs in zip(self.seconds, rival.seconds, strict=True)]
        return Spread(statistics.median(ratios), min(ratios), max(ratios))


def run(words: list[str], times: Times, folder: Path = ROOT) -> tuple[float, str]:
    """Peak memory in MB, and what a Python command says; its time (user and system) is a turn of `times`."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    command, start = [sys.executable, *words], time.perf_counter()
    child = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    output = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} failed: {output[-500:]}")
    times.cpu.append(used.ru_utime + used.ru_stime)
    times.clock.append(time.perf_counter() - start)
    return used.ru_maxrss / 1024, output


def in_turns(steps: Sequence[Step], device: str, turns: int = TURNS) -> list[Times]:
    """The times of each step over `turns`, in which all take part.

    A turn repeats a short step for SHORTEST seconds, so that the step finds its own data in the caches.
    """

    def seconds(step: Step) -> float:
        alone = Times(device)
        with alone.turn():
            step()
        return alone.median

    for step in steps:
        seconds(step)
    counts = [max(1, int(SHORTEST / seconds(step))) for step in steps]
    times = [Times(device) for _ in steps]
    for _ in range(turns):
        for step, count, contestant in zip(steps, counts, times, strict=True):
            with contestant.turn(count):
                for _ in range(count):
                    step()
    return times


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
