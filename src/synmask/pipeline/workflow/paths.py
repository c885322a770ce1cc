"""Paths of the workflow: folders as patterns of Snakemake's wildcards, files of a run or table."""

import re
from collections.abc import Iterable

PAIR = "results/{corpus}/{source}-{target}/"  # shared by all systems of a direction
TASK = "results/{benchmark}/{task}/"  # shared by all systems on a language understanding task
WEIGHTS = "results/weights/{weights}/"  # of a RoBERTa
METHOD = "workflow/report/method.svg"


def run_file(corpus: str, direction: str, system: str, seed: int, name: str) -> str:
    return f"results/{corpus}/{direction}/{system}/seed{seed}/{name}"


def table_file(name: str) -> str:
    return f"results/tables/{name}.md"


def any_of(names: Iterable[str]) -> str:
    """A regular expression that matches these names and nothing else."""
    return "|".join(map(re.escape, names)) or "(?!)"  # the latter matches nothing
