"""SLURM's records of its jobs, for tests of its own cluster (tests/workflow/slurm), and waiting that ends."""

import os
import subprocess
import time
from pathlib import Path

MAX_SECONDS = 600  # that a wait may take on a busy machine
STATED = ("JobState", "ExitCode", "Reason", "NodeList", "SubmitTime", "StartTime", "EndTime", "WorkDir")
DONE = ("COMPLETED", "RUNNING", "PENDING")


def wait_for(what, condition, seconds=MAX_SECONDS):
    """The first true value of `condition()`."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.02)
    return value


def all_jobs():
    """SLURM's record of each job, in the order of submission."""
    command = ["scontrol", "-o", "show", "jobs"]
    output = subprocess.run(command, text=True, capture_output=True, check=True, timeout=60).stdout
    found = [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in output.splitlines()]
    return sorted((job for job in found if "JobId" in job), key=lambda job: int(job["JobId"]))


def account():
    """How each job has ended, and, of those that have failed, the ends of their logs and what their nodes wrote of them."""
    told = []
    for job in all_jobs():
        told.append(" ".join([job["JobId"], *(job.get(key, "") for key in STATED)]))
        if job["JobState"] not in DONE:
            told += [f"    {line}" for line in [*_end(job.get("StdOut", "")), *_of_nodes(job["JobId"])]]
    return "\n".join(told)


def _end(path, lines=60, width=200):
    """The last lines of a log, without the ends of long ones."""
    if not os.path.isfile(path):
        return []
    return [line[:width] for line in Path(path).read_text(errors="replace").splitlines()[-lines:]]


def _of_nodes(number):
    """The lines on a job in the logs of all nodes' daemons."""
    logs = Path(os.environ["SLURM_CONF"]).parent.glob("node*.log")
    return [line for log in logs for line in log.read_text().splitlines() if f"[{number}." in line]
