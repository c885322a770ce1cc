"""What is measured is what is run."""

import time

import pytest
import torch

from synmask.engine import speed


def test_the_peak_is_what_a_step_holds_at_once():
    def step():
        first = torch.ones(1000, 1000)  # 4 MB
        del first
        second = torch.ones(3000, 1000)  # 12 MB
        return second + torch.ones(1000)  # 12 MB more

    assert speed.peak_bytes(step, "cpu") == pytest.approx(24e6, rel=0.01)


def test_steps_are_taken_in_turns_and_their_best_times_kept():
    taken = []
    naps = {"a": iter([0.02] * 3 + [0.01] * 400), "b": iter([0.001] * 400)}

    def step(name):
        taken.append(name)
        time.sleep(next(naps[name]))

    first, second = speed.seconds([lambda: step("a"), lambda: step("b")], "cpu")
    assert taken[:8] == list("abababab")
    assert first >= 0.01 > second >= 0.001
    assert len(taken) >= 8
