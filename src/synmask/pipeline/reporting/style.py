"""The style of all figures, and how they are saved: the same data gives the same bytes."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from synmask.pipeline.files import writing
from synmask.pipeline.reporting.layout import write_csv

# Okabe and Ito's palette, safe for the colour-blind, without black and yellow.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]
LINES = ["-", "--", ":"]
GREY, DARK = "#8C8C8C", "#333333"
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


def panels(columns: int, *, width: float, height: float) -> tuple[Figure, np.ndarray]:
    """A figure of axes side by side, each of this size in inches, without overlaps."""
    figure = Figure(figsize=(width * columns, height), layout="constrained")
    return figure, figure.subplots(1, columns, squeeze=False)[0]


def legend_below(figure: Figure, axes: Axes) -> None:
    """A legend of `axes` below all panels, at most four entries per row."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 4))


def save(figure: Figure, out: Path, data: pd.DataFrame) -> None:
    """Write `out`.svg, .pdf and .csv, without the date."""
    out = Path(out)
    settle(figure)
    for extension, undated in (("svg", {"Date": None}), ("pdf", {"CreationDate": None})):
        with writing(out.with_name(f"{out.name}.{extension}"), "wb") as handle:
            figure.savefig(handle, format=extension, metadata=undated)
    write_csv(out, data)


def settle(figure: Figure) -> None:
    """Lay out the panels and round their positions: the solver's last bits differ between calls."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position(np.round(axes.get_position(original=True).bounds, 6))
