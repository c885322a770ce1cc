"""A change to Snakemake 9.27.1: its dry runs can show the jobs of a cluster.

A dry run takes all jobs for local ones: it caps their threads, and adds up the resources of a group as if its
jobs ran one after the other (snakemake/snakemake#3422). No public call says which jobs a cluster would get.

Another version of Snakemake is left unchanged; its dry runs have no table of SLURM's jobs.
tests/workflow/test_compat_snakemake.py fails when Snakemake no longer needs this.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

TRIED = "9.27.1"


@contextmanager
def as_executed_by(plugin: Any, workflow: Any) -> Iterator[None]:
    """Let the jobs of a dry run be those that a plugin for execution would get."""
    dry = workflow.executor_plugin
    try:
        workflow._executor_plugin = plugin
        yield
    finally:
        workflow._executor_plugin = dry
