"""A figure of scores on tasks of language understanding, from their table."""

from pathlib import Path

import pandas as pd

from synmask.pipeline.config.table_plan import BASELINES
from synmask.pipeline.files import UserError
from synmask.pipeline.options import Figure
from synmask.pipeline.reporting.style import (
    COLOURS,
    GREY,
    beside,
    in_style,
    name_rows,
    panels,
    save,
    seed_dots,
)

TEXT = ("column", "direction", "system", "label")
NUMBERS = ("mean", "sd", "median", "seeds", "glue")


@in_style
def task_dots(*, table: Path, output: Figure) -> None:
    """Plot scores on tasks of language understanding.

    A panel per task: large points are means over seeds, small ones single seeds, grey trivial baselines.

    Args:
        table: Prefix of the table's .csv and .runs.csv.

    Raises:
        UserError: it is not a table of tasks, or has no numbers.
    """
    cells = _read(f"{table}.csv", {"column", "system", "label", "mean", "sd", "median", "seeds"})
    cells = cells[cells["mean"].notna()]
    if cells.empty:
        raise UserError(f"{table}.csv: no number to draw; make some of its runs first")
    runs = _read(f"{table}.runs.csv", {"direction", "system", "glue"})
    tasks, systems = ([*dict.fromkeys(cells[key])] for key in ("column", "label"))
    figure, rows = panels(
        1, len(tasks), width=max(1.6, 6.4 / len(tasks)), height=1.2 + 0.4 * len(systems), sharey=True
    )
    for axes, task in zip(rows[0], tasks, strict=True):
        means, scores = cells[cells["column"] == task], runs[runs["direction"] == task]
        for _, cell in means.iterrows():
            place = systems.index(cell["label"])
            trivial = cell["system"] in BASELINES
            colour = GREY if trivial else COLOURS[place % len(COLOURS)]
            axes.plot(cell["mean"], place - 0.1, "o", color=colour, markersize=6)
            seeds = scores[scores["system"] == cell["system"]]["glue"]
            if not trivial:
                seed_dots(axes, seeds, place, colour)
            beside(axes, f"{cell['mean']:.1f}", max(cell["mean"], seeds.max()), place, gap=6)
        axes.set_title(task)
        name_rows(axes, systems)
        drawn = pd.concat([means["mean"], scores["glue"]])
        room = max(drawn.max() - drawn.min(), 1)
        axes.set_xlim(drawn.min() - 0.15 * room, drawn.max() + 0.6 * room)
        axes.locator_params(axis="x", nbins=3)
    save(figure, output, cells[["column", "system", "label", "mean", "sd", "median", "seeds"]])


def _read(path: str, columns: set[str]) -> pd.DataFrame:
    how = {"dtype": dict.fromkeys(TEXT, str), "keep_default_na": False}  # labels such as None and 01 are text
    try:
        found = pd.read_csv(path, na_values=dict.fromkeys(NUMBERS, ""), **how)
    except ValueError as error:
        raise UserError(f"{path}: not a table ({' '.join(str(error).split())}); make it again") from None
    if lacking := columns - {*found.columns}:
        lacks = ", ".join(sorted(lacking))
        raise UserError(f"{path}: no column {lacks}; give a table of tasks of language understanding")
    return found
