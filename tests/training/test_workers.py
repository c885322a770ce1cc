"""The group of data-parallel workers."""

import pytest

from spawned import busy, failing
from synmask.pipeline.files import UserError
from synmask.pipeline.training.workers import start


@pytest.mark.parametrize("turn", range(3))
def test_workers_end_well_though_threads_of_their_group_still_work(turn):
    start(busy, 2, (turn,), "run", "cut")


def test_a_fault_of_one_worker_ends_all():
    with pytest.raises(UserError, match="out of luck"):
        start(failing, 2, (UserError("out of luck"),), "run", "cut")
