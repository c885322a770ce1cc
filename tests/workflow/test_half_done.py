"""Trainings that an update of the code finds half done, and finished ones that are trained again."""

import json
import os
import shutil
import signal
import time
from types import SimpleNamespace

import pytest
import torch

from synmask.pipeline.files import write_json
from synmask.pipeline.workflow.half_done import line as half_done_line

pytestmark = pytest.mark.xdist_group("half-done")  # `half_done` takes long, and once is enough
RUN = "results/demo/de-en/transformer/seed1"
TARGET = f"{RUN}/train.json"
SAVE_CALL = "                self._save_epoch(epoch)\n"
RESTART_NOTICE = (
    "1 training run is half done by other code (epoch 1 of 2) and will start again; to continue them instead, add "
    "--config any_code=true. Nothing of the old is deleted before the new is finished"
)


@pytest.fixture(scope="module")
def half_done(new_project):
    """A project with a training that stopped after its first epoch; then an update changed its loop."""
    project = new_project("half-done")
    code = project.folder / "src/synmask/pipeline/training/loop.py"
    text = code.read_text()
    assert text.count(SAVE_CALL) == 1
    code.write_text(
        text.replace(SAVE_CALL, f"{SAVE_CALL}{SAVE_CALL.split('self')[0]}raise UserError('stopped')\n")
    )
    done = project.snakemake(TARGET, check=False)
    assert "stopped" in done.output
    code.write_text(text)
    return project


@pytest.fixture(scope="module")
def interrupted(new_project):
    """A project whose Snakemake was killed after the first epoch of a training that had been asked for again."""
    project = new_project("interrupted")
    project.snakemake(TARGET)
    code, mark = project.folder / "src/synmask/pipeline/training/loop.py", project.folder / "saved"
    assert SAVE_CALL in code.read_text()
    stands = f"{SAVE_CALL}                open({str(mark)!r}, 'w').close(); import time; time.sleep(600)\n"
    code.write_text(code.read_text().replace(SAVE_CALL, stands))
    running = project.start(TARGET, warm=True)
    while not mark.exists():
        assert running.poll() is None, running.communicate()[0]
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    project.snakemake("--unlock")
    return project


def test_an_interruption_is_the_reason_and_says_where_it_resumes(interrupted):
    project = interrupted
    plan = project.snakemake("-n", TARGET).output
    assert "train (1): interrupted; resumes at epoch 2\n" in plan
    assert "forced" not in plan
    assert "train (1): forced" in project.snakemake("-n", TARGET, "--forcerun", "train").output
    # as where the training outlives Snakemake, which takes its files for incomplete
    for name in ("history.csv", "train.json"):
        (project.folder / RUN / name).touch()
    assert "train (1): interrupted; resumes at epoch 2\n" in project.snakemake("-n", TARGET).output
    shutil.rmtree(project.folder / RUN / "checkpoints")
    assert "train (1): interrupted\n" in project.snakemake("-n", TARGET).output


def log(project):
    return (project.folder / RUN / "train.log").read_text()


def test_it_is_named_before_anything_starts_and_goes_on_if_asked(half_done):
    assert half_done.snakemake("-np", TARGET).output.count(RESTART_NOTICE) == 1
    assert f"half done  {RESTART_NOTICE}\n" in half_done.synmask("plan", "demo")
    done = half_done.snakemake(TARGET, "--until", "subwords", "--forcerun", "subwords")
    assert RESTART_NOTICE not in done.output  # no training is to be run
    plan = half_done.snakemake("-n", TARGET, "--config", "any_code=true").output
    assert "1 training run is half done by other code (epoch 1 of 2) and will continue (any_code)" in plan
    printed = half_done.snakemake(TARGET, "--config", "any_code=true").output
    assert printed.index("will continue (any_code)") < printed.index("trained in")
    assert "resuming after epoch 1 of 2" in log(half_done)
    attempts = json.loads((half_done.folder / TARGET).read_text())["attempts"]
    assert [attempt["updates"] > 0 for attempt in attempts] == [True, True]
    assert "Nothing to be done" in half_done.snakemake(TARGET).output


@pytest.mark.parametrize("any_code", [False, True])
def test_a_state_that_fairseqs_trainer_saved_starts_again_and_the_line_says_so(tmp_path, any_code):
    stamp = {"settings": {"training": {"max_epochs": 9}}, "seed": 1, "code": "new"}
    for seed, (state, epochs) in enumerate([({"extra_state": {}}, 4), ({"history": []}, 2)], start=1):
        folder = tmp_path / f"seed{seed}/checkpoints/older"
        folder.mkdir(parents=True)
        write_json(folder / "stamp.json", stamp | {"code": "old"})
        (folder / "history.csv").write_text("epoch\n" * (epochs + 1))
        torch.save(state, folder / "last.pt")
    trainings = [SimpleNamespace(folder=str(tmp_path / f"seed{seed}")) for seed in (1, 2)]
    jobs = SimpleNamespace(config=SimpleNamespace(any_code=any_code), stamp=lambda training: stamp)
    words = half_done_line(jobs, trainings)
    assert "1 training run is half done by version 0.2.0 (epoch 4 of 9) and will start again" in words
    other = "will continue (any_code)" if any_code else "will start again; to continue them instead"
    assert f"1 training run is half done by other code (epoch 2 of 9) and {other}" in words
    (tmp_path / "seed2/checkpoints/older/finished.pt").touch()
    words = half_done_line(jobs, trainings)
    other = "will count as finished if their data stay" if any_code else "will start again; to keep them"
    assert f"1 training run is finished by other code and {other}" in words
    assert "half done by other code" not in words
    jobs.stamp = lambda training: stamp | {"code": "old"}
    assert half_done_line(jobs, trainings) == ""


def test_a_finished_training_runs_again_only_by_force(half_done, queue):
    """Asked for again for another reason, its checkpoints are its result; jobs elsewhere are told of the force."""
    half_done.snakemake(TARGET, "--config", "any_code=true")
    (half_done.folder / TARGET).unlink()
    half_done.snakemake(TARGET)
    assert "all 2 epochs are done" in log(half_done).splitlines()[-1]
    for words in (["--forcerun", "train", *queue(half_done)], ["-f"]):
        [before] = (half_done.folder / RUN / "checkpoints").iterdir()
        half_done.snakemake(TARGET, *words)
        [after] = (half_done.folder / RUN / "checkpoints").iterdir()
        assert after.name != before.name
        assert "epoch 1/2 done" in log(half_done)


def test_results_of_a_version_whose_records_did_not_say_which_run_they_are_of_are_taken_over(half_done):
    """They are completed from the checkpoints' own stamp: nothing is trained again, and all scores stay."""
    target, run = f"{RUN}/scores.json", half_done.folder / RUN
    half_done.snakemake(target, "--config", "any_code=true")
    record, scores = (json.loads((run / name).read_text()) for name in ("train.json", "scores.json"))
    hypotheses = (run / "hypothesis.test.txt").read_bytes()
    names = ("corpus", "direction", "system", "seed", "settings", "data", "code", "averaged_epochs")
    time = (run / "train.json").stat().st_mtime_ns
    write_json(run / "train.json", {key: value for key, value in record.items() if key not in names})
    os.utime(run / "train.json", ns=(time, time))
    with (half_done.folder / "src/synmask/pipeline/training/loop.py").open("a") as file:
        file.write("\n\nAN_UPDATE = True\n")
    plan = half_done.snakemake("-n", target, "--config", "any_code=true").output
    assert "train (1): src/synmask/pipeline/training/loop.py changed" in plan
    assert "1 training run is finished by other code and will count as finished" in plan
    half_done.snakemake(target, "--config", "any_code=true")
    assert "all 2 epochs are done" in log(half_done).splitlines()[-1]
    after = json.loads((run / "train.json").read_text())
    assert after["code"] != record["code"]
    differing = ("code", "checkpoints")
    assert after | {key: record[key] for key in differing} == record
    assert json.loads((run / "scores.json").read_text())["scores"] == scores["scores"]
    assert (run / "hypothesis.test.txt").read_bytes() == hypotheses
