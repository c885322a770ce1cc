"""The report of a run in progress: on a terminal, in a pipe, in a dry run, and of failures."""

import fcntl
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from logging import WARNING, makeLogRecord
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_synmask import LogHandler
from synmask.pipeline.errors import UserError
from synmask.pipeline.training.progress import Progress
from synmask.pipeline.workflow import hours, terminal
from synmask.pipeline.workflow.planned import Planned
from synmask.pipeline.workflow.terminal import RunningJob, WorkflowRun

ROOT = Path(__file__).parents[2]
TEXT = "results/demo/de-en/text/valid.de"
TIME = r"\d+ \w+(?: \d+ \w+)?"
HOURS = rf"about {TIME} of training on one GPU, {TIME} on \d+ cores without one: see synmask plan"
# The workflow with stand-ins: trainings write a line to their log and take two seconds, all else is made at once.
STAND_INS = """
import os
import subprocess
from pathlib import Path

include: "Snakefile"

SAID = "grammar/seed1  epoch 3/6  batch 10/20  loss 3.210  1,234 tokens/s  1:05 left\\n"

def stand_in(input, output, params, wildcards, threads, resources, log, *rest):
    if log and log[0].endswith("train.log"):
        Path(log[0]).write_text(SAID)
        subprocess.run(["sleep", os.environ.get("TAKES", "2")], check=True)
    for path in output:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch()

for entry in workflow.rules:
    entry.run_func = stand_in
"""


@pytest.fixture
def standing_in(project):
    (project.folder / "stand-ins.smk").write_text(STAND_INS)
    (project.folder / "profiles/default/profile.yaml").open("a").write("snakefile: stand-ins.smk\n")
    return project


def test_it_runs_for_a_user_without_name_and_home(project, monkeypatch):
    """As in containers on shared machines; without any HOME, Snakemake itself stops."""
    project.write_config()
    for name in ("USER", "LOGNAME", "LNAME", "USERNAME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/proc/nobody")
    program = (
        "import os, pwd\n"
        "def unknown(*_): raise KeyError('uid not found')\n"
        "pwd.getpwuid = unknown\n"
        "from snakemake.cli import main\n"
        "main(['-n', 'demo'])"
    )
    kwargs = {"cwd": project.folder, "env": project.environment(warm=False), "text": True}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, **kwargs)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "subwords" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert not (project.folder / "~").exists()
    cache = project.folder / ".snakemake/cache"
    assert (cache / "snakemake").is_dir()
    shutil.rmtree(cache)
    cache.touch()  # neither here
    done = subprocess.run([project.warm.python, "-c", program], capture_output=True, check=False, **kwargs)
    message = f"{cache}: Not a directory; snakemake keeps its cache there, since home has no place\n"
    assert (done.returncode, done.stderr.count("\n"), message in done.stderr) == (1, 2, True), done.stderr


def lines_of(output):
    """The lines without Snakemake's own about its profile."""
    return [line for line in output.splitlines() if line and not line.startswith("Using workflow specific")]


def on_a_terminal(project, *words):
    """Run Snakemake on a terminal of 100 columns, and return its output with the escape codes."""
    project.write_config()
    control, terminal_side = pty.openpty()
    fcntl.ioctl(terminal_side, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    environment = project.environment(warm=True) | {"TERM": "xterm"}
    command = ["snakemake", *words]
    running = subprocess.Popen(
        command, cwd=project.folder, env=environment, stdout=terminal_side, stderr=terminal_side
    )
    os.close(terminal_side)
    output = b""
    while True:
        try:
            read = os.read(control, 4096)
        except OSError:  # the other side is closed
            break
        if not read:
            break
        output += read
    os.close(control)
    assert running.wait() == 0, output[-2000:]
    return output.decode()


def test_in_a_pipe_a_line_for_each_training_and_stage(standing_in):
    lines = lines_of(standing_in.snakemake("-c2", "all").output)
    assert "\x1b" not in "".join(lines)
    total = re.fullmatch(r"(\d+) jobs, 2 of them trainings", lines[0])[1]
    assert re.fullmatch(HOURS, lines[1])
    trained = [line for line in lines if "trained in" in line]
    assert {line.split(": ")[1].split(" trained")[0] for line in trained} == {
        "demo/de-en/transformer/seed1",
        "demo/de-en/grammar/seed1",
    }
    assert [line.split(" trainings")[0].split(", ")[1] for line in trained] == ["1 of 2", "2 of 2"]
    stages = [line.split(": ")[1] for line in lines[2:-4] if "trained in" not in line]
    assert {"text", "subwords", "decode (2)", "page"} <= {*stages}
    assert len(stages) == len({*stages})
    heads = [line.split()[0] for line in lines[-4:]]
    assert heads == ["done", "tables", "log", "report"]
    assert lines[-4].startswith(f"done     {total} jobs, 2 of them trainings, in ")
    assert "results/tables/demo.md" in lines[-3]
    assert (standing_in.folder / lines[-2].split()[1]).read_text().count("rule train:") == 2
    assert lines[-1] == "report   results/report.html: open it in a browser"
    again = lines_of(standing_in.snakemake("-c2", "all").output)
    assert again == ["Nothing to be done (all requested files are present and up to date)."]


def test_on_a_terminal_trainings_have_a_line_each_and_the_whole_one(standing_in):
    output = on_a_terminal(standing_in, "-c2", "results/demo/de-en/grammar/seed1/train.json")
    text = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", output)
    assert "\x1b[2K" in output  # lines are renewed
    assert not output.rpartition("\x1b[?25")[2].startswith("l")  # the cursor is there
    row = next(
        line for line in text.splitlines() if line.startswith("demo/de-en/grammar/seed1 ") and "%" in line
    )
    assert re.search(r" 42% +epoch 3/6 +1 min \d s left", row)  # (2 + 10/20) / 6
    assert re.search(r"\d+ of \d+ jobs, 0 of 1 trainings, about 1 min \d s of training left", text)
    assert "subwords" not in text.replace("now: subwords", "")  # of stages nothing stays
    assert [line.split()[0] for line in text.split()[-1:]] == [
        ".snakemake/log/" + text.split("/")[-1].strip()
    ]


def test_options_of_the_user_s_bring_snakemake_s_own_form(standing_in):
    words = ("-c1", TEXT)
    planned = standing_in.snakemake("-np", *words).output
    assert "rule text:" in planned
    assert "synmask text --name demo" in planned
    assert not lines_of(standing_in.snakemake("--quiet", "all", "--", *words[1:]).output)
    quiet = standing_in.snakemake("-F", "--quiet", "rules", "--", *words[1:]).output
    assert "rule text:" not in quiet
    assert "1 of 1 steps (100%) done" in quiet
    assert "rule text:" in standing_in.snakemake("-F", "--verbose", *words).output


def test_a_dry_run_is_a_summary(project):
    lines = lines_of(project.snakemake("-n").output)
    assert len(lines) < 40
    counts = {line.split()[0]: line.split()[1] for line in lines[:-3]}
    assert (counts["train"], counts["score"]) == ("2", "2")
    total = sum(map(int, counts.values()))
    assert lines[-3] == f"{total} jobs, 2 of them trainings"
    assert re.fullmatch(HOURS, lines[-2])
    assert lines[-1].startswith("This was a dry run: nothing was done. -np")
    assert not (project.folder / "results").exists()


SETTINGS = dict.fromkeys(("stdout", "nocolor", "printshellcmds", "verbose", "debug_dag", "quiet"))


def test_that_it_will_stop_is_said_once(capsys):
    handler = LogHandler(SimpleNamespace(dryrun=False, **SETTINGS), None)
    for text in ("Will exit after the jobs.", "Waiting at most a second.") * 2:
        handler.emit(makeLogRecord({"msg": text, "levelno": WARNING}))
    assert capsys.readouterr().err.split(".\n")[:-1] == [
        "Will exit after the jobs", "Waiting at most a second", "Waiting at most a second",
    ]  # fmt: skip


def test_a_closed_stream_is_no_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert not LogHandler(SimpleNamespace(dryrun=False, **SETTINGS), None).console.is_terminal


def test_a_terminal_without_columns_is_told_all(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "0")
    handler = LogHandler(SimpleNamespace(dryrun=False, **SETTINGS), None)
    handler.emit(makeLogRecord({"msg": "all of it", "levelno": WARNING}))
    assert capsys.readouterr().err == "all of it\n"


def test_a_dry_run_keeps_no_jobs():
    """It never ends one: with each new one, all others would be looked at for trainings."""
    job = {"event": LogEvent.JOB_INFO, "jobid": 1, "rule_name": "train", "output": ["a"], "log": []}
    for dryrun in (True, False):
        handler = LogHandler(SimpleNamespace(dryrun=dryrun, **SETTINGS), None)
        handler.emit(makeLogRecord(job))
        assert len(handler.run.running) == (not dryrun)


def test_a_failure_is_told_with_its_rule_its_log_and_what_to_do(project):
    (project.folder / "nowhere").mkdir()
    project.config["mirrors"] = {"multi30k": "nowhere"}
    done = project.snakemake("data/multi30k/val.de.gz", check=False)
    assert done.returncode == 1
    first, failed, end, log, command, stopped, todo, whole = lines_of(done.output)
    assert first == "1 job"
    assert failed == "FAILED   download_file: data/multi30k/val.de.gz"
    assert end.startswith("         the end of results/logs/download/multi30k/val.de.gz.log")
    assert log.startswith("synmask download: multi30k: nowhere/val.de.gz: no such file")
    assert command.endswith("snakemake -np data/multi30k/val.de.gz")
    assert stopped.startswith("stopped  0 of 1 jobs are done, in ")
    assert stopped.endswith("failed: download_file")
    assert todo.startswith("to do    fix it, then give the same command again")
    assert (project.folder / whole.split()[1]).exists()


def test_a_run_that_was_stopped_without_a_failure_has_nothing_to_fix():
    """As by SIGTERM, of which Snakemake does not tell."""
    assert [*WorkflowRun(counts={"train": 2}).ending()][-1][1].startswith("give the same command again")


def test_a_training_that_a_signal_stopped_is_no_failure(tmp_path, capsys):
    log = tmp_path / "train.log"
    handler = LogHandler(SimpleNamespace(dryrun=False, **SETTINGS), None)
    handler.run.counts = {"train": 1}
    job = {"jobid": 1, "rule_name": "train", "output": ["a"], "log": [str(log)]}
    handler.emit(makeLogRecord(job | {"event": LogEvent.JOB_INFO}))
    last = "synmask train: a: stopped by a signal, and saved; the same command resumes it"
    log.write_text(f"epoch 1\n{last}\n")
    handler.emit(makeLogRecord(job | {"event": LogEvent.JOB_ERROR, "rule_msg": None, "aux": {}}))
    handler.close()
    first, stopped, todo = lines_of(capsys.readouterr().err)
    assert first == last
    assert stopped.startswith("stopped  0 of 1 jobs are done, in ")
    assert "failed" not in stopped
    assert todo.startswith("to do    give the same command again")


def test_no_cores_are_refused(project):
    """Snakemake alone waits for ever."""
    done = project.snakemake("--cores", "0", TEXT, check=False)
    assert done.returncode == 1
    assert lines_of(done.output)[-1] == "--cores 0: no job can start; give --cores 1 or more"
    assert project.planned("--cores", "0", TEXT)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("SIGBUS", "Fatal Python error: Bus error"),  # as when a library is replaced while a step loads it
        ("SIGKILL", "killed (SIGKILL): most often since memory was short; run fewer jobs at once (-c1)"),
    ],
)
def test_a_step_without_a_word_in_its_log_is_told_by_its_end(project, name, message):
    crash = f"import os, signal\n\ndef load():\n    os.kill(os.getpid(), signal.{name})\n\nload()\n"
    (project.folder / "bin").mkdir()
    (project.folder / "bin/synmask").write_text(f"#!{sys.executable}\n{crash}")
    (project.folder / "bin/synmask").chmod(0o755)
    lines = lines_of(project.snakemake(TEXT, check=False).output)
    assert message in lines
    assert any(line.endswith('bin/synmask", line 5 in load') for line in lines) == (name == "SIGBUS")


def test_ctrl_c_is_no_failure(standing_in, monkeypatch):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    monkeypatch.setenv("TAKES", "60")
    running = standing_in.start("-c2", "results/demo/de-en/grammar/seed1/train.json")
    log = standing_in.folder / "results/demo/de-en/grammar/seed1/train.log"
    while not log.exists():
        assert running.poll() is None
        time.sleep(0.1)
    os.killpg(running.pid, signal.SIGINT)
    lines = lines_of(running.communicate()[0])
    assert running.returncode == 1
    assert "stopping: trainings save where they are" in lines
    assert "to do    give the same command again" in "\n".join(lines)
    assert "FAILED" not in "\n".join(lines)


@pytest.mark.parametrize("words", [(), ("-p",)])
def test_a_target_that_does_not_exist_is_one_line_with_the_nearest(project, words):
    done = project.snakemake("multi30", *words, check=False)
    assert done.returncode == 1
    assert lines_of(done.output)[-1] == "multi30: no such target; did you mean 'multi30k'?"
    done = project.snakemake("results/demo/xx", *words, check=False)
    assert lines_of(done.output)[-1].startswith("results/demo/xx: no rule makes this file")
    assert "Traceback" not in done.output


NO_TEST_SET = {
    "files": {
        "train": "demo/de-en/train.{language}.gz",
        "valid": "demo/de-en/valid.{language}.gz",
        "test": "demo/de-en/missing.{language}.gz",
    }
}


@pytest.mark.parametrize(
    ("path", "line", "changes"),
    [
        ("results/demo/de-en/grammar/seed1/scores.json", "demo/de-en/missing.de.gz: no such file, and no rule makes it; rule text needs it", NO_TEST_SET),
        ("results/demo/de-fr/grammar/seed1/scores.json", "unknown direction 'de-fr'; did you mean 'de-en'?", {}),
        ("results/figures/demo-en-de-distribution.svg", "unknown direction 'en-de'; known: de-en", {}),
        *(
            (path, f"{path}: no rule makes this file; see results/README.md for what there is", {})
            for path in (
                "results/demo/de-en/gramar/seed1/score.json",
                "results/demo/de-en/grammar/templates/bin/dict.de.txt",
                "results/figures/demo-sweep.svg",
                "data/multi30k/nothing",
            )
        ),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_made_is_one_line(project, path, line, changes):
    config = f"corpora={json.dumps({'demo': changes})}"
    done = project.snakemake(path, "--config", config, check=False)
    assert done.returncode == 1
    assert lines_of(done.output) == [line]


def test_a_damaged_record_of_snakemake_s_is_one_line(project):
    project.snakemake("-c1", TEXT)
    records = [path for path in (project.folder / ".snakemake/metadata").iterdir() if path.is_file()]
    for path in records:
        path.write_text("[1]")
    done = project.snakemake("-n", TEXT, check=False)
    assert records
    assert done.returncode == 1
    [line] = lines_of(done.output)
    assert line.startswith(
        ".snakemake/metadata: a record in it is damaged; remove the folder, then add --forceall --touch"
    )


def test_rules_that_train_are_known():
    text = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    rules = re.findall(r"^(?:use )?rule (?:\w+ as )?(\w+).*?(?=^(?:use )?rule |\Z)", text, re.M | re.S)
    bodies = re.split(r"^(?:use )?rule ", text, flags=re.M)[1:]
    training = {
        rule
        for rule, body in zip(rules, bodies, strict=True)
        if re.search(r"synmask (train|pretrain|continue-pretraining|finetune) ", body)
        or body.startswith("train as")
    }
    assert training == {*terminal.TRAININGS}


# ---- without Snakemake -----------------------------------------------------------------------------------------


SUMS = {"loss": 3200.0, "sample_size": 1000.0, "ntokens": 1000.0}


@pytest.fixture
def job(tmp_path):
    log = tmp_path / "train.log"
    log.write_text("starting\n")
    return RunningJob("train", ["results/demo/de-en/grammar/seed1/train.json"], [str(log)])


def write(job, epoch, step=None, steps=10, epochs=4, seconds=100.0):
    """Write into a job's log as a training does at a step of an epoch, or at its end."""
    with open(job.logs[0], "a") as log:
        progress = Progress(
            lambda text: print(f"grammar/seed1  {text}", file=log), epoch, epochs, steps, [], 0.0
        )
        progress.started, progress.last = time.perf_counter() - seconds, -1e9
        if step is None:
            row = {"seconds": seconds, "train_loss": 3.0, "valid_loss": 2.0, "tokens_per_second": 10.0}
            progress.end(row, "perplexity 5.00")
        else:
            progress.show(SUMS, step)


def test_progress_is_what_the_training_writes_into_its_log(job):
    job.read_progress()
    assert (job.share, job.left, job.name) == (None, None, "demo/de-en/grammar/seed1")
    write(job, 1, 5)
    job.read_progress()
    assert job.share == pytest.approx(0.5 / 4)
    assert job.left == pytest.approx(700, abs=2)  # an eighth took 100 seconds
    assert time.monotonic() - job.started == pytest.approx(
        100, abs=2
    )  # although it was heard of a moment ago
    write(job, 2)
    job.read_progress()
    assert (job.share, job.epoch) == (0.5, "epoch 2/4")
    assert job.left == pytest.approx(100, abs=2)


def test_the_log_of_an_earlier_training_says_nothing(job):
    write(job, 2)
    os.utime(job.logs[0], (time.time() - 3600,) * 2)
    job.read_progress()
    assert job.share is None


def test_time_left_counts_those_that_run_and_those_that_wait(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    run = WorkflowRun(counts={"train": 6, "table": 1})
    assert run.left() is None
    for number in range(2):
        run.start(number, RunningJob("train", ["results/a/train.json"], [], started=900.0))
    assert run.left() is None
    run.running[0].ends = (
        now + 100
    )  # 200 seconds in all, as the four that wait and the one that has not said yet
    assert run.left() == pytest.approx((100 + 200 + 4 * 200) / 2)
    assert run.full_progress() == "0 of 7 jobs, 0 of 6 trainings, about 9 min 10 s of training left"
    run.finish(0)
    assert run.full_progress().startswith("1 of 7 jobs, 1 of 6 trainings, about ")
    run.counts["train"] = 2
    run.running[1].ends = now + 300
    assert run.left() == pytest.approx(300)  # no less than the longest


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("mine.yaml", "seeds: [1]\n", None),
        ("mine.yaml", "", "mine.yaml: it is empty; leave it out, or write keys and values into it"),
        ("mine.yaml", "- 1\n", "mine.yaml: expected keys and values, found a list"),
        ("no.yaml", None, "no.yaml: No such file or directory"),
        ("src", None, "src: Is a directory; if it is a target, give it before --configfile"),
        ("demo-all", None, "demo-all: No such file or directory; if it is a target, give it before --configfile"),
    ],
)  # fmt: skip
def test_a_file_behind_configfile_that_cannot_be_read(tmp_path, monkeypatch, name, text, line):
    monkeypatch.chdir(tmp_path)
    Path("src").mkdir()
    Path("mine.yaml").write_text("seeds: [1]\n" if text is None else text)
    assert terminal.configfile_problem(["-n", "--configfile", "mine.yaml", name]) == line


def test_a_note_in_a_log_is_shown_once(tmp_path):
    run, logs = WorkflowRun(), [tmp_path / "one.log", tmp_path / "two.log"]
    logs[0].write_text("{}\nnote: a\n")
    logs[1].write_text("note: a\na note: c\nnote: b\n")
    jobs = [RunningJob("tokenise", ["results/x"], [str(log)]) for log in logs]
    assert [[*run.notes(job)] for job in jobs] == [["note: a"], ["note: b"]]
    os.utime(logs[0], (time.time() - 3600,) * 2)  # of an earlier run
    assert [*WorkflowRun().notes(jobs[0])] == []


def test_a_failure_shows_the_ends_of_logs_alone(tmp_path):
    log = tmp_path / "a.log"
    log.write_text("".join(f"line {number}\n" for number in range(5000)))
    text = terminal.failure("train", ["results/x"], [str(log), "nowhere.log"], None)
    assert text.count("\nline ") == terminal.LOG_LINES
    assert "line 4999" in text
    assert "nowhere.log" not in text
    assert "it wrote no log" in terminal.failure("train", ["x"], ["nowhere.log"], None)
    assert "SLURM job 5 failed" in terminal.failure("train", ["x"], [], "SLURM job 5 failed")


def test_a_dry_run_without_hours_says_why(monkeypatch):
    def total(*_):
        raise UserError("results/x/train.json: no workers in it")

    monkeypatch.setattr(hours, "total", total)
    workflow = SimpleNamespace(dag=SimpleNamespace(needrun_jobs=lambda **_: []))
    planned = Planned(workflow, SimpleNamespace(config=None), {})
    expected = ["1 job, 1 of them a training", "hours unknown: results/x/train.json: no workers in it"]
    assert [*planned.expected_work({"train": 1})] == expected


def test_what_is_touched_is_not_done(project):
    """In a fresh clone no file exists that could count as made."""
    (project.folder / TEXT).parent.mkdir(parents=True)
    for language in ("de", "en"):
        for split in ("train", "valid", "test"):
            (project.folder / TEXT).with_name(f"{split}.{language}").write_text("x\n")
    output = project.snakemake("--touch", "demo").output
    total = re.search(r"^(\d+) jobs, 2 of them trainings$", output, re.M)
    touched = re.search(r"^touched  (\d+) jobs?, whose files now count as up to date$", output, re.M)
    missing = re.search(r"^missing  files of (\d+) jobs: without --touch, they are made$", output, re.M)
    assert 0 < int(touched[1]) == int(total[1]) - int(missing[1])
    assert not re.search("^(done|report|tables) |trained in", output, re.M)
    assert not (project.folder / "results/report.html").exists()
