"""Training: fairseq's trainer under a loop that resumes, shows progress and keeps what averaging needs."""

import csv
import hashlib
import json
import logging
import math
import os
import re
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from fairseq import options
from fairseq.data import iterators
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.distributed import utils as distributed
from fairseq.logging import metrics
from fairseq.trainer import Trainer
from omegaconf import DictConfig, open_dict

from synmask.config.guides import GUIDES
from synmask.engine.criterion import MixedLoss
from synmask.engine.task import GuidedTranslation
from synmask.files import UserError, sha256, write_json, writing
from synmask.provenance import commit, versions

HISTORY = (
    "epoch",
    "updates",
    "train_loss",
    "mlm_loss",
    "valid_loss",
    "valid_ppl",
    "tokens_per_second",
    "seconds",
)


def train(
    data: Path,
    run: Path,
    source: str,
    target: str,
    settings: dict[str, Any],
    seed: int,
    *,
    keep: int,
    code: Iterable[Path] = (),
    threads: int = 1,
    processes: int | None = None,
) -> None:
    """Train one system with one seed, or go on where an earlier call stopped.

    Writes `run`/checkpoints/ (last.pt to resume from; epoch<N>.pt, models alone, of the last `keep` epochs),
    `run`/history.csv and, when all epochs are done, `run`/train.json. A run whose settings, data, seed or
    code differ from those of the checkpoints that lie there starts again from nothing.

    Args:
        data: folder of binarised data.
        settings: `model`, `training` and `system`, as `Config.run_settings` gives them.
        code: the source files that decide what a training computes.
        threads: CPU threads of each process. The same number gives the same bytes on CPU.
        processes: data-parallel workers; default: one a visible GPU, one without a GPU.

    Raises:
        UserError: data missing, loss no longer finite, or more workers than GPUs.
    """
    gpus = torch.cuda.device_count()
    processes = processes or max(1, gpus)
    if gpus and processes > gpus:
        raise UserError(f"--processes {processes}: only {gpus} GPUs are visible")
    logging.getLogger("fairseq").setLevel(logging.WARNING)
    run.mkdir(parents=True, exist_ok=True)
    files = [*data.glob("train.*")]
    if GUIDES[settings["system"]["guide"]].reads:
        files += data.glob(f"syntax.train.{source}.npy")
    stamp = {"settings": settings, "seed": seed, "data": _digest(files), "code": _digest(code)}
    _claim(run, stamp)
    arguments = (data, run, source, target, settings, seed, keep, threads, processes)
    if processes == 1:
        _worker(0, None, *arguments)
    else:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        try:
            torch.multiprocessing.spawn(_worker, (f"tcp://127.0.0.1:{port}", *arguments), nprocs=processes)
        except torch.multiprocessing.ProcessRaisedException as error:
            if fault := re.search(r"UserError: (.+)", str(error)):
                raise UserError(fault[1]) from None
            raise


def _digest(paths: Iterable[Path]) -> str:
    lines = sorted(f"{path.name} {sha256(path)}" for path in paths)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _claim(run: Path, stamp: dict[str, Any]) -> None:
    """Keep the checkpoints of `run` if they belong to this very training; else remove them."""
    path, checkpoints = run / "checkpoints" / "stamp.json", run / "checkpoints"
    if checkpoints.exists():
        there = json.loads(path.read_text()) if path.exists() else {}
        changed = [key for key in stamp if there.get(key) != stamp[key]]
        if changed:
            print(f"{checkpoints}: from other {' and '.join(changed)}; starting again", file=sys.stderr)
            shutil.rmtree(checkpoints)
    write_json(path, stamp)


def _worker(
    rank: int,
    init_method: str | None,
    data: Path,
    run: Path,
    source: str,
    target: str,
    settings: dict[str, Any],
    seed: int,
    keep: int,
    threads: int,
    processes: int,
) -> None:
    torch.set_num_threads(threads)
    cfg = fairseq_config(data, run, source, target, settings, seed, processes)
    if init_method is not None:
        _join(cfg, rank, init_method, processes)
    trainer = build_trainer(cfg, settings, seed)
    _Loop(trainer, cfg, run, settings["training"]["max_epochs"], keep).run()


def fairseq_config(
    data: Path, run: Path, source: str, target: str, settings: dict[str, Any], seed: int, processes: int = 1
) -> DictConfig:
    """The run's settings as fairseq's configuration.

    Gradients are accumulated so that an update sees gpus x updates x tokens target tokens (`training.batch`)
    whatever the number of workers.
    """
    model, training, batch = settings["model"], settings["training"], settings["training"]["batch"]
    updates = math.ceil(batch["gpus"] * batch["updates"] / processes)
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
        "--optimizer": "adam",
        "--adam-betas": str(tuple(training["adam_betas"])),
        "--weight-decay": training["weight_decay"],
        "--clip-norm": training["clip_norm"],
        "--lr": training["lr"],
        "--lr-scheduler": "inverse_sqrt",
        "--warmup-updates": training["warmup_updates"],
        "--warmup-init-lr": 1e-7,
        "--max-tokens": batch["tokens"],
        "--update-freq": updates,
        "--max-epoch": training["max_epochs"],
        "--seed": seed,
        "--num-workers": 0,
        "--save-dir": run / "checkpoints",
        "--distributed-world-size": processes,
        "--ddp-backend": "legacy_ddp",
    }
    flags = ["--share-decoder-input-output-embed", "--no-progress-bar"]
    if not torch.cuda.is_available():
        flags.append("--cpu")
    elif training["precision"] != "fp32":
        flags.append(f"--{training['precision']}")
    parser = options.get_training_parser()
    line = [str(data), *(str(word) for pair in words.items() for word in pair), *flags]
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, line))


def _join(cfg: DictConfig, rank: int, init_method: str, processes: int) -> None:
    """Join the group of data-parallel workers."""
    with open_dict(cfg):
        cfg.distributed_training.distributed_init_method = init_method
        cfg.distributed_training.distributed_rank = rank
        cfg.distributed_training.device_id = rank
        cfg.distributed_training.distributed_backend = "nccl" if torch.cuda.is_available() else "gloo"
    if torch.cuda.is_available():
        torch.cuda.set_device(rank)
    cfg.distributed_training.distributed_rank = distributed.distributed_init(cfg)


def build_trainer(cfg: DictConfig, settings: dict[str, Any], seed: int) -> Trainer:
    """fairseq's trainer around our task, model and criterion, with the data loaded."""
    torch.manual_seed(seed)
    data = Path(cfg.task.data)
    dictionaries = []
    for language in (cfg.task.source_lang, cfg.task.target_lang):
        path = data / f"dict.{language}.txt"
        if not path.exists():
            raise UserError(f"{path}: no such file; binarise the corpus first")
        dictionaries.append(GuidedTranslation.load_dictionary(str(path)))
    task = GuidedTranslation(cfg.task, *dictionaries, settings, seed)
    model = task.build_model(cfg.model)
    criterion = MixedLoss(task, settings["training"]["label_smoothing"], settings["system"]["mlm_weight"])
    task.load_dataset("valid")
    return Trainer(cfg, task, model, criterion)


class _Loop:
    """Epochs: train, validate, save, report."""

    def __init__(self, trainer: Trainer, cfg: DictConfig, run: Path, max_epochs: int, keep: int) -> None:
        self.trainer, self.cfg, self.run_folder = trainer, cfg, run
        self.max_epochs, self.keep = max_epochs, keep
        self.master = trainer.is_data_parallel_master
        self.checkpoints = run / "checkpoints"
        self.history: list[dict[str, Any]] = []
        self.update_freq = cfg.optimization.update_freq[0]

    def run(self) -> None:
        last = self.checkpoints / "last.pt"
        state = self.trainer.load_checkpoint(str(last)) if last.exists() else None
        if state:
            self.history = state["history"]
            self._say(f"going on after epoch {len(self.history)} of {self.max_epochs}")
        first = len(self.history) + 1
        batches = self.trainer.get_train_iterator(first)
        for epoch in range(first, self.max_epochs + 1):
            self.history.append(self._epoch(batches, epoch))
            self._save(batches, epoch)
        if self.master:
            self._finish()

    def _epoch(self, batches: iterators.EpochBatchIterator, epoch: int) -> dict[str, Any]:
        started = time.perf_counter()
        self.trainer.begin_epoch(epoch)
        groups = iterators.GroupedIterator(batches.next_epoch_itr(), self.update_freq)
        progress = _Progress(self._say, epoch, self.max_epochs, len(groups), self.history)
        with metrics.aggregate(new_root=True) as totals:
            for samples in groups:
                self._step(samples)
                progress.show(totals)
        train = totals.get_smoothed_values()
        seconds = time.perf_counter() - started
        valid = self._validate()
        self.trainer.lr_step(epoch, valid["loss"])
        row = {
            "epoch": epoch,
            "updates": self.trainer.get_num_updates(),
            "train_loss": round(float(train["loss"]), 5),
            "mlm_loss": round(float(train["mlm_loss"]), 5) if "mlm_loss" in train else "",
            "valid_loss": round(float(valid["loss"]), 5),
            "valid_ppl": round(math.exp(min(float(valid["nll_loss"]), 50)), 4),
            "tokens_per_second": round(float(totals["ntokens"].sum) / seconds, 1),
            "seconds": round(seconds, 2),
        }
        progress.end(row)
        return row

    def _step(self, samples: list[dict]) -> None:
        try:
            self.trainer.train_step(samples)
        except FloatingPointError:
            (self.checkpoints / "crash.pt").unlink(missing_ok=True)
            update = self.trainer.get_num_updates()
            raise UserError(
                f"{self.run_folder}: the loss is no longer finite at update {update}; lower training.lr or "
                "lengthen training.warmup_updates"
            ) from None

    def _validate(self) -> dict[str, float]:
        batches = self.trainer.get_valid_iterator("valid").next_epoch_itr(
            shuffle=False, set_dataset_epoch=False
        )
        with metrics.aggregate(new_root=True) as totals:
            for sample in batches:
                self.trainer.valid_step(sample)
        return totals.get_smoothed_values()

    def _save(self, batches: iterators.EpochBatchIterator, epoch: int) -> None:
        """last.pt with all that resuming needs, epoch<N>.pt with the model alone; older ones are removed."""
        if self.master:
            model = {
                name: value.cpu()
                for name, value in self.trainer.get_model().state_dict().items()
                if not name.endswith("_float_tensor")  # uninitialised memory, there only for its type
            }
            _replace(self.checkpoints / f"epoch{epoch}.pt", lambda path: torch.save(model, path))
            (self.checkpoints / f"epoch{epoch - self.keep}.pt").unlink(missing_ok=True)
        self.trainer.consolidate_optimizer()  # fairseq wants it before it hands out its state
        extra = {"train_iterator": batches.state_dict(), "history": self.history}
        if self.master:
            _replace(self.checkpoints / "last.pt", lambda path: self.trainer.save_checkpoint(path, extra))
            with writing(self.run_folder / "history.csv") as handle:
                table = csv.DictWriter(handle, HISTORY, lineterminator="\n")
                table.writeheader()
                table.writerows(self.history)

    def _finish(self) -> None:
        parameters = sum(p.numel() for p in self.trainer.get_model().parameters())
        seconds = sum(row["seconds"] for row in self.history)
        speed = sum(row["tokens_per_second"] * row["seconds"] for row in self.history) / seconds
        workers = self.cfg.distributed_training.distributed_world_size
        write_json(
            self.run_folder / "train.json",
            {
                "parameters": parameters,
                "train_seconds": round(seconds, 1),
                "tokens_per_second": round(speed, 1),
                "updates": self.history[-1]["updates"],
                "epochs": len(self.history),
                "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU",
                "threads": torch.get_num_threads(),
                "workers": workers,
                "accumulated_batches": self.update_freq,
                "versions": versions(),
                "commit": commit(),
            },
        )

    def _say(self, text: str) -> None:
        """One line, headed by system and seed, since several trainings may write to one terminal."""
        if self.master:
            print(f"{'/'.join(self.run_folder.parts[-2:])}  {text}", file=sys.stderr, flush=True)


def _replace(path: Path, save: Any) -> None:
    """Write a checkpoint under a temporary name, then rename it, so that what has the name is whole."""
    temporary = path.with_name(f".{path.name}.tmp")
    save(str(temporary))
    os.replace(temporary, path)


class _Progress:
    """One line every ten seconds and one at each epoch's end: loss, tokens/s, time left."""

    INTERVAL = 10.0

    def __init__(
        self, say: Callable[[str], None], epoch: int, epochs: int, steps: int, history: list[dict]
    ) -> None:
        self.say, self.epoch, self.epochs, self.steps = say, epoch, epochs, steps
        self.earlier = sum(row["seconds"] for row in history)
        self.step = 0
        self.started = self.last = time.perf_counter()

    def show(self, totals: Any) -> None:
        self.step += 1
        now = time.perf_counter()
        if now - self.last > self.INTERVAL:
            self.last = now
            done = (self.epoch - 1) + self.step / self.steps
            left = (self.earlier + now - self.started) * (self.epochs / done - 1)
            self.say(
                f"epoch {self.epoch}/{self.epochs}  batch {self.step}/{self.steps}  "
                f"loss {totals['loss'].avg:.3f}  "
                f"{float(totals['ntokens'].sum) / (now - self.started):,.0f} tokens/s  "
                f"{_duration(left)} left"
            )

    def end(self, row: dict[str, Any]) -> None:
        left = (self.earlier + row["seconds"]) * (self.epochs / self.epoch - 1)
        self.say(
            f"epoch {self.epoch}/{self.epochs} done  loss {row['train_loss']:.3f}  "
            f"validation loss {row['valid_loss']:.3f}, perplexity {row['valid_ppl']:.2f}  "
            f"{row['tokens_per_second']:,.0f} tokens/s  {_duration(left)} left"
        )


def _duration(seconds: float) -> str:
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"
