"""Settings as fairseq's configuration; the group of data-parallel workers."""

import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.distributed import utils as distributed
from omegaconf import DictConfig, open_dict

from synmask.pipeline.config.base import Optimisation
from synmask.pipeline.training import operators  # noqa: F401 - registers fused_adam


def fairseq_config(*given: Any) -> DictConfig:
    """fairseq's configuration; see `fairseq_arguments`."""
    return convert_namespace_to_omegaconf(fairseq_arguments(*given))


def fairseq_arguments(
    data: Path,
    run: Path,
    words: Mapping[str, Any],
    training: Optimisation,
    seed: int,
    processes: int,
    flags: Iterable[str] = (),
) -> Namespace:
    """fairseq's arguments: `words` and `flags` of its command line, and those that all trainings share.

    They suffice to build a model, and take less time than the configuration.
    """
    shared = {
        "--optimizer": "fused_adam",
        "--adam-betas": str(tuple(training.adam_betas)),
        "--weight-decay": training.weight_decay,
        "--clip-norm": training.clip_norm,
        "--lr": training.lr,
        "--warmup-updates": training.warmup_updates,
        "--max-epoch": training.max_epochs,
        "--seed": seed,
        "--num-workers": 0,
        "--save-dir": run / "checkpoints",
        "--distributed-world-size": processes,
        "--ddp-backend": "legacy_ddp",
    }
    flags = [
        *flags,
        "--no-progress-bar",
        "--load-checkpoint-on-all-dp-ranks",  # torch's weights_only rejects fairseq's broadcast
    ]
    if not torch.cuda.is_available():
        flags.append("--cpu")
    if training.precision != "fp32":
        flags.append(f"--{training.precision}")
    parser = options.get_training_parser()
    # with =, since a folder may be named -1
    pairs = [f"{option}={value}" for option, value in (words | shared).items()]
    args = options.parse_args_and_arch(parser, [str(data), *pairs, *flags])
    args.tpu = False  # fairseq assumes a TPU for bf16
    return args


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
    """End this worker, whose work is done.

    Python's own end can abort the process: a thread of gloo may still free a tensor (pytorch/pytorch#190489),
    and fairseq keeps a group, whose threads no call ends.
    """
    torch.distributed.destroy_process_group()
    sys.stderr.flush()
    os._exit(0)
