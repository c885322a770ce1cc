"""The trees of sentences as nodes to draw: each with its span, label, gold match and children."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation.parseval import SentenceScore, score_sentence
from synmask.pipeline.syntax.parses import Parse, pair_up, read_parses
from synmask.pipeline.syntax.tree import counted_words, spans_of_distances
from synmask.pipeline.syntax.treebank import FAILED, Tree, read_trees
from synmask.pipeline.text.notation import word_starts

GOLD = "gold"  # the title of the gold tree


class Node(NamedTuple):
    start: int  # in sub-words, half-open
    end: int
    label: str
    right: bool  # whether the gold tree has the constituent that it is, in words that count
    level: int  # above the leaves: one more than the highest node inside it
    children: tuple[int, ...]  # numbers of nodes, or, as ~number, of leaves


@dataclass
class Drawing:
    """One tree of a sentence.

    Attributes:
        leaves: the texts below it, and `bounds`, the sub-words that each leaf covers.
        nodes: children before parents.
    """

    leaves: Sequence[str]
    bounds: list[tuple[int, int]]
    nodes: list[Node]

    @property
    def levels(self) -> int:
        return max((node.level for node in self.nodes), default=1)


@dataclass
class SentenceTrees:
    """A sentence's trees, the gold one first (if there is one), by title.

    Attributes:
        words: the sub-words (start, end) of each word.
        scores: title of an induced tree → its counts, None where the tables leave the sentence out; empty
            without a gold tree.
    """

    words: list[tuple[int, int]]
    drawings: dict[str, Drawing]
    scores: dict[str, SentenceScore | None]

    def heading(self, title: str, matches: str) -> str:
        """The heading of a tree; `matches` says how matches are shown, perhaps with {f1}."""
        if not self.scores:
            return title
        score = next(iter(self.scores.values())) if title == GOLD else self.scores[title]
        if score is None:
            return f"{title} (not scored)"
        if title == GOLD:
            count = "constituent that counts" if score.gold == 1 else "constituents that count"
            return f"{title} ({score.gold} {count})"
        return f"{title} ({score.matched} of {score.gold} found, {matches.format(f1=f'F1 {score.f1:.1f}')})"


def bars(parse: Parse) -> dict[str, list[float]]:
    """Heights, if any, and distances to the next sub-word (n each), scaled from 0 (least) to 1."""
    columns = {"height": list(parse.heights)} if parse.heights else {}
    columns["distance"] = [*parse.distances, parse.eos_distance][: len(parse.tokens)]
    values = [value for column in columns.values() for value in column] or [0.0]
    low, span = min(values), (max(values) - min(values)) or 1.0
    return {name: [(value - low) / span for value in column] for name, column in columns.items()}


def read_sentences(
    gold: Path | None, parses: Mapping[str, Path]
) -> tuple[list[Tree] | None, dict[str, list[Parse]]]:
    """Gold trees, if there are any, and parses of the same sentences by label."""
    trees = [*read_trees(gold)] if gold else None
    induced = {label: [*read_parses(path)] for label, path in parses.items()}
    for label, path in parses.items() if trees is not None else ():
        for _ in pair_up(trees, induced[label], f"{gold}, {path}"):
            pass
    return trees, induced


def numbered(
    number: int, gold: Path | None, parses: Mapping[str, Path]
) -> tuple[Tree | None, dict[str, Parse]]:
    """The gold tree, if there are gold trees, and the parses of the sentence with this number, from 1."""
    trees, induced = read_sentences(gold, parses)
    for label, rows in induced.items():
        if number > len(rows):
            raise UserError(f"{parses[label]}: no sentence {number}, only {len(rows)}")
    return trees and trees[number - 1], {label: rows[number - 1] for label, rows in induced.items()}


def sentence_of(gold: Tree | None, induced: Mapping[str, Parse]) -> SentenceTrees:
    """The gold tree and the induced trees of one sentence, as `read_sentences` reads them.

    Of an induced tree, the node is right whose split parts the words of a constituent that the gold tree has
    (`parseval.score_sentence`); a node that cuts a word may stand for one over whole words.

    Raises:
        ValueError: the sub-words differ between the trees.
    """
    tokens, *others = (parse.tokens for parse in induced.values())
    if any(other != tokens for other in others):
        raise ValueError("all trees must have the same sub-words")
    starts = [index for index, first in enumerate(word_starts(tokens)) if first]
    words = [*pairwise([*starts, len(tokens)])]
    drawings, scores = {}, {}
    if gold is not None and gold.label != FAILED:
        scores = {title: score_sentence(gold, parse) for title, parse in induced.items()}
        drawings[GOLD] = Drawing(gold.leaves(), words, _connected(_gold_spans(gold, words), words))
    pieces = [(position, position + 1) for position in range(len(tokens))]
    for title, parse in induced.items():
        right = set()
        if score := scores.get(title):
            right = _right_gaps(parse.distances, words, counted_words(gold), score.right)
        spans = [
            (*span, "", gap in right) for gap, span in enumerate(spans_of_distances(parse.distances).tolist())
        ]
        drawings[title] = Drawing(tokens, pieces, _connected(spans, pieces))
    return SentenceTrees(words, drawings, scores)


def _gold_spans(gold: Tree, words: list[tuple[int, int]]) -> list[tuple]:
    """Constituents; the chain of unary ones over one span is one node, "S VP"."""
    labels: dict[tuple[int, int], list[str]] = {}
    for start, end, label in gold.spans():
        if start < end:  # the tree of an empty sentence has no words
            labels.setdefault((words[start][0], words[end - 1][1]), []).append(label)
    return [(*span, " ".join(filter(None, chain)), False) for span, chain in labels.items()]


def _right_gaps(
    distances: Sequence[float], words: Sequence[tuple[int, int]], keep: Sequence[bool], right: Sequence[bool]
) -> set[int]:
    """The gaps between sub-words at which right constituents are split, between neighbours that count: the
    largest gap there is outside of words."""
    counted = [number for number, counts in enumerate(keep) if counts]
    right_gaps = set()
    for (first, second), is_right in zip(pairwise(counted), right, strict=True):
        gaps = [end - 1 for _, end in words[first:second]]
        right_gaps |= {max(gaps, key=distances.__getitem__)} if is_right else set()
    return right_gaps


def _connected(spans: list[tuple], bounds: list[tuple[int, int]]) -> list[Node]:
    nodes: list[Node] = []
    owner = [~leaf for leaf, (start, end) in enumerate(bounds) for _ in range(start, end)]  # of each sub-word
    for start, end, label, right in sorted(spans, key=lambda span: (span[1] - span[0], span[0])):
        children = tuple(dict.fromkeys(owner[start:end]))
        level = 1 + max((nodes[child].level for child in children if child >= 0), default=0)
        owner[start:end] = [len(nodes)] * (end - start)
        nodes.append(Node(start, end, label, right, level, children))
    return nodes
