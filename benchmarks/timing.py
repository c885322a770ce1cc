"""Time and memory of a step: a function that is called again and again."""

import math
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # read when torch is loaded: else its profiler prints lines

import torch
from torch.profiler import ProfilerActivity, profile

TURN = 0.05  # seconds
Step = Callable[[], Any]


def seconds(steps: Sequence[Step], device: torch.device | str) -> list[float]:
    """The best time of each step after a warm-up. Steps take turns, at least 3 each, for about half a second.

    A turn repeats a short step for TURN seconds and takes the mean, so that the step finds its own data in
    the caches. The best turn counts, not the median: other load on the machine can only add time.
    """
    synchronise = torch.cuda.synchronize if torch.device(device).type == "cuda" else lambda: None

    def turn(step: Step, times: int) -> float:
        synchronise()
        start = time.perf_counter()
        for _ in range(times):
            step()
        synchronise()
        return time.perf_counter() - start

    for step in steps:
        step()
    counts = [max(1, int(TURN / turn(step, 1))) for step in steps]
    best = [math.inf] * len(steps)
    turns, spent = 0, 0.0
    while turns < 3 or spent < 0.5 * len(steps):
        for index, (step, count) in enumerate(zip(steps, counts, strict=True)):
            taken = turn(step, count)
            best[index] = min(best[index], taken / count)
            spent += taken
        turns += 1
    return best


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
