"""A diagram of the method; its P_D is computed from the distances and heights shown."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from synmask.induction.distribution import dependency_distribution
from synmask.pipeline.reporting.style import (
    COLOURS,
    DARK,
    DISTANCE,
    GREY,
    HEIGHT,
    PARENT,
    PARENTS,
    in_style,
    save,
)
from synmask.pipeline.text.labels import bpe_labels

TOKENS = ["die", "Fracht@@", "raum@@", "ung", "ruht", "</s>"]
DISTANCES = [3.0, 1.2, 0.6, 5.0, 8.0]
HEIGHTS = [4.2, 2.4, 2.4, 6.2, 7.2, 0.6]
BLUE, RED = COLOURS[:2]
SIZE = (10.6, 6.0)


@in_style
@mpl.rc_context({"text.parse_math": True})
def diagram(out: Path) -> None:
    """Draw how the parser's distances and heights become P_D, and where it masks the encoder's attention.

    Args:
        out: the figure's path without extension; .svg, .pdf and .csv (P_D) are written.
    """
    figure = Figure(figsize=SIZE)
    axes = _inset(figure, 0, 0, *SIZE)
    axes.axis("off")
    _words(axes)
    _parser(axes)
    matrix = dependency_distribution(torch.tensor([DISTANCES]), torch.tensor([HEIGHTS]))[0].numpy()
    np.fill_diagonal(matrix, 0)  # as in the model: in a masked layer no token attends to itself
    _bars(figure, 0.5, "Heights: one a sub-word", HEIGHTS, HEIGHT, np.arange(len(HEIGHTS)))
    _bars(figure, 2.7, "Distances: one a gap", DISTANCES, DISTANCE, np.arange(len(DISTANCES)) + 0.5)
    _heat_map(figure, matrix)
    _encoder(axes)
    _arrow(axes, (4.72, 4.95), (6.15, 4.07), bend="angle,angleA=0,angleB=90,rad=8")
    _arrow(axes, (7.35, 2.85), (8.08, 2.85), color=PARENT, width=2.4)
    table = pd.DataFrame(matrix, columns=TOKENS).round(6)
    table.insert(0, "token", TOKENS)
    save(figure, out, table)


def _words(axes: Axes) -> None:
    """The source sentence: sub-words and their BPE labels."""
    for index, (token, label) in enumerate(zip(TOKENS, bpe_labels(TOKENS), strict=True)):
        x = 0.3 + 0.74 * index
        split = label == 2
        _box(axes, (x, 0.45, 0.7, 0.36), token, RED if split else GREY, size=7.5)
        colour = RED if split else DARK
        axes.text(x + 0.35, 0.27, str(label), ha="center", va="center", fontsize=8, color=colour)
    axes.text(4.78, 0.63, "source sub-words", va="center", fontsize=9, color=DARK)
    axes.text(4.78, 0.27, "BPE labels (2: piece of a split word)", va="center", fontsize=9, color=DARK)


def _parser(axes: Axes) -> None:
    """From embeddings to heights and distances, bottom to top."""
    _frame(axes, 0.15, 1.7, 4.55, 4.2)
    axes.text(0.3, 5.67, "Parser", fontsize=11, fontweight="bold", va="center")
    _box(axes, (0.3, 1.12, 4.4, 0.38), "sub-word embeddings + positions", DARK)
    _box(axes, (0.3, 1.88, 4.25, 0.38), "3 × (convolution of width 9, LayerNorm, tanh)", BLUE)
    _box(axes, (0.3, 2.58, 4.25, 0.38), "self-attention, one head", BLUE)
    _box(axes, (0.3, 3.28, 4.25, 0.38), "+ embedding of the BPE labels", RED)
    for low, high in ((0.83, 1.1), (1.52, 1.86), (2.28, 2.56), (2.98, 3.26), (3.68, 3.92)):
        _arrow(axes, (2.42, low), (2.42, high))


def _encoder(axes: Axes) -> None:
    """The Transformer's encoder, decoder and MLM head."""
    _frame(axes, 7.95, 2.1, 2.5, 2.72)
    axes.text(8.1, 4.58, "Encoder", fontsize=11, fontweight="bold", va="center")
    _box(axes, (8.1, 3.7, 2.2, 0.55), "layers 2 … L\nsoftmax attention", DARK, size=9)
    masked = "layer 1: masked attention\nσ(QKᵀ/√d) ∘ M\nM: $P_D$ and $P_D$ᵀ, mixed"
    _box(axes, (8.1, 2.25, 2.2, 1.15), masked, PARENT, size=9)
    _box(axes, (7.95, 5.15, 1.15, 0.5), "decoder", DARK, size=9)
    _box(axes, (9.3, 5.15, 1.15, 0.5), "MLM head", RED, size=9)
    axes.text(7.95, 5.83, "loss: (1 − λ) translation + λ MLM", va="center", fontsize=9, color=DARK)
    _arrow(axes, (4.72, 1.31), (9.2, 2.23), bend="angle,angleA=0,angleB=90,rad=8")
    _arrow(axes, (9.2, 3.42), (9.2, 3.68))
    _arrow(axes, (8.52, 4.86), (8.52, 5.13))
    _arrow(axes, (9.87, 4.86), (9.87, 5.13))


def _bars(figure: Figure, x: float, title: str, values: list[float], colour: str, places: np.ndarray) -> None:
    axes = _inset(figure, x, 4.08, 1.85, 1.1)
    axes.bar(places, values, width=0.55, color=colour, alpha=0.75)
    axes.set(xlim=(-0.6, len(TOKENS) - 0.4), ylim=(0, 8.5), xticks=[], yticks=[])
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
    axes.set_title(title, fontsize=9, pad=4)
    axes.set_facecolor("none")


def _heat_map(figure: Figure, matrix: np.ndarray) -> None:
    axes = _inset(figure, 5.0, 1.75, 2.3, 2.3)
    axes.imshow(matrix, cmap=PARENTS, vmin=0, vmax=1)
    last = len(matrix) - 0.5
    axes.set(xlim=(-0.5, last), ylim=(last, -0.5), xticks=[], yticks=[])
    axes.grid(visible=False)
    axes.spines[:].set(visible=True, color=GREY)
    axes.set_ylabel("sub-word", fontsize=9)
    axes.set_xlabel("$P_D$: how probable each parent is", fontsize=9)


def _inset(figure: Figure, x: float, y: float, width: float, height: float) -> Axes:
    """Axes at a place given in inches; their data coordinates are inches, too, until changed."""
    axes = figure.add_axes((x / SIZE[0], y / SIZE[1], width / SIZE[0], height / SIZE[1]))
    axes.set(xlim=(0, width), ylim=(0, height))
    return axes


def _frame(axes: Axes, x: float, y: float, width: float, height: float) -> None:
    look = {"boxstyle": "round,pad=0.02,rounding_size=0.12", "facecolor": "#F6F8FA", "edgecolor": GREY}
    axes.add_patch(FancyBboxPatch((x, y), width, height, linestyle="--", zorder=0, **look))


def _box(axes: Axes, bounds: tuple[float, ...], text: str, colour: str, size: float = 9.5) -> None:
    x, y, width, height = bounds
    style = "round,pad=0,rounding_size=0.07"
    look = {"boxstyle": style, "facecolor": "white", "edgecolor": colour, "linewidth": 1.4}
    axes.add_patch(FancyBboxPatch((x, y), width, height, **look))
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=size, linespacing=1.5)


def _arrow(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    color: str = DARK,
    width: float = 1.3,
    bend: str = "arc3",
) -> None:
    shape = {"arrowstyle": "-|>", "color": color, "linewidth": width, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", end, start, arrowprops=shape | {"connectionstyle": bend})
