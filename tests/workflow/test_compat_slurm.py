"""The SLURM plugin still needs what workflow/compat_slurm.py changes; another version of it is left alone.

If one of these tests fails after an upgrade, that part of the file can go.
"""

import asyncio
import inspect
import logging
import subprocess
import sys
from types import SimpleNamespace

import pytest
import snakemake_executor_plugin_slurm as plugin
from snakemake_executor_plugin_slurm import job_status_query, submit_string

from synmask.pipeline.workflow.compat_slurm import BEFORE, SAVED, _executor, _patient
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


def states(query, answer):
    """What a query makes of this answer of SLURM's."""
    command = f"echo '{answer}'" if answer else "false"
    return asyncio.run(query(command, logging.getLogger("slurm")))[0]


def test_the_plugin_takes_a_cancelled_job_for_one_that_runs():
    assert states(job_status_query.query_job_status, "7|CANCELLED by 1000") == {"7": "CANCELLED by 1000"}
    assert 'startswith("CANCELLED")' not in inspect.getsource(plugin.Executor.check_active_jobs)
    assert states(_patient(job_status_query.query_job_status), "7|CANCELLED by 1000") == {"7": "CANCELLED"}


def test_the_plugin_has_no_answer_where_slurm_has_none():
    assert states(job_status_query.query_job_status, "") is None


def test_the_plugin_guesses_an_account(monkeypatch):
    asked = []
    monkeypatch.setattr(plugin, "get_account", lambda logger: asked.append("account"))
    executor = SimpleNamespace(_fallback_account_arg=None, logger=logging.getLogger("slurm"))
    assert [*plugin.Executor.get_account_arg(executor, SimpleNamespace(resources={}))] == [""]
    assert asked == ["account"]


def test_the_plugin_has_no_signal_before_the_limit():
    assert "--signal" not in inspect.getsource(submit_string)


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

    def report_job_error(self, job_info, msg=None, **how):
        self.errors.append(msg)


@pytest.fixture
def reported(tmp_path):
    """What follows when SLURM says so of a training whose log ends like that: what is submitted, errors, the attempt."""

    def report(state, last, number="7", retries=3):
        log = tmp_path / "train.log"
        log.write_text(f"epoch 1/6 done\n{last}\n")
        job = Job(
            rule=SimpleNamespace(name="train"), is_group=lambda: False, log=[str(log)], resources={"runtime": 30},
            output=["results/demo/de-en/grammar/seed1/train.json"], threads=1, attempt=1, restart_times=retries,
        )  # fmt: skip
        executor = object.__new__(_executor(SimpleNamespace(Executor=Upstream)))
        executor.submitted, executor.errors = [], []
        executor.site, executor.refusals, executor.since = Site(), set(), {}
        executor.logger = logging.getLogger("slurm")
        message = f"SLURM-job '{number}' failed, SLURM status is: '{state}'. "
        executor.report_job_error(SimpleNamespace(job=job, external_jobid=number), message)
        return executor.submitted == [job], executor.errors, job.attempt

    return report


def test_a_training_that_saved_is_submitted_again_as_the_same_attempt(reported):
    assert reported("FAILED", f"grammar/seed1: {SAVED}") == (True, [], 1)
    assert reported("FAILED", f"grammar/seed1: {SAVED}", retries=0)[:2] == (False, ["SLURM job 7: FAILED"])
    assert reported("CANCELLED", f"grammar/seed1: {SAVED}") == (False, ["SLURM job 7: CANCELLED"], 1)
    assert reported("FAILED", "Traceback") == (False, ["SLURM job 7: FAILED"], 1)


def test_a_training_without_time_for_an_update_is_not_tried_again(reported):
    again, errors, attempt = reported("FAILED", f"grammar/seed1: {BEFORE}")
    assert (again, attempt) == (False, 4)
    assert "raise `resources.runtime`" in errors[0]


def test_a_refused_job_is_not_tried_again(reported):
    assert reported("", "", number=None)[::2] == (False, 4)
