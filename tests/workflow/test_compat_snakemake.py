"""Snakemake still needs what workflow/compat_snakemake.py changes.

If one of these tests fails after an upgrade, the file can go, or be tried with the new version.
"""

import importlib.metadata
from types import SimpleNamespace

from snakemake.api import Workflow  # which imports its own modules in an order that works
from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry

from synmask.pipeline.workflow import compat_snakemake, slurm


def test_the_jobs_of_a_dry_run_count_as_local():
    dry = ExecutorPluginRegistry().get_plugin("dryrun")
    workflow = SimpleNamespace(executor_plugin=dry)
    assert Workflow.local_exec.fget(workflow)  # which jobs, groups and threads ask
    assert Workflow.executor_plugin.fset is None  # nor is there a way to set it
    workflow = SimpleNamespace(_executor_plugin=dry, executor_plugin=dry)
    with compat_snakemake.as_executed_by("slurm's", workflow):
        assert Workflow.executor_plugin.fget(workflow) == "slurm's"
    assert workflow._executor_plugin is dry


def test_another_version_is_left_alone(monkeypatch, capsys):
    monkeypatch.setattr("synmask.pipeline.provenance.version", lambda name: "10.0.0")
    rule = SimpleNamespace(resources={"slurm_partition": "main"})
    workflow = SimpleNamespace(dag=True, rules=[rule])
    assert slurm.table(workflow) == []
    assert "snakemake 10.0.0 has not been tried" in capsys.readouterr().err


def test_the_version_that_was_tried_is_installed():
    assert importlib.metadata.version("snakemake") == compat_snakemake.TRIED
