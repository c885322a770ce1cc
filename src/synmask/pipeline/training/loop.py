"""The loop around `Trainer.train_step`: it saves, stops and resumes a training, with the same result."""

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from synmask.pipeline import stamps
from synmask.pipeline.arguments import TrainingOptions
from synmask.pipeline.cpu.bf16 import float32_products
from synmask.pipeline.cpu.processor import CPU
from synmask.pipeline.disk import sha256
from synmask.pipeline.errors import TryAgain, UserError
from synmask.pipeline.files import csv_text, write_all, write_json
from synmask.pipeline.gpus import lease
from synmask.pipeline.provenance import commit, processor, versions
from synmask.pipeline.record import new_run, training_digest
from synmask.pipeline.training import checkpoints, torch_files
from synmask.pipeline.training.batches import Batches
from synmask.pipeline.training.lock import run_lock
from synmask.pipeline.training.losses import Sums, add_sums, mean_losses
from synmask.pipeline.training.memory import PeakMemory, save_memory
from synmask.pipeline.training.progress import Progress, log_line
from synmask.pipeline.training.stage import Stage
from synmask.pipeline.training.stopping import Stop, explain_bus_errors
from synmask.pipeline.training.trainer import Trainer
from synmask.pipeline.training.workers import (
    WorkerPlace,
    broadcast,
    launched_worker,
    start_workers,
    worker_group,
)

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
    options: TrainingOptions
    processes: int
    start: Path | None  # the checkpoint to resume from
    stop: Stop
    peaks: PeakMemory
    check_lock: Callable[[], None]
    stamp: dict[str, Any]  # identifies the training
    left_out: dict[str, int]  # examples of each part that are too long
    place: WorkerPlace | None  # among workers that torchrun or srun has started


def run_training(stage: Stage, run: Path, options: TrainingOptions, processes: int | None = None) -> None:
    """Train, or resume an interrupted call.

    Writes to `run`/checkpoints/ (see training/checkpoints.py) and, when all epochs are done, the stage's own
    outputs, `run`/history.csv and `run`/train.json. Nothing is written before all data have been read.

    If torchrun or srun has started several processes, each is a worker, and the first one writes.

    Args:
        processes: data-parallel workers; default: as many GPUs as can share an update's batches evenly, or
            one without a GPU.

    Raises:
        UserError: data are missing, the loss is no longer finite, memory is too small, there are more workers
            than GPUs, or workers cannot share an update's batches evenly.
        TryAgain: stopped by one of `SIGNALS`, after saving; or another process works on this run.
    """
    place = launched_worker()
    with ExitStack() as stack:
        stack.enter_context(worker_group(place, str(run)))
        if place is None:
            stack.enter_context(lease(options.gpus))
        elif place.rank > 0:
            return _run_follower(place)
        processes = _count_processes(stage, processes, place)
        left_out = stage.check()
        stamp = {"settings": stage.settings.plain(), "seed": stage.seed, "code": options.code}
        stamp["data"] = checkpoints.files_checksum(stage.data_files())
        if options.any_code:  # take over what an older version trained
            older = stamp | {"data": checkpoints.files_checksum(stage.older_data_files())}
            if any(set(begun.differs(older)) <= {"code"} for begun in stamps.checkpoint_folders(run)):
                stamp = older
        record = new_run(run, stamp | stage.run_facts | {"training": training_digest(stamp)})
        check_lock = stack.enter_context(run_lock(run))
        folder = checkpoints.open_folder(stage, run, stamp, options)
        earlier = checkpoints.read_finished(folder, stage)
        if earlier:
            advice = "to train again, give --again 1, or --forcerun with this rule to snakemake"
            print(f"{run}: all {stage.epochs} epochs are done; {advice}", file=sys.stderr)
            if place:
                broadcast(None)
        else:
            start = checkpoints.latest_checkpoint(folder, stage)
            shared = Stop(), PeakMemory(processes + 1), check_lock, stamp, left_out, place
            _run_workers(_Job(stage, run, folder, options, processes, start, *shared))
        finished = earlier or checkpoints.read_finished(folder, stage)
        if finished is None:
            raise TryAgain(f"{run}: stopped by a signal, and saved; the same command resumes it")
        _write_history(run, finished["history"])
        record |= finished["summary"] | {"checkpoints": folder.name}
        record |= {"sha256": {"history.csv": sha256(run / "history.csv")}}
        stage.write_outputs(run, folder, finished["history"], record)
        write_json(run / "train.json", record)
        if not earlier:
            checkpoints.remove_other_trainings(folder)


def _run_follower(place: WorkerPlace) -> None:
    """Do the work of a worker that the first one tells what to do; nothing if the training is done."""
    if job := broadcast(None):
        _run_worker(place.rank, replace(job, stop=Stop(), peaks=PeakMemory(job.processes + 1)))


def _count_processes(stage: Stage, processes: int | None, place: WorkerPlace | None = None) -> int:
    """The number of workers; see `run_training`."""
    gpus = place.count if place and torch.cuda.is_available() else torch.cuda.device_count()
    processes = place.count if place else processes or workers(stage.batches, gpus)
    if stage.settings.training.precision == "fp16" and not gpus:
        raise UserError("training.precision fp16 needs a GPU, and none is visible; give bf16 or fp32")
    if gpus and processes > gpus:
        raise UserError(f"--processes {processes}: only {gpus} GPUs are visible")
    if stage.batches % processes:
        raise UserError(
            f"--processes {processes}: cannot share the {stage.batches} batches of an update evenly"
        )
    if unused := max(gpus - processes, 0):
        why = f"an update has {stage.batches} batches"
        do = (
            "ask for fewer (resources.gpus), or raise training.batch.gpus (and lower updates or tokens there)"
        )
        print(f"note: {unused} of {gpus} GPUs stay unused, since {why}: {do}", file=sys.stderr)
    return processes


def _write_history(folder: Path, history: list[dict[str, Any]]) -> None:
    rows = [history[0], *(row.values() for row in history)]
    write_all({folder / "history.csv": csv_text(rows)})


def _run_workers(job: _Job) -> None:
    for part, count in job.left_out.items():
        if count:
            print(f"{job.run}: {count:,} examples of {part} are too long and left out", file=sys.stderr)
    with job.stop.listening():
        if job.place:
            broadcast(replace(job, stop=None, peaks=None))  # which have memory of this process
            _run_worker(0, job)
        elif job.processes == 1:
            with explain_bus_errors(f"{job.run}: {TRUNCATED}"):
                _run_worker(0, job)
        else:
            job.peaks.note(job.processes)  # this process, which only waits
            start_workers(_run_worker, job.processes, (job,), str(job.run), TRUNCATED)


def _run_worker(rank: int, job: _Job) -> None:
    torch.set_num_threads(job.options.threads)
    save_memory()
    bf16 = job.stage.settings.training.precision == "bf16"
    with job.stop.listening(), float32_products() if bf16 else nullcontext():
        _Loop(job, rank).run()


class _Stopped(Exception):
    """The loop has saved its state and ends."""


class _Loop:
    """Epochs: train, validate, save, report.

    Checkpoints contain no state of random generators, since none outlives an update: `train_step` seeds torch
    from seed and update, batches are shuffled from seed and epoch, and masks are drawn from seed, epoch and
    sentence (translation/dataset.py).
    """

    def __init__(self, job: _Job, rank: int) -> None:
        self.job, self.stage, self.rank = job, job.stage, rank
        stage, processes = job.stage, job.processes
        self.master = rank == 0
        self.say = partial(log_line, job.run) if self.master else lambda text: None
        self.train, self.valid = (
            Batches(stage.dataset(split), stage.batch_limits(split), stage.seed, rank, processes)
            for split in ("train", "valid")
        )
        torch.manual_seed(stage.seed)
        self.trainer = Trainer(
            stage.model(),
            stage.loss(),
            stage.settings.training,
            stage.schedule(),
            stage.seed,
            batches=stage.batches,
            workers=processes,
            dummy=self.train.first() if processes > 1 else None,
        )
        self.share = stage.batches // processes  # batches of an update that are this worker's
        self.history: list[dict[str, Any]] = []
        self.attempts: list[dict[str, Any]] = []  # before this call
        self.saved = time.monotonic()
        self.commit = commit()  # of the code that runs: files may change while it does
        self.board: Any = None

    def run(self) -> None:
        partial = self._resume()
        if self.job.options.tensorboard and self.master:
            from synmask.pipeline.training.board import Board  # imported here: few trainings write it

            self.board = Board(self.job.run, self.trainer.updates)
        with suppress(_Stopped):
            for epoch in range(len(self.history) + 1, self.stage.epochs + 1):
                stopping = self._epoch(epoch, partial or {"totals": {}, "batches": 0, "seconds": 0.0})
                partial = None
                self._save_epoch(epoch)
                if stopping and epoch < self.stage.epochs:  # an epoch may be a single update
                    return
            if self.master:
                self._finish()

    def _resume(self) -> dict[str, Any] | None:
        """Load the checkpoint, if there is one → the state of an unfinished epoch."""
        if self.job.start is None:
            return None
        state = torch_files.read_checkpoint(self.job.start)
        self.trainer.load_state_dict(state)
        self.history, self.attempts, partial = state["history"], state["attempts"], state["partial"]
        done = len(self.history)
        where = f"update {self.trainer.updates} in epoch {done + 1}" if partial else f"epoch {done}"
        self.say(f"resuming after {where} of {self.stage.epochs}")
        return partial

    def _epoch(self, epoch: int, partial: dict[str, Any]) -> bool:
        """Train, validate and add a row to the history → whether a signal came that asks to stop."""
        started = time.perf_counter() - partial["seconds"]
        totals, stopping = {**partial["totals"]}, False
        done = partial["batches"] // self.stage.batches  # so they do not depend on the number of workers
        count, updates = self.train.updates(epoch, self.share, done)
        progress = Progress(self.say, epoch, self.stage.epochs, count, self.history, started)
        with closing(updates):
            for number, batches in enumerate(updates, start=done + 1):
                sums = self._update(batches)
                stopping = bool(sums.pop("stop"))
                add_sums(totals, sums)
                if totals:  # the first updates may overflow in fp16
                    progress.show(totals, number)
                if totals and self.board:
                    self.board.update(self.trainer, totals, started)
                if number < count:
                    self._save_or_stop(number, totals, started, stopping)
        seconds = max(time.perf_counter() - started, 0.01)  # a clock may be coarse
        row = {
            "epoch": epoch,
            "updates": self.trainer.updates,
            **self.stage.validate(self.trainer, self.valid, mean_losses(totals), epoch),
            "tokens_per_second": round(float(totals["ntokens"]) / seconds, 1),
            "seconds": round(seconds, 2),
        }
        progress.end(row, self.stage.describe_quality(row))
        if self.board:
            self.board.epoch(self.trainer, row)
        self.history.append(row)
        return stopping

    def _update(self, batches: list[dict[str, Any]]) -> Sums:
        self.job.peaks.note(self.rank)
        try:
            return self.trainer.train_step(batches, self.job.stop.requested)
        except FloatingPointError:
            raise UserError(
                f"{self.job.run}: the loss is no longer finite at update {self.trainer.updates}; lower "
                "training.lr or lengthen training.warmup_updates"
            ) from None

    def _save_or_stop(self, updates: int, totals: Sums, started: float, stopping: bool) -> None:
        """After so many updates of an epoch: save when it is time, and stop if a signal has requested it."""
        late = time.monotonic() - self.saved > self.job.options.checkpoint_minutes * 60
        if self.master and (stopping or late):
            seconds = time.perf_counter() - started
            batches = updates * self.stage.batches
            self._save({"totals": {**totals}, "batches": batches, "seconds": seconds})
        if stopping:
            raise _Stopped

    def _save_epoch(self, epoch: int) -> None:
        if not self.master:
            return
        if epoch in self.stage.kept_epochs(self.history):
            model = {
                name: value.cpu()
                for name, value in self.trainer.model.state_dict().items()
                if not name.endswith("_float_tensor")  # uninitialised memory; only its type is used
            }
            self.job.check_lock()
            checkpoints.save_epoch(self.job.checkpoints, epoch, model, self.job.stamp)
        _write_history(self.job.checkpoints, self.history)  # before the state: with it, the last row is there
        self._save(None)
        # keep those that previous.pt needs, too, in case last.pt is damaged
        epochs = {*self.stage.kept_epochs(self.history), *self.stage.kept_epochs(self.history[:-1])}
        checkpoints.remove_epochs(self.job.checkpoints, keep=epochs)

    def _save(self, partial: dict[str, Any] | None) -> None:
        """Write last.pt: all that resuming needs. It is the same in every worker."""
        self.job.check_lock()
        state = self.trainer.state_dict() | {
            "history": self.history,
            "partial": partial,
            "attempts": [*self.attempts, self._attempt()],
            "stamp": self.job.stamp,
        }
        checkpoints.save_last(self.job.checkpoints, state)
        self.saved = time.monotonic()

    def _attempt(self) -> dict[str, Any]:
        """The progress of this call, its code, and its memory."""
        self.job.peaks.note(self.rank)
        return {"updates": self.trainer.updates, "commit": self.commit, **self.job.peaks.total()}

    def _finish(self) -> None:
        attempts = [*self.attempts, self._attempt()]
        seconds = sum(row["seconds"] for row in self.history)
        speed = sum(row["tokens_per_second"] * row["seconds"] for row in self.history) / seconds
        induction = sys.modules.get("synmask.induction.distribution")  # loaded by the guides that use it
        summary = {
            "parameters": sum(p.numel() for p in self.trainer.model.parameters()),
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
            "accumulated_batches": self.share,
            "attempts": attempts,
            **{peak: max(attempt[peak] for attempt in attempts) for peak in ("memory", "gpu_memory")},
            "distribution": induction and induction.implementation(self.trainer.device),  # affects last bits
            "versions": versions(),
            "commit": self.commit,
        }
        if summary.get("diverged"):
            self.say(f"diverged: {summary['diverged']}; its scores are marked")
        done = {"summary": summary, "history": self.history, "stamp": self.job.stamp}
        torch_files.save_checkpoint(self.job.checkpoints / checkpoints.FINISHED, done)


def workers(batches: int, gpus: int) -> int:
    """The most data-parallel workers, one per GPU, that share an update's `batches` evenly; at least one."""
    return max(number for number in range(1, max(gpus, 1) + 1) if batches % number == 0)
