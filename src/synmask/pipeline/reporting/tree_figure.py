"""A figure of one sentence's trees below each other, with distances and heights as bars."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from synmask.pipeline.options import Figure as Place
from synmask.pipeline.reporting.style import DISTANCE, GREY, HEIGHT, PIECE, RIGHT, in_style, save, text_width
from synmask.pipeline.reporting.tree_files import Gold, Names, Parses, by_label, numbered
from synmask.pipeline.reporting.tree_nodes import Drawing, SentenceTrees, bars, branches, sentence_of
from synmask.pipeline.syntax.parses import Parse, read_distribution
from synmask.pipeline.syntax.treebank import Tree

BARS, LEAST = 0.6, 1.8  # inches: the height of bars, the width of a panel


def tree_figure(*, gold: Gold, trees: Parses, labels: Names, distribution: Path, output: Place) -> None:
    """Draw one sentence's gold tree above the induced ones.

    Args:
        distribution: Output of `parse`, which names the sentence.
    """
    number = read_distribution(distribution).sentence
    top, induced = numbered(number, gold, by_label(labels, trees))
    draw_trees(top, induced, output)


@in_style
def draw_trees(gold: Tree | None, induced: Mapping[str, Parse], out: Path) -> None:
    """Draw the gold tree of one sentence, if there is one, above the induced trees over its sub-words.

    Constituents of the gold tree are coloured, split words are underlined. Below each induced tree are the
    heights of its sub-words and, between them, the distances, on one scale from the least to the largest.

    Args:
        induced: title → parse; all have the same sub-words.
        out: the figure's path without extension; .svg, .pdf and .csv are written.
    Raises:
        ValueError: the sub-words differ between the trees, or do not make as many words as the gold tree has.
    """
    sentence = sentence_of(gold, induced)
    headings = {title: sentence.heading(title, "in green") for title in sentence.drawings}
    centres, width = _token_centres(sentence)
    width = max(width, LEAST, *(1.2 * text_width(heading) for heading in headings.values()))
    heights = []
    for title, drawing in sentence.drawings.items():
        heights.append(_step(title, drawing) * drawing.levels + 0.75)
        heights += [BARS] if title in induced else []
    figure = Figure(figsize=(width + 0.4, sum(heights)), layout="constrained")
    panels = iter(figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0])
    for title, drawing in sentence.drawings.items():
        axes, step = next(panels), _step(title, drawing)
        axes.set(xlim=(0, width), ylim=(-0.32, step * (drawing.levels + 0.3)))
        axes.set_title(headings[title], loc="left")
        axes.axis("off")
        _draw_tree(axes, drawing, centres, step)
        _mark_split_words(axes, sentence.words, centres)
        if title in induced:
            _draw_bars(next(panels), induced[title], centres, width)
    save(figure, out, _data(sentence, induced))


def _step(title: str, drawing: Drawing) -> float:
    """Inches per level; deep trees without labels are drawn flatter."""
    return 0.28 if title == "gold" else min(0.28, 3.2 / drawing.levels)


def _draw_tree(axes: Axes, drawing: Drawing, centres: np.ndarray, step: float) -> None:
    """Draw each node as a bar above its children, with a line down to each; the words are below."""
    leaves = [centres[start:end].mean() for start, end in drawing.bounds]
    for node, middle, below in branches(drawing, leaves):
        colour, width = (RIGHT, 2.2) if node.hit else (GREY, 1.3)
        line = {
            "color": colour,
            "linewidth": width,
            "solid_capstyle": "round",
            "zorder": 3 if node.hit else 2,
        }
        y = step * node.level
        axes.plot([below[0][0], below[-1][0]], [y, y], **line)
        for x, level in below:
            axes.plot([x, x], [step * level, y], **line)
        if node.label:
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1.2}
            axes.text(middle, y, node.label, ha="center", va="center", fontsize=9, bbox=box, zorder=5)
    for text, x in zip(drawing.leaves, leaves, strict=True):
        axes.text(x, -0.06, text, ha="center", va="top")


def _mark_split_words(axes: Axes, words: list[tuple[int, int]], centres: np.ndarray) -> None:
    for start, end in words:
        if end - start > 1:
            axes.plot([centres[start], centres[end - 1]], [-0.28, -0.28], color=PIECE, linewidth=1.5)


def _draw_bars(axes: Axes, parse: Parse, centres: np.ndarray, width: float) -> None:
    """Draw heights below sub-words and distances below gaps, the one before `</s>` at the end."""
    axes.axis("off")
    if not len(centres):
        return
    gaps = np.append((centres[1:] + centres[:-1]) / 2, centres[-1] + 0.22)
    looks = {"height": (centres, HEIGHT), "distance": (gaps, DISTANCE)}
    for name, values in bars(parse).items():
        places, colour = looks[name]
        axes.bar(places, 0.06 + np.array(values), width=0.12, color=colour, label=name)
    axes.set(xlim=(0, width), ylim=(0, 1.6))
    axes.legend(loc="upper right", ncols=2, fontsize=8, borderaxespad=0, handlelength=1)


def _token_centres(sentence: SentenceTrees) -> tuple[np.ndarray, float]:
    """x of each sub-word in inches, far enough apart for sub-words and labels; and the total width."""
    widths = np.array([text_width(token) for token in sentence.tokens])
    for drawing in sentence.drawings.values():
        for node in drawing.nodes:
            least = text_width(node.label) / (node.end - node.start)
            widths[node.start : node.end] = np.maximum(widths[node.start : node.end], least)
    edges = np.concatenate(([0], np.cumsum(np.maximum(widths, 0.3) + 0.14)))
    return (edges[:-1] + edges[1:]) / 2, float(edges[-1]) + 0.2


def _data(sentence: SentenceTrees, induced: Mapping[str, Parse]) -> pd.DataFrame:
    """One row per node, with the distance at its split, and one per sub-word, with its height."""
    rows = []
    for title, drawing in sentence.drawings.items():
        for node in drawing.nodes:
            row = {"tree": title, "start": node.start, "end": node.end, "label": node.label}
            row["right"] = "" if title == "gold" or sentence.expected is None else node.hit is not None
            row["value"] = ""
            if title in induced:
                row["value"] = max(induced[title].distances[node.start : node.end - 1])
            rows.append(row | {"tokens": " ".join(sentence.tokens[node.start : node.end])})
        for place, height in enumerate(induced[title].heights if title in induced else ()):
            row = {"tree": title, "start": place, "end": place + 1, "label": "", "right": "", "value": height}
            rows.append(row | {"tokens": sentence.tokens[place]})
    return pd.DataFrame(rows, columns=["tree", "start", "end", "label", "right", "value", "tokens"])
