import importlib
import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from synmask.pipeline import gpus
from synmask.pipeline.cli import main
from synmask.pipeline.config.loading import load, project_files, read_all
from synmask.pipeline.config.schema import as_json
from synmask.pipeline.errors import UserError

HOLD = """
import os, sys, time
from synmask.pipeline.gpus import lease
with lease(int(sys.argv[1])):
    mine = os.environ["CUDA_VISIBLE_DEVICES"]
    print("start", time.monotonic(), mine, flush=True)
    time.sleep(float(sys.argv[2]))
    print("end", time.monotonic(), mine, flush=True)
"""


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """A machine with two GPUs, by way of the stand-in for nvidia-smi, and a folder of locks of its own."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\nprintf '0\\n1\\n'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(gpus.tempfile, "tempdir", None)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)


def job(count, seconds, **environment):
    command = [sys.executable, "-c", HOLD, str(count), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | environment)


def spans(jobs):
    """(GPU, start, end) of each GPU that each job had."""
    found = []
    for process in jobs:
        output, _ = process.communicate()
        assert process.returncode == 0
        (_, start, mine), (_, end, _) = map(str.split, output.splitlines())
        found += [(gpu, float(start), float(end)) for gpu in mine.split(",")]
    return sorted(found)


def test_six_jobs_on_two_gpus_never_overlap():
    found = spans([job(count, 0.3) for count in (1, 1, 2, 1, 1, 2)])
    assert [gpu for gpu, _, _ in found].count("0") >= 2
    assert len(found) == 8
    for (gpu, _, end), (other, start, _) in itertools.pairwise(found):
        assert gpu != other or end <= start


def test_a_killed_job_leaves_its_gpus():
    held = job(2, 100)
    assert held.stdout.readline().startswith("start")
    held.send_signal(signal.SIGKILL)
    held.wait()
    with gpus.lease(2) as mine:
        assert mine == ["0", "1"]


def test_who_waits_says_so_once(capsys, monkeypatch):
    pauses = iter([None, None, KeyboardInterrupt])

    def pause(seconds):
        if fault := next(pauses):
            raise fault

    monkeypatch.setattr(gpus.time, "sleep", pause)
    with gpus.lease(1):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
        with pytest.raises(KeyboardInterrupt), gpus.lease(2):
            pass
        with gpus.lease(1) as second:  # what the waiting one took meanwhile is free again
            assert second == ["1"]
    assert capsys.readouterr().err == "waiting for 2 of the GPUs 0, 1\n"


def test_the_block_sees_its_gpus_alone(monkeypatch):
    with gpus.lease(1) as first, gpus.lease(0) as nothing:
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "0"
        assert (first, nothing) == (["0"], [])
    assert "CUDA_VISIBLE_DEVICES" not in os.environ
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b")
    with gpus.lease(3) as both:
        assert both == ["GPU-a", "GPU-b"]  # no more are there
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-a,GPU-b"


@pytest.mark.parametrize("chosen", ["", "-1"])
def test_without_a_gpu_nothing_happens(tmp_path, monkeypatch, chosen):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    with gpus.lease(1) as mine:
        assert mine == []
        assert os.environ["CUDA_VISIBLE_DEVICES"] == chosen
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nexit 9\n")  # a driver without a device
    assert gpus.visible_gpus() == []
    monkeypatch.setenv("PATH", "/nowhere")
    assert gpus.visible_gpus() == []


@pytest.mark.parametrize(
    ("chosen", "gpus_of_cuda"),
    [
        ("1,0", ["1", "0"]), ("0,-1,1", ["0"]), ("0,0", []), (" 1 , 0 ", ["1", "0"]), ("01,0", ["1", "0"]), ("x,0", []), ("", []),
        ("GPU-a,1,GPU-b", ["GPU-a"]), ("GPU-a,GPU-a", []), ("MIG-a/1/0,MIG-b", ["MIG-a/1/0", "MIG-b"]), ("0,GPU-a", ["0"]),
    ],
)  # fmt: skip
def test_the_gpus_are_those_that_cuda_takes(monkeypatch, chosen, gpus_of_cuda):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    assert gpus.visible_gpus() == gpus_of_cuda


def test_a_gpu_that_is_not_there_hides_those_after_it(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,2,0")
    assert gpus.visible_gpus() == ["1"]


def test_a_gpu_named_twice_is_not_waited_for(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,0")
    with gpus.lease(2) as mine:
        assert mine == []


def test_jobs_of_slurm_do_not_wait_for_each_other():
    """Two jobs on one node may both call their GPU 0, though these are two."""
    jobs = [job(1, 100, SLURM_JOB_ID=number, CUDA_VISIBLE_DEVICES="0") for number in ("7", "8")]
    try:
        assert all(process.stdout.readline().startswith("start") for process in jobs)
    finally:
        for process in jobs:
            process.kill()
            process.wait()


def test_a_folder_of_another_user_is_refused(monkeypatch):
    user = os.getuid()
    monkeypatch.setattr(gpus.os, "getuid", lambda: user + 1)
    with pytest.raises(UserError, match="belongs to another user"), gpus.lease(1):
        pass


@pytest.mark.parametrize(
    ("batches", "there", "number"), [(2, 0, 1), (2, 1, 1), (2, 2, 2), (2, 4, 2), (6, 4, 3), (1, 4, 1)]
)
def test_workers_share_an_updates_batches_evenly(batches, there, number):
    from synmask.pipeline.training.loop import workers

    assert workers(batches, there) == number


@pytest.mark.parametrize(
    ("module", "function", "words"),
    [
        (
            "training.loop",
            "_count_processes",
            "train --data d --run r --source de --target en --settings SETTINGS --seed 1 --keep 1",
        ),
        ("translation.decode", "load_model", "decode --model m --inputs i --outputs o"),
        ("translation.parse", "load_model", "parse --model m"),
        ("roberta.predict", "load_checkpoint", "predict --model m --weights w --data d --output o"),
    ],
)
def test_verbs_lease_before_they_work(monkeypatch, module, function, words):
    """As soon as they would look at GPUs or a model, they see what they have leased."""
    config = load(read_all(project_files(Path(__file__).parents[1])))
    words = [
        word.replace("SETTINGS", as_json(config.run_settings("demo", "de-en", "grammar")))
        for word in words.split()
    ]
    seen = []

    def look(*_):
        seen.append(os.environ["CUDA_VISIBLE_DEVICES"])
        raise UserError("seen")

    monkeypatch.setattr(importlib.import_module(f"synmask.pipeline.{module}"), function, look)
    with gpus.lease(1):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
        with pytest.raises(SystemExit):
            main([*words, "--gpus", "1"])
    assert seen == ["1"]
