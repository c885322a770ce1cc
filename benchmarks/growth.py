"""How cost grows with size: what planning.py, reporting.py and corpora.py have in common."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd

from synmask.pipeline.reporting.figures import COLOURS, GREY, in_style, panels, save

ROOT = Path(__file__).resolve().parents[1]


def run(words: list[str], folder: Path = ROOT) -> tuple[float, float, str]:
    """CPU seconds (user and system), peak memory in MB, and what a Python command says."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, *words]
    child = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    said = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} failed: {said[-500:]}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, said


@in_style
def draw(rows: pd.DataFrame, size: str, kind: str, output: Path) -> None:
    """CPU seconds and memory (MB) against `size`, a line for each `kind`: columns of `rows`."""
    figure, axes = panels(2, width=7.2, height=2.8)
    for panel, (what, label) in zip(
        axes[0], (("seconds", "CPU seconds"), ("memory", "Peak memory (MB)")), strict=True
    ):
        for number, (name, part) in enumerate(rows.groupby(kind, sort=False)):
            colour = GREY if name == "bare" else COLOURS[number]
            panel.loglog(part[size], part[what], "o-", color=colour, label=name)
        panel.set(xlabel=size.capitalize(), ylabel=label)
        if rows[kind].nunique() > 1:
            panel.legend()
    save(figure, output, rows)
