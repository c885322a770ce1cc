"""Failures and limits of the scheduler, with a target of many jobs: `make cluster`. The jobs sleep (scheduling.py)."""

import getpass
import importlib.util
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from on_slurm import wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("slurm")]
ACCOUNTING = True
ROOT = Path(__file__).parents[3]
CLUSTER = Path(__file__).with_name("cluster.sh")
QUICK = ["--slurm-init-seconds-before-status-checks", "3", "--slurm-status-command", "sacct"]
SEEDS = 200
MAX_SECONDS = 1200  # that one call of snakemake may take on a busy machine
spec = importlib.util.spec_from_file_location("scheduling", ROOT / "tests/workflow/slurm/scheduling.py")
scheduling = importlib.util.module_from_spec(spec)
spec.loader.exec_module(scheduling)


@pytest.fixture
def sleeping(cluster, tmp_path):
    """Run targets, whose jobs sleep, in a folder of their own; `log` there holds what Snakemake says."""
    scheduling.prepare(tmp_path, SEEDS)

    def start(seeds, *words):
        targets = [f"results/demo/de-en/transformer/seed{seed}/train.json" for seed in range(1, seeds + 1)]
        return scheduling.start(tmp_path, targets, [*QUICK, *words])

    start.folder = tmp_path
    return start


def log_of(sleeping):
    return (sleeping.folder / "log").read_text()


def exit_code(running):
    """Snakemake's, when it ends by itself."""
    try:
        return running.wait(MAX_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        raise


def accounted(state):
    """The jobs that the database has in a state."""
    command = ["sacct", "-X", "-n", "-P", "-o", "JobIDRaw", "-s", state, "-S", "now-1hours", "-E", "now"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def submitted(sleeping):
    return re.findall(r"submitted with SLURM jobid (\d+)", log_of(sleeping))


def first_training(sleeping):
    """The first job after that for the text, once it runs."""
    job = wait_for("the first training", lambda: submitted(sleeping)[1:])[0]
    running = ["squeue", "-h", "-j", job, "-t", "RUNNING", "-o", "%i"]
    wait_for(
        "it to run",
        lambda: subprocess.run(running, capture_output=True, text=True, check=True).stdout.strip() == job,
    )
    return job


def make_room():
    """Fill all nodes with jobs that go first."""
    for node in ("node1", "node2", "node3"):
        urgent = ["sbatch", "-p", "urgent", "-w", node, "--exclusive", "-o", "/dev/null", "--wrap", "sleep 1"]
        subprocess.run(urgent, check=True)


def cancel(job):
    subprocess.run(["scancel", job], check=True)


def test_the_database_says_how_jobs_are_and_a_failed_one_is_done_again(sleeping):
    running = sleeping(2)
    job = first_training(sleeping)
    subprocess.run(["scancel", "--batch", "--signal=KILL", job], check=True)
    assert exit_code(running) == 0, log_of(sleeping)[-2000:]
    assert job in accounted("FAILED")
    assert set(submitted(sleeping)) - {job} <= set(accounted("COMPLETED"))
    assert len(submitted(sleeping)) == 4


def test_a_restart_of_the_controller_loses_no_job(sleeping):
    running = sleeping(6)
    wait_for("seven jobs", lambda: len(submitted(sleeping)) == 7)
    controller = int((Path(os.environ["SLURM_CONF"]).parent / "slurmctld.pid").read_text())
    os.kill(controller, signal.SIGTERM)
    time.sleep(15)  # more than the jobs still take, so that they end while there is none
    subprocess.run([CLUSTER, "up", Path(os.environ["SLURM_CONF"]).parent, "slurmctld"], check=True)
    assert exit_code(running) == 0, log_of(sleeping)[-2000:]
    assert len(submitted(sleeping)) == 7


def test_more_jobs_than_may_be_queued_are_refused_and_fewer_at_once_are_not(sleeping):
    limit = ["sacctmgr", "-i", "modify", "user", getpass.getuser(), "set"]
    subprocess.run([*limit, "MaxSubmitJobs=50"], check=True)
    try:
        assert exit_code(sleeping(SEEDS, "--jobs", "200", "--retries", "0")) == 1
        assert "AssocMaxSubmitJobLimit" in log_of(sleeping)
        assert 50 <= len(submitted(sleeping)) < SEEDS
        running = sleeping(SEEDS, "--jobs", "40", "--retries", "0")
        assert exit_code(running) == 0, log_of(sleeping)[-2000:]
        assert "AssocMaxSubmitJobLimit" not in log_of(sleeping)
    finally:
        subprocess.run([*limit, "MaxSubmitJobs=-1"], check=True)


@pytest.mark.parametrize(("end", "state"), [(cancel, "CANCELLED"), (lambda job: make_room(), "PREEMPTED")])
def test_a_job_that_is_cancelled_or_preempted_is_done_again(sleeping, end, state):
    """By itself, the plugin waits for ever (src/synmask/pipeline/workflow/compat_slurm.py)."""
    subprocess.run(["scontrol", "update", "PartitionName=cancel", "GraceTime=0"], check=True)
    (sleeping.folder / "slurm.local.yaml").write_text("partition: cancel\n")
    running = sleeping(1)
    job = first_training(sleeping)
    end(job)
    wait_for(state, lambda: job in accounted(state))
    assert exit_code(running) == 0, log_of(sleeping)[-2000:]
    assert len(submitted(sleeping)) == 3
