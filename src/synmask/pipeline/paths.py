"""The folders of results/ as patterns of Snakemake's wildcards, for rules and targets; filled, and found.

A file in one is `RUN / "average.pt"`. results/README.md describes the files.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from synmask.pipeline.languages import LANGUAGE


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

SEED = r"[1-9]\d*"
WILDCARDS = {"source": LANGUAGE, "target": LANGUAGE, "seed": SEED}  # regular expressions; others: any name


def fill(pattern: str, direction: str | None = None, **wildcards: Any) -> str:
    """A path with values for wildcards; others stay. `direction` is that of "{source}-{target}"."""
    if direction is not None:
        pattern = pattern.replace("{source}-{target}", direction)
    return re.sub(r"{(\w+)}", lambda name: str(wildcards.get(name[1], name[0])), pattern)


def existing(pattern: str, results: Path = Path(RESULTS)) -> list[Path]:
    """The folders or files in `results` with names that rules give, sorted.

    Copies that people keep beside them have other names and do not count: seed1.old, seed01, de-en.bak.

    Args:
        pattern: a path below RESULTS, such as RUN; its wildcards stand for any name of their kind.
    """
    below = pattern.removeprefix(f"{RESULTS}/")
    known = re.compile(_expression(below))
    paths = results.glob(re.sub(r"({\w+})+", "*", below))
    return sorted(path for path in paths if known.fullmatch(path.relative_to(results).as_posix()))


def _expression(pattern: str) -> str:
    """A pattern as a regular expression, in which each wildcard is a named group."""
    names = re.split(r"{(\w+)}", pattern)  # text, name, text, name, text
    for place in range(1, len(names), 2):
        names[place] = f"(?P<{names[place]}>{WILDCARDS.get(names[place], '[^/]+')})"
    names[::2] = map(re.escape, names[::2])
    return "".join(names)


def run_of_folder(folder: Path) -> dict[str, str | int]:
    """The run that a folder's path names, as the run's record has it; empty for a folder outside results/.

    A run of translation is {"corpus", "direction", "system", "seed"}, one of fine-tuning {"corpus", "task",
    "system", "seed"}, weights are {"weights"}.
    """
    for pattern in (RUN, PREDICTOR, TUNED, WEIGHTS):
        if match := re.fullmatch(f"(?:.*/)?{_expression(pattern)}", folder.as_posix()):
            run = match.groupdict()
            if "source" in run:
                run["direction"] = f"{run.pop('source')}-{run.pop('target')}"
            if "benchmark" in run:
                run["corpus"] = run.pop("benchmark")
            return run | ({"seed": int(run["seed"])} if "seed" in run else {})
    return {}


def below_results(path: str) -> str:
    """A path without results/, as of a run's folder in messages."""
    return path.removeprefix(f"{RESULTS}/")


def table_file(name: str) -> str:
    return f"{TABLES}/{name}.md"


def any_of(names: Iterable[str]) -> str:
    """A regular expression that matches these names and nothing else."""
    return "|".join(map(re.escape, names)) or "(?!)"  # the latter matches nothing
