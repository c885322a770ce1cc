"""Training curves, BLEU against a setting that an experiment sweeps, and heat maps of P_D.

`out` is a figure's path without extension; .svg, .pdf and .csv are written. `labels` are the systems'.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from synmask.pipeline.config.base import Line
from synmask.pipeline.config.schema import flat
from synmask.pipeline.files import UserError, read_json
from synmask.pipeline.options import Figure as Place
from synmask.pipeline.options import Json, Labels, Some, labels_of, together
from synmask.pipeline.reporting.layout import arrow
from synmask.pipeline.reporting.runs import CHOICE, chosen, read_history, read_scores
from synmask.pipeline.reporting.style import (
    COLOURS,
    DARK,
    PARENTS,
    in_style,
    legend_below,
    look,
    panels,
    save,
)
from synmask.pipeline.syntax.parses import read_distribution

SWEPT = {CHOICE: "validation", "bleu_tokenised": "test"}


def curves_figure(
    *, inputs: Some[Path], runs: Json[list[tuple[str, int]]], labels: Labels, output: Place
) -> None:
    """Plot training and validation loss by epoch.

    Args:
        inputs: history.csv of the runs.
        runs: System and seed of each input, as a JSON list of pairs.
    """
    histories = dict(together(runs=runs, inputs=inputs))
    curves(histories, output, labels_of((system for system, _ in histories), labels))


@in_style
def curves(histories: Mapping[tuple[str, int], Path], out: Path, labels: Mapping[str, str]) -> None:
    """Training and validation loss by epoch: a line per system (mean over seeds), a band from min to max.

    Later lines are thinner, so that none hides another. The axis ends at the 90th percentile of the epochs'
    median losses, so that outliers do not flatten the rest.

    Args:
        histories: (system, seed) → history.csv with epoch, train_loss, valid_loss.
    Raises:
        UserError: a history is missing or lacks a column, or there is none.
    """
    frames = [
        pd.DataFrame(
            {"system": system, "seed": seed, **read_history(path, "epoch", "train_loss", "valid_loss")}
        )
        for (system, seed), path in histories.items()
    ]
    if not frames:
        raise UserError(f"{out}: no training history given; name at least one run")
    data = pd.concat(frames, ignore_index=True)
    figure, rows = panels(2, width=4.6, height=3.4)
    titles = {"train_loss": "Training loss", "valid_loss": "Validation loss"}
    count = data["system"].nunique()
    for axes, (column, title) in zip(rows, titles.items(), strict=True):
        for index, (system, runs) in enumerate(data.groupby("system", sort=False)):
            by_epoch = runs.groupby("epoch")[column]
            mean, colour = by_epoch.mean(), COLOURS[index % len(COLOURS)]
            marker = "o" if len(mean) == 1 else None
            width = 1.2 + 3 * (count - 1 - index) / max(count - 1, 1)
            axes.plot(mean.index, mean, label=labels[system], marker=marker, linewidth=width, **look(index))
            axes.fill_between(mean.index, by_epoch.min(), by_epoch.max(), color=colour, alpha=0.15, lw=0)
        axes.set(title=title, xlabel="Epoch", ylabel="nats a target token")
        axes.xaxis.get_major_locator().set_params(integer=True)
        low, high = data[column].min(), data.groupby("epoch")[column].median().quantile(0.9)
        if data["epoch"].nunique() > 2 and high > low:
            axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
    legend_below(figure, rows[0])
    save(figure, out, data)


@in_style
def sweep_figure(*, inputs: Some[Path], setting: str, output: Place) -> None:
    """Plot tokenised BLEU against a number in the systems' settings.

    Lines are means over seeds, bands span the seeds, points are runs; one panel per direction. The validation
    set chooses a value (dotted); the test set stands beside it. Numbers that grow by factors get a
    logarithmic axis.

    Args:
        inputs: scores.json of the runs.
        setting: The number's key in their settings, such as system.options.bpe_dim.

    Raises:
        UserError: as `runs.read_scores`; the setting is missing or is no number.
    """
    runs = read_scores(inputs)
    runs["value"] = [_setting(path, setting) for path in inputs]
    best = chosen(runs)
    runs["chosen"] = [best.get((run.corpus, run.direction)) == run.system for run in runs.itertuples()]
    runs = runs[["corpus", "direction", "system", "seed", "value", *SWEPT, "chosen"]]
    figure, places = panels(runs["direction"].nunique(), width=4.6, height=3.4)
    values = sorted(set(runs["value"]))
    for axes, (direction, column) in zip(places, runs.groupby("direction", sort=False), strict=True):
        for (metric, label), colour in zip(SWEPT.items(), COLOURS, strict=False):
            by_value = column.groupby("value")[metric]
            mean = by_value.mean()
            axes.fill_between(mean.index, by_value.min(), by_value.max(), color=colour, alpha=0.15, lw=0)
            axes.plot(mean.index, mean, marker="o", color=colour, linewidth=1.8, label=label)
            axes.plot(column["value"], column[metric], "o", color=colour, markersize=3, alpha=0.6)
        for value in column.loc[column["chosen"], "value"].unique():
            axes.axvline(value, color=DARK, linestyle=":", label="chosen")
        if values[0] > 0 and values[-1] / values[0] >= 16:
            axes.set_xscale("log", base=2)
            axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.set(title=arrow(direction), xlabel=setting.removeprefix("system.").removeprefix("options."))
    places[0].set_ylabel("tokenised BLEU")
    legend_below(figure, places[0])
    save(figure, output, runs)


def _setting(path: Path, key: str) -> float:
    value = flat(read_json(path).get("settings") or {}).get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise UserError(f"{path}: settings.{key} is no number, but {value!r}; sweep another setting")
    return value


def distribution_figure(*, distribution: Path, title: Line, output: Place) -> None:
    """Draw P_D of one sentence as a heat map.

    Args:
        distribution: Output of `parse`.
        title: Heading of the figure.
    """
    shown = read_distribution(distribution)
    if not shown.tokens:
        raise UserError(f"{distribution}: no P_D in it; give that of a guide that induces one")
    heat_map(shown.tokens, shown.distribution, output, title)


@in_style
def heat_map(tokens: Sequence[str], matrix: np.ndarray, out: Path, title: str) -> None:
    """P_D of one sentence as a heat map: row i is token i, column j its parent.

    Args:
        tokens, matrix: n tokens; (n, n), rows sum to 1, or to less if the diagonal was set to 0.
    Raises:
        ValueError: the matrix is not (n, n).
    """
    count = len(tokens)
    matrix = np.asarray(matrix)
    if matrix.shape != (count, count):
        raise ValueError(f"matrix must be ({count}, {count}) for {count} tokens; got {matrix.shape}")
    figure = Figure(figsize=(0.32 * count + 3, 0.32 * count + 2), layout="constrained")
    axes = figure.subplots()
    top = max(np.ceil(10 * matrix.max()) / 10, 0.1)
    image = axes.imshow(matrix, cmap=PARENTS, vmin=0, vmax=top)
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
    rows, columns = np.indices(matrix.shape)
    data = {
        "token_position": rows.ravel() + 1,
        "token": np.asarray(tokens, dtype=object)[rows.ravel()],
        "parent_position": columns.ravel() + 1,
        "parent": np.asarray(tokens, dtype=object)[columns.ravel()],
        "probability": matrix.ravel(),
    }
    save(figure, out, pd.DataFrame(data))
