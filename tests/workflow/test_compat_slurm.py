"""The SLURM plugin still needs what workflow/compat_slurm.py changes; another version of it is left alone.

If one of these tests fails after an upgrade, that part of the file can go.
"""

import asyncio
import inspect
import logging
import math
import re
import subprocess
import sys
import time
from collections import Counter
from types import SimpleNamespace

import pytest
import snakemake_executor_plugin_slurm as plugin
from snakemake_executor_plugin_slurm import job_status_query, submit_string

from synmask.pipeline.workflow import slurm, terminal
from synmask.pipeline.workflow.compat_slurm import (
    STOPPED_AND_SAVED,
    STOPPED_BEFORE,
    WORKED_ON,
    _executor,
    _repeated,
)
from synmask.pipeline.workflow.slurm import Site

ADOPT = """
from importlib import metadata
known = metadata.version
metadata.version = lambda name: {version!r} if name == "snakemake-executor-plugin-slurm" else known(name)
import snakemake_executor_plugin_slurm as plugin
from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry
ExecutorPluginRegistry().collect_plugins()
names = ("query_job_status", "get_min_job_age", "get_submit_command", "Executor")
before = [getattr(plugin, name) for name in names]
from synmask.pipeline.workflow import compat_slurm
compat_slurm.adopt()
print([name for name, one in zip(names, before) if getattr(plugin, name) is not one])
"""


CANCELLED = "SLURM job 7: CANCELLED; to stop all jobs, press Ctrl-C here"


def states(query, answer):
    """The result of a query that SLURM answers so."""
    command = f"echo '{answer}'" if answer else "false"
    return asyncio.run(query(command, logging.getLogger("slurm")))[0]


def test_the_plugin_takes_a_cancelled_job_for_one_that_runs():
    assert states(job_status_query.query_job_status, "7|CANCELLED by 1000") == {"7": "CANCELLED by 1000"}
    assert 'startswith("CANCELLED")' not in inspect.getsource(plugin.Executor.check_active_jobs)
    assert states(_repeated(job_status_query.query_job_status), "7|CANCELLED by 1000") == {"7": "CANCELLED"}


def test_the_plugin_has_no_answer_where_slurm_has_none():
    assert states(job_status_query.query_job_status, "") is None


def test_an_outage_is_said_once_and_its_end(monkeypatch, caplog):
    clock, answers = [0], [({"7": "RUNNING"}, 1), (None, None), ({"7": "RUNNING"}, 1)]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    async def query(command, logger):
        clock[0] += 61
        return answers.pop(0)

    patient = _repeated(query)
    for _ in range(3):
        asyncio.run(patient("squeue", logging.getLogger("slurm")))
        clock[0] += 180
    assert [record.message for record in caplog.records] == [
        "SLURM does not answer; it is asked again, and jobs go on meanwhile",
        "SLURM answers again",
    ]


def test_the_plugin_sleeps_on_when_all_is_done():
    class Remote:
        next_seconds_between_status_checks, wait = 1, False

    assert "self.wait" not in inspect.getsource(plugin.Executor.sleep)
    executor = object.__new__(_executor(SimpleNamespace(Executor=Remote)))
    began = time.monotonic()
    executor.next_seconds_between_status_checks = 600
    asyncio.run(asyncio.wait_for(executor.sleep(), 60))
    executor.wait, executor.next_seconds_between_status_checks = True, 0.1
    asyncio.run(executor.sleep())
    assert time.monotonic() - began >= 0.1


def test_the_plugin_guesses_an_account(monkeypatch):
    calls = []
    monkeypatch.setattr(plugin, "get_account", lambda logger: calls.append("account"))
    executor = SimpleNamespace(_fallback_account_arg=None, logger=logging.getLogger("slurm"))
    assert [*plugin.Executor.get_account_arg(executor, SimpleNamespace(resources={}))] == [""]
    assert calls == ["account"]


def test_the_plugin_has_no_signal_before_the_limit():
    assert "--signal" not in inspect.getsource(submit_string)


def test_the_plugin_has_no_job_to_wait_for_and_does_not_say_why_jobs_wait():
    assert "--dependency" not in inspect.getsource(submit_string)
    assert not re.search("PENDING|reason of", inspect.getsource(plugin.Executor.check_active_jobs))


def test_the_plugin_cannot_report_a_group():
    """It names the job's rule, but a group has none: Snakemake hears nothing, and waits for ever (issue 456)."""
    group = SimpleNamespace(is_group=lambda: True, name="evaluate")
    with pytest.raises(AttributeError, match="rule"):
        plugin.Executor.run_job(SimpleNamespace(logger=logging.getLogger("slurm")), group)


@pytest.mark.parametrize(
    ("version", "changed"),
    [("2.8.0", ["query_job_status", "get_min_job_age", "get_submit_command", "Executor"]), ("2.9.0", [])],
)
def test_another_version_is_named_and_left_alone(version, changed):
    program = [sys.executable, "-c", ADOPT.format(version=version)]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert done.stdout == f"{changed}\n"
    named = "note: snakemake-executor-plugin-slurm 2.9.0 has not been tried"
    assert (done.stderr.startswith(named), done.stderr.count("\n")) == (
        (True, 1) if not changed else (False, 0)
    )


class Job(SimpleNamespace):
    __hash__ = object.__hash__


class Upstream:
    """The plugin's executor as far as reports of failures go."""

    def run_jobs(self, jobs):
        self.submitted += jobs

    def report_job_error(self, job_info, msg=None, aux_logs=(), **kwargs):
        self.errors.append(msg)


@pytest.fixture(autouse=True)
def planned(monkeypatch):
    """Of the plan, what names the key of a resource."""
    stand_in = SimpleNamespace(key_to_change=lambda wildcards, name: f"`resources.{name}` in config.yaml")
    monkeypatch.setattr(terminal, "planned", stand_in)


@pytest.fixture
def reported(tmp_path):
    """The consequences when SLURM says so of a training whose log ends like that: submissions, errors, the attempt."""

    def report(state, last, number="7", retries=3, failures=0, slurm=""):
        log, slurm_log = tmp_path / "train.log", tmp_path / "7.log"
        log.write_text(last and f"epoch 1/6 done\n{last}\n")
        slurm_log.write_text(slurm)
        job = Job(
            rule=SimpleNamespace(name="train"), is_group=lambda: False, log=[str(log)], resources={"runtime": 30},
            output=["results/demo/de-en/grammar/seed1/train.json"], threads=1, attempt=1, restart_times=retries,
            wildcards=SimpleNamespace(seed="1"),
        )  # fmt: skip
        executor = object.__new__(_executor(SimpleNamespace(Executor=Upstream)))
        executor.submitted, executor.errors = [], []
        executor.site, executor.refusals, executor.since = Site(), set(), {}
        executor.failures = Counter({job: failures})
        executor.logger = logging.getLogger("slurm")
        message = f"SLURM-job '{number}' failed, SLURM status is: '{state}'. "
        info = SimpleNamespace(job=job, external_jobid=number)
        executor.report_job_error(info, message, aux_logs=[str(slurm_log)])
        return executor.submitted == [job], executor.errors, job.attempt

    return report


def test_a_training_that_saved_is_submitted_again_as_the_same_attempt(reported):
    assert reported("FAILED", f"grammar/seed1: {STOPPED_AND_SAVED}") == (True, [], 1)
    of_srun = "srun: error: node1: task 0: Exited with exit code 75"
    assert reported("FAILED", f"grammar/seed1: {STOPPED_AND_SAVED}\n{of_srun}") == (True, [], 1)
    assert reported("FAILED", f"grammar/seed1: {STOPPED_AND_SAVED}", retries=0)[:2] == (
        False,
        ["SLURM job 7: FAILED"],
    )
    assert reported("CANCELLED", f"grammar/seed1: {STOPPED_AND_SAVED}")[:2] == (False, [CANCELLED])
    assert reported("FAILED", "Traceback") == (False, ["SLURM job 7: FAILED"], 1)


@pytest.mark.parametrize(
    ("state", "attempt"),  # before Snakemake adds one to it
    [("CANCELLED", 0), ("NODE_FAIL", 0), ("FAILED", 1), ("OUT_OF_MEMORY", 1), ("TIMEOUT", 1)],
)
def test_only_a_failure_that_more_can_help_has_the_next_attempt_ask_for_more(reported, state, attempt):
    assert reported(state, "Traceback")[2] == attempt
    assert reported(state, "Traceback", failures=3)[2] == 4  # of the fourth failure nothing follows


def test_a_training_without_time_for_an_update_is_not_tried_again(reported):
    signalled = "slurmstepd-node1: error: *** STEP 7.0 ON node1 CANCELLED AT 2026-11-27T04:47:52 ***\n"
    for last in (f"grammar/seed1: {STOPPED_BEFORE}", ""):  # the second while it loads
        again, errors, attempt = reported("FAILED", last, slurm=signalled)
        assert (again, attempt) == (False, 4)
        assert errors[0].endswith(": its 30 minutes were too few for one update")
        assert "raise `resources.runtime`" in errors[0]
    assert reported("FAILED", "", slurm=f"slurmstepd: error: exceeded memory limit\n{signalled}")[2] == 1
    assert reported("FAILED", "")[2] == reported("FAILED", "Traceback", slurm=signalled)[2] == 1
    assert reported("FAILED", "", slurm=signalled.replace("STEP 7.0", "JOB 7"))[2] == 1  # killed
    assert reported("CANCELLED", "", slurm=signalled)[:2] == (False, [f"{CANCELLED}\n{signalled.strip()}"])


def test_a_run_that_another_job_works_on_asks_for_no_more(reported):
    """The attempt is that before Snakemake adds one to it."""
    assert reported("FAILED", f"grammar/seed1: process 7 on host {WORKED_ON}; wait for it to finish")[2] == 0


def test_slurms_reason_for_a_job_that_waits_is_said_once(monkeypatch, caplog):
    executor = object.__new__(_executor(SimpleNamespace(Executor=Upstream)))
    executor.logger, executor.site, executor.reasons = logging.getLogger("slurm"), Site(), {}
    executor.asked = -math.inf
    jobs = [Job(output=[f"results/{name}/x"], is_group=lambda: True, groupid="text") for name in ("a", "b")]
    executor.since = {jobs[0]: 0.0, jobs[1]: time.time()}  # the second has just been submitted
    infos = [SimpleNamespace(external_jobid=str(number), job=job) for number, job in enumerate(jobs)]
    monkeypatch.setattr(slurm, "squeue", lambda *_: "0|QOSMaxCpu\n1|QOSMaxCpu\n9|Priority\n")
    executor._say_why_jobs_wait(infos)
    executor._say_why_jobs_wait(infos)  # too early
    executor.asked = -math.inf
    executor._say_why_jobs_wait(infos)
    message = "in SLURM's queue for QOSMaxCpu: synmask/a:text; a limit of `qos` in slurm.local.yaml"
    assert [record.message for record in caplog.records] == [message]


def test_a_refused_job_is_not_tried_again(reported):
    assert reported("", "", number=None)[::2] == (False, 4)
