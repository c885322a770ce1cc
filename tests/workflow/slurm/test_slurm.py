"""The workflow on a real SLURM of three nodes (cluster.sh). One worker runs these: they share the cluster and what was built."""

import contextlib
import csv
import json
import os
import re
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from on_slurm import all_jobs, wait_for

pytestmark = pytest.mark.xdist_group("slurm")
RUN = "results/demo/de-en/grammar/seed1"
SLURM = ["--profile", "slurm", "--slurm-init-seconds-before-status-checks", "3", "--latency-wait", "10"]
TABLES = ["results/tables/demo.md", "results/tables/demo-parsing.md"]
# Goes before the verbs, which start fast (warm.py): notes each call and fails the first `decode`.
SPY = """#!/bin/sh
echo "$1 ${{CUDA_VISIBLE_DEVICES-none}}" >> calls
if [ "$1" = decode ] && [ ! -e failed ]; then touch failed; exit 1; fi
exec {warm}/synmask "$@"
"""
SLEEPY = """#!/bin/sh
if [ ! -e slept ]; then touch slept; sleep 300; fi
exec {warm}/synmask "$@"
"""
# Goes before the verbs: the first training stops itself after its first checkpoint, until it is continued or killed.
GATE = """#!/bin/sh
exec {warm}/python/python -c '
import os, signal
from pathlib import Path
from synmask.pipeline import cli
from synmask.pipeline.training import checkpoints

save = checkpoints.save_last

def save_and_stop(*state):
    save(*state)
    if not [*Path().glob("stopped.*")]:
        Path(f"stopped.{{os.getpid()}}").touch()
        os.kill(os.getpid(), signal.SIGSTOP)

checkpoints.save_last = save_and_stop
cli.main()
' "$@"
"""
EPOCHS = 3
CLUSTER = Path(__file__).with_name("cluster.sh")


def calls(project):
    """The calls of the project's jobs, in order: (verb, visible GPUs)."""
    path = project.folder / "calls"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def jobs(project):
    """SLURM's record of each of the project's jobs, in the order of submission."""
    return [job for job in all_jobs() if job.get("WorkDir") == str(project.folder)]


def states(project):
    return [job["JobState"] for job in jobs(project)]


def program(project, text):
    """Put a program before the real `synmask`; its jobs start warm."""
    project.warm_jobs = True
    (project.folder / "bin").mkdir()
    (project.folder / "bin/synmask").write_text(text.format(warm=project.warm.folder))
    (project.folder / "bin/synmask").chmod(0o755)


@pytest.fixture(scope="module")
def demo(cluster, new_project):
    """A project whose demo has run on SLURM, with one run, whose first decoding has failed."""
    project = new_project("demo")
    program(project, SPY)
    project.config["experiments"]["demo"]["systems"] = ["grammar"]
    project.config["corpora"]["demo"]["resources"]["gpus"] = 2
    project.snakemake(*TABLES, *SLURM)
    return project


def test_the_demo_runs_from_text_to_tables(demo):
    assert "| Grammar " in (demo.folder / "results/tables/demo.md").read_text()
    assert "| Grammar " in (demo.folder / "results/tables/demo-parsing.md").read_text()
    assert "Nothing to be done" in demo.snakemake(*TABLES, *SLURM).output


def test_text_training_and_evaluation_are_a_job_each_and_a_failed_one_is_retried(demo):
    submitted = jobs(demo)
    assert [job["Comment"] for job in submitted] == [
        "synmask/demo/de-en:text",
        "synmask/demo/de-en/grammar/seed1:train",
        *["synmask/demo/de-en/grammar/seed1:evaluate"] * 2,
    ]
    assert states(demo) == ["COMPLETED", "COMPLETED", "FAILED", "COMPLETED"]
    verbs = [verb for verb, _ in calls(demo)]
    assert [verbs.count(verb) for verb in ("train", "average", "decode", "score-run")] == [1, 2, 2, 1]


def test_jobs_ask_for_what_the_profile_and_the_configuration_say(demo):
    text, train, *evaluate = jobs(demo)
    assert [job["Partition"] for job in (text, train, *evaluate)] == ["main", "gpu", "gpu", "gpu"]
    assert train["TimeLimit"] == "00:30:00"
    assert "mem=3000M" in train["TRES"]
    assert int(text["TimeLimit"][1]) < 2  # hours, for 200 pairs
    assert train["TresPerJob"] == "gres:gpu:2"
    assert [job["TresPerJob"] for job in evaluate] == ["gres:gpu:1"] * 2  # decoding and parsing share one
    assert "TresPerJob" not in text
    assert {(verb, gpus) for verb, gpus in calls(demo) if verb in ("train", "decode", "text")} == {
        ("text", "none"), ("train", "0,1"), ("decode", "0"),
    }  # fmt: skip


def test_scores_say_how_an_update_was_shared(demo):
    scores = json.loads((demo.folder / RUN / "scores.json").read_text())
    assert (scores["workers"], scores["accumulated_batches"], scores["device"]) == (1, 1, "CPU")


def unfinished(demo, new_project, name):
    """A copy of `demo` whose training is still to do."""
    project = new_project(name)
    project.config = json.loads(json.dumps(demo.config))
    project.config["corpora"]["demo"]["training"]["max_epochs"] = EPOCHS
    project.config["corpora"]["demo"]["resources"]["gpus"] = 1  # so that two can run side by side
    for part in ("results", ".snakemake"):
        shutil.copytree(demo.folder / part, project.folder / part)
    shutil.rmtree(project.folder / RUN)
    return project


def started(project, retries):
    """Start the training on SLURM → snakemake."""
    program(project, GATE)
    return project.start(*SLURM, "--retries", str(retries), f"{RUN}/train.json", warm=True)


def stopped(project):
    """The process of the training, once it stands still after its first epoch."""
    [mark] = wait_for("the first epoch", lambda: [*project.folder.glob("stopped.*")])
    process = int(mark.suffix[1:])
    wait_for("the training to stand still", lambda: stands(process))
    return process


def stands(process):
    """Whether a process stands still, and no SIGTERM waits for it."""
    status = Path(f"/proc/{process}/status").read_text()
    return "\nState:\tT" in status and "\nShdPnd:\t0000000000004000" not in status


def scontrol(*words, check=True):
    subprocess.run(["scontrol", *words], check=check)


def went_on(project):
    """Whether the training's last attempt did not begin at the first epoch, but reached the last."""
    log = (project.folder / RUN / "train.log").read_text()
    epochs = [row["epoch"] for row in csv.DictReader((project.folder / RUN / "history.csv").open())]
    assert epochs == [str(number + 1) for number in range(EPOCHS)]
    return f"epoch 1/{EPOCHS} " not in log and f"epoch {EPOCHS}/{EPOCHS} done" in log


def site(project, **settings):
    """Write the site's settings."""
    (project.folder / "slurm.local.yaml").write_text(yaml.safe_dump(settings))


def finish(running, project):
    """Wait until Snakemake is done: until then nobody releases a job."""

    def hopeless():
        held = [job["JobId"] for job in jobs(project) if job["Reason"] == "JobHeldUser"]
        return f"job {held[0]} is held, after {states(project)}" if held else None

    project.output = project.ended(running, hopeless=hopeless).output
    return project


def limited(project):
    """A training whose time limit comes in its middle: when it stands still. Until then, and from then on, it has an hour."""
    project.config["corpora"]["demo"]["resources"]["runtime"] = 1
    site(project, extra="--nodelist=node1 --hold")
    running = started(project, retries=1)
    job = released(project)
    process = stopped(project)
    hours, minutes, _ = map(int, jobs(project)[-1]["RunTime"].split(":"))
    scontrol("update", f"JobId={job}", f"TimeLimit={60 * hours + minutes + 2}")
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # SLURM may wake it, too
        wait_for("SIGTERM", lambda: not stands(process))
        os.kill(process, signal.SIGCONT)
    scontrol("update", f"JobId={job}", "TimeLimit=60", check=False)  # to save, unless it has ended
    released(project)
    return finish(running, project)


def released(project):
    """Give the job that is held an hour in place of its minute, and let it start; its number."""
    wait_for("a job that is held", lambda: "PENDING" in states(project)[-1:])
    job = jobs(project)[-1]["JobId"]
    scontrol("update", f"JobId={job}", "TimeLimit=60")
    scontrol("release", job)
    return job


def queued_again(project):
    """Wait until SLURM has put the last job back into its queue, and have it start at once, not in two minutes."""
    wait_for("the last job to be queued again", lambda: states(project)[-1] == "PENDING")
    job = jobs(project)[-1]["JobId"]
    scontrol("update", f"JobId={job}", "StartTime=now")


def bereft(project, cluster):
    """A training whose node dies; and the node."""
    site(project, extra="--exclude=node1")
    running = started(project, retries=0)
    stopped(project)
    node = jobs(project)[-1]["NodeList"]
    subprocess.run([CLUSTER, "kill", cluster, node], check=True)
    scontrol("update", f"NodeName={node}", "State=DOWN", "Reason=dead")  # else SLURM waits for SlurmdTimeout
    queued_again(project)
    return finish(running, project), node


def preempted(project, partition):
    """A training that makes room for a job of a partition that goes first."""
    site(project, gpu_partition=partition, extra="--exclude=node1")
    running = started(project, retries=1)
    stopped(project)
    node = jobs(project)[-1]["NodeList"]
    urgent = ["sbatch", "-p", "urgent", "-w", node, "--exclusive", "-o", "/dev/null", "--wrap", "sleep 1"]
    subprocess.run(urgent, check=True)
    if partition == "requeue":
        queued_again(project)
    return finish(running, project)


@pytest.fixture(scope="module")
def disturbed(demo, cluster, new_project):
    """Trainings that something happens to, while other tests run: on node1, and one after another on the others."""
    with ThreadPoolExecutor(2) as here, ThreadPoolExecutor(1) as elsewhere:
        yield {
            "over_time": here.submit(over_time, new_project("over_time")),
            "limited": here.submit(limited, unfinished(demo, new_project, "limited")),
            **{
                name: elsewhere.submit(preempted, unfinished(demo, new_project, name), name)
                for name in ("requeue", "cancel")
            },
            "bereft": elsewhere.submit(bereft, unfinished(demo, new_project, "bereft"), cluster),
        }


def over_time(project):
    """A job that takes longer than it asked for, in its first attempt."""
    program(project, SLEEPY)
    minutes = ["--set-resources", "text:runtime=60 if attempt > 1 else 1", "--"]
    return finish(project.start(*SLURM, *minutes, "results/demo/de-en/text/train.de", warm=True), project)


def average(project):
    """The model that a training ends with, made here by the verb that starts fast."""
    shutil.rmtree(project.folder / "bin", ignore_errors=True)
    project.snakemake(f"{RUN}/average.pt")
    return (project.folder / RUN / "average.pt").read_bytes()


@pytest.fixture(scope="module")
def undisturbed(demo, new_project):
    """The model of a training that nothing happened to."""
    return average(unfinished(demo, new_project, "undisturbed"))


def test_a_cancelled_training_goes_on_and_nothing_else_is_done_again(demo, disturbed, new_project):
    project = unfinished(demo, new_project, "cancelled")
    site(project, extra="--nodelist=node1")
    running = started(project, retries=0)
    stopped(project)
    subprocess.run(["scancel", jobs(project)[-1]["JobId"]], check=True)
    assert project.ended(running, check=False).returncode == 1, running.output[-2000:]
    assert {rule for rule, _ in project.planned(f"{RUN}/train.json")} == {"train"}
    project.snakemake(*SLURM, f"{RUN}/train.json")
    assert states(project) == ["CANCELLED", "COMPLETED"]
    assert went_on(project)


def test_a_training_longer_than_its_time_limit_is_told_and_goes_on_in_the_next_job(disturbed):
    project = disturbed["limited"].result()
    *stopped, last = states(project)
    assert set(stopped) == {"FAILED"}  # it ended by itself: not TIMEOUT
    assert last == "COMPLETED"
    brief = f"synmask/demo/de-en/grammar/seed1:train: SLURM job {jobs(project)[-2]['JobId']} was stopped"
    expected = rf"\n{brief} in epoch \d+ of {EPOCHS}, and saved; it continues in the next job \(1 min: "
    assert re.search(expected, project.output)
    assert "FAILED" not in project.output
    assert went_on(project)


def test_a_job_over_its_time_gets_more(disturbed):
    project = disturbed["over_time"].result()
    assert states(project) == ["TIMEOUT", "COMPLETED"]
    number = jobs(project)[0]["JobId"]
    assert (
        f"         SLURM job {number}: TIMEOUT, over its time: it asked for 601 MB, 1 minute, 1 CPU\n"
        in project.output
    )
    assert (
        "\nsynmask/demo/de-en:text: attempt 2 of 4 asks for 1,202 MB, 60 minutes, 1 CPU\n" in project.output
    )


def test_a_training_whose_node_dies_goes_on_elsewhere_to_the_same_model(disturbed, undisturbed):
    project, node = disturbed["bereft"].result()
    [job] = jobs(project)
    assert (job["JobState"], job["Restarts"]) == ("COMPLETED", "1")
    assert job["NodeList"] != node
    assert went_on(project)
    assert average(project) == undisturbed


def test_a_preempted_training_goes_on_to_the_same_model(disturbed, undisturbed):
    project = disturbed["requeue"].result()
    [job] = jobs(project)
    assert (job["JobState"], job["Restarts"]) == ("COMPLETED", "1")
    assert went_on(project)
    assert average(project) == undisturbed


def test_a_training_that_preemption_ends_in_a_grace_time_goes_on_in_the_next_job(disturbed):
    project = disturbed["cancel"].result()
    assert states(project)[-2:] == ["FAILED", "COMPLETED"]  # it ended by itself: not PREEMPTED
    assert went_on(project)
