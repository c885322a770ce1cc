"""BLEU by system, by kind of sentence, and against a setting that an experiment sweeps.

`out` is a figure's path without extension; .svg, .pdf and .csv are written. `labels` are the systems'.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from cyclopts import Parameter
from matplotlib.axes import Axes

from synmask.pipeline.evaluation.sentences import Run, by_source, intervals
from synmask.pipeline.files import UserError, read_json
from synmask.pipeline.options import Figure, Json, Labels, Some, labels_of, together
from synmask.pipeline.reporting.layout import arrow
from synmask.pipeline.reporting.runs import CHOICE, chosen, read_scores
from synmask.pipeline.reporting.style import (
    COLOURS,
    DARK,
    beside,
    in_style,
    legend_below,
    look,
    name_rows,
    panels,
    save,
    seed_dots,
)

GROUPS = {"source_words": "Words in the source sentence", "split_words": "Words of it that BPE splits"}
SWEPT = {CHOICE: "validation", "bleu_tokenised": "test"}
Sentences = Annotated[Some[Path], Parameter(help="sentences.csv of the runs.")]
Runs = Annotated[
    Json[list[tuple[str, str, int]]],
    Parameter(help="Direction, system and seed of each input, as a JSON list of triples."),
]


def bleu_figure(*, inputs: Sentences, runs: Runs, labels: Labels, output: Figure) -> None:
    """Plot BLEU by system, with confidence intervals over test sentences."""
    files, named = _sentences(inputs, runs, labels)
    bleu_dots(intervals(files), output, named)


def _sentences(
    inputs: Sequence[Path], runs: Sequence[tuple[str, str, int]], labels: Sequence[tuple[str, str]]
) -> tuple[dict[Run, Path], dict[str, str]]:
    """Run → its file of sentences, and system → label."""
    files = {Run(*run): path for run, path in together(runs=runs, inputs=inputs)}
    return files, labels_of((run.system for run in files), labels)


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


def source_figure(*, inputs: Sentences, runs: Runs, labels: Labels, output: Figure) -> None:
    """Plot BLEU of one direction by length and by split words of the source."""
    files, named = _sentences(inputs, runs, labels)
    bleu_by_source({column: by_source(files, column) for column in GROUPS}, output, named)


@in_style
def bleu_by_source(results: Mapping[str, pd.DataFrame], out: Path, labels: Mapping[str, str]) -> None:
    """sacreBLEU by length of the source sentence and by the number of its words that are split.

    Points are means over seeds, error bars 95% intervals. Each group has its number of sentences below.

    Args:
        results: source_words, split_words → `evaluation.sentences.by_source`, of one direction.
    """
    figure, rows = panels(1, len(results), width=4.8, height=3.6, sharey=True)
    for axes, (column, table) in zip(rows[0], results.items(), strict=True):
        counts = table.drop_duplicates("group").set_index("group")["sentences"]
        places = {group: place for place, group in enumerate(counts.index)}
        systems = table["system"].unique()
        for index, system in enumerate(systems):
            means = table[table["system"] == system].drop_duplicates("group")
            shift = (index - (len(systems) - 1) / 2) * min(0.12, 0.6 / len(systems))
            x = means["group"].map(places).astype(float) + shift
            style = {"marker": "o", "markersize": 4, "linewidth": 1, "capsize": 2} | look(index)
            axes.errorbar(x, means["mean"], yerr=_reach(means), label=labels[system], **style)
        axes.set_xticks(range(len(counts)), [f"{group}\n({count:,})" for group, count in counts.items()])
        axes.set_xlabel(f"{GROUPS[column]} (sentences)")
        axes.grid(visible=False, axis="x")
    rows[0, 0].set_ylabel("sacreBLEU")
    legend_below(figure, rows[0, 0])
    save(figure, out, pd.concat([table.assign(by=column) for column, table in results.items()]))


@in_style
def sweep(*, inputs: Some[Path], setting: str, output: Figure) -> None:
    """Plot BLEU on the validation and test sets against a number in the settings.

    Means over seeds, their range, single seeds. One line is for the validation set, which chooses a value,
    the other for the test set. One panel per direction. Numbers that grow by factors get a logarithmic axis.

    Args:
        inputs: scores.json of the runs.
        setting: The key of the number, e.g. system.options.bpe_dim.

    Raises:
        UserError: as `runs.read_scores`; the setting is missing or is not a number.
    """
    runs = read_scores(inputs)
    runs["value"] = [_number(path, setting) for path in inputs]
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
    save(figure, output, runs)


def _number(path: Path, setting: str) -> float:
    value: Any = read_json(path).get("settings")
    for key in setting.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise UserError(f"{path}: settings.{setting} is not a number, but {value!r}; sweep another setting")
    return value
