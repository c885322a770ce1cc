"""The style of all figures, and how they are saved: the same data gives the same bytes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from synmask.pipeline.files import writing

# Okabe and Ito's palette, safe for the colour-blind, without black and yellow.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]
LINES = ["-", "--", ":"]
GREY, DARK = "#8C8C8C", "#333333"
# The same in every figure: heights, distances, P_D, constituents of the gold tree, split words.
HEIGHT, DISTANCE, PARENT, RIGHT, PIECE = COLOURS[4], COLOURS[0], "#6A51A3", COLOURS[2], COLOURS[1]
PARENTS = "Purples"  # matplotlib's colour map for P_D
STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E5E5E5",
    "legend.frameon": False,
    "text.parse_math": False,  # a label may hold dollar signs
    "svg.hashsalt": "synmask",  # else element ids are random
    "pdf.fonttype": 42,
}
in_style = mpl.rc_context(STYLE)  # a decorator


def look(index: int) -> dict:
    """Colour and line style of system `index`: first by colour, then the same colours dashed."""
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": LINES[index // len(COLOURS) % len(LINES)]}


def panels(
    rows: int, columns: int, *, width: float, height: float, **options: bool
) -> tuple[Figure, np.ndarray]:
    """A figure of rows x columns axes, each of this size in inches, without overlaps."""
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def legend_below(figure: Figure, axes: Axes) -> None:
    """A legend of `axes` below all panels, at most four entries per row."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 4))


def seed_dots(axes: Axes, values: Sequence[float], row: float, colour: str) -> None:
    """Small points for single seeds, just below the mean in this row."""
    style = {"color": colour, "markersize": 4, "alpha": 0.6, "mec": "white"}
    axes.plot(values, [row + 0.2] * len(values), "o", **style)


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Rows 0, 1, … with these names, from the top down."""
    axes.set(yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.5, -0.5))
    axes.grid(visible=False, axis="y")


def beside(axes: Axes, text: str, x: float, row: float, gap: float, **options: Any) -> None:
    """Write a text `gap` points to the right of x."""
    axes.annotate(text, (x, row), xytext=(gap, 0), textcoords="offset points", va="center", **options)


def text_width(text: str) -> float:
    """Width of a text in inches, in the figures' font and size."""
    font = FontProperties(family=STYLE["font.family"], size=STYLE["font.size"])
    return TextPath((0, 0), text, prop=font).get_extents().width / 72 if text.strip() else 0.0


def save(figure: Figure, out: Path, data: pd.DataFrame) -> None:
    """Write `out`.svg, .pdf and .csv, without the date."""
    out = Path(out)
    settle(figure)
    for extension, undated in (("svg", {"Date": None}), ("pdf", {"CreationDate": None})):
        with writing(out.with_name(f"{out.name}.{extension}"), "wb") as handle:
            figure.savefig(handle, format=extension, metadata=undated)
    with writing(out.with_name(f"{out.name}.csv")) as handle:
        data.to_csv(handle, index=False, lineterminator="\n")


def settle(figure: Figure) -> None:
    """Lay out the panels and round their positions: the solver's last bits differ between calls."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position(np.round(axes.get_position(original=True).bounds, 6))
