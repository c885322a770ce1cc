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

from synmask.pipeline.workflow.compat_slurm import _patient

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
