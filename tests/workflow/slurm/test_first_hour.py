"""The first hour of a new user of a cluster: wrong names, too little memory, a controller that is away."""

import re
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import pytest
import yaml

from on_slurm import wait_for

pytestmark = pytest.mark.xdist_group("slurm")
CLUSTER = Path(__file__).with_name("cluster.sh")
SLURM = ["--profile", "slurm", "--slurm-init-seconds-before-status-checks", "3", "--latency-wait", "10"]
TEXT = "results/demo/raw/train.de"
# Goes before the real verb: does something first, once.
FIRST = f"""#!/bin/sh
if [ ! -e done-once ]; then touch done-once; {{}}; fi
exec {Path(sys.executable).parent}/synmask "$@"
"""


def site(project, **settings):
    (project.folder / "slurm.local.yaml").write_text(yaml.safe_dump(settings))


def first(project, command):
    (project.folder / "bin").mkdir()
    (project.folder / "bin/synmask").write_text(FIRST.format(command))
    (project.folder / "bin/synmask").chmod(0o755)


def messages_of(output):
    """The lines of the terminal, without the lines of Snakemake about its profiles, and of the log."""
    return [line for line in output.splitlines() if not line.startswith(("Using profiles", "log  "))]


def submitted():
    return subprocess.run(["squeue", "-h", "-t", "all"], text=True, capture_output=True, check=True).stdout


@pytest.mark.parametrize(
    ("settings", "message", "change"),
    [
        (
            {"partition": "batch"},
            [
                "sbatch: error: invalid partition specified: batch",
                "sbatch: error: Batch job submission failed: Invalid partition name specified",
            ],
            "change `partition` in slurm.local.yaml; `sinfo -s` lists the cluster's",
        ),
        (
            {"account": "nolab"},
            ["sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified"],
            "change `account` in slurm.local.yaml (and whether it may use the partition main)",
        ),
    ],
    ids=["partition", "account"],
)  # fmt: skip
def test_a_refusal_is_shown_with_the_key_to_change_and_not_repeated(
    cluster, project, settings, message, change
):
    """The job is of a group, for which Snakemake drops the reason."""
    subprocess.run(["scontrol", "update", "PartitionName=main", "AllowAccounts=lab"], check=True)
    site(project, **settings)
    done = project.snakemake(TEXT, *SLURM, check=False)
    assert done.returncode == 1
    lines = messages_of(done.output)
    assert lines[:2] == ["1 job", f"FAILED   demo_corpus: {TEXT}"]
    shown = [*message, change, f"the commands behind it: snakemake -np {TEXT}"]
    assert lines[2 : 2 + len(shown)] == [f"         {line}" for line in shown]
    assert [line.split()[0] for line in lines[2 + len(shown) :]] == ["stopped", "to"]
    [log] = (project.folder / ".snakemake/log").glob("*.log")
    assert message[0] in log.read_text()
    subprocess.run(["scontrol", "update", "PartitionName=main", "AllowAccounts=ALL"], check=True)


def test_many_refusals_are_shown_once(cluster, project):
    """Two trainings, which are no groups, with the name of their partition wrong."""
    site(project, gpu_partition="a100")
    trainings = [f"results/demo/de-en/transformer/seed{seed}/train.json" for seed in (1, 2)]
    project.snakemake("results/demo/de-en/bin/dict.de.txt")
    output = project.snakemake(*trainings, *SLURM, check=False).output
    first = r"FAILED   train: results/demo/de-en/transformer/seed\d/train.json\n"
    message = "         sbatch: error: invalid partition specified: a100\n"
    message += "         sbatch: error: Batch job submission failed: Invalid partition name specified\n"
    change = "         change `gpu_partition` in slurm.local.yaml; `sinfo -s` lists the cluster's\n"
    assert re.search(first + re.escape(message + change), output)
    assert output.count("sbatch: error: invalid partition") == 1
    again = r"\nFAILED   synmask/demo/de-en/transformer/seed\d:train: refused in the same way\n"
    assert len(re.findall(again, output)) == 1


def test_a_job_over_its_memory_gets_more(cluster, project):
    first(project, f"{sys.executable} -c 'x = bytearray(900 * 1000**2); import time; time.sleep(30)'")
    lines = messages_of(project.snakemake(TEXT, *SLURM).output)
    assert lines[1] == f"FAILED   demo_corpus: {TEXT}"
    assert lines[2].endswith(": FAILED, over its memory: it asked for 601 MB, 3 minutes, 1 CPU")
    assert any("slurmstepd" in line and "exceeded memory limit" in line for line in lines[3:7])
    assert "synmask/demo/raw:text: attempt 2 of 4 asks for 1,202 MB, 6 minutes, 1 CPU" in lines
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
    assert re.fullmatch(r"SLURM answers again, .* after its last answer", messages_of(output)[0])
    assert "FAILED" not in output
