"""The first hour of a new user of a cluster: wrong names, too little memory, a controller that is away."""

import re
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import pytest
import yaml

from on_slurm import all_jobs, wait_for

pytestmark = pytest.mark.xdist_group("slurm")
CLUSTER = Path(__file__).with_name("cluster.sh")
SLURM = ["--profile", "slurm", "--slurm-init-seconds-before-status-checks", "3", "--latency-wait", "10"]
TEXT = "results/demo/de-en/text/train.de"
FILE = "slurm.local.yaml"
REFUSED = "Batch job submission failed: Invalid account or account/partition combination specified"
# Goes before the real verb: does something first, once.
FIRST = """#!/bin/sh
if [ ! -e done-once ]; then touch done-once; {command}; fi
exec {warm}/synmask "$@"
"""


def site(project, **settings):
    (project.folder / "slurm.local.yaml").write_text(yaml.safe_dump(settings))


def first(project, command):
    (project.folder / "bin").mkdir()
    (project.folder / "bin/synmask").write_text(FIRST.format(command=command, warm=project.warm.folder))
    (project.folder / "bin/synmask").chmod(0o755)


def messages_of(output):
    """The lines of the terminal, without the lines of Snakemake about its profiles, and of the log."""
    return [line for line in output.splitlines() if not line.startswith(("Using profiles", "log  "))]


def submitted():
    return subprocess.run(["squeue", "-h", "-t", "all"], text=True, capture_output=True, check=True).stdout


def test_a_refusal_is_shown_with_the_key_to_change_and_not_repeated(cluster, project):
    """The job is of a group, for which Snakemake drops the reason."""
    subprocess.run(["scontrol", "update", "PartitionName=main", "AllowAccounts=lab"], check=True)
    site(project, account="nolab")
    done = project.snakemake(TEXT, *SLURM, check=False)
    assert done.returncode == 1
    lines = messages_of(done.output)
    assert lines[:2] == ["1 job", f"FAILED   text: {TEXT}"]
    change = "change `account` in slurm.local.yaml (and whether it may use the partition main)"
    shown = [f"sbatch: error: {REFUSED}", change, f"the commands behind it: snakemake -np {TEXT}"]
    assert lines[2 : 2 + len(shown)] == [f"         {line}" for line in shown]
    assert [line.split()[0] for line in lines[2 + len(shown) :]] == ["stopped", "to"]
    [log] = (project.folder / ".snakemake/log").glob("*.log")
    assert REFUSED in log.read_text()
    subprocess.run(["scontrol", "update", "PartitionName=main", "AllowAccounts=ALL"], check=True)


def test_an_unknown_partition_is_named_in_the_dry_run_and_before_submission(cluster, project):
    site(project, partition="batch")
    message = f"synmask/demo/de-en:text: no partition batch: change `partition` in {FILE}; `sinfo -s` lists"
    assert message in project.snakemake(TEXT, *SLURM, "-n").output
    done = project.snakemake(TEXT, *SLURM, check=False)
    assert (done.returncode, message in done.output) == (1, True)


def test_many_refusals_are_shown_once(cluster, project):
    """Two trainings, which are no groups, with an account that may not use their partition."""
    subprocess.run(["scontrol", "update", "PartitionName=main", "AllowAccounts=lab"], check=True)
    site(project, account="nolab")
    trainings = [f"results/demo/de-en/transformer/seed{seed}/train.json" for seed in (1, 2)]
    project.snakemake("results/demo/de-en/bin/dict.de.txt")
    output = project.snakemake(*trainings, *SLURM, check=False).output
    first = r"FAILED   train: results/demo/de-en/transformer/seed\d/train.json\n"
    message = f"         sbatch: error: {REFUSED}\n         change `account` in {FILE} "
    assert re.search(first + re.escape(message), output)
    assert output.count("sbatch: error") == 1
    again = r"\nFAILED   synmask/demo/de-en/transformer/seed\d:train: refused in the same way\n"
    assert len(re.findall(again, output)) == 1
    subprocess.run(["scontrol", "update", "PartitionName=main", "AllowAccounts=ALL"], check=True)


def test_a_job_of_a_killed_snakemake_is_waited_for(cluster, project):
    earlier = [
        "sbatch",
        "--parsable",
        "--comment",
        "synmask/demo/de-en:text",
        "-o",
        "/dev/null",
        "--wrap",
        "sleep 8",
    ]
    done = subprocess.run(earlier, cwd=project.folder, text=True, capture_output=True, check=True)
    number = done.stdout.strip()
    project.warm_jobs = True
    output = project.snakemake(TEXT, *SLURM).output
    assert (
        f"synmask/demo/de-en:text: an earlier SLURM job, {number}, works on it; the new one waits" in output
    )
    assert "FAILED" not in output
    first, second = (job for job in all_jobs() if job.get("WorkDir") == str(project.folder))
    assert first["EndTime"] <= second["StartTime"]


def test_a_job_over_its_memory_gets_more(cluster, project):
    first(project, f"{sys.executable} -c 'x = bytearray(900 * 1000**2); import time; time.sleep(30)'")
    lines = messages_of(project.snakemake(TEXT, *SLURM).output)
    assert lines[1] == f"FAILED   text: {TEXT}"
    assert lines[2].endswith(": FAILED, over its memory: it asked for 601 MB, 3 minutes, 1 CPU")
    assert any("slurmstepd" in line and "exceeded memory limit" in line for line in lines[3:7])
    assert "synmask/demo/de-en:text: attempt 2 of 4 asks for 1,202 MB, 6 minutes, 1 CPU" in lines
    assert any(line.startswith("done     1 job") for line in lines)


@pytest.mark.cluster  # 50 to 100 s, of which most is waiting: `make cluster`
def test_a_controller_that_is_away_holds_nothing_up(cluster, project):
    """While a job runs, and perhaps ends."""
    first(project, "sleep 5")
    running = project.start(TEXT, *SLURM)
    wait_for("the job", (project.folder / "done-once").exists)
    controller = int((cluster / "slurmctld.pid").read_text())
    subprocess.run(["kill", str(controller)], check=True)
    message = "SLURM does not answer; it is asked again, and jobs go on meanwhile\n"
    before = [*takewhile(message.__ne__, running.stdout)]  # until then it stays away
    subprocess.run([CLUSTER, "up", cluster, "slurmctld"], check=True)
    output = project.ended(running).output
    assert messages_of("".join(before)) == ["1 job"]
    assert messages_of(output)[0] == "SLURM answers again"
    assert "FAILED" not in output
