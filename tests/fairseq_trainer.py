"""fairseq's own Trainer on a stage's model, batches and loss: what `training/trainer.py` is compared with."""

from argparse import Namespace

import torch
from fairseq import optim
from fairseq.criterions import FairseqCriterion
from fairseq.dataclass.configs import FairseqConfig
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig
from fairseq.tasks import FairseqTask
from fairseq.trainer import Trainer as FairseqTrainer
from omegaconf import OmegaConf

from synmask.pipeline.training.batches import Batches
from synmask.pipeline.training.operators import AdamW
from synmask.pipeline.training.trainer import Trainer


@optim.register_optimizer("fused_adam", dataclass=FairseqAdamConfig)
class FusedAdam(FairseqAdam):
    """fairseq's Adam with torch's fused kernel, and its loops over gradients as one call each.

    With its own kernel and loops, the last bits differ (tests/training/test_operators.py).
    """

    def __init__(self, cfg, params):
        optim.FairseqOptimizer.__init__(self, cfg)
        self._optimizer = AdamW(params, fused=True, **self.optimizer_config)

    def multiply_grads(self, c):
        torch._foreach_mul_([p.grad for p in self.params if p.grad is not None], c)

    def clip_grad_norm(self, max_norm, aggregate_norm_fn=None):
        norm = torch.nn.utils.get_total_norm([p.grad for p in self.params if p.grad is not None])
        if max_norm > 0:
            torch.nn.utils.clip_grads_with_norm_(self.params, max_norm, norm)
        return norm


class Task(FairseqTask):
    """A task without data."""

    source_dictionary = target_dictionary = None


class Criterion(FairseqCriterion):
    """A loss as fairseq's criterion."""

    def __init__(self, task, loss):
        super().__init__(task)
        self.loss = loss

    def forward(self, model, sample, reduce=True):
        loss, size, log = self.loss(model, sample)
        return loss, size, {**log, "sample_size": size}

    @staticmethod
    def reduce_metrics(logging_outputs):
        pass

    @staticmethod
    def logging_outputs_can_be_summed():
        return True


def fairseq_trainer(stage, folder, scheduler):
    """fairseq's Trainer for a stage, at its start.

    Args:
        scheduler: fairseq's configuration of the learning rate's schedule, with its `_name`.
    """
    training = stage.settings.training
    sections = {
        "common": {"no_progress_bar": True, "seed": stage.seed, "cpu": True, "tpu": False}
        | {name: training.precision == name for name in ("bf16", "fp16")},
        "checkpoint": {"save_dir": str(folder)},
        "optimization": {
            "lr": [training.lr],
            "clip_norm": training.clip_norm,
            "update_freq": [stage.batches],
        },
        "distributed_training": {"distributed_world_size": 1},
    }
    cfg = OmegaConf.merge(OmegaConf.structured(FairseqConfig), sections)
    betas = str(tuple(training.adam_betas))
    cfg.optimizer = FairseqAdamConfig(
        adam_betas=betas, adam_eps=getattr(training, "adam_eps", 1e-8), weight_decay=training.weight_decay
    )
    cfg.optimizer._name, cfg.lr_scheduler = "fused_adam", scheduler
    OmegaConf.set_struct(cfg, True)
    task = Task(Namespace())
    torch.manual_seed(stage.seed)
    return FairseqTrainer(cfg, task, stage.model(), Criterion(task, stage.loss()))


def fairseq_weights(stage, groups, folder, scheduler):
    """The weights by name after fairseq's Trainer has made an update of each group of batches, and its learning rates."""
    trainer, rates = fairseq_trainer(stage, folder, scheduler), []
    for group in groups:
        rates.append(trainer.get_lr())
        trainer.train_step(group, raise_oom=True)
    return dict(trainer.get_model().named_parameters()), rates


def our_weights(stage, groups):
    """The same by `Trainer.train_step`."""
    torch.manual_seed(stage.seed)
    kwargs = {"batches": stage.batches}
    trainer = Trainer(
        stage.model(), stage.loss(), stage.settings.training, stage.schedule(), stage.seed, **kwargs
    )
    rates = []
    for group in groups:
        rates.append(trainer.lr)
        trainer.train_step(group)
    return dict(trainer.model.named_parameters()), rates


def groups_of(stage, count):
    """The batches of so many updates, from the first epoch on."""
    batches, groups, epoch = Batches(stage.dataset("train"), stage.batch_limits("train"), stage.seed), [], 0
    while len(groups) < count:
        epoch += 1
        groups += batches.updates(epoch, stage.batches)[1]
    return groups[:count]
