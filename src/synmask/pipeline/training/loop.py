"""The training loop around fairseq's trainer: it saves, stops and resumes without changing the result."""

import csv
import logging
import re
import socket
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq import utils
from fairseq.data import iterators
from fairseq.logging import metrics
from fairseq.trainer import Trainer
from torch.multiprocessing import ProcessExitedException, ProcessRaisedException

from synmask.pipeline.arguments import TrainingOptions
from synmask.pipeline.files import (
    TryAgain,
    UserError,
    machine_fault,
    named_reads,
    sha256,
    write_json,
    writing,
)
from synmask.pipeline.gpus import lease, workers
from synmask.pipeline.provenance import commit, processor, versions
from synmask.pipeline.record import new_run, training_digest
from synmask.pipeline.training import checkpoints
from synmask.pipeline.training.compat_fairseq import ending_readers
from synmask.pipeline.training.lock import locked
from synmask.pipeline.training.memory import Peaks, save_memory
from synmask.pipeline.training.progress import Log, Progress
from synmask.pipeline.training.stage import Stage
from synmask.pipeline.training.stopping import Stop, bus_error_says
from synmask.pipeline.training.trainer import join, leave
from synmask.processor import CPU

TRUNCATED = (
    "a file that it reads became shorter or unreadable meanwhile (binarised data, or a full or failing "
    "disk); run it again"
)


@dataclass(frozen=True)
class _Job:
    """The values that all workers of a training share."""

    stage: Stage
    run: Path
    checkpoints: Path  # this training's folder
    training: TrainingOptions
    processes: int
    start: Path | None  # the checkpoint to resume from
    stop: Stop
    peaks: Peaks
    check_lock: Callable[[], None]
    stamp: dict[str, Any]  # identifies the training
    left_out: dict[str, int]  # examples of each part that are too long


def run_stage(stage: Stage, run: Path, training: TrainingOptions, processes: int | None = None) -> None:
    """Train, or resume an interrupted call.

    Writes to `run`/checkpoints/ (see training/checkpoints.py) and, when all epochs are done, the stage's own
    outputs, `run`/history.csv and `run`/train.json. Nothing is written before all data have been read.

    Args:
        processes: data-parallel workers; default: as many GPUs as can share an update's batches evenly, or
            one without a GPU.

    Raises:
        UserError: data are missing, the loss is no longer finite, memory is too small, there are more workers
            than GPUs, or workers cannot share an update's batches evenly.
        TryAgain: stopped by a signal (`Stop.SIGNALS`), after saving; or another process works on this run.
    """
    with ExitStack() as held:
        held.enter_context(lease(training.gpus))
        processes = _processes(stage, processes)
        left_out = stage.check()
        stamp = {"settings": stage.settings.plain(), "seed": stage.seed, "code": training.code}
        stamp["data"] = checkpoints.digest(stage.files())
        record = new_run(run, stamp | stage.details | {"training": training_digest(stamp)})
        check_lock = held.enter_context(locked(run))
        kwargs = {"again": bool(training.again), "any_code": bool(training.any_code)}
        folder = checkpoints.folder_of(stage, run, stamp, **kwargs)
        before = checkpoints.finished(folder, stage)
        if before:
            again = "to train again, give --again 1, or --forcerun with this rule to snakemake"
            print(f"{run}: all {stage.epochs} epochs are done; {again}", file=sys.stderr)
        else:
            start = checkpoints.latest(folder, stage.models)
            shared = Stop(processes), Peaks(processes + 1)
            job = _Job(stage, run, folder, training, processes, start, *shared, check_lock, stamp, left_out)
        done = before or _train(job)
        _write_history(run, done["history"])
        record |= done["summary"] | {"checkpoints": folder.name}
        record |= {"sha256": {"history.csv": sha256(run / "history.csv")}}
        stage.deliver(run, folder, done["history"], record)
        write_json(run / "train.json", record)
        if not before:
            checkpoints.drop_others(folder)


def _processes(stage: Stage, processes: int | None) -> int:
    """The number of workers; see `run_stage`."""
    gpus = torch.cuda.device_count()
    processes = processes or workers(stage.batches, gpus)
    if stage.settings.training.precision == "fp16" and not gpus:
        raise UserError("training.precision fp16 needs a GPU, and none is visible; give bf16 or fp32")
    if gpus and processes > gpus:
        raise UserError(f"--processes {processes}: only {gpus} GPUs are visible")
    if stage.batches % processes:
        raise UserError(
            f"--processes {processes}: cannot share the {stage.batches} batches of an update evenly"
        )
    return processes


def _train(job: _Job) -> dict[str, Any]:
    """Train to the end → the summary and the history."""
    for part, count in job.left_out.items():
        if count:
            print(f"{job.run}: {count:,} examples of {part} are too long and left out", file=sys.stderr)
    with job.stop.listening():
        _run_workers(job)
    if (done := checkpoints.finished(job.checkpoints, job.stage)) is None:
        raise TryAgain(f"{job.run}: stopped by a signal, and saved; the same command resumes it")
    return done


def _write_history(folder: Path, history: list[dict[str, Any]]) -> None:
    with writing(folder / "history.csv") as handle:
        table = csv.DictWriter(handle, history[0], lineterminator="\n")
        table.writeheader()
        table.writerows(history)


def _run_workers(job: _Job) -> None:
    if job.processes == 1:
        with bus_error_says(f"{job.run}: {TRUNCATED}"):
            return _worker(0, None, job)
    job.peaks.note(job.processes)  # this process, which only waits
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    try:
        torch.multiprocessing.spawn(_worker, (f"tcp://127.0.0.1:{port}", job), nprocs=job.processes)
    except ProcessExitedException as error:
        if error.signal_name == "SIGBUS":
            raise UserError(f"{job.run}: {TRUNCATED}") from None
        ending = error.signal_name or f"exit code {error.exit_code}"
        raise UserError(
            f"{job.run}: worker {error.error_index} ended with {ending} (SIGKILL is often too little memory: "
            "resources.mem_mb); the same command resumes from the last checkpoint"
        ) from None
    except ProcessRaisedException as error:
        if fault := re.search(r"\.(UserError|TryAgain): (.+)", str(error)):
            raise (TryAgain if fault[1] == "TryAgain" else UserError)(fault[2]) from None
        raise


def _worker(rank: int, init_method: str | None, job: _Job) -> None:
    logging.getLogger("fairseq").setLevel(logging.WARNING)
    logging.getLogger("fairseq.trainer").setLevel(logging.CRITICAL)  # it would print pages on GPU memory
    logging.getLogger("fairseq.tasks.fairseq_task").setLevel(logging.ERROR)  # our line reports long ones
    torch.set_num_threads(job.training.threads)
    save_memory()
    cfg = job.stage.config(job.checkpoints, job.processes)
    if init_method is None:
        return _Loop(job.stage.trainer(cfg), job, rank).run()
    try:
        with job.stop.listening():
            join(cfg, rank, init_method)
            _Loop(job.stage.trainer(cfg), job, rank).run()
            leave()
    except Exception as error:
        if line := machine_fault(error):  # a worker can send only text to its parent
            raise UserError(line) from None
        raise


class _Stopped(Exception):
    """The loop has saved its state and ends."""


class _Loop:
    """Epochs: train, validate, save, report.

    Checkpoints contain no state of random generators, since none outlives an update: fairseq seeds torch
    from seed and update before each update, batches are shuffled from seed and epoch, and masks are drawn
    from seed, epoch and sentence (translation/dataset.py).
    """

    def __init__(self, trainer: Trainer, job: _Job, rank: int) -> None:
        self.trainer, self.job, self.stage, self.rank = trainer, job, job.stage, rank
        self.master = trainer.is_data_parallel_master
        self.log = Log(job.run, self.master)
        self.history: list[dict[str, Any]] = []
        self.attempts: list[dict[str, Any]] = []  # before this call
        self.update_freq = trainer.cfg.optimization.update_freq[0]
        self.updates = 0  # since this call started
        self.saved = time.monotonic()
        self.commit = commit()  # of the code that runs: files may change while it does
        self.board: Any = None

    def run(self) -> None:
        batches, partial = self._start()
        if self.job.training.tensorboard and self.master:
            from synmask.pipeline.training.board import Board  # imported here: few trainings write it

            self.board = Board(self.job.run, self.trainer.get_num_updates())
        with ending_readers(), suppress(_Stopped):
            for epoch in range(len(self.history) + 1, self.stage.epochs + 1):
                self.history.append(self._epoch(batches, epoch, partial))
                partial = None
                self._save_epoch(batches, epoch)
                # An epoch may be a single update
                if epoch < self.stage.epochs and self.job.stop.due(self.updates, self.master):
                    raise _Stopped
            if self.master:
                self._finish()

    def _start(self) -> tuple[iterators.EpochBatchIterator, dict[str, Any] | None]:
        """Load the checkpoint, if there is one → batches, and the state of an unfinished epoch."""
        if self.job.start is None:
            return self.trainer.get_train_iterator(1), None
        with named_reads(self.job.start):
            state = self.trainer.load_checkpoint(str(self.job.start))
        self.history, self.attempts = state["history"], state.get("attempts", [])
        epoch, partial = len(self.history) + 1, state["partial"]
        update = self.trainer.get_num_updates() if partial else None
        self.log.resuming(epoch, self.stage.epochs, update)
        batches = self.trainer.get_train_iterator(epoch)
        if partial:
            # Workers take turns within an update, so its batches do not depend on their number.
            updates = partial["batches"] // (self.job.processes * self.update_freq)
            batches.load_state_dict(
                {"version": 2, "epoch": epoch, "iterations_in_epoch": updates * self.update_freq}
            )
        return batches, partial

    def _epoch(
        self, batches: iterators.EpochBatchIterator, epoch: int, partial: dict[str, Any] | None
    ) -> dict[str, Any]:
        started = time.perf_counter() - (partial["seconds"] if partial else 0.0)
        self.trainer.begin_epoch(epoch)
        groups = iterators.GroupedIterator(batches.next_epoch_itr(), self.update_freq)
        progress = Progress(self.log.say, epoch, self.stage.epochs, len(groups), self.history, started)
        with metrics.aggregate(new_root=True) as totals:
            if partial:
                totals.load_state_dict(partial["totals"])
            for samples in groups:
                self._step(samples)
                progress.show(totals, groups.n)
                if self.board:
                    self.board.update(self.trainer, totals, started)
                if groups.has_next():
                    self._save_or_stop(batches, totals, started)
        train = totals.get_smoothed_values()
        seconds = time.perf_counter() - started
        losses = self.stage.losses(self.trainer, train)
        self.trainer.lr_step(epoch, losses["valid_loss"])
        row = {
            "epoch": epoch,
            "updates": self.trainer.get_num_updates(),
            **losses,
            "tokens_per_second": round(float(totals["ntokens"].sum) / seconds, 1),
            "seconds": round(seconds, 2),
        }
        progress.end(row, self.stage.judged(row))
        if self.board:
            self.board.epoch(self.trainer, row)
        return row

    def _step(self, samples: list[dict]) -> None:
        self.updates += 1
        self.job.peaks.note(self.rank)
        # A worker with one batch less has an empty one, after which fairseq counts none of its tokens
        samples = [batch for batch in samples if batch] or samples[:1]
        try:
            self.trainer.train_step(samples, raise_oom=True)  # else fairseq skips the batch
        except Exception as error:
            # fairseq then repeats the batch under hooks, which may fail by themselves: today's torch raises
            # StopIteration for a module that returns lists
            if not any(isinstance(one, FloatingPointError) for one in (error, error.__context__)):
                raise
            (self.job.checkpoints / "crash.pt").unlink(missing_ok=True)
            update = self.trainer.get_num_updates()
            raise UserError(
                f"{self.job.run}: the loss is no longer finite at update {update}; lower training.lr or "
                "lengthen training.warmup_updates"
            ) from None

    def _save_or_stop(
        self, batches: iterators.EpochBatchIterator, totals: metrics.MetersDict, started: float
    ) -> None:
        """Within an epoch: save when it is time, and stop if a signal has requested it."""
        stop = self.job.stop.due(self.updates, self.master)
        late = time.monotonic() - self.saved > self.job.training.checkpoint_minutes * 60
        if self.master and (stop or late):
            # Only sums and counts: fairseq's clocks mean nothing in another process.
            sums = [meter for meter in totals.state_dict() if meter[2] == "AverageMeter"]
            seen = batches.iterations_in_epoch * self.job.processes
            seconds = time.perf_counter() - started
            self._save(batches, {"totals": sums, "batches": seen, "seconds": seconds})
        if stop:
            raise _Stopped

    def _save_epoch(self, batches: iterators.EpochBatchIterator, epoch: int) -> None:
        if not self.master:
            return
        if epoch in self.stage.models(self.history):
            model = {
                name: value.cpu()
                for name, value in self.trainer.get_model().state_dict().items()
                if not name.endswith("_float_tensor")  # uninitialised memory; only its type is used
            }
            self.job.check_lock()
            checkpoints.save_epoch(self.job.checkpoints, epoch, model, self.job.stamp)
        _write_history(self.job.checkpoints, self.history)  # before the state: with it, the last row is there
        self._save(batches, None)
        # keep those that previous.pt needs, too, in case last.pt is damaged
        wanted = {*self.stage.models(self.history), *self.stage.models(self.history[:-1])}
        checkpoints.drop(self.job.checkpoints, keep=wanted)

    def _save(self, batches: iterators.EpochBatchIterator, partial: dict[str, Any] | None) -> None:
        """Write last.pt: all that resuming needs. It is the same in every worker."""
        self.job.check_lock()
        self.trainer.consolidate_optimizer()  # fairseq requires this before state_dict()
        state = utils.move_to_cpu(self.trainer.state_dict())
        state["extra_state"] |= {
            "metrics": {},  # fairseq's own; nothing reads them
            "train_iterator": batches.state_dict(),
            "history": self.history,
            "partial": utils.move_to_cpu(partial),
            "attempts": [*self.attempts, self._attempt()],
            "stamp": self.job.stamp,
        }
        checkpoints.save_last(self.job.checkpoints, state)
        self.saved = time.monotonic()

    def _attempt(self) -> dict[str, Any]:
        """The progress of this call, its code, and its memory."""
        self.job.peaks.note(self.rank)
        return {"updates": self.trainer.get_num_updates(), "commit": self.commit, **self.job.peaks.total()}

    def _finish(self) -> None:
        attempts = [*self.attempts, self._attempt()]
        seconds = sum(row["seconds"] for row in self.history)
        speed = sum(row["tokens_per_second"] * row["seconds"] for row in self.history) / seconds
        induction = sys.modules.get("synmask.induction.distribution")  # loaded by the guides that use it
        summary = {
            "parameters": sum(p.numel() for p in self.trainer.get_model().parameters()),
            "train_seconds": round(seconds, 1),
            "tokens_per_second": round(speed, 1),
            "updates": self.history[-1]["updates"],
            "epochs": len(self.history),
            **self.stage.summary(self.history),
            "left_out": self.job.left_out,
            "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU",
            "processor": processor(),
            "operators": None if torch.cuda.is_available() else asdict(CPU),  # they affect last bits
            "threads": torch.get_num_threads(),
            "workers": self.job.processes,
            "accumulated_batches": self.update_freq,
            "attempts": attempts,
            **{what: max(attempt[what] for attempt in attempts) for what in ("memory", "gpu_memory")},
            "distribution": induction and induction.implementation(self.trainer.device),  # affects last bits
            "versions": versions(),
            "commit": self.commit,
        }
        if summary.get("diverged"):
            self.log.diverged(summary["diverged"])
        done = {"summary": summary, "history": self.history, "stamp": self.job.stamp}
        checkpoints.save(self.job.checkpoints / checkpoints.FINISHED, done)
