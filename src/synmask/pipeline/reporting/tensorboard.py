"""Histories of training runs as event files, which TensorBoard shows."""

import csv
from collections.abc import Iterator
from pathlib import Path

from tensorboardX.proto.event_pb2 import Event
from tensorboardX.record_writer import RecordWriter
from tensorboardX.summary import scalar

from synmask.pipeline.files import UserError, all_renamed, read_lines
from synmask.pipeline.options import OneOrMore

EVENTS = "events.out.tfevents.synmask"  # TensorBoard looks for the middle part
OTHERS = {"epoch", "updates", "seconds"}  # columns that are no curve


def write_events(runs: OneOrMore[Path], /, *, logdir: Path) -> None:
    """Write the losses and scores of training runs by update as event files for TensorBoard.

    For example: `synmask tensorboard results/demo/de-en/*/seed* --logdir curves`; look at it with
    `tensorboard --logdir curves`. Of a run that is still training it writes the epochs that are done. Event
    files of an earlier call are replaced.

    Args:
        runs: Folders with a history.csv: of training, pre-training or fine-tuning.
        logdir: Folder for the event files; a run keeps its path below results/, or the name of its folder.

    Raises:
        UserError: a run has no history, or one that is damaged, or two runs have one name.
    """
    events = [list(_events(run / "history.csv")) for run in runs]
    with all_renamed([logdir / _name(run) / EVENTS for run in runs]) as paths:
        for path, found in zip(paths, events, strict=True):
            writer = RecordWriter(str(path))
            for event in found:
                writer.write(event.SerializeToString())
            writer.close()


def _name(run: Path) -> Path:
    parts = run.resolve().parts
    return Path(*parts[parts.index("results") + 1 :]) if "results" in parts[:-1] else Path(parts[-1])


def _events(path: Path) -> Iterator[Event]:
    """The format's version, then the values of each epoch, at the time when it ended.

    The history says how long epochs took; it is taken to have been written when the last one ended.
    """
    rows = list(csv.DictReader(read_lines(path)))
    try:
        seconds = [float(row["seconds"]) for row in rows]
        time = path.stat().st_mtime - sum(seconds)
        yield Event(wall_time=time, file_version="brain.Event:2")
        for row, took in zip(rows, seconds, strict=True):
            time += took
            for name, value in row.items():
                if value and name not in OTHERS:
                    summary = scalar(name, float(value))
                    yield Event(wall_time=time, step=int(row["updates"]), summary=summary)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path}: not the history of a training run ({error!r}); train again") from None
