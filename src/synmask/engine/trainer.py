"""fairseq's trainer, built from a run's settings."""

from argparse import Namespace
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.distributed import utils as distributed
from fairseq.trainer import Trainer
from omegaconf import DictConfig, open_dict

from synmask.engine import operators  # noqa: F401 - registers fused_adam
from synmask.engine.binarise import read_dictionary
from synmask.engine.criterion import MixedLoss


def fairseq_config(
    data: Path, run: Path, source: str, target: str, settings: dict[str, Any], seed: int, processes: int = 1
) -> DictConfig:
    """The run's settings as fairseq's configuration."""
    return convert_namespace_to_omegaconf(
        fairseq_arguments(data, run, source, target, settings, seed, processes)
    )


def fairseq_arguments(
    data: Path, run: Path, source: str, target: str, settings: dict[str, Any], seed: int, processes: int = 1
) -> Namespace:
    """The run's settings as fairseq's command line has them; enough to build a model, and sooner there.

    Gradients are accumulated so that an update sees gpus x updates x tokens target tokens (`training.batch`)
    whatever the number of workers.
    """
    model, training, batch = settings["model"], settings["training"], settings["training"]["batch"]
    words = {
        "--task": "translation",
        "--source-lang": source,
        "--target-lang": target,
        "--arch": "transformer",
        "--encoder-layers": model["encoder_layers"],
        "--decoder-layers": model["decoder_layers"],
        "--encoder-embed-dim": model["embed_dim"],
        "--decoder-embed-dim": model["embed_dim"],
        "--encoder-ffn-embed-dim": model["ffn_dim"],
        "--decoder-ffn-embed-dim": model["ffn_dim"],
        "--encoder-attention-heads": model["heads"],
        "--decoder-attention-heads": model["heads"],
        "--dropout": training["dropout"],
        "--attention-dropout": training["attention_dropout"],
        "--lr-scheduler": "inverse_sqrt",
        "--warmup-init-lr": 1e-7,
        "--max-tokens": batch["tokens"],
        "--update-freq": batch["gpus"] * batch["updates"] // processes,
    }
    flags = ["--share-decoder-input-output-embed"]
    return _arguments(data, run, words, training, seed, processes, flags)


def parsed(*given: Any) -> DictConfig:
    """fairseq's configuration from words of its command line; see `_arguments`."""
    return convert_namespace_to_omegaconf(_arguments(*given))


def _arguments(
    data: Path,
    run: Path,
    words: Mapping[str, Any],
    training: Mapping[str, Any],
    seed: int,
    processes: int,
    flags: Iterable[str] = (),
) -> Namespace:
    """fairseq's arguments from `words` and `flags` of its command line, and what all trainings share."""
    shared = {
        "--optimizer": "fused_adam",
        "--adam-betas": str(tuple(training["adam_betas"])),
        "--weight-decay": training["weight_decay"],
        "--clip-norm": training["clip_norm"],
        "--lr": training["lr"],
        "--warmup-updates": training["warmup_updates"],
        "--max-epoch": training["max_epochs"],
        "--seed": seed,
        "--num-workers": 0,
        "--save-dir": run / "checkpoints",
        "--distributed-world-size": processes,
        "--ddp-backend": "legacy_ddp",
    }
    flags = [
        *flags,
        "--no-progress-bar",
        "--load-checkpoint-on-all-dp-ranks",  # fairseq's broadcast of one is refused by torch's weights_only
    ]
    cuda, precision = torch.cuda.is_available(), training["precision"]
    if not cuda:
        flags.append("--cpu")
    if precision == "bf16" or (cuda and precision == "fp16"):  # processors do not compute with fp16
        flags.append(f"--{precision}")
    parser = options.get_training_parser()
    pairs = [str(word) for pair in (words | shared).items() for word in pair]
    args = options.parse_args_and_arch(parser, [str(data), *pairs, *flags])
    args.tpu = False  # fairseq takes bf16 for a wish for a TPU
    return args


def join(cfg: DictConfig, rank: int, init_method: str, processes: int) -> None:
    """Join the group of data-parallel workers."""
    with open_dict(cfg):
        cfg.distributed_training.distributed_init_method = init_method
        cfg.distributed_training.distributed_rank = rank
        cfg.distributed_training.device_id = rank
        cfg.distributed_training.distributed_backend = "nccl" if torch.cuda.is_available() else "gloo"
    if torch.cuda.is_available():
        torch.cuda.set_device(rank)
    cfg.distributed_training.distributed_rank = distributed.distributed_init(cfg)


def build_trainer(
    cfg: DictConfig, settings: dict[str, Any], seed: int, templates: Mapping[str, Path]
) -> Trainer:
    """fairseq's trainer around our task, model and criterion, with the data loaded.

    Args:
        templates: see `train.Translation`.
    """
    from synmask.engine.task import GuidedTranslation  # here: RoBERTa's trainings have tasks of their own

    torch.manual_seed(seed)
    data = Path(cfg.task.data)
    languages = (cfg.task.source_lang, cfg.task.target_lang)
    dictionaries = [read_dictionary(data / f"dict.{language}.txt") for language in languages]
    words = read_dictionary(templates["dictionary"]) if templates else None
    task = GuidedTranslation(cfg.task, *dictionaries, settings, seed, words, templates)
    model = task.build_model(cfg.model)
    criterion = MixedLoss(task, settings["training"]["label_smoothing"], settings["system"]["mlm_weight"])
    task.load_dataset("valid")
    return Trainer(cfg, task, model, criterion)
