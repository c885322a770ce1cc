"""The group of data-parallel workers."""

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from spawned import busy
from synmask.pipeline.training import workers
from synmask.pipeline.training.workers import WorkerPlace, launched_worker, start_workers


def test_workers_end_well_though_threads_of_their_group_still_work():
    start_workers(busy, 2, (), "run", "cut")


FORKED = """
import functools, torch.multiprocessing as multiprocessing
from spawned import failing
from synmask.pipeline.errors import UserError
from synmask.pipeline.training.workers import start_workers

multiprocessing.spawn = functools.partial(multiprocessing.start_processes, start_method="fork")
try:
    start_workers(failing, 2, (UserError("out of luck"),), "run", "cut")
except UserError as error:
    print(error)
"""


def test_a_fault_of_one_worker_ends_all(warm):
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run([warm.python, "-c", FORKED], env=environment, stdout=subprocess.PIPE, text=True)
    assert done.stdout == "out of luck\n"


def test_the_place_among_workers_is_what_torchrun_or_srun_says(monkeypatch):
    torchrun = {
        "RANK": "5",
        "WORLD_SIZE": "8",
        "LOCAL_RANK": "1",
        "MASTER_ADDR": "node1",
        "MASTER_PORT": "29500",
    }
    assert launched_worker(torchrun) == WorkerPlace(5, 8, 1, "node1:29500")
    srun = {"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "30007"}
    calls = []

    def run(command, **kwargs):
        calls.append(command)
        return SimpleNamespace(stdout="node1\nnode2\n")

    monkeypatch.setattr(workers.subprocess, "run", run)
    assert launched_worker(srun | {"SLURM_STEP_NODELIST": "node[1-2]"}) == WorkerPlace(5, 8, 1, "node1:20007")
    assert calls == [["scontrol", "show", "hostnames", "node[1-2]"]]


@pytest.mark.parametrize("variables", [{}, {"WORLD_SIZE": "1"}, {"SLURM_NTASKS": "4", "SLURM_PROCID": "0"}])
def test_a_process_alone_has_no_place(variables):
    """The last: a script of sbatch, which has not called srun."""
    assert launched_worker(variables) is None
