"""One update of a training, and one validation.

They do what train_step and valid_step of fairseq 0.12.2's Trainer do (fairseq/trainer.py). In fp32 the
weights are equal bit by bit (tests/training/test_update.py).
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from fairseq import utils
from torch import Tensor, nn

from synmask.pipeline.config.base import Optimisation
from synmask.pipeline.training.losses import Sums, add, means
from synmask.pipeline.training.operators import AdamW

Batch = dict[str, Any]
# A model and a batch → the loss (a sum), the number that an update divides it by, and sums to log.
Loss = Callable[[nn.Module, Batch], tuple[Tensor, Tensor | int, Sums]]
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
# The factor of the loss in fp16, as in fairseq: at first, at least; batches until it doubles.
FIRST_SCALE, LEAST_SCALE, GROWTH_BATCHES = 2.0**7, 1e-4, 2**14


class Objective(nn.Module):
    """A model and its loss as one module, which DistributedDataParallel can wrap."""

    def __init__(self, model: nn.Module, loss: Loss) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor | int, Sums]:
        return self.loss(self.model, batch)


class Learner:
    """A model with all that an update changes, on the GPU if there is one.

    In bf16 and fp16 the model and its gradients have 16 bits, and Adam updates a copy in float32 (`masters`),
    as fairseq's FP16Optimizer does. In fp16 the loss is scaled, too, so that small gradients do not become 0.

    Args:
        schedule: number of updates done → learning rate of the next.
        batches: in an update, of all `workers` together.
        filler: any batch; a worker that has none, where others have one, computes it in vain.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        training: Optimisation,
        schedule: Callable[[int], float],
        seed: int,
        *,
        adam_eps: float = 1e-8,
        batches: int = 1,
        workers: int = 1,
        filler: Batch | None = None,
    ) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = model.to(self.device, DTYPES[training.precision])
        self.schedule, self.clip_norm, self.seed = schedule, training.clip_norm, seed
        self.workers, self.filler = workers, filler
        self.updates = 0
        self.objective: nn.Module = Objective(model, loss)
        if training.compile:
            self.objective.compile(dynamic=True)  # once for batches of all lengths
        self.parameters = self.masters = [p for p in model.parameters() if p.requires_grad]
        if training.precision != "fp32":
            self.masters = [nn.Parameter(p.detach().float()) for p in self.parameters]
        options = {
            "betas": tuple(training.adam_betas),
            "eps": adam_eps,
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

    def begin(self) -> None:
        """Prepare for the batches of an update."""
        if not self.model.training:
            self.model.train()
        self.model.zero_grad()
        self.optimizer.zero_grad()  # of the masters

    def reducing(self, *, last: bool) -> AbstractContextManager:
        """For a batch of an update: only with the last one do workers sum their gradients."""
        return nullcontext() if last or self.workers == 1 else self.objective.no_sync()

    def compute(self, batch: Batch) -> tuple[Tensor, Sums]:
        """The loss of a batch, and what it logs, with its size; of an empty batch, the filler's times 0."""
        inputs = batch or self.filler
        loss, size, log = self.objective(utils.move_to_cuda(inputs) if self.device.type == "cuda" else inputs)
        log = {**log, "sample_size": size}
        return (loss, log) if batch else (0 * loss, {name: 0 * value for name, value in log.items()})

    def gradients(self) -> list[Tensor]:
        """The masters' gradients, once those of all batches are summed: in float32, without the scale."""
        if self.masters is not self.parameters:
            for master, parameter in zip(self.masters, self.parameters, strict=True):
                master.grad = None if parameter.grad is None else parameter.grad.float()
        self.scaler.unscale_(self.optimizer)
        return [master.grad for master in self.masters if master.grad is not None]

    @torch.no_grad()
    def step(self) -> None:
        """Change the weights by the masters' gradients."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.lr
        self.optimizer.step()
        if self.masters is not self.parameters:
            torch._foreach_copy_(self.parameters, self.masters)
        self.updates += 1

    def state(self) -> dict[str, Any]:
        """All that `load` needs; its tensors are those that updates change, not copies."""
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        masters = self.masters if self.masters is not self.parameters else []
        masters = [copy.detach() for copy in masters]
        return {**state, "masters": masters, "scaler": self.scaler.state_dict(), "updates": self.updates}

    def load(self, state: dict[str, Any]) -> None:
        """Continue from a `state`."""
        self.model.load_state_dict({**state["model"]})  # a copy, since fairseq adds keys
        self.optimizer.load_state_dict(state["optimizer"])
        for master, value in zip(self.masters, state["masters"], strict=False):
            master.data.copy_(value)
        self.scaler.load_state_dict(state["scaler"])
        self.updates = state["updates"]


def update(learner: Learner, batches: list[Batch], stopping: Callable[[], bool] = lambda: False) -> Sums:
    """Change the weights once, by Adam → the sums over all batches and workers of what the loss logs.

    The gradient is the sum of the batches' gradients over all workers, divided by the sum of their sizes,
    clipped. In fp16, an update whose gradient overflows changes only the scale of the loss, and logs nothing.
    In fairseq: Trainer.train_step.

    Args:
        batches: of this worker; one that has none gets an empty one.
        stopping: whether this worker was asked to stop; "stop" of the sums is how many were.

    Raises:
        FloatingPointError: the gradient is not finite.
    """
    torch.manual_seed(learner.seed + learner.updates)  # a resumed training draws the same dropout masks
    learner.begin()
    logs = []
    for number, batch in enumerate(batches, start=1):
        with learner.reducing(last=number == len(batches)):
            loss, log = learner.compute(batch)
            learner.scaler.scale(loss).backward()
        logs.append(log)
    sums = {name: sum(log[name] for log in logs) for name in logs[0]}
    sums = over_workers(learner, sums | {"stop": stopping()})

    gradients = learner.gradients()
    size = torch.as_tensor(sums["sample_size"], dtype=torch.float64).clamp(min=1)  # 0: no word was masked
    # DistributedDataParallel divides by the workers. In float32: one call for all gradients on a GPU, too
    torch._foreach_mul_(gradients, (learner.workers / size).float())
    norm = nn.utils.get_total_norm(gradients)
    if learner.clip_norm > 0:
        nn.utils.clip_grads_with_norm_(learner.masters, learner.clip_norm, norm)
    if finite := bool(norm.isfinite()):
        learner.step()
    learner.scaler.update()
    if not finite and not learner.scaler.get_scale() > learner.least_scale:
        raise FloatingPointError("the gradient is not finite")
    return sums if finite else {"stop": sums["stop"]}


@torch.no_grad()
def validate(learner: Learner, batches: Iterable[Batch]) -> dict[str, float]:
    """The means (`losses.means`) of what the loss logs on the batches of all workers.

    In fairseq: Trainer.valid_step, for each batch.
    """
    learner.model.eval()
    totals: Sums = {}
    for batch in batches:
        add(totals, learner.compute(batch)[1])
    return means(over_workers(learner, totals))


def over_workers(learner: Learner, sums: Sums) -> Sums:
    """Sums over all workers; their names must be the same in each."""
    if learner.workers == 1:
        return sums
    kwargs = {"dtype": torch.float64, "device": learner.device}
    values = torch.stack([torch.as_tensor(value, **kwargs) for value in sums.values()])
    torch.distributed.all_reduce(values)
    return dict(zip(sums, values, strict=True))
