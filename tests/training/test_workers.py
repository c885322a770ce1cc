"""The group of data-parallel workers."""

from types import SimpleNamespace

import pytest

from spawned import busy, failing
from synmask.pipeline.errors import UserError
from synmask.pipeline.training import workers
from synmask.pipeline.training.workers import Place, launched, start


@pytest.mark.parametrize("turn", range(3))
def test_workers_end_well_though_threads_of_their_group_still_work(turn):
    start(busy, 2, (turn,), "run", "cut")


def test_a_fault_of_one_worker_ends_all():
    with pytest.raises(UserError, match="out of luck"):
        start(failing, 2, (UserError("out of luck"),), "run", "cut")


def test_the_place_among_workers_is_what_torchrun_or_srun_says(monkeypatch):
    torchrun = {
        "RANK": "5",
        "WORLD_SIZE": "8",
        "LOCAL_RANK": "1",
        "MASTER_ADDR": "node1",
        "MASTER_PORT": "29500",
    }
    assert launched(torchrun) == Place(5, 8, 1, "node1:29500")
    srun = {"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "30007"}
    calls = []

    def run(command, **kwargs):
        calls.append(command)
        return SimpleNamespace(stdout="node1\nnode2\n")

    monkeypatch.setattr(workers.subprocess, "run", run)
    assert launched(srun | {"SLURM_STEP_NODELIST": "node[1-2]"}) == Place(5, 8, 1, "node1:20007")
    assert calls == [["scontrol", "show", "hostnames", "node[1-2]"]]


@pytest.mark.parametrize("variables", [{}, {"WORLD_SIZE": "1"}, {"SLURM_NTASKS": "4", "SLURM_PROCID": "0"}])
def test_a_process_alone_has_no_place(variables):
    """The last: a script of sbatch, which has not called srun."""
    assert launched(variables) is None
