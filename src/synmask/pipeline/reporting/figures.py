"""Training curves, BLEU against a setting that an experiment sweeps, and heat maps of P_D.

The same data gives the same bytes.
"""

import re
import warnings
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import findSystemFonts, fontManager, get_font

from synmask.pipeline.arguments import Figure as Place
from synmask.pipeline.arguments import Labels, OneOrMore
from synmask.pipeline.config.base import Line
from synmask.pipeline.display import arrow, printable
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import flatten, read_csv, read_json, write_all
from synmask.pipeline.languages import print_note
from synmask.pipeline.record import read_record, read_run
from synmask.pipeline.reporting.results import (
    CHOICE,
    RUN,
    check_alike,
    check_once,
    choose_systems,
    read_scores,
)
from synmask.pipeline.syntax.parses import read_distribution

# Okabe and Ito's palette, safe for the colour-blind, without black and yellow.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]
LINES = ["-", "--", ":"]
DARK = "#333333"
SWEPT = {CHOICE: "validation", "bleu_tokenised": "test"}
LOSSES = {"train_loss": "Training loss", "valid_loss": "Validation loss"}
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


@in_style
def curves_figure(*, inputs: OneOrMore[Path], labels: Labels, output: Place) -> None:
    """Plot training and validation loss by epoch: a line per system (mean over seeds), a band to min and max.

    Later lines are thinner, so that none hides another. The axis ends at the 90th percentile of the epochs'
    median losses, so that outliers do not flatten the rest.

    Args:
        inputs: history.csv of the runs, whose train.json beside it says which they are.

    Raises:
        UserError: a history is missing, lacks a column or is another run's, or a run is given twice.
    """
    label_of = dict(labels)
    data = pd.concat(map(_history, inputs), ignore_index=True)
    check_once(data, "epoch")
    data = data.drop(columns=["corpus", "direction"])
    if missing := {*data["system"]} - label_of.keys():
        raise UserError(f"--labels: no label for {', '.join(sorted(missing))}; add one")
    mpl.rcParams["font.family"] = fonts_for(label_of.values())
    figure, places = panels(len(LOSSES))
    count = data["system"].nunique()
    for axes, (column, title) in zip(places, LOSSES.items(), strict=True):
        for index, (system, group) in enumerate(data.groupby("system", sort=False)):
            look = {"color": COLOURS[index % len(COLOURS)]}  # when these are used up, the same ones dashed
            look["linestyle"] = LINES[index // len(COLOURS) % len(LINES)]
            look["marker"] = "o" if group["epoch"].nunique() == 1 else None
            look["linewidth"] = 1.2 + 3 * (count - 1 - index) / max(count - 1, 1)
            _band(axes, group.groupby("epoch")[column], label=label_of[system], **look)
        axes.set(title=title, xlabel="Epoch", ylabel="nats a target token")
        axes.xaxis.get_major_locator().set_params(integer=True)
        low, high = data[column].min(), data.groupby("epoch")[column].median().quantile(0.9)
        if data["epoch"].nunique() > 2 and high > low:
            axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
    _legend_below(figure, places[0])
    save(figure, output, data)


def _history(path: Path) -> pd.DataFrame:
    """The losses of a training, with the run that the train.json beside them names."""
    run = read_run(path.parent, *RUN)
    read_record(path.with_name("train.json"), [path])
    losses = read_csv(path, ["epoch", *LOSSES], "train again")
    return pd.DataFrame({**{key: run[key] for key in RUN}, **losses})


@in_style
def sweep_figure(*, inputs: OneOrMore[Path], setting: str, output: Place) -> None:
    """Plot tokenised BLEU against a number in the systems' settings.

    Lines are means over seeds, bands span the seeds, points are runs; one panel per direction. The validation
    set chooses a value (dotted); the test set stands beside it. Numbers that grow by factors get a
    logarithmic axis.

    Args:
        inputs: scores.json of the runs.
        setting: The number's key in their settings, such as system.options.bpe_dim.

    Raises:
        UserError: as `read_scores`; a run is given twice, or runs are not alike (`check_alike`);
            the setting is missing or is no number.
    """
    runs = read_scores(inputs)
    check_alike(runs)
    runs["value"] = [_setting(path, setting) for path in inputs]
    best = choose_systems(runs)
    runs["chosen"] = [best.get((run.corpus, run.direction)) == run.system for run in runs.itertuples()]
    runs = runs[["corpus", "direction", "system", "seed", "value", *SWEPT, "chosen"]]
    figure, places = panels(runs["direction"].nunique())
    values = sorted({*runs["value"]})
    for axes, (direction, column) in zip(places, runs.groupby("direction", sort=False), strict=True):
        for (metric, label), colour in zip(SWEPT.items(), COLOURS, strict=False):
            _band(axes, column.groupby("value")[metric], label=label, color=colour, marker="o", linewidth=1.8)
            axes.plot(column["value"], column[metric], "o", color=colour, markersize=3, alpha=0.6)
        for value in column.loc[column["chosen"], "value"].unique():
            axes.axvline(value, color=DARK, linestyle=":", label="chosen")
        if values[0] > 0 and values[-1] / values[0] >= 16:
            axes.set_xscale("log", base=2)
            axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.set(title=arrow(direction), xlabel=setting.removeprefix("system.").removeprefix("options."))
    places[0].set_ylabel("tokenised BLEU")
    _legend_below(figure, places[0])
    save(figure, output, runs)


def _band(axes: Axes, groups: Any, **look: Any) -> None:
    """A line of the groups' means, on a band from their least to their greatest values."""
    mean = groups.mean()
    axes.fill_between(mean.index, groups.min(), groups.max(), color=look["color"], alpha=0.15, lw=0)
    axes.plot(mean.index, mean, **look)


def _setting(path: Path, key: str) -> float:
    value = flatten(read_json(path).get("settings") or {}).get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise UserError(f"{path}: settings.{key} is no number, but {value!r}; sweep another setting")
    return value


@in_style
def distribution_figure(*, distribution: Path, title: Line, output: Place) -> None:
    """Draw P_D of one sentence as a heat map: row i is token i, column j its parent.

    Args:
        distribution: Output of `parse`.
        title: Heading of the figure.
    """
    read_record(distribution)
    read = read_distribution(distribution)
    if not read.tokens:
        raise UserError(f"{distribution}: no P_D in it; give that of a guide that induces one")
    matrix, count = np.array(read.distribution), len(read.tokens)
    tokens = [*map(printable, read.tokens)]
    mpl.rcParams["font.family"] = fonts_for([title, *tokens])
    figure = Figure(figsize=(0.32 * count + 3, 0.32 * count + 2), layout="constrained")
    axes = figure.subplots()
    top = max(np.ceil(10 * matrix.max()) / 10, 0.1)
    image = axes.imshow(matrix, cmap="Purples", vmin=0, vmax=top)
    axes.set_xticks(range(count), tokens, rotation=90)
    axes.set_yticks(range(count), tokens)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.grid(visible=False)
    axes.set_xticks(np.arange(count + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(count + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1)
    axes.tick_params(which="minor", length=0)
    axes.set(xlabel="Parent", ylabel="Token", title=title)
    for row, column in np.argwhere(matrix >= 0.095).tolist():
        value = matrix[row, column]
        colour = "white" if value > top / 2 else DARK
        text = f"{value:.1f}".removeprefix("0")
        axes.text(column, row, text, ha="center", va="center", color=colour, fontsize=7)
    figure.colorbar(image, ax=axes, label="Probability")
    rows = [
        (row + 1, token, column + 1, parent, matrix[row, column])
        for row, token in enumerate(read.tokens)
        for column, parent in enumerate(read.tokens)
    ]
    heads = ["token_position", "token", "parent_position", "parent", "probability"]
    save(figure, output, pd.DataFrame(rows, columns=heads))


def fonts_for(texts: Iterable[str]) -> list[str]:
    """The font of all figures, and after it one of this machine with the characters that it lacks.

    If there is none, a note on stderr says which characters will be boxes.
    """
    font = STYLE["font.family"]
    needed = {ord(letter) for text in texts for letter in text if not letter.isspace()}
    lacking = needed - _characters(fontManager.findfont(font))
    if not lacking:
        return [font]
    other = _font_with(lacking)
    if other is None:  # matplotlib's list, which it keeps on the disk, may be older than a font
        _add_installed_fonts()
        other = _font_with(lacking)
    if other is not None:
        return [font, other]
    boxes = " ".join(map(chr, sorted(lacking)[:10])) + (" …" if len(lacking) > 10 else "")
    install = (
        "install one, such as Debian's fonts-noto-core, or fonts-noto-cjk for Chinese, Japanese and Korean"
    )
    print_note(f"no font here has {boxes}, so a figure shows boxes; {install}")
    warnings.filterwarnings("ignore", "Glyph .* missing from font")  # reported once
    return [font]


def _font_with(characters: set[int]) -> str | None:
    """The first font, by its name, that has these code points."""
    for font in sorted(fontManager.ttflist, key=lambda font: (font.name, font.fname)):
        if not font.name.startswith("Last Resort") and characters <= _characters(font.fname):
            return font.name
    return None


@cache
def _add_installed_fonts() -> None:
    """Add this machine's fonts that matplotlib does not list."""
    for path in sorted({*findSystemFonts()} - {font.fname for font in fontManager.ttflist}):
        with suppress(Exception):  # damaged ones are left out, as matplotlib does
            fontManager.addfont(path)


@cache
def _characters(path: str) -> frozenset[int]:
    """The code points that a font file has."""
    return frozenset(get_font(path).get_charmap())


def panels(columns: int) -> tuple[Figure, np.ndarray]:
    """A figure of axes side by side, without overlaps."""
    figure = Figure(figsize=(4.6 * columns, 3.4), layout="constrained")
    return figure, figure.subplots(1, columns, squeeze=False)[0]


def _legend_below(figure: Figure, axes: Axes) -> None:
    """A legend of `axes` below all panels, at most four entries per row; a label may begin with "_"."""
    named = (line for line in axes.get_lines() if not re.fullmatch("_child[0-9]+", line.get_label()))
    lines = {line.get_label(): line for line in named}
    figure.legend(lines.values(), lines, loc="outside lower center", ncols=min(len(lines), 4))


def save(figure: Figure, out: Path, data: pd.DataFrame) -> None:
    """Write `out`.svg, .pdf and .csv, all or none, without the date."""
    settle(figure)
    svg, pdf = BytesIO(), BytesIO()
    figure.savefig(svg, format="svg", metadata={"Date": None})
    figure.savefig(pdf, format="pdf", metadata={"CreationDate": None})
    contents = {"svg": svg.getvalue(), "pdf": pdf.getvalue()}
    contents["csv"] = data.to_csv(index=False, lineterminator="\n")
    write_all({Path(f"{out}.{extension}"): content for extension, content in contents.items()})


def settle(figure: Figure) -> None:
    """Lay out the panels and round their positions: the solver's last bits differ between calls."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position(np.round(axes.get_position(original=True).bounds, 6))
