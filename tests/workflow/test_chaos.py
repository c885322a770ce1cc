"""Snakemake and all its jobs are killed at random moments; the end is that of an undisturbed run.

`CHAOS_KILLS=20 pytest tests/workflow/test_chaos.py -s` (make chaos) kills more often than CI does.
"""

import csv
import json
import os
import random
import re
import shutil
import signal
import time
from pathlib import Path

import pytest

from synmask.pipeline.training.torch_files import load_checkpoint
from warm import Warm

pytestmark = pytest.mark.xdist_group("demo")
KILLS = int(os.environ.get("CHAOS_KILLS", "2"))
SEED = int(os.environ.get("CHAOS_SEED", "1"))
MEASURED = re.compile(r"-cost\.|\.runs\.csv|report\.html")  # times, what shows them
# `attempts` tells the memory of each start of a training, `command` the folder of the program
COSTS = {
    "seconds",
    "tokens_per_second",
    "train_seconds",
    "decode_seconds",
    "memory",
    "gpu_memory",
    "attempts",
    "command",
}


def timeless(path):
    """A file's content, without the times and memory that a file of ours may hold."""
    names = ("train.json", "hypothesis.valid.json", "hypothesis.test.json", "scores.json", "finished.pt")
    if path.name in names:
        values = load_checkpoint(path) if path.suffix == ".pt" else json.loads(path.read_text())
        for part in (values, values.get("summary", {}), *values.get("history", [])):
            for key in COSTS & part.keys():
                del part[key]
            part.get("sha256", {}).pop("history.csv", None)  # it has times
        return values
    if path.name == "history.csv" or path.suffix == ".csv":
        rows = list(csv.DictReader(path.open()))
        return [{key: value for key, value in row.items() if key not in COSTS} for row in rows]
    return path.read_bytes()


def results(folder):
    """Every result by its name, without logs and measurements of cost."""
    files = [path for path in sorted((folder / "results").rglob("*")) if path.is_file()]
    return {
        str(path.relative_to(folder)): None
        if MEASURED.search(str(path.relative_to(folder)))
        else timeless(path)
        for path in files
        if "logs" not in path.parts and path.suffix != ".log"
    }


def left_running(folder):
    """The processes that work in a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if Path(os.readlink(entry)) == folder:
                found.append(int(entry.parent.name))
        except OSError:  # it has ended, or is not ours
            continue
    return found


def killed(project, draw):
    """Start the demo, and kill it some time after some job has started → that job's rule; None: it ended first."""
    process = project.start("-p", "--cores", "2", warm=True)  # whose end ends all that it has started
    jobs, rule, seen = draw.randint(1, 8), None, 0
    for line in process.stdout:
        if start := re.match(r"(?:local)?rule (\w+):", line):
            seen, rule = seen + 1, start[1]
            if seen == jobs:
                break
    time.sleep(draw.uniform(0, 2))
    if process.poll() is not None:
        return None
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    while left_running(project.folder):
        time.sleep(0.05)
    project.snakemake("--unlock")
    return rule


@pytest.fixture
def in_another_order(project, tmp_path_factory, monkeypatch):
    """The project, whose processes have another order of sets than those of all other tests."""
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    project.warm = Warm(tmp_path_factory.mktemp("warm"))
    yield project
    project.warm.close()


def test_killed_anywhere_the_demo_ends_as_an_undisturbed_one(built, in_another_order):
    project = in_another_order
    project.config = built.config
    expected, draw, kills = results(built.folder), random.Random(SEED), 0
    while kills < KILLS:
        if rule := killed(project, draw):
            kills += 1
            print(f"kill {kills}, after a start of {rule}", flush=True)
        else:
            assert results(project.folder) == expected
            shutil.rmtree(project.folder / "results")
    project.snakemake("--cores", "2")
    there = results(project.folder)
    assert there.keys() == expected.keys()
    assert not [name for name in there if there[name] != expected[name]]
