import errno
import json
import os
import subprocess
import threading
import time

import pytest

from synmask.pipeline.errors import TryAgain, UserError
from synmask.pipeline.training import lock
from synmask.pipeline.training.lock import run_lock

OTHER = {"name": "SLURM job 99, process 12 on node7, started 2026-01-01", "boot": "another", "job": "99"}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(lock, "STALE_SECONDS", 0.5)
    monkeypatch.setattr(lock, "HEARTBEAT_SECONDS", 0.05)


def test_it_is_gone_afterwards(tmp_path):
    with run_lock(tmp_path):
        assert f"process {os.getpid()} on" in (tmp_path / "lock").read_text()
    with pytest.raises(ZeroDivisionError), run_lock(tmp_path):
        raise ZeroDivisionError
    assert not (tmp_path / "lock").exists()


def test_a_full_disk_leaves_no_lock(tmp_path, monkeypatch):
    def full(*words):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as context:
        context.setattr(os, "pwrite", full)
        with pytest.raises(OSError, match="No space") as error, run_lock(tmp_path):
            pass
    assert error.value.filename == str(tmp_path / "lock")
    assert not list(tmp_path.iterdir())
    with run_lock(tmp_path):
        pass


def test_the_second_is_told_who_holds_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    with run_lock(tmp_path), pytest.raises(TryAgain) as error, run_lock(tmp_path):
        pass
    assert f"SLURM job 4711, process {os.getpid()} on " in str(error.value)
    assert "wait for it to finish, or end it: scancel 4711" in str(error.value)
    assert "\n" not in str(error.value)


def hold(python, folder, without_flock):
    code = (
        "import sys, time, fcntl; from synmask.pipeline.training import lock; lock.HEARTBEAT_SECONDS = 0.05\n"
        + ("def none(*_): raise OSError(95, 'no locks here')\nfcntl.flock = none\n" if without_flock else "")
        + f"with lock.run_lock(__import__('pathlib').Path({str(folder)!r})): print(__import__('os').getpid(), flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([python, "-c", code], stdout=subprocess.PIPE, text=True)
    return process, int(process.stdout.readline())


@pytest.mark.parametrize("without_flock", [False, True])
def test_death_opens_it(warm, tmp_path, capfd, monkeypatch, without_flock):
    """With flock at once; without it, after the time stamp has stood still for a while."""
    process, pid = hold(warm.python, tmp_path, without_flock)
    if without_flock:
        monkeypatch.setattr(lock, "_try_flock", lambda *_: False)
    try:
        with pytest.raises(TryAgain, match=f"process {pid} on"), run_lock(tmp_path):
            pass
    finally:
        process.kill()
        process.communicate()
    with run_lock(tmp_path):
        assert f"process {os.getpid()} on" in (tmp_path / "lock").read_text()
    output = capfd.readouterr().err
    assert f"process {pid} on" in output
    assert "is gone; taking over" in output
    assert ("watching it" in output) == without_flock


@pytest.mark.parametrize("stamp", [0, 4_000_000_000])  # a clock that was set back, or was far ahead
def test_no_clock_decides(tmp_path, stamp):
    (tmp_path / "lock").write_text(json.dumps(OTHER))
    os.utime(tmp_path / "lock", (stamp, stamp))
    with run_lock(tmp_path) as check:
        check()


def test_another_machine_is_alive_while_its_time_stamp_changes(tmp_path):
    (tmp_path / "lock").write_text(json.dumps(OTHER))
    done = threading.Event()

    def beat():
        second = 1_000_000_000
        while not done.wait(0.05):
            second -= 60  # its clock runs backwards
            os.utime(tmp_path / "lock", (second, second))

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        with pytest.raises(TryAgain, match="SLURM job 99, process 12 on node7"), run_lock(tmp_path):
            pass
    finally:
        done.set()
        thread.join()
    assert json.loads((tmp_path / "lock").read_text()) == OTHER


def test_one_that_stood_still_must_not_write(tmp_path):
    with run_lock(tmp_path) as check:
        check()
        (tmp_path / "lock").write_text(json.dumps(OTHER))
        with pytest.raises(TryAgain, match="node7"):
            check()
    assert json.loads((tmp_path / "lock").read_text()) == OTHER


def test_only_one_of_many_gets_it(tmp_path):
    got, refused = [], []

    def try_it():
        try:
            with run_lock(tmp_path):
                got.append(1)
                time.sleep(0.5)
        except TryAgain:
            refused.append(1)

    threads = [threading.Thread(target=try_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(got), len(refused)) == (1, 7)


def test_an_empty_lock_is_nobodys_and_a_removed_folder_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "STALE_SECONDS", 90.0)
    (tmp_path / "lock").write_text("")
    started = time.monotonic()
    with run_lock(tmp_path / "."):
        assert time.monotonic() - started < 10
    with run_lock(tmp_path / "run") as check:
        (tmp_path / "run").rename(tmp_path / "moved")
        with pytest.raises(UserError, match="removed or moved while this run used it"):
            check()
