"""Paths of the workflow: folders as patterns of Snakemake's wildcards, files of a run or table."""

import re
from collections.abc import Iterable
from typing import Any

PAIR = "results/{corpus}/{source}-{target}/"  # shared by all systems of a direction
TASK = "results/{benchmark}/{task}/"  # shared by all systems on a language understanding task
WEIGHTS = "results/weights/{weights}/"  # of a RoBERTa
METHOD = "results/figures/method.svg"


def run_file(run: dict[str, Any], name: str) -> str:
    """A file of a run that is given by corpus, direction, system and seed."""
    return "results/{corpus}/{direction}/{system}/seed{seed}/".format(**run) + name


def table_file(name: str) -> str:
    return f"results/tables/{name}.md"


def task_figure(table: str) -> str:
    return f"results/figures/{table}-tasks.svg"


def any_of(names: Iterable[str]) -> str:
    """A regular expression that matches these names and nothing else."""
    return "|".join(map(re.escape, names)) or "(?!)"  # the latter matches nothing
