"""The lines of a training in its log."""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from synmask.pipeline.training.losses import Sums, mean_losses


def log_line(run: Path, text: str) -> None:
    """Print a line on stderr, with system and seed, since several trainings may share a terminal."""
    with suppress(OSError):  # a full disk or a closed pipe must not end a training
        print(f"{'/'.join(run.parts[-2:])}  {text}", file=sys.stderr, flush=True)


@dataclass
class Progress:
    """A line every ten seconds and at the end of each epoch: loss, tokens/s, time left."""

    INTERVAL: ClassVar[float] = 10.0

    say: Callable[[str], None]
    epoch: int
    epochs: int
    steps: int
    history: list[dict]
    started: float
    last: float = field(default_factory=time.perf_counter)

    @property
    def earlier(self) -> float:
        return sum(row["seconds"] for row in self.history)

    def show(self, totals: Sums, step: int) -> None:
        now = time.perf_counter()
        if now - self.last > self.INTERVAL:
            self.last = now
            done = (self.epoch - 1) + step / self.steps
            left = (self.earlier + now - self.started) * (self.epochs / done - 1)
            self.say(
                f"epoch {self.epoch}/{self.epochs}  batch {step}/{self.steps}  "
                f"loss {mean_losses(totals)['loss']:.3f}  "
                f"{float(totals['ntokens']) / (now - self.started):,.0f} tokens/s  "
                f"{_duration(left)} left"
            )

    def end(self, row: dict[str, Any], quality: str) -> None:
        left = (self.earlier + row["seconds"]) * (self.epochs / self.epoch - 1)
        self.say(
            f"epoch {self.epoch}/{self.epochs} done  loss {row['train_loss']:.3f}  "
            f"validation loss {row['valid_loss']:.3f}, {quality}  "
            f"{row['tokens_per_second']:,.0f} tokens/s  {_duration(left)} left"
        )


def _duration(seconds: float) -> str:
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"
