"""Sentences with their gold and induced trees side by side, as a piece of HTML that stands alone."""

import json
from collections.abc import Mapping, Sequence
from html import escape

from synmask.reporting.html import part, policy
from synmask.reporting.tree_nodes import Drawing, Sentence, sentence_of
from synmask.syntax.parses import Parse
from synmask.syntax.treebank import Tree

FONT = 12  # pixels
LETTER = 0.58 * FONT  # a generous mean width
STEP = 15  # pixels a level


def section(gold: Sequence[Tree], induced: Mapping[str, Sequence[Parse]], *, count: int = 20) -> str:
    """`count` sentences, evenly drawn from the shortest to the longest, each with its trees side by side.

    The piece has its own style and script, and no outside address; its classes begin with "tree-". Filtering
    by length and F1 needs JavaScript; without it all sentences show, and the filter does not.

    Args:
        gold: the gold trees of N sentences.
        induced: label → the N parses of one run.
    """
    lengths = [len(tree.leaves()) for tree in gold]
    order = sorted(range(len(gold)), key=lambda number: (lengths[number], number))
    count = min(count, len(order))
    chosen = [order[round(place * (len(order) - 1) / max(count - 1, 1))] for place in range(count)]
    figures = []
    for number in chosen:
        sentence = sentence_of(gold[number], {label: parses[number] for label, parses in induced.items()})
        figures.append(_sentence(number + 1, lengths[number], sentence, list(induced)))
    return "\n".join(
        [
            '<div class="tree-section">',
            f"<style>{part('tree_page.css')}</style>",
            _filter(list(induced)),
            *figures,
            f"<script>{part('tree_page.js')}</script>",
            "</div>",
        ]
    )


def page(title: str, fragment: str) -> str:
    """A whole page around `section`."""
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            '<head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy(part("tree_page.js"))}">',
            f"<title>{escape(title)}</title>",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            "<style>:root{color-scheme:light dark}"
            "body{font:15px/1.5 system-ui,sans-serif;margin:1.5rem auto;padding:0 1rem;max-width:90rem}"
            "h1{font-size:1.4rem}</style></head>",
            f"<body><h1>{escape(title)}</h1>",
            fragment,
            "</body></html>",
            "",
        ]
    )


def _filter(labels: list[str]) -> str:
    options = "".join(f"<option>{escape(label)}</option>" for label in labels)
    return (
        '<form class="tree-filter" hidden>'
        '<label>words from <input type="number" class="tree-shortest" min="1" value="1"></label>'
        '<label>to <input type="number" class="tree-longest" min="1"></label>'
        f'<label>F1 of <select class="tree-system">{options}</select></label>'
        '<label>from <input type="number" class="tree-least" min="0" max="100" value="0"></label>'
        '<label>to <input type="number" class="tree-most" min="0" max="100" value="100"></label>'
        '<output class="tree-count"></output></form>'
    )


def _sentence(number: int, length: int, sentence: Sentence, labels: list[str]) -> str:
    f1 = {label: round(sentence.f1(label), 1) for label in labels}
    captions = {"gold": f"gold, {len(sentence.expected or ())} constituents that count"} | {
        label: f"{label}, {sentence.found(label)} found, F1 {f1[label]}" for label in labels
    }
    drawn = "".join(
        f'<figure class="tree-one"><figcaption>{escape(captions[title])}</figcaption>'
        f"{_svg(drawing, sentence)}</figure>"
        for title, drawing in sentence.drawings.items()
    )
    text = escape(" ".join(sentence.drawings["gold"].leaves))
    data = escape(json.dumps(f1, ensure_ascii=False, sort_keys=True), quote=True)
    return (
        f'<article class="tree-sentence" data-length="{length}" data-f1="{data}">'
        f'<p class="tree-text">{number}. {text}</p><div class="tree-row">{drawn}</div></article>'
    )


def _svg(drawing: Drawing, sentence: Sentence) -> str:
    """One tree: paths for its constituents, text for its leaves, a line under the words that are split."""
    places, width = _places(drawing)
    base = STEP * (drawing.levels + 1)
    tops: list[tuple[float, float]] = []
    plain, right, labels = [], [], []
    for node in drawing.nodes:
        children = [tops[child] if child >= 0 else (places[~child], float(base)) for child in node.children]
        y = base - STEP * node.level
        lines = [f"M{children[0][0]:.1f} {y}H{children[-1][0]:.1f}"]
        lines += [f"M{x:.1f} {y}V{bottom:.0f}" for x, bottom in children]
        (right if node.hit else plain).append("".join(lines))
        middle = (children[0][0] + children[-1][0]) / 2
        if node.label:
            labels.append(
                f'<text class="tree-label" x="{middle:.1f}" y="{y + 4}">{escape(node.label)}</text>'
            )
        tops.append((middle, float(y)))
    words = [
        f'<text x="{x:.1f}" y="{base + FONT + 2}">{escape(leaf)}</text>'
        for x, leaf in zip(places, drawing.leaves, strict=True)
    ]
    marks = []
    if len(drawing.leaves) == len(sentence.tokens):
        split = [(start, end) for start, end in sentence.words if end - start > 1]
        marks = [f"M{places[start]:.1f} {base + FONT + 7}H{places[end - 1]:.1f}" for start, end in split]
    return (
        f'<svg class="tree-svg" viewBox="0 0 {width:.0f} {base + FONT + 10}" width="{width:.0f}" role="img">'
        f'<path class="tree-plain" d="{"".join(plain)}"/><path class="tree-right" d="{"".join(right)}"/>'
        f'<path class="tree-split" d="{"".join(marks)}"/>{"".join(labels)}{"".join(words)}</svg>'
    )


def _places(drawing: Drawing) -> tuple[list[float], float]:
    """x of each leaf, so far apart that words and labels do not meet; the width in all."""
    widths = [LETTER * max(len(leaf) + leaf.count("@"), 2) + 10 for leaf in drawing.leaves]  # @ is wide
    for node in drawing.nodes:
        covered = [leaf for leaf, (start, end) in enumerate(drawing.bounds) if node.start <= start < node.end]
        lack = (LETTER * len(node.label) + 10) / len(covered)
        for leaf in covered:
            widths[leaf] = max(widths[leaf], lack)
    ends, end = [], 0.0
    for width in widths:
        ends.append(end + width / 2)
        end += width
    return ends, end
