"""Time and memory of a model's encoder against the length of its sentences."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from synmask.engine.average import load_model
from synmask.files import write_json

LENGTHS = (16, 32, 64, 128, 256)
TOKENS = 2048  # a batch, at every length
Step = Callable[[], Any]


def measure_file(model: Path, output: Path, threads: int) -> None:
    """Write the cost of one forward and backward pass through the encoder, by length of the sentences.

    The sentences are LENGTHS random sub-words without pads, TOKENS of them a batch; what the guide does is in
    it, dropout is not.

    Writes JSON: `device`, `threads` and, a row a length, `length` n, `sentences` in the batch, `milliseconds`
    and `megabytes` a sentence (10^6 bytes, the most held at once beyond parameters and batch).
    """
    torch.set_num_threads(threads)
    transformer, task, _ = load_model(model)
    encoder = transformer.encoder
    parameters = [p for p in encoder.parameters() if p.requires_grad]
    device = parameters[0].device
    rows = []
    for n in LENGTHS:
        count = TOKENS // n
        net = _batch(task, count, n)
        tokens = net["src_tokens"].to(device)
        annotations = {name: value.to(device) for name, value in net["annotations"].items()}

        def step(tokens: torch.Tensor = tokens, annotations: dict = annotations) -> None:
            states = encoder(tokens, annotations=annotations)["encoder_out"][0]
            torch.autograd.grad(states.square().sum(), parameters, allow_unused=True)

        row = {"milliseconds": 1e3 * seconds(step, device), "megabytes": peak_bytes(step, device) / 1e6}
        cost = {name: round(value / count, 6) for name, value in row.items()}
        rows.append({"length": n, "sentences": count} | cost)
    name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    write_json(output, {"device": name, "threads": threads, "rows": rows})


def seconds(step: Step, device: torch.device | str) -> float:
    """Best time of a step, of at least 3 and about half a second of them, after a warm-up.

    The best, not the median: what else runs on the machine only ever adds to a time.
    """
    synchronise = torch.cuda.synchronize if torch.device(device).type == "cuda" else lambda: None
    times: list[float] = []
    step()
    while len(times) < 3 or (sum(times) < 0.5 and len(times) < 300):
        synchronise()
        start = time.perf_counter()
        step()
        synchronise()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_bytes(step: Step, device: torch.device | str) -> int:
    """The most memory that a step holds at once, beyond what is held before it.

    On the CPU from the allocator's own events, so that what operators allocate inside counts too.
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
    """`count` sentences of n sub-words, `</s>` included, with the annotations that the guide reads."""
    generator = torch.Generator().manual_seed(n)
    sentences = torch.randint(task.src_dict.nspecial, len(task.src_dict), (count, n), generator=generator)
    sentences[:, -1] = task.src_dict.eos()
    sources = task.sources(list(sentences))
    return sources.collater([sources[index] for index in range(count)])["net_input"]
