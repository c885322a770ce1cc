"""Steps of rival systems on one batch, taken in turns: of training.py and gpu.py.

A step is forward, backward and Adam: for our systems an update (training/trainer.py), for stock fairseq with
its own Adam, for others with torch's fused one. In bf16 and fp16, weights have 16 bits and Adam's copies 32.
Times are medians of CPU seconds, in brackets the clock's; a ratio is the median of the turns' ratios, with
the lowest and the highest turn. Operations are those of matrix products, convolutions and attention,
forward and backward, as torch counts them; memory is the peak of both, above what is held before.
"""

import math
from dataclasses import dataclass
from functools import partial

import torch
from omegaconf import OmegaConf
from torch.optim import AdamW
from torch.utils.flop_counter import FlopCounterMode

from machine import Times, peak_bytes  # isort: split

from fairseq.dataclass.configs import FairseqConfig
from fairseq.optim import FP16Optimizer
from fairseq.optim.adam import Adam

from synmask.pipeline.config.base import Optimisation
from synmask.pipeline.training.trainer import Trainer

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
ONEDNN = {torch.ops.mkldnn._linear_pointwise: lambda x, weight, *_, **__: 2 * math.prod(x) * weight[0]}
STOCK = "stock fairseq"  # its own model and criterion: the rival that ratios are against


class Rival:
    """A model of another library that takes steps on one batch."""

    def __init__(self, name, model, criterion, sample, device, precision="fp32", backend=None):
        self.name, self.criterion, self.device = name, criterion, device
        self.model = model.to(device, DTYPES[precision]).train()
        self.sample = to(sample, device)
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = adam(name, parameters, precision)
        self.backward = torch.Tensor.backward if precision == "fp32" else self.optimizer.backward
        self.backend = None
        self.times = Times(device)

    def passes(self):
        loss, size, _ = self.criterion(self.model, self.sample)
        self.backward(loss / size)

    def begin(self):
        self.optimizer.zero_grad()

    def step(self):
        self.begin()
        self.passes()
        self.optimizer.step()

    def timed_step(self):
        with self.times.turn():
            self.step()

    def warm(self):
        """Operations of a step; the model is compiled afterwards, since what counts them forbids it."""
        operations = self.operations()
        if self.backend:
            self.model.compile(backend=self.backend, dynamic=True)  # as training.compile does
            self.step()
        return operations

    def memory(self):
        """Bytes."""
        self.begin()
        return peak_bytes(self.passes, self.device)

    def operations(self):
        with FlopCounterMode(display=False, custom_mapping=ONEDNN) as counter:
            self.step()
        return counter.get_total_flops()


class Ours(Rival):
    """A model of ours."""

    def __init__(self, name, model, criterion, sample, device, precision="fp32", backend=None):
        self.name, self.device, self.backend, self.times = name, device, backend, Times(device)
        training = Optimisation(
            max_epochs=1, lr=1e-5, warmup_updates=1, weight_decay=0.0, precision=precision
        )
        self.trainer = Trainer(model, criterion, training, lambda updates: 1e-5, seed=1)
        self.model, self.sample = self.trainer.objective, to(sample, device)

    def passes(self):
        loss, _ = self.trainer.forward(self.sample)
        self.trainer.scaler.scale(loss).backward()

    def begin(self):
        self.trainer.model.train()
        self.trainer.model.zero_grad()
        self.trainer.optimizer.zero_grad()

    def step(self):
        self.trainer.train_step([self.sample])


def adam(name, parameters, precision):
    """Stock fairseq's Adam, with its copies of the weights in 16 bits, or torch's fused one."""
    if precision == "fp32":
        kind = Adam if name.startswith(STOCK) else partial(AdamW, fused=True)
        return kind(parameters, lr=1e-5)
    cfg = OmegaConf.structured(FairseqConfig())
    cfg.common[precision] = True
    cfg.optimizer = {
        "_name": "adam",
        "lr": [1e-5],
        "adam_betas": "(0.9, 0.98)",
        "adam_eps": 1e-8,
        "weight_decay": 0.0,
        "use_old_adam": False,
        "fp16_adam_stats": False,
        "tpu": False,
    }
    return FP16Optimizer.build_optimizer(cfg, parameters)


def to(value, device):
    """A batch, dictionaries and all, on the device."""
    if isinstance(value, dict):
        return {key: to(inner, device) for key, inner in value.items()}
    return value.to(device) if torch.is_tensor(value) else value


@dataclass(frozen=True)
class Cost:
    """A step of one system: seconds, operations, bytes. Ratios are to the first system's."""

    system: str
    parameters: int
    seconds: float
    seconds_ratio: float
    lowest_ratio: float
    highest_ratio: float
    operations: int
    operations_ratio: float
    bytes: int


def compare(rivals, steps):
    """Take the steps, and print a table of their costs; the first rival is what the ratios are against."""
    operations = [rival.warm() for rival in rivals]
    for turn in range(steps):  # who goes after whom matters by some percent, so the order rotates
        first = turn % len(rivals)
        for rival in rivals[first:] + rivals[:first]:
            rival.timed_step()
    operations_base = operations[0]
    print("| system | parameters | CPU s per step (clock) | of stock | operations | of stock | MB per step |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    costs = []
    for rival, count in zip(rivals, operations, strict=True):
        ratio = rival.times.of(rivals[0].times)
        parameters = sum(p.numel() for p in rival.model.parameters())
        costs.append(
            Cost(
                rival.name,
                parameters,
                rival.times.median,
                *ratio,
                count,
                count / operations_base,
                rival.memory(),
            )
        )
        cost = costs[-1]
        print(
            f"| {cost.system} | {parameters / 1e6:.2f} M | {rival.times.shown()} | {ratio} | "
            f"{count / 1e9:.0f} G | {cost.operations_ratio:.3f} | {cost.bytes / 1e6:.0f} |"
        )
    print()
    return costs
