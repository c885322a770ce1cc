"""Curves of a training for TensorBoard while it runs."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.record_writer import RecordWriter
from tensorboardX.summary import scalar

from synmask.pipeline.training.losses import Sums, mean_losses
from synmask.pipeline.training.trainer import Trainer

BOARD_SECONDS = 10.0  # seconds between two points within an epoch
NOT_CURVES = {"epoch", "updates", "seconds"}  # columns of history.csv that are no curve


class Board:
    """Writes `run`/tensorboard: each epoch's row of history.csv, and means over updates between epochs.

    After a resumption TensorBoard shows the points up to the checkpoint and those of this call: later ones
    of an earlier call are hidden.
    """

    def __init__(self, run: Path, updates: int) -> None:
        folder = run / "tensorboard"
        folder.mkdir(exist_ok=True)
        self.writer = RecordWriter(str(folder / f"events.out.tfevents.{time.time_ns()}"))
        self._add(file_version="brain.Event:2")
        self._add(step=updates + 1, session_log=SessionLog(status=SessionLog.START))
        self.last = time.perf_counter()

    def update(self, trainer: Trainer, totals: Sums, started: float) -> None:
        """Points of an update, every `BOARD_SECONDS` seconds: means since the epoch `started`."""
        now = time.perf_counter()
        if now - self.last > BOARD_SECONDS:
            self.last = now
            speed = float(totals["ntokens"]) / (now - started)
            values = {"loss": mean_losses(totals)["loss"], "lr": trainer.lr, "tokens_per_second": speed}
            self._write({f"within_epoch/{name}": value for name, value in values.items()}, trainer)

    def epoch(self, trainer: Trainer, row: Mapping[str, Any]) -> None:
        """Points of an epoch: its row, and the learning rate."""
        known = {name: value for name, value in row.items() if name not in NOT_CURVES and value != ""}
        self._write(known | {"lr": trainer.lr}, trainer)

    def _write(self, values: Mapping[str, Any], trainer: Trainer) -> None:
        for name, value in values.items():
            self._add(step=trainer.updates, summary=scalar(name, float(value)))
        self.writer.flush()

    def _add(self, **event: Any) -> None:
        self.writer.write(Event(wall_time=time.time(), **event).SerializeToString())
