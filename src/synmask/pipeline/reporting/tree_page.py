"""A page to browse trees sentence by sentence, gold and induced ones side by side."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape as escaped
from pathlib import Path
from typing import Any

from markupsafe import Markup
from rich.cells import cell_len

from synmask.pipeline.arguments import OneOrMore
from synmask.pipeline.config.base import Line
from synmask.pipeline.display import isolate, printable, right_to_left
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import writing
from synmask.pipeline.record import check_part
from synmask.pipeline.reporting.html import part, render, sample_evenly
from synmask.pipeline.reporting.tree_nodes import (
    GOLD,
    Drawing,
    SentenceTrees,
    bars,
    read_sentences,
    sentence_of,
)
from synmask.pipeline.syntax.parses import Parse
from synmask.pipeline.syntax.treebank import Tree

MAX_SENTENCES = 20  # sentences
FONT = 13  # pixels
LETTER = 0.58 * FONT  # a generous mean width
STEP = 18  # pixels per level
BAR, LEAST_BAR, BAR_WIDTH = 40, 3, 6  # pixels of the largest height or distance, of the least, and across
ROOT = 36  # pixels at the right of the words, to which arrows to the root lead


def escape(text: str) -> str:
    return escaped(printable(text))


def tree_page(
    *,
    gold: Path,
    trees: OneOrMore[Path],
    labels: OneOrMore[Line],
    title: Line,
    output: Path,
) -> None:
    """Make a page of 20 sentences, short to long, with gold and induced trees side by side.

    Args:
        gold: Bracketed gold trees, one per line.
        trees: Output of `parse`, one file per system.
        labels: A different name for each system.
        title: Heading of the page.
        output: The page, .html.

    Raises:
        UserError: with equal labels, or the label "gold", trees would hide each other; a file is damaged, or
            has other sentences.
    """
    if len({GOLD, *labels}) != len(labels) + 1 or len(labels) != len(trees):
        raise UserError(f"--labels {' '.join(labels)}: give each of --trees a different label, and not gold")
    for path in trees:
        check_part(path)
    top, induced = read_sentences(gold, dict(zip(labels, trees, strict=True)))
    with writing(output) as handle:
        handle.write(page(title, top, induced))


def page(title: str, gold: Sequence[Tree], induced: Mapping[str, Sequence[Parse]]) -> str:
    """The page of MAX_SENTENCES sentences, evenly spaced from the shortest to the longest, with their trees.

    Sentences without words, of empty lines or failed parses, are left out. Without JavaScript every sentence
    unfolds by itself; with it, one is shown at a time.

    Args:
        gold: the gold trees of N sentences.
        induced: label → the N parses of one run.
    """
    return render("trees.html", [part("tree_page.js")], title=title, sentences=[*_sentences(gold, induced)])


def _sentences(gold: Sequence[Tree], induced: Mapping[str, Sequence[Parse]]) -> Iterator[dict[str, Any]]:
    lengths = [len(tree.leaves()) for tree in gold]  # 0: an empty line, or a failed parse
    order = sorted(range(len(gold)), key=lambda number: (lengths[number], number))
    chosen = sample_evenly(order[lengths.count(0) :], MAX_SENTENCES)
    for place, number in enumerate(chosen):
        parses = {label: of_run[number] for label, of_run in induced.items()}
        sentence = sentence_of(gold[number], parses)
        trees = []
        for title, drawing in sentence.drawings.items():
            drawn = _draw_tree(drawing, sentence, parses.get(title))
            trees.append((Markup(escape(sentence.heading(title, "{f1}"))), drawn))
        text = Markup(escape(" ".join(gold[number].leaves())))
        yield {"number": number + 1, "text": text, "trees": trees, "open": place == len(chosen) // 2}


def figure(sentence: SentenceTrees, parses: Mapping[str, Parse]) -> str:
    """The trees of one sentence below each other, as an SVG file.

    Args:
        parses: title → parse, as `sentence` was made from.
    """
    parts, top, wide = [], 0, 0.0
    for title, drawing in sentence.drawings.items():
        parse = parses.get(title)
        content, width, height = _draw_tree(drawing, sentence, parse and replace(parse, parents=None))
        heading = escape(sentence.heading(title, "green"))
        parts.append(f'<text x="4" y="{top + FONT}" style="text-anchor:start">{heading}</text>')
        parts.append(f'<g transform="translate(0 {top + STEP})">{content}</g>')
        top, wide = top + STEP + height + FONT, max(wide, width, LETTER * cell_len(heading))
    style = part("tree_page.css").replace("Canvas", "white")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tree-svg" width="{wide:.0f}" height="{top}" '
        f'viewBox="0 0 {wide:.0f} {top}" style="width:auto;background:white">\n'
        f"<style>{style}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _draw_tree(drawing: Drawing, sentence: SentenceTrees, parse: Parse | None) -> tuple[Markup, float, int]:
    """A tree as SVG, its width and height: constituents, leaves, lines under split words, bars below.

    Words that are read from right to left stand so.
    """
    places, end = _places(drawing)
    places, width = [*places, end + ROOT / 2], end + ROOT * bool(parse and parse.parents)
    if mirrored := right_to_left(" ".join(drawing.leaves)):
        places = [width - x for x in places]
    base = STEP * (drawing.levels + 1)
    lines: dict[bool, list[str]] = {False: [], True: []}
    tops: list[tuple[float, int]] = []  # x and level of each node
    labels = []
    for node in drawing.nodes:
        below = [tops[child] if child >= 0 else (places[~child], 0) for child in node.children]
        middle, y = (below[0][0] + below[-1][0]) / 2, base - STEP * node.level
        tops.append((middle, node.level))
        down = "".join(f"M{x:.1f} {y}V{base - STEP * level}" for x, level in below)
        lines[node.right].append(f"M{below[0][0]:.1f} {y}H{below[-1][0]:.1f}{down}")
        if node.label:
            labels.append(
                f'<text class="tree-label" x="{middle:.1f}" y="{y + 5}">{escape(node.label)}</text>'
            )
    line, height = base + FONT + 2, base + FONT + 10
    marks, drawn_bars = [], ""
    if parse is not None:
        split = [(start, end) for start, end in sentence.words if end - start > 1]
        marks = [f"M{places[start]:.1f} {line + 5}H{places[end - 1]:.1f}" for start, end in split]
        drawn_bars, height = _bars(parse, places[:-1], height + BAR + 4, mirrored), height + BAR + 8
    words = [_word(leaf, index, places, line, parse) for index, leaf in enumerate(drawing.leaves)]
    content = (
        f'<path class="tree-plain" d="{"".join(lines[False])}"/>'
        f'<path class="tree-right" d="{"".join(lines[True])}"/>'
        f'<path class="tree-split" d="{"".join(marks)}"/>{drawn_bars}'
        f"{''.join(labels)}{''.join(words)}"
    )
    return Markup(content), width, height


def _word(leaf: str, index: int, places: Sequence[float], y: int, parse: Parse | None) -> str:
    """A leaf, and arrows to its likely parents, shown when it is pointed at; the last place is the root's."""
    direction = ' direction="rtl"' if right_to_left(leaf) else ""
    text = f'<text x="{places[index]:.1f}" y="{y}"{direction}>{escape(leaf)}</text>'
    if parse is None or not parse.parents:
        return text
    names, arrows = [], []
    for parent, share in parse.parents[index]:
        start, end = places[index], places[parent]
        short = f"{share:.2f}".removeprefix("0")  # neighbours' probabilities stand apart
        bend = y + 10 + min(24, abs(end - start) / 4)
        tip = f"M{end - 3:.1f} {y + 10}L{end:.1f} {y + 4}L{end + 3:.1f} {y + 10}"
        arrows.append(
            f'<path class="tree-parent" stroke-width="{1 + 3 * share:.1f}" '
            f'd="M{start:.1f} {y + 4}Q{(start + end) / 2:.1f} {bend:.1f} {end:.1f} {y + 4}{tip}"/>'
        )
        arrows.append(f'<text class="tree-share" x="{end:.1f}" y="{y + 22}">{short}</text>')
        if parent == len(parse.tokens):
            arrows.append(f'<text class="tree-share" x="{end:.1f}" y="{y}">root</text>')
        names.append(f"{isolate([*parse.tokens, '</s> (root)'][parent])} {share:.2f}")
    tooltip = f"{isolate(leaf)}: likely parents {', '.join(names) or 'none above 0.1'}"
    return f'<g class="tree-word" tabindex="0"><title>{escape(tooltip)}</title>{text}{"".join(arrows)}</g>'


def _bars(parse: Parse, places: Sequence[float], foot: int, mirrored: bool) -> str:
    """Bars: heights at the left of each sub-word's position, distances at its right; or `mirrored`."""
    before, after = -BAR_WIDTH - 0.5, 0.5
    shift = {"height": after, "distance": before} if mirrored else {"height": before, "distance": after}
    paths = []
    for name, values in bars(parse).items():
        drawn = [
            f"M{x + shift[name]:.1f} {foot}v{-LEAST_BAR - (BAR - LEAST_BAR) * value:.1f}h{BAR_WIDTH}V{foot}z"
            for x, value in zip(places, values, strict=True)
        ]
        paths.append(f'<path class="tree-bar-{name}" d="{"".join(drawn)}"/>')
    return "".join(paths)


def _places(drawing: Drawing) -> tuple[list[float], float]:
    """x of each leaf, far enough apart for words and labels; and the total width."""
    widths = [LETTER * max(cell_len(leaf) + leaf.count("@"), 2) + 10 for leaf in drawing.leaves]  # @ is wide
    for node in drawing.nodes:
        covered = [leaf for leaf, (start, end) in enumerate(drawing.bounds) if node.start <= start < node.end]
        lack = (LETTER * cell_len(node.label) + 12) / max(len(covered) - 1, 1)  # a line shows at its sides
        for leaf in covered:
            widths[leaf] = max(widths[leaf], lack)
    ends, end = [], 0.0
    for width in widths:
        ends.append(end + width / 2)
        end += width
    return ends, end
