"""Settings as fairseq's configuration; data-parallel workers and their end."""

import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.configs import FairseqConfig
from fairseq.distributed import utils as distributed
from fairseq.optim.adam import FairseqAdamConfig
from omegaconf import DictConfig, OmegaConf, open_dict

from synmask.pipeline.config.base import Optimisation
from synmask.pipeline.training import operators  # noqa: F401 - registers fused_adam


def fairseq_config(
    checkpoints: Path,
    training: Optimisation,
    seed: int,
    processes: int,
    scheduler: FairseqDataclass,
    *,
    updates: int = 1,
    adam_eps: float = 1e-8,
    **dataset: Any,
) -> DictConfig:
    """A training as fairseq's configuration; `task` and `model` are left to the caller.

    Args:
        checkpoints: this training's folder.
        processes: number of workers.
        scheduler: fairseq's configuration of the learning rate's schedule, with its `_name`.
        updates: batches per update of each worker.
        dataset: keys of fairseq's section `dataset`, such as max_tokens.
    """
    cuda, precision = torch.cuda.is_available(), training.precision
    sections = {
        "common": {"no_progress_bar": True, "seed": seed, "cpu": not cuda, "tpu": False}
        | {"bf16": precision == "bf16", "fp16": precision == "fp16"},
        "checkpoint": {
            "save_dir": str(checkpoints),
            "load_checkpoint_on_all_dp_ranks": True,  # torch's weights_only rejects fairseq's broadcast
        },
        "dataset": {"num_workers": 0} | dataset,
        "optimization": {
            "max_epoch": training.max_epochs,
            "lr": [training.lr],
            "clip_norm": training.clip_norm,
            "update_freq": [updates],
        },
        "distributed_training": {"distributed_world_size": processes, "ddp_backend": "legacy_ddp"},
    }
    cfg = OmegaConf.merge(OmegaConf.structured(FairseqConfig), sections)
    adam = FairseqAdamConfig(
        adam_betas=str(tuple(training.adam_betas)), adam_eps=adam_eps, weight_decay=training.weight_decay
    )
    adam._name = "fused_adam"
    cfg.optimizer, cfg.lr_scheduler = adam, scheduler
    cfg.task = cfg.model = FairseqDataclass()  # else fairseq cannot load checkpoints
    OmegaConf.set_struct(cfg, True)
    return cfg


def join(cfg: DictConfig, rank: int, init_method: str) -> None:
    """Join the group of data-parallel workers."""
    with open_dict(cfg):
        cfg.distributed_training.distributed_init_method = init_method
        cfg.distributed_training.distributed_rank = rank
        cfg.distributed_training.device_id = rank
        cfg.distributed_training.distributed_backend = "nccl" if torch.cuda.is_available() else "gloo"
    if torch.cuda.is_available():
        torch.cuda.set_device(rank)
    cfg.distributed_training.distributed_rank = distributed.distributed_init(cfg)


def leave() -> NoReturn:
    """End this worker after its work.

    A normal exit of Python can abort the process: a thread of gloo may still free a tensor
    (pytorch/pytorch#190489), and fairseq keeps a process group whose threads cannot be ended.
    """
    torch.distributed.destroy_process_group()
    sys.stderr.flush()
    os._exit(0)
