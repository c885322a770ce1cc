"""Steps of rival systems on one batch, taken in turns: what training.py and finetuning.py have in common.

A step is forward, backward and Adam: stock fairseq's is its own, the others have torch's fused one. Times are
medians, CPU seconds where there is no GPU; ratios are within one run. Operations are those of matrix
products, convolutions and attention, forward and backward, as torch counts them; memory is the peak of both,
above what is held before.
"""

import statistics
import time
from functools import partial

import torch
from fairseq.optim.adam import Adam
from torch.optim import AdamW
from torch.utils.flop_counter import FlopCounterMode

from synmask.translation.speed import peak_bytes

STOCK = "stock fairseq"  # its own model and criterion: the rival that ratios are against


class Rival:
    """A model that takes steps on one batch."""

    def __init__(self, name, model, criterion, sample, device):
        self.name, self.criterion, self.device = name, criterion, device
        self.model = model.to(device).train()
        self.sample = to(sample, device)
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        kind = Adam if name == STOCK else partial(AdamW, fused=True)
        self.optimizer = kind(parameters, lr=1e-5)
        self.times = []

    def passes(self):
        loss, size, _ = self.criterion(self.model, self.sample)
        (loss / size).backward()

    def step(self):
        self.optimizer.zero_grad()
        self.passes()
        self.optimizer.step()

    def timed_step(self):
        clock = time.perf_counter if self.device == "cuda" else time.process_time
        self.wait()
        start = clock()
        self.step()
        self.wait()
        self.times.append(clock() - start)

    def wait(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def memory(self):
        """Bytes."""
        self.optimizer.zero_grad()
        return peak_bytes(self.passes, self.device)

    def operations(self):
        with FlopCounterMode(display=False) as counter:
            self.step()
        return counter.get_total_flops()


def to(value, device):
    """A batch, dictionaries and all, on the device."""
    if isinstance(value, dict):
        return {key: to(inner, device) for key, inner in value.items()}
    return value.to(device) if torch.is_tensor(value) else value


def compare(rivals, steps):
    """Take the steps, and print a table; the first rival is what the ratios are against."""
    operations = [rival.operations() for rival in rivals]  # this is their warm-up, too
    for turn in range(steps):  # who goes after whom matters by some percent, so the order rotates
        first = turn % len(rivals)
        for rival in rivals[first:] + rivals[:first]:
            rival.timed_step()
    base, operations_base = statistics.median(rivals[0].times), operations[0]
    print("| system | parameters | s a step | of stock | operations | of stock | MB a step |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for rival, count in zip(rivals, operations, strict=True):
        seconds = statistics.median(rival.times)
        parameters = sum(p.numel() for p in rival.model.parameters())
        print(
            f"| {rival.name} | {parameters / 1e6:.2f} M | {seconds:.3f} | {seconds / base:.3f} | "
            f"{count / 1e9:.0f} G | {count / operations_base:.3f} | {rival.memory() / 1e6:.0f} |"
        )
    print()
