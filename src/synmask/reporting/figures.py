"""Figures as SVG and PDF, each with its data as CSV; the same data gives the same bytes."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from synmask.files import UserError, writing
from synmask.reporting.layout import arrow
from synmask.reporting.runs import RUN, read_scores
from synmask.syntax.tree import check_fit, not_punctuation, restricted_spans, spans_of_distances, word_starts
from synmask.syntax.treebank import Tree

# Okabe and Ito's palette, told apart by the colour-blind; black and yellow left out.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]
LINES = ["-", "--", ":"]
GREY, DARK, RIGHT, PIECE = "#8C8C8C", "#333333", "#009E73", "#D55E00"
STYLE = {
    "font.family": "DejaVu Sans",  # matplotlib brings it
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E5E5E5",
    "legend.frameon": False,
    "svg.hashsalt": "synmask",  # else element ids are random
    "pdf.fonttype": 42,
}


def curves(histories: dict[tuple[str, int], Path], out: Path) -> None:
    """Training and validation loss by epoch: a line a system (mean over seeds), a band from min to max.

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
    with mpl.rc_context(STYLE):
        figure, panels = _panels(1, 2, width=4.6, height=3.4)
        for axes, column, name in zip(
            panels[0], ["train_loss", "valid_loss"], ["Training loss", "Validation loss"], strict=True
        ):
            for index, (system, runs) in enumerate(data.groupby("system", sort=False)):
                by_epoch = runs.groupby("epoch")[column]
                mean, colour = by_epoch.mean(), COLOURS[index % len(COLOURS)]
                style = {"linestyle": LINES[index // len(COLOURS) % len(LINES)], "linewidth": 1.8}
                marker = "o" if len(mean) == 1 else None
                axes.plot(mean.index, mean, color=colour, label=system, marker=marker, **style)
                axes.fill_between(mean.index, by_epoch.min(), by_epoch.max(), color=colour, alpha=0.2, lw=0)
            axes.set(title=name, xlabel="Epoch")
            axes.xaxis.get_major_locator().set_params(integer=True)
        _legend_below(figure, panels[0, 0])
        _save(figure, out, data)


def bleu_bars(scores: Sequence[Path], out: Path, systems: Mapping[str, str]) -> None:
    """sacreBLEU by system: bars are means, error bars sample standard deviations, points single seeds.

    A panel a direction, in the order in which they come in `scores`.

    Args:
        scores: scores.json files.
        systems: the systems' names in the order of the bars, and the label of each.
        out: the figure's path without extension; .svg, .pdf and .csv are written.
    Raises:
        UserError: as `tables.read_scores`.
    """
    runs = read_scores(scores)[[*RUN, "sacrebleu"]]
    directions = list(dict.fromkeys(runs["direction"]))
    with mpl.rc_context(STYLE):
        figure, panels = _panels(1, len(directions), width=4.2, height=1.1 + 0.5 * len(systems), sharey=True)
        for axes, direction in zip(panels[0], directions, strict=True):
            column = runs[runs["direction"] == direction]
            groups = column.groupby("system")["sacrebleu"]
            means, deviations = groups.mean(), groups.std(ddof=1).fillna(0)
            for row, system in enumerate(systems):
                if system not in means:
                    axes.annotate("–", (0, row), xytext=(4, 0), textcoords="offset points", va="center")
                    continue
                mean, points = means[system], column[column["system"] == system]["sacrebleu"]
                colour = COLOURS[row % len(COLOURS)]
                axes.barh(row, mean, height=0.6, color=colour, alpha=0.55)
                axes.errorbar(mean, row - 0.12, xerr=deviations[system], color=DARK, capsize=3, linewidth=1.2)
                axes.plot(points, [row + 0.12] * len(points), "o", color=colour, markersize=4.5, mec="white")
                edge = max(points.max(), mean + deviations[system])
                axes.annotate(
                    f"{mean:.2f}", (edge, row), xytext=(7, 0), textcoords="offset points", va="center"
                )
            axes.set(
                title=arrow(direction),
                xlabel="sacreBLEU",
                yticks=range(len(systems)),
                yticklabels=[*systems.values()],
            )
            axes.set_xlim(0, max(column["sacrebleu"].max(), 1) * 1.25)
            axes.set_ylim(len(systems) - 0.5, -0.5)
            axes.grid(visible=False, axis="y")
        _save(figure, out, runs)


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
        figure = _figure(width + 0.4, sum(heights))
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


def _figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), layout="constrained")


def _panels(
    rows: int, columns: int, *, width: float, height: float, **options: bool
) -> tuple[Figure, np.ndarray]:
    figure = _figure(width * columns, height * rows)
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def _legend_below(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 4))


def _save(figure: Figure, out: Path, data: pd.DataFrame) -> None:
    """Write `out`.svg, .pdf and .csv, without the date."""
    out = Path(out)
    _settle(figure)
    for extension, undated in (("svg", {"Date": None}), ("pdf", {"CreationDate": None})):
        with writing(out.with_name(f"{out.name}.{extension}"), "wb") as handle:
            figure.savefig(handle, format=extension, metadata=undated)
    with writing(out.with_name(f"{out.name}.csv")) as handle:
        data.to_csv(handle, index=False, lineterminator="\n")


def _settle(figure: Figure) -> None:
    """Lay the panels out and round where they lie: the solver's last bits change from call to call."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position(np.round(axes.get_position(original=True).bounds, 6))


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


def _text_width(text: str) -> float:
    """In inches, in the figures' font at its usual size."""
    font = FontProperties(family=STYLE["font.family"], size=STYLE["font.size"])
    return TextPath((0, 0), text, prop=font).get_extents().width / 72 if text.strip() else 0.0


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
