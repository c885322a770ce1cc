"""Trainings that are killed, stopped or damaged end as undisturbed ones, byte for byte."""

import csv
import errno
import json
import os
import random
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from small_models import SETTINGS, fit, folder_of, model_text, typed
from synmask.__main__ import SIGNALS, TEMPORARY
from synmask.pipeline.errors import TryAgain, UserError
from synmask.pipeline.training import checkpoints, loop, torch_files
from synmask.pipeline.training.trainer import Trainer
from synmask.pipeline.translation.average import average
from synmask.pipeline.translation.model_file import save_model
from synmask.pipeline.translation.train import TranslationStage

DYING = Path(__file__).with_name("dying.py")
KEEP = 2
ALWAYS = 1e-9  # minutes: save after every update
STAGE = TranslationStage(typed(SETTINGS), 1, Path("data"), "de", "en", KEEP, {})


def words(corpus, run, settings, minutes=ALWAYS, processes=1):
    return [
        "train", "--data", str(corpus / "bin"), "--run", str(run), "--source", "de", "--target", "en",
        "--settings", json.dumps(settings), "--seed", "1", "--keep", str(KEEP),
        "--checkpoint-minutes", str(minutes), "--processes", str(processes),
    ]  # fmt: skip


@pytest.fixture(scope="session")
def begin(forks):
    """Start a verb in a process that has imported what it needs, to die at a moment → the process, its log."""

    def run(words, moment=None, log=None, **environment):
        log = log or Path(words[words.index("--run") + 1]).with_suffix(".log")
        log.write_text("")
        names = {"WORDS": words, "MOMENT": dict(moment or {}), "LOG": str(log), "ENVIRONMENT": environment}
        process = forks.Process(target=runpy.run_path, args=(str(DYING), names))
        process.start()
        return process, log

    return run


@pytest.fixture(scope="session")
def attempt(begin):
    """Run a verb as `begin` does (or kill it after some seconds) → exit code, what it said."""

    def run(words, moment=None, seconds=None, log=None):
        process, log = begin(words, moment, log)
        process.join(seconds)
        process.kill()
        process.join()
        return process.exitcode, log.read_text()

    return run


def wait_for(words, log, process):
    """Wait until a process has said these words."""
    while words not in log.read_text():
        assert process.is_alive(), log.read_text()
        time.sleep(0.02)


@pytest.fixture(scope="session")
def undisturbed(corpus, all_settings, tmp_path_factory):
    """A run without a checkpoint within its epochs."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    fit(corpus / "bin", folder, typed(all_settings["grammar"]), keep=KEEP)
    return folder


def outcome(corpus, run, settings):
    """The bytes of the averaged model, and the history without its times."""
    model = run / "model.pt"
    save_model(model, average(run, KEEP), corpus / "bin", model_text(), typed(settings))
    rows = list(csv.DictReader((run / "history.csv").open()))
    for row in rows:
        del row["seconds"], row["tokens_per_second"]
    return rows, model.read_bytes()


def moments(draw):
    """Ways to die, the moments drawn at random."""
    while True:
        kind = draw.choice(["rename", "write", "update", "time"])
        if kind == "rename":
            yield {"kind": kind, "number": draw.randint(1, 12), "after": draw.random() < 0.5}, None
        elif kind == "write":
            yield {"kind": kind, "number": draw.randint(1, 5), "share": draw.random()}, None
        elif kind == "update":
            yield {"kind": kind, "number": draw.randint(1, 3), "what": signal.SIGKILL}, None
        else:
            yield None, draw.uniform(0.05, 0.3)


def test_killed_at_random_moments(corpus, tmp_path, all_settings, undisturbed, attempt):
    settings, run = all_settings["grammar"], tmp_path / "run"
    kills = 0
    for moment, seconds in moments(random.Random(1)):
        code, output = attempt(words(corpus, run, settings), moment, seconds)
        if code == 0:
            break
        assert code == -signal.SIGKILL, output
        kills += 1
        assert kills < 60
    assert kills >= 5
    assert outcome(corpus, run, settings) == outcome(corpus, undisturbed, settings)
    assert not list(run.rglob("*.tmp"))
    assert not (run / "lock").exists()


@pytest.mark.parametrize(
    "moment",
    [{"kind": "rename", "number": n, "after": False} for n in (5, 6, 7)]
    + [{"kind": "rename", "number": 7, "after": True}]
    + [{"kind": "write", "number": 2, "share": share} for share in (0.0, 0.7, 1.0)],
    ids=str,
)
def test_killed_while_a_checkpoint_is_written(corpus, tmp_path, all_settings, attempt, moment):
    """The second checkpoint (its file is renamed, last.pt to previous.pt, its file to last.pt) loses no first."""
    run = tmp_path / "run"
    assert attempt(words(corpus, run, all_settings["plain"]), moment)[0] == -signal.SIGKILL
    start = checkpoints.latest_checkpoint(folder_of(run), STAGE)
    state = torch.load(start, weights_only=True)
    assert state["updates"] >= 1
    assert attempt(words(corpus, run, all_settings["plain"]))[0] == 0


@pytest.mark.parametrize("what", SIGNALS)
def test_a_signal_saves_and_exits_with_75(corpus, tmp_path, all_settings, undisturbed, attempt, what):
    settings, run = all_settings["grammar"], tmp_path / "run"
    never = words(corpus, run, settings, minutes=1e9)
    for number in (2, 2, 3) if what == signal.SIGTERM else (7,):
        code, output = attempt(never, {"kind": "update", "number": number, "what": what})
        assert code == TEMPORARY, output
        assert "stopped by a signal, and saved; the same command resumes it" in output.splitlines()[-1]
    code, output = attempt(never)
    assert code == 0
    assert "resuming after update 7 in epoch" in output  # 2 + 2 + 3: the stopped updates count
    assert outcome(corpus, run, settings) == outcome(corpus, undisturbed, settings)


def test_no_thread_is_left_that_prepares_batches(corpus, tmp_path, settings, monkeypatch):
    """One that computes while Python ends would abort the process, whose exit code is then -6, not 75."""
    settings["training"]["batch"]["tokens"] = 8

    def not_finite(*_, **kwargs):
        raise FloatingPointError

    monkeypatch.setattr(Trainer, "train_step", not_finite)
    before = threading.enumerate()
    with pytest.raises(UserError, match="no longer finite"):
        fit(corpus / "bin", tmp_path / "run", typed(settings), keep=KEEP)
    assert threading.enumerate() == before


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_before_a_training_listens(number):
    early = (
        "import os, synmask.pipeline.cli as cli\n"
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"cli.app = lambda *_: os.kill(os.getpid(), {int(number)})\n"
        "cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", early, "train"], stderr=subprocess.PIPE, text=True)
    assert done.returncode == TEMPORARY
    assert "stopped by a signal before its first update" in done.stderr


IN_IMPORT = """
import os, signal, sys, time
if sys.argv[1:] and sys.argv[0] != "-c":
    class Finder:
        def find_spec(self, name, *_):
            if name == "synmask.pipeline":
                os.kill(os.getpid(), {number})
                time.sleep(1)
    sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize(
    ("verb", "number", "code", "line"),
    [
        *(("train", number, TEMPORARY, "synmask train: stopped by a signal") for number in SIGNALS),
        ("tokenise", signal.SIGINT, -signal.SIGINT, ""),
    ],
)
def test_a_signal_while_synmask_is_imported(tmp_path, verb, number, code, line):
    (tmp_path / "sitecustomize.py").write_text(IN_IMPORT.format(number=int(number)))
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "synmask", verb], env=environment, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert (done.returncode, done.stderr.startswith(line), "Traceback" in done.stderr) == (code, True, False)


def test_a_clock_that_stands_still_is_no_division_by_zero(corpus, tmp_path, settings, monkeypatch):
    clock = SimpleNamespace(**vars(time) | {"perf_counter": lambda: 1.0})
    monkeypatch.setattr(loop, "time", clock)
    fit(corpus / "bin", tmp_path / "run", typed(settings), keep=KEEP)
    assert (tmp_path / "run/history.csv").exists()


def stop_after_an_update(corpus, run, settings):
    compute = Trainer.forward
    with pytest.MonkeyPatch.context() as patch:

        def signalled(*words, **kwargs):
            os.kill(os.getpid(), signal.SIGTERM)
            return compute(*words, **kwargs)

        patch.setattr(Trainer, "forward", signalled)
        with pytest.raises(TryAgain, match="stopped by a signal, and saved"):
            fit(corpus / "bin", run, typed(settings), keep=KEEP)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_after_a_training_changes_nothing(number):
    late = (
        "import atexit, os, sys, synmask.__main__ as entry, synmask.pipeline.cli as cli\n"
        f"atexit.register(lambda: os.kill(os.getpid(), {int(number)}))\n"
        "cli.main = lambda: None\n"
        "entry.main()"
    )
    done = subprocess.run([sys.executable, "-c", late, "train"], stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def workers_of(process):
    """The data-parallel workers of a training, in the order of their start."""
    return [*map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())]


def test_a_second_ctrl_c_ends_at_once(warm):
    twice = (
        "import os, signal\n"
        "from synmask.pipeline.training.stopping import Stop\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "with Stop().listening():\n"
        "    for text in ('first', 'second'):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        print(text, flush=True)\n"
    )
    done = subprocess.run([warm.python, "-c", twice], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "first\n", "synmask: interrupted\n")


def launched(python, line, count):
    """Processes as torchrun starts them."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(probe.getsockname()[1])}
    ranks = ({"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count)} for rank in range(count))
    command = [python, "-m", "synmask", *line]
    kwargs = {"stderr": subprocess.PIPE, "text": True}
    return [subprocess.Popen(command, env=os.environ | address | rank, **kwargs) for rank in ranks]


def test_two_workers_stop_at_the_same_update(warm, corpus, tmp_path, settings, begin, attempt):
    settings["training"] |= {"batch": {"gpus": 2, "updates": 1, "tokens": 120}, "max_epochs": 16}
    one, other = tmp_path / "one", tmp_path / "other"
    for whom in ("the parent alone", "all"):
        process, log = begin(words(corpus, one, settings, minutes=1e9, processes=2))
        wait_for(" done  loss", log, process)
        (os.killpg if whom == "all" else os.kill)(process.pid, signal.SIGTERM)
        process.join()
        assert process.exitcode == TEMPORARY, log.read_text()
    process, log = begin(words(corpus, one, settings, minutes=1e9, processes=2))
    wait_for("resuming after update", log, process)
    os.kill(workers_of(process)[-1], signal.SIGKILL)
    process.join()
    assert "ended with SIGKILL (SIGKILL is often too little memory" in log.read_text()
    assert process.exitcode == 1
    code, output = attempt(words(corpus, one, settings, minutes=1e9, processes=2))
    assert (code, "resuming after update" in output) == (0, True), output
    for process in launched(
        warm.python, words(corpus, other, settings, minutes=1e9), 2
    ):  # as on two machines
        output = process.communicate()[1]
        assert process.returncode == 0, output
        assert "resuming" not in output
    assert outcome(corpus, one, settings) == outcome(corpus, other, settings)


def test_a_launched_worker_whose_first_one_fails_ends_in_one_line(warm, corpus, tmp_path, settings):
    settings["training"] |= {"batch": {"gpus": 3, "updates": 1, "tokens": 120}}
    processes = launched(warm.python, words(corpus, tmp_path, settings), 2)
    outputs = [process.communicate()[1] for process in processes]
    assert "cannot share the 3 batches" in outputs[0]
    assert "another worker has ended, or did not come; see its message" in outputs[1]
    assert [output.count("\n") for output in outputs] == [1, 1]


def test_another_number_of_workers_goes_on_at_the_same_batch(corpus, tmp_path, settings, attempt):
    settings["training"] |= {"batch": {"gpus": 2, "updates": 1, "tokens": 120}, "dropout": 0.0}
    run, alone = tmp_path / "run", tmp_path / "alone"
    fit(corpus / "bin", alone, typed(settings), keep=KEEP)
    stop = {"kind": "update", "number": 2, "what": signal.SIGTERM}
    assert attempt(words(corpus, run, settings), stop)[0] == TEMPORARY
    state = torch.load(folder_of(run) / "last.pt", weights_only=True)
    assert state["partial"]["batches"] == 4  # one worker, two batches per update, two updates
    assert attempt(words(corpus, run, settings, processes=2))[0] == 0
    rows, expected = (outcome(corpus, folder, settings)[0] for folder in (run, alone))
    for row, other in zip(rows, expected, strict=True):
        assert row["updates"] == other["updates"]
        assert float(row["valid_loss"]) == pytest.approx(float(other["valid_loss"]), abs=2e-3)


@pytest.fixture(scope="session")
def first_stopped(corpus, tmp_path_factory, all_settings, attempt):
    """A run with whole last.pt (after update 8) and previous.pt (after update 7)."""
    run = tmp_path_factory.mktemp("stopped") / "run"
    stop = {"kind": "update", "number": 8, "what": signal.SIGTERM}
    assert attempt(words(corpus, run, all_settings["grammar"]), stop)[0] == TEMPORARY
    return run


@pytest.fixture
def stopped(first_stopped, tmp_path):
    """A copy of that run, which a test may change."""
    return shutil.copytree(first_stopped, tmp_path / "run")


def cut(path):
    path.write_bytes(path.read_bytes()[:-100])


def flip(path):
    """More bytes than lie between two tensors, which say nothing."""
    data = bytearray(path.read_bytes())
    for position in range(len(data) // 2, len(data) // 2 + 65):
        data[position] ^= 4
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [cut, flip, lambda path: path.write_bytes(b"")])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(
    corpus, all_settings, undisturbed, stopped, capfd, damage
):
    settings = all_settings["grammar"]
    damage(folder_of(stopped) / "last.pt")
    fit(corpus / "bin", stopped, typed(settings), keep=KEEP)
    output = capfd.readouterr().err
    assert "last.pt: damaged" in output
    assert "kept as last.pt.damaged-1" in output
    assert (folder_of(stopped) / "last.pt.damaged-1").exists()
    assert "resuming after update 7 in epoch" in output
    assert outcome(corpus, stopped, settings) == outcome(corpus, undisturbed, settings)


def test_without_a_whole_checkpoint_it_starts_again(corpus, all_settings, undisturbed, stopped, capfd):
    settings = all_settings["grammar"]
    for name in ("last.pt", "previous.pt"):
        cut(folder_of(stopped) / name)
    fit(corpus / "bin", stopped, typed(settings), keep=KEEP)
    assert "resuming" not in capfd.readouterr().err
    assert outcome(corpus, stopped, settings) == outcome(corpus, undisturbed, settings)


def of_seed_2(path):
    """Have a state or a record say that another training saved it."""
    saved = torch_files.load_checkpoint(path)
    torch_files.save_checkpoint(path, saved | {"stamp": saved["stamp"] | {"seed": 2}})


def test_another_trainings_state_is_not_trained_on(corpus, all_settings, undisturbed, stopped, capfd):
    settings = all_settings["grammar"]
    of_seed_2(folder_of(stopped) / "last.pt")
    fit(corpus / "bin", stopped, typed(settings), keep=KEEP)
    output = capfd.readouterr().err
    assert "last.pt: unusable (it is of another training); it is kept as last.pt.unusable-1" in output
    assert "resuming after update 7 in epoch" in output
    assert outcome(corpus, stopped, settings) == outcome(corpus, undisturbed, settings)


def test_a_state_of_an_older_version_is_named_and_not_trained_on(
    corpus, all_settings, undisturbed, stopped, capfd
):
    """As fairseq's trainer wrote it."""
    settings, folder = all_settings["grammar"], folder_of(stopped)
    for name in ("last.pt", "previous.pt"):
        state = torch_files.load_checkpoint(folder / name)
        extra = {key: state[key] for key in ("history", "partial", "attempts", "stamp")}
        optimizer = {"optimizer_history": [{"num_updates": 7}], "last_optimizer_state": state["optimizer"]}
        torch_files.save_checkpoint(
            folder / name, {"model": state["model"], **optimizer, "extra_state": extra}
        )
    fit(corpus / "bin", stopped, typed(settings), keep=KEEP)
    output = capfd.readouterr().err
    why = "unusable (an older version of synmask saved it, by fairseq's trainer); it is kept as last.pt.unusable-1"
    assert f"last.pt: {why}" in output
    assert "resuming" not in output
    assert outcome(corpus, stopped, settings) == outcome(corpus, undisturbed, settings)


def test_another_trainings_record_is_not_delivered(corpus, tmp_path, all_settings, undisturbed, capfd):
    settings, run = all_settings["grammar"], tmp_path / "run"
    shutil.copytree(undisturbed, run)
    of_seed_2(folder_of(run) / "finished.pt")
    fit(corpus / "bin", run, typed(settings), keep=KEEP)
    assert (
        "finished.pt: unusable (it is of another training); it is kept as finished.pt.unusable-1"
        in capfd.readouterr().err
    )
    assert outcome(corpus, run, settings) == outcome(corpus, undisturbed, settings)


def test_a_stopped_training_that_was_moved_goes_on(
    corpus, tmp_path, all_settings, undisturbed, stopped, capfd
):
    settings, there = all_settings["grammar"], tmp_path / "another/machine"
    shutil.copytree(corpus / "bin", there / "bin")
    shutil.move(stopped, there / "run")
    (folder_of(there / "run") / "stamp.json").write_bytes(b"{")  # the folder's name says whose it is
    fit(there / "bin", there / "run", typed(settings), keep=KEEP)
    assert "resuming after update 8 in epoch" in capfd.readouterr().err
    assert outcome(corpus, there / "run", settings) == outcome(corpus, undisturbed, settings)


def test_a_damaged_model_is_trained_again(corpus, tmp_path, all_settings, undisturbed, capfd):
    """Damage to an epoch's model comes out when it is averaged: without train.json it is made again."""
    settings, run = all_settings["grammar"], tmp_path / "run"
    shutil.copytree(undisturbed, run)
    flip(folder_of(run) / "epoch2.pt")
    (run / "train.json").unlink()
    fit(corpus / "bin", run, typed(settings), keep=KEEP)
    output = capfd.readouterr().err
    assert "one of epoch2.pt, epoch3.pt is missing or damaged" in output
    assert "epoch 3/3 done" in output
    assert outcome(corpus, run, settings) == outcome(corpus, undisturbed, settings)


def test_every_damage_is_noticed_or_harmless(tmp_path):
    path = tmp_path / "a.pt"
    value = {"a": torch.arange(40.0), "b": [1, "x"]}
    torch_files.save_checkpoint(path, value)
    whole = path.read_bytes()
    noticed = 0
    for position in range(len(whole)):
        data = bytearray(whole)
        data[position] ^= 1 << (position % 8)
        path.write_bytes(data)
        try:
            there = torch_files.load_checkpoint(path)
        except UserError:
            noticed += 1
        else:
            assert torch.equal(there["a"], value["a"]), position
            assert there["b"] == value["b"], position
    assert noticed > len(whole) / 3
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        assert torch_files.checkpoint_damage(path)


@pytest.mark.parametrize("damage", [cut, flip, lambda path: path.write_bytes(b"")])
def test_a_damaged_record_is_kept_and_made_again(corpus, tmp_path, all_settings, undisturbed, damage):
    shutil.copytree(undisturbed, tmp_path / "run")
    path = folder_of(tmp_path / "run") / "finished.pt"
    damage(path)
    bad = path.read_bytes()
    fit(corpus / "bin", tmp_path / "run", typed(all_settings["grammar"]), keep=KEEP)
    assert path.with_name("finished.pt.damaged-1").read_bytes() == bad
    expected = outcome(corpus, undisturbed, all_settings["grammar"])
    assert outcome(corpus, tmp_path / "run", all_settings["grammar"]) == expected


def test_a_finished_training_is_trained_again_if_asked(
    corpus, tmp_path, all_settings, undisturbed, attempt, capfd
):
    """In another folder: the first stays until then, and a kill in between costs neither."""
    settings, run = all_settings["grammar"], tmp_path / "run"
    shutil.copytree(undisturbed, run)
    expected, first = outcome(corpus, run, settings), folder_of(run)
    (run / "train.json").unlink()  # as Snakemake does before a job
    fit(corpus / "bin", run, typed(settings), keep=KEEP)
    output = capfd.readouterr().err
    assert "all 3 epochs are done; to train again, give --again 1" in output
    assert "epoch 1/3" not in output
    stop = {"kind": "update", "number": 8, "what": signal.SIGTERM}
    assert attempt([*words(corpus, run, settings), "--again", "1"], stop)[0] == TEMPORARY
    assert torch_files.load_checkpoint(first / "finished.pt")
    fit(corpus / "bin", run, typed(settings), keep=KEEP, again=1)
    output = capfd.readouterr().err
    assert "resuming after update 8 in epoch" in output
    assert "epoch 3/3 done" in output
    assert folder_of(run).name == f"{first.name}-2"
    assert outcome(corpus, run, settings) == expected
    fit(corpus / "bin", run, typed(settings), keep=KEEP)
    assert "all 3 epochs are done" in capfd.readouterr().err


def test_a_passing_read_fault_costs_no_checkpoint(stopped, monkeypatch):
    folder = folder_of(stopped)
    before = sorted(path.name for path in folder.iterdir())

    for code in sorted({*errno.errorcode} - {errno.EINVAL}):  # the latter: a damaged file's offset

        def failing(*_, code=code, **kwargs):
            raise OSError(code, os.strerror(code))

        for reader in (zipfile.ZipFile, "testzip"), (torch, "load"):
            with monkeypatch.context() as context:
                context.setattr(*reader, failing)
                with pytest.raises(OSError) as error:  # noqa: PT011 - the next lines say which
                    checkpoints.latest_checkpoint(folder, STAGE)
            assert (error.value.errno, error.value.filename) == (code, str(folder / "last.pt"))
    assert sorted(path.name for path in folder.iterdir()) == before
    assert checkpoints.latest_checkpoint(folder, STAGE) == folder / "last.pt"


def test_averaging_may_remove_the_checkpoints(corpus, tmp_path, all_settings, undisturbed, capfd):
    settings, run = all_settings["grammar"], tmp_path / "run"
    shutil.copytree(undisturbed, run)
    folder, model = folder_of(run), run / "model.pt"
    expected = outcome(corpus, run, settings)
    checkpoints.keep_final_only(folder, model, checkpoints.average_file(KEEP))
    assert {path.name for path in folder.iterdir()} == {
        "average2.pt",
        "stamp.json",
        "history.csv",
        "finished.pt",
    }
    assert model.samefile(folder / "average2.pt")
    checkpoints.keep_final_only(folder, model, checkpoints.average_file(KEEP))
    assert not list(run.rglob(".*.tmp"))
    model.unlink()  # as Snakemake does before it averages again
    assert outcome(corpus, run, settings) == expected
    for name in ("train.json", "history.csv"):
        (run / name).unlink()
    capfd.readouterr()
    fit(corpus / "bin", run, typed(settings), keep=KEEP)
    assert "all 3 epochs are done" in capfd.readouterr().err
    assert outcome(corpus, run, settings) == expected
    fit(corpus / "bin", run, typed(settings), keep=3)  # one more to average: none of them is there
    assert "epoch 3/3 done" in capfd.readouterr().err
    assert outcome(corpus, run, settings) == expected


def test_a_file_system_without_hard_links_gets_a_copy(tmp_path, undisturbed, monkeypatch):
    def failing(*_):
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    shutil.copytree(undisturbed, tmp_path / "run")
    model, folder = tmp_path / "run/model.pt", folder_of(tmp_path / "run")
    torch_files.save_checkpoint(model, {"a": 1})
    monkeypatch.setattr(os, "link", failing)
    checkpoints.keep_final_only(folder, model, "average2.pt")
    assert not model.samefile(folder / "average2.pt")
    assert torch_files.load_checkpoint(folder / "average2.pt") == {"a": 1}


def test_killed_while_it_removes_checkpoints(corpus, tmp_path, all_settings, undisturbed, monkeypatch):
    settings, run = all_settings["grammar"], tmp_path / "run"
    shutil.copytree(undisturbed, run)
    expected = outcome(corpus, run, settings)
    unlink = Path.unlink

    def failing(path, **kwargs):
        if path.name == "last.pt":
            raise KeyboardInterrupt
        unlink(path, **kwargs)

    monkeypatch.setattr(Path, "unlink", failing)
    with pytest.raises(KeyboardInterrupt):
        checkpoints.keep_final_only(folder_of(run), run / "model.pt", checkpoints.average_file(KEEP))
    monkeypatch.undo()
    (run / "model.pt").unlink()
    assert outcome(corpus, run, settings) == expected


def test_a_run_belongs_to_one_training_at_a_time(corpus, tmp_path, settings, begin, attempt):
    settings["training"]["max_epochs"] = 1000
    run = tmp_path / "run"
    first, log = begin(words(corpus, run, settings), SLURM_JOB_ID="4711")
    wait_for("epoch 1/1000 done", log, first)
    code, output = attempt(words(corpus, run, settings), log=tmp_path / "second.log")
    assert code == TEMPORARY
    assert f"SLURM job 4711, process {first.pid} on " in output
    assert "or end it: scancel 4711" in output
    assert output.count("\n") == 1
    first.kill()
    first.join()
    third, log = begin(words(corpus, run, settings), log=tmp_path / "third.log")
    wait_for("resuming after", log, third)
    line = log.read_text().splitlines()[0]
    assert f"process {first.pid} on" in line
    assert "is gone; taking over" in line
    third.kill()
    third.join()


@pytest.mark.parametrize(
    ("moment", "where"),
    [
        ({"kind": "memory", "megabytes": 200}, "for this job"),
        ({"kind": "gpu memory", "number": 3}, "on the GPU"),
    ],
)
def test_too_little_memory_is_one_line_and_loses_no_batch(corpus, tmp_path, settings, attempt, moment, where):
    if moment["kind"] == "memory":
        settings["model"] |= {"embed_dim": 1024, "ffn_dim": 8192}
    run = tmp_path / "run"
    code, output = attempt(words(corpus, run, settings), moment)
    assert code == 1
    assert f"synmask train: not enough memory {where}; give it more" in output.splitlines()[-1]
    assert "Traceback" not in output
    assert not (run / "train.json").exists()
    if moment["kind"] != "memory":
        assert attempt(words(corpus, run, settings))[0] == 0
        fit(corpus / "bin", tmp_path / "whole", typed(settings), keep=KEEP)
        assert outcome(corpus, run, settings) == outcome(corpus, tmp_path / "whole", settings)


def test_data_that_are_cut_while_it_trains_are_one_line(corpus, tmp_path, settings, begin):
    """The system sends SIGBUS at the next access to what was mapped."""
    settings["training"]["max_epochs"] = 1000
    shutil.copytree(corpus / "bin", tmp_path / "bin")
    process, log = begin(words(tmp_path, tmp_path / "run", settings))
    wait_for("epoch 1/1000 done", log, process)
    os.truncate(tmp_path / "bin/train.de-en.de.bin", 0)
    process.join(60)
    assert process.exitcode == 1
    output = log.read_text().splitlines()
    assert output[-1].startswith(f"synmask: {tmp_path}/run: a file that it reads became shorter")
    assert all("done  loss" in line for line in output[:-1])
