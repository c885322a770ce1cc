"""The overhead of Snakemake and SLURM for a target: submissions, waiting, memory. Its jobs only sleep.

    python tests/workflow/slurm/scheduling.py
    python tests/workflow/slurm/scheduling.py --seeds 1 -- --group-components evaluate=5

Snakemake, its SLURM plugin, the profile and SLURM (tests/workflow/slurm/cluster.sh) are real. In the jobs a
stand-in takes the place of Snakemake (it is found as `python`, since the software is said not to be shared):
it sleeps (`SLEEP`) and makes the job's outputs, empty. Words after `--` go to Snakemake. Prints a table.
"""

import argparse
import base64
import itertools
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).resolve().parents[3]
CLUSTER = ROOT / "tests/workflow/slurm/cluster.sh"
SLEEP = {"train": 10, "finetune": 10}  # seconds; all other rules: 1
USAGE = ["persistence", "input-output", "sources", "source-cache", "storage-local-copies"]


def stand_in(words: list[str]) -> None:
    """A job of SLURM: `words` is the command line of the Snakemake that would have run in it."""
    options = dict(itertools.pairwise(words))
    others = json.loads(base64.b64decode(options.get("--slurm-jobstep-array-execs", "e30=")))
    if command := others.get(os.environ.get("SLURM_ARRAY_TASK_ID")):  # of an array, all but the first
        words = zlib.decompress(bytes.fromhex(command)).decode().split()
    outputs = json.loads(Path("outputs.json").read_text())
    start = words.index("--target-jobs") + 1
    for word in words[start:]:
        if word.startswith("--"):
            break
        rule, _, values = word.strip("'\"").partition(":")
        wildcards = dict(part.split("=", 1) for part in values.split(",") if part)
        time.sleep(SLEEP.get(rule, 1))
        for pattern in outputs[rule]:
            path = Path(pattern.format(**wildcards))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()


def prepare(folder: Path, seeds: int) -> None:
    """A project in `folder` whose jobs ask for little, with `seeds` seeds."""
    import yaml  # here: a stand-in starts without installed packages

    from synmask.pipeline.config.loading import project_files, read_all

    for name in ("src", "workflow", "profiles", "slurm", "Snakefile", "tests", "config", "config.yaml"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "bin").mkdir()
    (folder / "bin/python").write_text(f'#!/bin/sh\nexec {sys.executable} -S {__file__} --job "$@"\n')
    (folder / "bin/python").chmod(0o755)
    config = read_all(project_files(ROOT))
    small = {"threads": 1, "mem_mb": 256, "gpus": 0}
    sections = {
        part: {name: {"resources": small} for name, entry in config[part].items() if "resources" in entry}
        for part in ("corpora", "benchmarks")
    }
    overlay = {"seeds": list(range(1, seeds + 1)), "resources": small, **sections}
    (folder / "small.yaml").write_text(yaml.safe_dump(overlay))


def start(folder: Path, targets: list[str], words: list[str]) -> subprocess.Popen:
    """Start Snakemake on targets, whose jobs sleep; what it says goes to `log`."""
    command = [
        "snakemake",
        *targets,
        "-p",
        "--profile",
        "slurm",
        "--snakefile",
        "tests/workflow/slurm/scheduling.smk",
    ]
    command += ["--configfile", "small.yaml", "--shared-fs-usage", *USAGE, *words]
    environment = os.environ | {"PATH": f"{folder}/bin:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")}
    with (folder / "log").open("w") as log:
        return subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )


def run(folder: Path, target: str, words: list[str]) -> tuple[float, resource.struct_rusage]:
    """Run a target to its end → (seconds, what Snakemake used)."""
    before = time.monotonic()
    _, status, used = os.wait4(start(folder, [target], words).pid, 0)
    if status:
        sys.exit("\n".join((folder / "log").read_text().splitlines()[-30:]))
    return time.monotonic() - before, used


def slurm_jobs() -> dict[str, dict[str, str]]:
    """SLURM's records of its jobs, by their numbers (of an array: NUMBER_TASK)."""
    output = subprocess.run(["scontrol", "-o", "show", "jobs"], text=True, capture_output=True, check=True)
    jobs = [
        dict(word.split("=", 1) for word in line.split() if "=" in word)
        for line in output.stdout.splitlines()
    ]
    return {
        f"{job['ArrayJobId']}_{job['ArrayTaskId']}" if "ArrayJobId" in job else job["JobId"]: job
        for job in jobs
    }


def seen(log: str) -> dict[str, datetime]:
    """When Snakemake saw the end of SLURM's jobs, from its log; of jobs that are no group."""
    numbers = dict(re.findall(r"^Job (\S+) has been submitted with SLURM jobid (\S+) ", log, re.M))
    for ids, number in re.findall(
        r"^Submitted array job with Snakemake IDs (\S+) and SLURM job ID (\d+)", log, re.M
    ):
        numbers |= {job: f"{number}_{task}" for task, job in enumerate(ids.split(","), 1)}
    ends = re.findall(r"^\[(.*)\]\nFinished jobid: (\d+) ", log, re.M)
    return {
        numbers[job]: datetime.strptime(when, "%a %b %d %H:%M:%S %Y") for when, job in ends if job in numbers
    }


def seconds_between(pairs: Iterable[tuple[datetime, datetime]]) -> float:
    """The mean distance."""
    return mean((last - first).total_seconds() for first, last in pairs)


def report(
    folder: Path, jobs: dict[str, dict[str, str]], seconds: float, used: resource.struct_rusage
) -> str:
    """A table of one row."""
    log = (folder / "log").read_text()
    when = {
        number: {key: datetime.fromisoformat(job[f"{key}Time"]) for key in ("Submit", "Start", "End")}
        for number, job in jobs.items()
    }
    slept = sum((times["End"] - times["Start"]).total_seconds() for times in when.values())
    queued = seconds_between((times["Submit"], times["Start"]) for times in when.values())
    unseen = seconds_between((when[number]["End"], then) for number, then in seen(log).items())
    calls = re.findall(r"^(?:Job .* has been submitted|Submitted array job) with", log, re.M)
    row = {
        "jobs of Snakemake": re.search(r"^total +(\d+)", log, re.M)[1],
        "jobs of SLURM": len(jobs),
        "calls of sbatch": len(calls),
        "whole run": f"{seconds:.0f} s",
        "jobs' time / 100": f"{slept / 100:.0f} s",
        "from sbatch to start": f"{queued:.1f} s",
        "from end to seen": f"{unseen:.0f} s",
        "Snakemake: CPU": f"{used.ru_utime + used.ru_stime:.0f} s",
        "memory": f"{used.ru_maxrss / 1024:.0f} MB",
    }
    return "\n".join(
        "| " + " | ".join(map(str, part)) + " |" for part in (row, ["---:"] * len(row), row.values())
    )


def main() -> None:
    if "--job" in sys.argv[1:2]:
        return stand_in(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="paper")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("words", nargs="*")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="scheduling-") as name:
        folder = Path(name)
        prepare(folder, arguments.seeds)
        subprocess.run([CLUSTER, "start", folder / "cluster"], check=True, stdout=subprocess.DEVNULL)
        os.environ["SLURM_CONF"] = str(folder / "cluster/slurm.conf")
        os.environ["PATH"] = f"{folder}/cluster/bin:{os.environ['PATH']}"
        try:
            seconds, used = run(folder, arguments.target, arguments.words)
            print(report(folder, slurm_jobs(), seconds, used))
        finally:
            subprocess.run([CLUSTER, "stop", folder / "cluster"], check=True)


if __name__ == "__main__":
    main()
