"""Measurements of the systems' time and memory."""

import json
import time

import pytest
import torch

from small_models import typed
from synmask.pipeline.config.guides import GUIDES
from synmask.pipeline.translation import speed
from synmask.pipeline.translation.task import GuidedTranslation, translation_config


def test_the_peak_is_what_a_step_holds_at_once():
    def step():
        first = torch.ones(1000, 1000)  # 4 MB
        del first
        second = torch.ones(3000, 1000)  # 12 MB
        return second + torch.ones(1000)  # 12 MB more

    assert speed.peak_bytes(step, "cpu") == pytest.approx(24e6, rel=0.01)


def test_steps_are_taken_in_turns_and_their_best_times_kept(monkeypatch):
    monkeypatch.setattr(speed, "TURN", 0.004)
    taken, clock = [], [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    naps = {"a": iter([0.02] * 3 + [0.01] * 400), "b": iter([0.001] * 400)}

    def step(name):
        taken.append(name)
        clock[0] += next(naps[name])

    first, second = speed.seconds([lambda: step("a"), lambda: step("b")], "cpu")
    assert [first, second] == pytest.approx([0.01, 0.001])
    warm_up, count, *turns = "".join(taken).split("a")[1:]
    assert (warm_up, count) == ("b", "b")
    assert len(turns) >= 3
    assert len(set(turns)) == 1  # a short step is run several times in its turn
    assert 1 < len(turns[0]) <= 4


@pytest.mark.parametrize("guide", sorted(name for name in GUIDES if "words" not in GUIDES[name].reads))
def test_every_system_can_be_measured(corpus, settings_of, tmp_path, monkeypatch, guide):
    settings = settings_of(guide)
    cfg = translation_config(corpus / "bin", corpus, "de", "en", typed(settings), seed=1)
    words = [GuidedTranslation.load_dictionary(str(corpus / f"bin/dict.{side}.txt")) for side in ("de", "en")]
    task = GuidedTranslation(
        cfg.task, *words, typed(settings), template_dictionary=words[1] if GUIDES[guide].templates else None
    )
    model = task.build_model(cfg.model).eval()
    monkeypatch.setattr(speed, "load_model", lambda path: (model, task, {}))
    monkeypatch.setattr(speed, "seconds", lambda steps, device: [step() or 0.5 for step in steps])
    monkeypatch.setattr(speed, "LENGTHS", (4, 16))
    monkeypatch.setattr(speed, "TOKENS", 32)
    speed.measure_files({"a": tmp_path / "a.pt"}, tmp_path / "speed.json", threads=1)
    cost = json.loads((tmp_path / "speed.json").read_text())
    assert (cost["device"], cost["threads"]) == ("CPU", 1) or torch.cuda.is_available()
    assert [(row["model"], row["length"], row["sentences"]) for row in cost["rows"]] == [
        ("a", 4, 8),
        ("a", 16, 2),
    ]
    assert [row["milliseconds"] for row in cost["rows"]] == [62.5, 250.0]  # 0.5 s per batch
    assert cost["rows"][1]["megabytes"] > cost["rows"][0]["megabytes"] > 0


def test_a_batch_has_what_a_parser_would_give(corpus, settings_of):
    settings = settings_of("pascal")
    cfg = translation_config(corpus / "bin", corpus, "de", "en", typed(settings), seed=1)
    words = [GuidedTranslation.load_dictionary(str(corpus / f"bin/dict.{side}.txt")) for side in ("de", "en")]
    task = GuidedTranslation(cfg.task, *words, typed(settings))
    task.build_model(cfg.model)
    net = speed._batch(task, 2, 4)
    assert net["src_tokens"].shape == (2, 4)
    assert (net["src_tokens"][:, -1] == task.src_dict.eos()).all()
    assert net["annotations"]["heads"][0].tolist() == [[0, 0], [0, 0], [1, 1], [3, 3]]
