"""Event files, read record by record as TensorBoard does."""

import os

import pytest

from synmask.pipeline.cli import main
from synmask.pipeline.files import UserError
from synmask.pipeline.reporting.tensorboard import EVENTS, write_events
from tensorboard_events import events

HISTORY = """epoch,updates,train_loss,mlm_loss,valid_loss,tokens_per_second,seconds
1,40,4.5,,4.25,1000.5,2.5
2,80,3.5,1.5,3.25,2000.0,1.5
"""


def run(folder, text=HISTORY):
    folder.mkdir(parents=True)
    (folder / "history.csv").write_text(text)
    os.utime(folder / "history.csv", (1_000_000, 1_000_000))
    return folder


def test_each_column_is_a_curve_over_updates(tmp_path):
    folder = run(tmp_path / "results/demo/de-en/grammar/seed1")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    main(["tensorboard", str(folder), str(run(tmp_path / "mine")), "--logdir", str(tmp_path / "curves")])
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    first, *rest = events(tmp_path / "curves/demo/de-en/grammar/seed1" / EVENTS)
    assert (first.file_version, first.wall_time) == ("brain.Event:2", 1_000_000 - 4)
    points = [
        (one.step, one.wall_time, one.summary.value[0].tag, one.summary.value[0].simple_value) for one in rest
    ]
    assert points == [
        (40, 999_998.5, "train_loss", 4.5),
        (40, 999_998.5, "valid_loss", 4.25),
        (40, 999_998.5, "tokens_per_second", 1000.5),
        (80, 1_000_000, "train_loss", 3.5),
        (80, 1_000_000, "mlm_loss", 1.5),
        (80, 1_000_000, "valid_loss", 3.25),
        (80, 1_000_000, "tokens_per_second", 2000.0),
    ]
    assert [*events(tmp_path / "curves/mine" / EVENTS)] == [first, *rest]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ([HISTORY, "epoch,updates\n1,2\n"], "history.csv: not the history of a training run .*seconds"),
        ([HISTORY, HISTORY.replace("4.5", "x")], "history.csv: not the history"),
        ([HISTORY, HISTORY.replace("1.5\n", "1.5,7\n")], "history.csv: not the history"),
    ],
)
def test_nothing_is_written_if_a_history_is_damaged(tmp_path, texts, said):
    runs = [run(tmp_path / str(number), text) for number, text in enumerate(texts)]
    with pytest.raises(UserError, match=said):
        write_events(runs, logdir=tmp_path / "curves")
    assert not (tmp_path / "curves").exists()


def test_two_runs_of_one_name_are_refused(tmp_path):
    runs = [run(tmp_path / folder / "seed1") for folder in "ab"]
    with pytest.raises(UserError, match="one file for two outputs"):
        write_events(runs, logdir=tmp_path / "curves")
