"""Curves of a training while it runs, read record by record as TensorBoard does."""

import csv

from small_models import fit, typed
from synmask.pipeline.training import board
from tensorboard_events import points


def test_curves_stand_there_while_it_trains(corpus, tmp_path, settings, monkeypatch):
    monkeypatch.setattr(board, "BOARD_SECONDS", 0.0)
    seen = []
    real = board.Board.epoch

    def watched(self, trainer, row):
        real(self, trainer, row)
        seen.append(len(points(tmp_path / "a/tensorboard")))

    monkeypatch.setattr(board.Board, "epoch", watched)
    fit(corpus / "bin", tmp_path / "a", typed(settings), keep=1, tensorboard=1)
    assert 0 < seen[0] < seen[1] < seen[2]
    rows = [*csv.DictReader((tmp_path / "a/history.csv").open())]
    found = points(tmp_path / "a/tensorboard")
    for name in ("train_loss", "valid_loss", "valid_ppl", "tokens_per_second"):
        expected = [(int(row["updates"]), float(row[name])) for row in rows]
        assert [(step, round(value, 3)) for tag, step, value in found if tag == name] == [
            (step, round(value, 3)) for step, value in expected
        ]
    within = [(step, value) for tag, step, value in found if tag == "within_epoch/lr"]
    assert [step for step, _ in within] == [*range(1, int(rows[-1]["updates"]) + 1)]
    assert len({value for _, value in within}) > 3
    assert {tag for tag, _, _ in found} >= {"lr", "within_epoch/loss", "within_epoch/tokens_per_second"}


def test_the_model_does_not_depend_on_them(corpus, tmp_path, settings):
    for name, tensorboard in (("a", 1), ("b", 0)):
        fit(corpus / "bin", tmp_path / name, typed(settings), keep=1, tensorboard=tensorboard)
    assert (tmp_path / "a/tensorboard").is_dir()
    assert not (tmp_path / "b/tensorboard").exists()
    first, second = ([*csv.DictReader((tmp_path / f"{name}/history.csv").open())] for name in "ab")
    assert [row["valid_loss"] for row in first] == [row["valid_loss"] for row in second]
