"""One update of a training, and one validation.

They do what train_step and valid_step of fairseq 0.12.2's Trainer do (fairseq/trainer.py). In fp32 the
weights are equal bit by bit (tests/training/test_trainer.py).
"""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import torch
from fairseq import utils
from torch import Tensor, nn

from synmask.pipeline.config.base import Optimisation
from synmask.pipeline.training.losses import Sums, add_sums, mean_losses
from synmask.pipeline.training.operators import AdamW

Sample = dict[str, Any]  # a batch, as fairseq's data sets collate it
# A model and a batch → the loss (a sum), the number that an update divides it by, and sums to log.
Loss = Callable[[nn.Module, Sample], tuple[Tensor, Tensor | int, Sums]]
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
ADAM_EPS = 1e-8  # where the settings have none
# The factor of the loss in fp16, as in fairseq: at first, at least; batches until it doubles.
FIRST_SCALE, LEAST_SCALE, GROWTH_BATCHES = 2.0**7, 1e-4, 2**14


class Objective(nn.Module):
    """A model and its loss as one module, which DistributedDataParallel can wrap."""

    def __init__(self, model: nn.Module, loss: Loss) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, sample: Sample) -> tuple[Tensor, Tensor | int, Sums]:
        return self.loss(self.model, sample)


class Trainer:
    """A model with all that an update changes, on the GPU if there is one.

    In bf16 and fp16 the model and its gradients have 16 bits, and Adam updates a copy in float32 (`masters`),
    as fairseq's FP16Optimizer does. In fp16 the loss is scaled, too, so that small gradients do not become 0.

    Args:
        schedule: number of updates done → learning rate of the next.
        batches: in an update, of all `workers` together.
        dummy: any batch; a worker that has none, where others have one, computes it in vain.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        training: Optimisation,
        schedule: Callable[[int], float],
        seed: int,
        *,
        batches: int = 1,
        workers: int = 1,
        dummy: Sample | None = None,
    ) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = model.to(self.device, DTYPES[training.precision])
        self.schedule, self.clip_norm, self.seed = schedule, training.clip_norm, seed
        self.workers, self.dummy = workers, dummy
        self.updates = 0
        self.objective: nn.Module = Objective(model, loss)
        if training.compile:
            self.objective.compile(dynamic=True)  # once for batches of all lengths
        self.parameters = self.masters = [p for p in model.parameters() if p.requires_grad]
        if training.precision != "fp32":
            self.masters = [nn.Parameter(p.detach().float()) for p in self.parameters]
        options = {
            "betas": tuple(training.adam_betas),
            "eps": getattr(training, "adam_eps", ADAM_EPS),
            "weight_decay": training.weight_decay,
        }
        self.optimizer = AdamW(self.masters, lr=self.lr, fused=True, **options)
        scaled = training.precision == "fp16"
        self.scaler = torch.amp.GradScaler(
            self.device.type,
            init_scale=FIRST_SCALE,
            growth_interval=max(1, GROWTH_BATCHES // batches),
            enabled=scaled,
        )
        self.least_scale = LEAST_SCALE if scaled else 1.0
        if workers > 1:
            # With unused parameters looked for, a resumed training sums in the same order as from its start.
            self.objective = nn.parallel.DistributedDataParallel(
                self.objective,
                device_ids=[self.device] if self.device.type == "cuda" else None,
                forward_sync_buffers=False,
                find_unused_parameters=True,
                gradient_as_bucket_view=True,
            )

    @property
    def lr(self) -> float:
        """The learning rate of the next update."""
        return self.schedule(self.updates)

    def train_step(self, samples: list[Sample], stopping: Callable[[], bool] = lambda: False) -> Sums:
        """Change the weights once, by Adam → the sums over all batches and workers of what the loss logs.

        The gradient is the sum of the batches' gradients over all workers, divided by the sum of their sizes,
        clipped. In fp16, an update whose gradient overflows changes only the scale of the loss, and logs
        nothing.

        Args:
            samples: this worker's batches; one that has none gets an empty one.
            stopping: whether this worker was asked to stop; "stop" of the sums is how many were.

        Raises:
            FloatingPointError: the gradient is not finite.
        """
        torch.manual_seed(self.seed + self.updates)  # a resumed training draws the same dropout masks
        if not self.model.training:
            self.model.train()
        self.model.zero_grad()
        self.optimizer.zero_grad()  # of the masters
        logs = []
        for number, sample in enumerate(samples, start=1):
            last = number == len(samples)  # workers sum their gradients with the last one alone
            with nullcontext() if last or self.workers == 1 else self.objective.no_sync():
                loss, log = self.forward(sample)
                self.scaler.scale(loss).backward()
            logs.append(log)
        sums = {name: sum(log[name] for log in logs) for name in logs[0]}
        sums = self.all_reduce(sums | {"stop": stopping()})

        if self.masters is not self.parameters:
            for master, parameter in zip(self.masters, self.parameters, strict=True):
                master.grad = None if parameter.grad is None else parameter.grad.float()
        self.scaler.unscale_(self.optimizer)
        gradients = [master.grad for master in self.masters if master.grad is not None]
        size = torch.as_tensor(sums["sample_size"], dtype=torch.float64).clamp(min=1)  # 0: no word was masked
        # DistributedDataParallel divides by the workers. In float32: one call for all gradients on a GPU, too
        torch._foreach_mul_(gradients, (self.workers / size).float())
        norm = nn.utils.get_total_norm(gradients)
        if self.clip_norm > 0:
            nn.utils.clip_grads_with_norm_(self.masters, self.clip_norm, norm)
        if finite := bool(norm.isfinite()):
            for group in self.optimizer.param_groups:
                group["lr"] = self.lr
            self.optimizer.step()
            if self.masters is not self.parameters:
                with torch.no_grad():
                    torch._foreach_copy_(self.parameters, self.masters)
            self.updates += 1
        self.scaler.update()
        if not finite and not self.scaler.get_scale() > self.least_scale:
            raise FloatingPointError("the gradient is not finite")
        return sums if finite else {"stop": sums["stop"]}

    @torch.no_grad()
    def validate(self, samples: Iterable[Sample]) -> dict[str, float]:
        """The means (`losses.mean_losses`) of what the loss logs on the batches of all workers."""
        self.model.eval()
        totals: Sums = {}
        for sample in samples:
            add_sums(totals, self.forward(sample)[1])
        return mean_losses(self.all_reduce(totals))

    def forward(self, sample: Sample) -> tuple[Tensor, Sums]:
        """The loss of a batch, and what it logs, with its size; of an empty batch, the dummy's times 0."""
        inputs = sample or self.dummy
        loss, size, log = self.objective(utils.move_to_cuda(inputs) if self.device.type == "cuda" else inputs)
        log = {**log, "sample_size": size}
        return (loss, log) if sample else (0 * loss, {name: 0 * value for name, value in log.items()})

    def all_reduce(self, sums: Sums) -> Sums:
        """Sums over all workers; their names must be the same in each."""
        if self.workers == 1:
            return sums
        kwargs = {"dtype": torch.float64, "device": self.device}
        values = torch.stack([torch.as_tensor(value, **kwargs) for value in sums.values()])
        torch.distributed.all_reduce(values)
        return dict(zip(sums, values, strict=True))

    def state_dict(self) -> dict[str, Any]:
        """All that `load_state_dict` needs; its tensors are those that updates change, not copies."""
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        masters = self.masters if self.masters is not self.parameters else []
        masters = [copy.detach() for copy in masters]
        return {**state, "masters": masters, "scaler": self.scaler.state_dict(), "updates": self.updates}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.model.load_state_dict({**state["model"]})  # a copy, since fairseq adds keys
        self.optimizer.load_state_dict(state["optimizer"])
        for master, value in zip(self.masters, state["masters"], strict=False):
            master.data.copy_(value)
        self.scaler.load_state_dict(state["scaler"])
        self.updates = state["updates"]
