"""BLEU by system, and against a setting that an experiment sweeps.

`out` is a figure's path without extension; .svg, .pdf and .csv are written. `labels` are the systems'.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from synmask.pipeline.files import UserError, read_json
from synmask.pipeline.reporting.layout import arrow
from synmask.pipeline.reporting.runs import CHOICE, chosen, read_scores
from synmask.pipeline.reporting.style import (
    COLOURS,
    DARK,
    beside,
    in_style,
    legend_below,
    name_rows,
    panels,
    save,
    seed_dots,
)

SWEPT = {CHOICE: "validation", "bleu_tokenised": "test"}


@in_style
def bleu_dots(results: pd.DataFrame, out: Path, labels: Mapping[str, str]) -> None:
    """sacreBLEU by system: large points are means over seeds, small ones single seeds, lines 95% intervals.

    One panel per direction; a system without runs gets a dash.

    Args:
        results: `evaluation.sentences.intervals`.
        labels: in the order of the lines.
    """
    directions = list(dict.fromkeys(results["direction"]))
    figure, rows = panels(1, len(directions), width=4.2, height=1.1 + 0.5 * len(labels), sharey=True)
    for axes, direction in zip(rows[0], directions, strict=True):
        column = results[results["direction"] == direction]
        for row, system in enumerate(labels):
            runs = column[column["system"] == system]
            if runs.empty:
                beside(axes, "–", 0, row, gap=4, xycoords=("axes fraction", "data"))
            else:
                _dots(axes, row, runs)
        axes.set(title=arrow(direction), xlabel="sacreBLEU")
        name_rows(axes, [*labels.values()])
        low, high = column[["bleu", "low"]].min().min(), column[["bleu", "high"]].max().max()
        room = max(high - low, 0.1)
        axes.set_xlim(low - 0.1 * room, high + 0.4 * room)
    save(figure, out, results.assign(label=results["system"].map(labels)))


def _dots(axes: Axes, row: int, runs: pd.DataFrame) -> None:
    colour, first = COLOURS[row % len(COLOURS)], runs.iloc[0]
    axes.errorbar(first["mean"], row - 0.1, xerr=_reach(runs.iloc[:1]), color=colour, fmt="o", capsize=3)
    seed_dots(axes, runs["bleu"], row, colour)
    beside(axes, f"{first['mean']:.2f}", max(runs["bleu"].max(), first["high"]), row, gap=7)


def _reach(rows: pd.DataFrame) -> np.ndarray:
    """(2, rows) how far intervals reach below and above the mean; with few sentences one may miss it."""
    return np.maximum(0, [rows["mean"] - rows["low"], rows["high"] - rows["mean"]])


@in_style
def sweep(scores: Sequence[Path], setting: str, out: Path) -> None:
    """Tokenised BLEU against a number in the systems' settings: means over seeds, their range, single seeds.

    One line is for the validation set, which chooses a value, the other for the test set. One panel per
    direction. Numbers that grow by factors get a logarithmic axis.

    Args:
        setting: the number's key in their `settings`, such as system.options.bpe_dim.
    Raises:
        UserError: as `runs.read_scores`; the setting is missing or is not a number.
    """
    runs = read_scores(scores)
    runs["value"] = [_number(path, setting) for path in scores]
    choice = chosen(runs)
    runs["chosen"] = [choice.get((run.corpus, run.direction)) == run.system for run in runs.itertuples()]
    runs = runs[["corpus", "direction", "system", "seed", "value", *SWEPT, "chosen"]]
    directions = list(dict.fromkeys(runs["direction"]))
    figure, rows = panels(1, len(directions), width=4.6, height=3.4)
    values = sorted(set(runs["value"]))
    for axes, direction in zip(rows[0], directions, strict=True):
        column = runs[runs["direction"] == direction]
        for (metric, label), colour in zip(SWEPT.items(), COLOURS, strict=False):
            groups = column.groupby("value")[metric]
            mean = groups.mean()
            axes.fill_between(mean.index, groups.min(), groups.max(), color=colour, alpha=0.15, lw=0)
            axes.plot(mean.index, mean, marker="o", color=colour, linewidth=1.8, label=label)
            axes.plot(column["value"], column[metric], "o", color=colour, markersize=3, alpha=0.6)
        title = arrow(direction)
        for value in column.loc[column["chosen"], "value"].unique():
            axes.axvline(value, color=DARK, linestyle=":", label="chosen")
            title += f" (chosen: {value:g})"
        if values[0] > 0 and values[-1] / values[0] >= 16:
            axes.set_xscale("log", base=2)
            axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.set(title=title, xlabel=setting.removeprefix("system.").removeprefix("options."))
    rows[0, 0].set_ylabel("tokenised BLEU")
    legend_below(figure, rows[0, 0])
    save(figure, out, runs)


def _number(path: Path, setting: str) -> float:
    value: Any = read_json(path).get("settings")
    for key in setting.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise UserError(f"{path}: settings.{setting} is not a number, but {value!r}; sweep another setting")
    return value
