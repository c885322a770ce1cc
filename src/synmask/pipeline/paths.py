"""The folders of results/, each written once, as patterns of Snakemake's wildcards; and what fills them.

A file in one is `RUN / "average.pt"`. results/README.md describes the files.
"""

import re
from collections.abc import Iterable
from typing import Any


class Folder(str):
    """A pattern of a folder."""

    def __truediv__(self, name: str) -> "Folder":
        return Folder(f"{self}/{name}")


RESULTS = Folder("results")
CORPUS = RESULTS / "{corpus}"  # the text of all languages, as it was generated or taken out of archives
PAIR = CORPUS / "{source}-{target}"  # text, sub-words and annotations, for all systems of a direction
TEMPLATES = PAIR / "{system}/templates"  # of the target, for systems that read them (ST-NMT)
RUN = PAIR / "{system}/seed{seed}"
PREDICTOR = RUN / "template"  # the run of the model that predicts templates
BENCHMARK = RESULTS / "{benchmark}"
TASK = BENCHMARK / "{task}"  # of language understanding, for all systems
TUNED = TASK / "{system}/seed{seed}"  # a run of fine-tuning
WEIGHTS = RESULTS / "weights/{weights}"  # of a RoBERTa
TABLES = RESULTS / "tables"
FIGURES = RESULTS / "figures"
LOGS = RESULTS / "logs"  # of steps that belong to none of the folders above
METHOD = "workflow/report/method.svg"


def filled(pattern: str, direction: str | None = None, **wildcards: Any) -> str:
    """A path with values for wildcards; others stay. `direction` is that of "{source}-{target}"."""
    if direction is not None:
        pattern = pattern.replace("{source}-{target}", direction)
    return re.sub(r"{(\w+)}", lambda name: str(wildcards.get(name[1], name[0])), pattern)


def below_results(path: str) -> str:
    """A path without results/, as of a run's folder in messages."""
    return path.removeprefix(f"{RESULTS}/")


def run_file(corpus: str, direction: str, system: str, seed: int, name: str) -> str:
    return filled(f"{RUN}/{name}", direction, corpus=corpus, system=system, seed=seed)


def table_file(name: str) -> str:
    return f"{TABLES}/{name}.md"


def any_of(names: Iterable[str]) -> str:
    """A regular expression that matches these names and nothing else."""
    return "|".join(map(re.escape, names)) or "(?!)"  # the latter matches nothing
