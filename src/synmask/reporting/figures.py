"""Training curves, trees and heat maps of P_D."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from synmask.files import UserError, read_json
from synmask.reporting.style import COLOURS, DARK, GREY, STYLE, in_style, legend_below, look, panels
from synmask.reporting.style import save as _save
from synmask.reporting.style import text_width as _text_width
from synmask.syntax.tree import check_fit, not_punctuation, restricted_spans, spans_of_distances, word_starts
from synmask.syntax.treebank import Tree

RIGHT, PIECE = "#009E73", "#D55E00"


@in_style
def curves(histories: dict[tuple[str, int], Path], out: Path) -> None:
    """Training and validation loss by epoch: a line a system (mean over seeds), a band from min to max.

    Where a system has several seeds, each is a thin line in the band.

    Args:
        histories: (system, seed) → history.csv with epoch, train_loss, valid_loss.
        out: the figure's path without extension; .svg, .pdf and .csv are written.
    Raises:
        UserError: a history is missing or lacks a column, or there is none.
    """
    frames = [_read_history(path, *run) for run, path in histories.items()]
    if not frames:
        raise UserError(f"{out}: no training history given; name at least one run")
    data = pd.concat(frames, ignore_index=True)
    figure, rows = panels(1, 2, width=4.6, height=3.4)
    titles = {"train_loss": "Training loss", "valid_loss": "Validation loss"}
    for axes, (column, title) in zip(rows[0], titles.items(), strict=True):
        for index, (system, runs) in enumerate(data.groupby("system", sort=False)):
            by_epoch = runs.groupby("epoch")[column]
            mean, colour = by_epoch.mean(), COLOURS[index % len(COLOURS)]
            marker = "o" if len(mean) == 1 else None
            axes.plot(mean.index, mean, label=system, marker=marker, linewidth=1.8, **look(index))
            axes.fill_between(mean.index, by_epoch.min(), by_epoch.max(), color=colour, alpha=0.15, lw=0)
            if runs["seed"].nunique() > 1:
                for _, run in runs.groupby("seed"):
                    axes.plot(run["epoch"], run[column], color=colour, linewidth=0.6, alpha=0.6)
        axes.set(title=title, xlabel="Epoch", ylabel="nats a target token")
        axes.xaxis.get_major_locator().set_params(integer=True)
    legend_below(figure, rows[0, 0])
    _save(figure, out, data)


@in_style
def speed(costs: Path, out: Path) -> None:
    """Time and memory of the encoder a sentence, against its length; a line a system.

    Args:
        costs: the JSON file of `engine.speed.measure_files`.
        out: the figure's path without extension; .svg, .pdf and .csv are written.
    Raises:
        UserError: the file is missing or not such a file.
    """
    cost = read_json(costs)
    if not isinstance(cost, dict) or not {"device", "threads", "rows"} <= cost.keys():
        raise UserError(f"{costs}: not an output of `synmask speed`; delete it and rerun")
    data = pd.DataFrame(cost["rows"])
    where = (
        f"CPU, {cost['threads']} thread{'s' * (cost['threads'] > 1)}"
        if cost["device"] == "CPU"
        else cost["device"]
    )
    figure, rows = panels(1, 2, width=4.6, height=3.4)
    units = {"milliseconds": "ms a sentence", "megabytes": "MB a sentence"}
    lengths = sorted(set(data["length"]))
    for axes, (column, unit) in zip(rows[0], units.items(), strict=True):
        for index, (system, table) in enumerate(data.groupby("model", sort=False)):
            axes.plot(table["length"], table[column], label=system, marker="o", markersize=4, **look(index))
        axes.set(title=f"Encoder ({where})", xlabel="Sub-words in the sentence", ylabel=unit)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(lengths, [*map(str, lengths)])
        axes.minorticks_off()
    legend_below(figure, rows[0, 0])
    _save(figure, out, data.assign(device=cost["device"], threads=cost["threads"]))


def trees(gold: Tree, induced: dict[str, tuple[Sequence[str], Sequence[float]]], out: Path) -> None:
    """The gold tree of one sentence and the induced trees over its sub-words, under each other.

    A constituent of an induced tree is coloured as right if it cuts no word and, without punctuation, is a
    constituent of the gold tree of more than one word and less than the sentence (as evaluation counts).
    Words that are split are marked, and their pieces are joined by a line.

    Args:
        gold: the tree over the m words.
        induced: title → the n sub-words and their n-1 distances; all have the same sub-words.
        out: the figure's path without extension; .svg, .pdf and .csv are written.
    Raises:
        ValueError: the sub-words differ between the trees, or do not make as many words as the gold tree has.
    """
    tokens = list(next(iter(induced.values()))[0])
    starts = [index for index, first in enumerate(word_starts(tokens)) if first]
    words = list(zip(starts, [*starts[1:], len(tokens)], strict=True))
    if any(list(other) != tokens for other, _ in induced.values()) or len(words) != len(gold.leaves()):
        raise ValueError("induced: all trees must have the same sub-words, which make the gold tree's words")
    keep = not_punctuation(gold)
    expected = restricted_spans(gold, keep)
    nodes = {"gold": _gold_nodes(gold, words)}
    for title, (_, distances) in induced.items():
        check_fit(distances, tokens, "tokens")
        nodes[title] = _induced_nodes(distances, words, keep, expected)
    found = {title: len({span for *_, span, _ in rows if span}) for title, rows in nodes.items()}
    headings = [f"{title} ({found[title]} of {len(expected)} found, in green)" for title in induced]
    headings.insert(0, f"gold ({len(expected)} constituents that count)")
    pieces = [(position, position + 1) for position in range(len(tokens))]
    centres, width = _token_centres(tokens, nodes["gold"])
    width = max(width, *(1.2 * _text_width(heading) for heading in headings))
    steps = {title: _step(title, rows) for title, rows in nodes.items()}
    heights = [steps[title] * _levels(rows) + 0.75 for title, rows in nodes.items()]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width + 0.4, sum(heights)), layout="constrained")
        panels = figure.subplots(len(nodes), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axes, heading, (title, rows) in zip(panels, headings, nodes.items(), strict=True):
            leaves, texts = (words, gold.leaves()) if title == "gold" else (pieces, tokens)
            axes.set(xlim=(0, width), ylim=(-0.32, steps[title] * (_levels(rows) + 0.3)))
            axes.set_title(heading, loc="left")
            axes.axis("off")
            _draw_nodes(axes, rows, leaves, centres, steps[title])
            _draw_leaves(axes, texts, leaves, centres)
            _mark_split_words(axes, words, centres)
        _save(figure, out, _node_data(nodes, tokens))


def distribution(tokens: Sequence[str], matrix: np.ndarray, out: Path, title: str) -> None:
    """P_D of one sentence as a heat map: row i is token i, column j its parent.

    Args:
        tokens: the n tokens.
        matrix: (n, n); rows sum to 1, or to less where the diagonal was set to 0.
        out: the figure's path without extension; .svg, .pdf and .csv are written.
        title: the figure's heading.
    Raises:
        ValueError: the matrix is not (n, n).
    """
    count = len(tokens)
    matrix = np.asarray(matrix)
    if matrix.shape != (count, count):
        raise ValueError(f"matrix must be ({count}, {count}) for {count} tokens; got {matrix.shape}")
    with mpl.rc_context(STYLE):
        # all places in inches: the map is square, with as much room for labels at its left as below it
        side, before = 0.32 * count, max(_text_width(token) for token in tokens) + 0.5
        height = before + side + 0.4
        width = max(before + side + 1.1, 1.2 * _text_width(title) + 0.2)
        figure = Figure(figsize=(width, height))
        axes = figure.add_axes((before / width, before / height, side / width, side / height))
        scale = figure.add_axes(
            ((before + side + 0.15) / width, before / height, 0.15 / width, side / height)
        )
        image = axes.imshow(matrix, cmap="Blues", vmin=0, vmax=1)
        axes.set_xticks(range(count), tokens, rotation=90)
        axes.set_yticks(range(count), tokens)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.grid(visible=False)
        axes.set_xticks(np.arange(count + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(count + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=1)
        axes.tick_params(which="minor", length=0)
        axes.set(xlabel="Parent", ylabel="Token")
        figure.text(0.5, 1 - 0.2 / height, title, ha="center", va="center", size=STYLE["axes.titlesize"])
        for row, column in np.argwhere(matrix >= 0.095).tolist():
            value = matrix[row, column]
            colour = "white" if value > 0.5 else DARK
            text = f"{value:.1f}".removeprefix("0")
            axes.text(column, row, text, ha="center", va="center", color=colour, fontsize=7)
        figure.colorbar(image, cax=scale, label="Probability")
        rows, columns = np.indices(matrix.shape)
        data = {
            "token_position": rows.ravel() + 1,
            "token": np.asarray(tokens, dtype=object)[rows.ravel()],
            "parent_position": columns.ravel() + 1,
            "parent": np.asarray(tokens, dtype=object)[columns.ravel()],
            "probability": matrix.ravel(),
        }
        _save(figure, out, pd.DataFrame(data))


def _read_history(path: Path, system: str, seed: int) -> pd.DataFrame:
    try:
        history = pd.read_csv(path)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; train {system}, seed {seed}, first") from None
    except ValueError as error:
        raise UserError(f"{path}: not a table ({error}); train {system}, seed {seed}, again") from None
    lacking = {"epoch", "train_loss", "valid_loss"} - set(history.columns)
    if lacking:
        raise UserError(f"{path}: no column {', '.join(sorted(lacking))}; train {system}, seed {seed}, again")
    return pd.concat([pd.DataFrame({"system": system, "seed": seed}, index=history.index), history], axis=1)


# A node of a drawn tree: its span in sub-words, its label, the gold span it hits, its height above the words.
Node = tuple[int, int, str, tuple[int, int] | None, int]


def _gold_nodes(gold: Tree, words: list[tuple[int, int]]) -> list[Node]:
    """Constituents bottom-up; the chain of unary ones over one span is one node, "S VP"."""
    labels: dict[tuple[int, int], str] = {}
    for start, end, label in gold.spans():
        span = (words[start][0], words[end - 1][1])
        labels[span] = f"{labels[span]} {label}" if span in labels else label
    return _with_heights([(*span, label, None) for span, label in labels.items()])


def _induced_nodes(
    distances: Sequence[float],
    words: list[tuple[int, int]],
    keep: Sequence[bool],
    expected: dict[tuple[int, int], set[str]],
) -> list[Node]:
    first = {start: number for number, (start, _) in enumerate(words)}
    last = {end: number + 1 for number, (_, end) in enumerate(words)}
    before = np.concatenate(([0], np.cumsum(keep))).tolist()
    nodes = []
    for start, end in spans_of_distances(distances).tolist():
        hit = None
        if start in first and end in last:
            span = (before[first[start]], before[last[end]])
            hit = span if span in expected else None
        nodes.append((start, end, "", hit))
    return _with_heights(nodes)


def _with_heights(nodes: list[tuple]) -> list[Node]:
    """Children come before parents; a node is one level above the highest node inside it."""
    ordered = sorted(nodes, key=lambda node: (node[1] - node[0], node[0]))
    below: dict[int, int] = {}  # height of the tallest node so far over each sub-word
    result = []
    for start, end, label, hit in ordered:
        height = 1 + max(below.get(position, 0) for position in range(start, end))
        below.update(dict.fromkeys(range(start, end), height))
        result.append((start, end, label, hit, height))
    return result


def _levels(nodes: list[Node]) -> int:
    return max((height for *_, height in nodes), default=1)


def _step(title: str, nodes: list[Node]) -> float:
    """Inches a level; deep trees without labels are drawn flatter."""
    return 0.28 if title == "gold" else min(0.28, 3.2 / _levels(nodes))


def _draw_nodes(
    axes: Axes, nodes: list[Node], leaves: list[tuple[int, int]], centres: np.ndarray, step: float
) -> None:
    """Each node as a bar over its children, with a line down to each of them."""
    tops = [(centres[start:end].mean(), 0.0) for start, end in leaves]  # x and y: leaves, then nodes
    owner = [leaf for leaf, (start, end) in enumerate(leaves) for _ in range(start, end)]  # by sub-word
    for start, end, label, hit, height in nodes:
        children = [tops[child] for child in dict.fromkeys(owner[start:end])]
        colour, width = (RIGHT, 2.2) if hit else (GREY, 1.3)
        line = {"color": colour, "linewidth": width, "solid_capstyle": "round", "zorder": 3 if hit else 2}
        y = step * height
        axes.plot([children[0][0], children[-1][0]], [y, y], **line)
        for x, bottom in children:
            axes.plot([x, x], [bottom, y], **line)
        middle = (children[0][0] + children[-1][0]) / 2
        if label:
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1.2}
            axes.text(middle, y, label, ha="center", va="center", fontsize=9, bbox=box, zorder=5)
        owner[start:end] = [len(tops)] * (end - start)
        tops.append((middle, y))


def _draw_leaves(axes: Axes, texts: list[str], leaves: list[tuple[int, int]], centres: np.ndarray) -> None:
    for text, (start, end) in zip(texts, leaves, strict=True):
        axes.text(centres[start:end].mean(), -0.06, text, ha="center", va="top")


def _mark_split_words(axes: Axes, words: list[tuple[int, int]], centres: np.ndarray) -> None:
    for start, end in words:
        if end - start > 1:
            axes.plot([centres[start], centres[end - 1]], [-0.28, -0.28], color=PIECE, linewidth=1.5)


def _token_centres(tokens: list[str], gold: list[Node]) -> tuple[np.ndarray, float]:
    """x of each sub-word in inches, so far apart that neither sub-words nor labels meet; the width in all."""
    widths = np.array([_text_width(token) for token in tokens])
    for start, end, label, *_ in gold:
        widths[start:end] = np.maximum(widths[start:end], _text_width(label) / (end - start))
    edges = np.concatenate(([0], np.cumsum(np.maximum(widths, 0.3) + 0.14)))
    return (edges[:-1] + edges[1:]) / 2, float(edges[-1])


def _node_data(nodes: dict[str, list[Node]], tokens: list[str]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "tree": title,
            "start": start,
            "end": end,
            "label": label,
            "right": hit is not None if title != "gold" else "",
            "tokens": " ".join(tokens[start:end]),
        }
        for title, rows in nodes.items()
        for start, end, label, hit, _ in rows
    )
