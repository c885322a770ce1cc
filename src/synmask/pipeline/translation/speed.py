"""Time and memory of a model's encoder by sentence length."""

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

# Set before torch is loaded; otherwise its profiler prints lines to stderr.
os.environ.setdefault("KINETO_LOG_LEVEL", "99")

import numpy as np
import torch
from fairseq.data import Dictionary
from torch.profiler import ProfilerActivity, profile

from synmask.pipeline.files import json_text, writing
from synmask.pipeline.syntax.annotations import annotate
from synmask.pipeline.translation.average import BY_HAND, load_model

LENGTHS = (16, 32, 64, 128, 256)
TOKENS = 2048  # per batch, at every length
TURN = 0.05  # seconds
Step = Callable[[], Any]


def measure_files(
    models: Mapping[str, Path], output: Path, threads: int, run: Mapping[str, Any] = BY_HAND
) -> None:
    """Write the cost of a forward and backward pass through each model's encoder by sentence length.

    Sentences consist of LENGTHS random sub-words without pads, TOKENS per batch. The guide is included,
    dropout is not.

    Args:
        models: name → model file. Models take turns, so that other load on the machine affects all alike.
        output: JSON with `device`, `threads` and `rows`, one per model and length: `model`, `length` n,
            `sentences` in the batch; `milliseconds` and `megabytes` per sentence (10^6 bytes, the peak beyond
            parameters and batch).
        threads: CPU threads.
        run: what the models' runs share: corpus, direction; models are named by their systems.
    """
    torch.set_num_threads(threads)
    loaded = {
        name: load_model(path, {**run, "system": name} if run else run)[:2] for name, path in models.items()
    }
    with writing(output) as handle:  # opened first: a wrong file name is reported at once
        handle.write(json_text({"threads": threads} | _measured(loaded)))


def _measured(loaded: Mapping[str, tuple[Any, Any]]) -> dict[str, Any]:
    """`device` and `rows` for models and their tasks."""
    device = next(parameter.device for model, _ in loaded.values() for parameter in model.parameters())
    rows = []
    for n in LENGTHS:
        count = TOKENS // n
        steps = [_step(model.encoder, _batch(task, count, n), device) for model, task in loaded.values()]
        for name, step, best in zip(loaded, steps, seconds(steps, device), strict=True):
            row = {"milliseconds": 1e3 * best, "megabytes": peak_bytes(step, device) / 1e6}
            cost = {key: round(value / count, 6) for key, value in row.items()}
            rows.append({"model": name, "length": n, "sentences": count} | cost)
    where = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    return {"device": where, "rows": rows}


def _step(encoder: Any, net: dict[str, Any], device: torch.device) -> Step:
    tokens = net["src_tokens"].to(device)
    annotations = {name: value.to(device) for name, value in net["annotations"].items()}
    parameters = [*encoder.parameters()]

    def step() -> None:
        out = encoder(tokens, annotations=annotations)
        states = [*out["encoder_out"], *out.get("template", ())[:1]]  # of both encoders, if there are two
        torch.autograd.grad(sum(s.square().sum() for s in states), parameters, allow_unused=True)

    return step


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


def _batch(task: Any, count: int, n: int) -> dict[str, Any]:
    """`count` sentences of n sub-words, `</s>` included, with the annotations that the guide reads.

    Parses are chains: each word's head is the word before it, and trees are right-branching. Templates are as
    long as the sentences.
    """
    generator = torch.Generator().manual_seed(n)

    def random(dictionary: Dictionary) -> list[torch.Tensor]:
        ids = torch.randint(dictionary.nspecial, len(dictionary), (count, n), generator=generator)
        ids[:, -1] = dictionary.eos()
        return list(ids)

    sentences = random(task.src_dict)
    templates = random(task.template_dictionary) if task.template_dictionary is not None else None
    chain = annotate(["x"] * (n - 1), heads=range(n - 1), tree=None)
    chain[:-1, 2] = np.arange(n - 1, 0, -1)
    sources = task.sources(sentences, [chain] * count if task.parsed else None, templates)
    return sources.collater([sources[index] for index in range(count)])["net_input"]
