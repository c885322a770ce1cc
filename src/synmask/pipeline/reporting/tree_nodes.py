"""The trees of sentences as nodes to draw: each with its span, label, gold match and children."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

from synmask.pipeline.files import UserError
from synmask.pipeline.syntax.parses import Parse, check_words, read_parses
from synmask.pipeline.syntax.tree import counted_words, restricted_spans, spans_of_distances, word_starts
from synmask.pipeline.syntax.treebank import FAILED, Tree, read_trees


class Node(NamedTuple):
    start: int  # in sub-words, half-open
    end: int
    label: str
    hit: tuple[int, int] | None  # the gold span that it matches, in words that count
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
        expected: the gold spans that count by the protocol `words`; None without a gold tree.
        counted: the number of words that count.
    """

    words: list[tuple[int, int]]
    drawings: dict[str, Drawing]
    expected: set[tuple[int, int]] | None
    counted: int

    def found(self, title: str) -> int:
        """The number of gold spans that count and that a tree has."""
        return len({node.hit for node in self.drawings[title].nodes if node.hit})

    def heading(self, title: str, how: str) -> str:
        """The heading of a tree; `how` says how matches are shown."""
        if self.expected is None:
            return title
        if title == "gold":
            return f"gold ({len(self.expected)} constituents that count)"
        return f"{title} ({self.found(title)} of {len(self.expected)} found, {how})"

    def f1(self, title: str) -> float:
        """An induced tree's F1 in this sentence, in percent, by the protocol `words`."""
        both = max(self.counted - 2, 0) + len(self.expected or ())
        return 200 * self.found(title) / both if both else 100.0


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
        try:
            check_words(trees, induced[label])
        except UserError as error:
            raise UserError(f"{gold}, {path}: {error}") from None
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

    A node of an induced tree is right if it cuts no word and, in words that count, is a constituent of the
    gold tree of more than one word and less than the sentence (as the protocol `words` counts).

    Raises:
        ValueError: the sub-words differ between the trees.
    """
    tokens, *others = (parse.tokens for parse in induced.values())
    if any(other != tokens for other in others):
        raise ValueError("all trees must have the same sub-words")
    starts = [index for index, first in enumerate(word_starts(tokens)) if first]
    words = [*pairwise([*starts, len(tokens)])]
    keep, expected, drawings = [True] * len(words), None, {}
    if gold is not None and gold.label != FAILED:
        keep = counted_words(gold)
        expected = restricted_spans(gold, keep)
        drawings["gold"] = Drawing(gold.leaves(), words, _connected(_gold_spans(gold, words), words))
    pieces = [(position, position + 1) for position in range(len(tokens))]
    for title, parse in induced.items():
        spans = _induced_spans(parse.distances, words, keep, expected or set())
        drawings[title] = Drawing(tokens, pieces, _connected(spans, pieces))
    return SentenceTrees(words, drawings, expected, sum(keep))


def _gold_spans(gold: Tree, words: list[tuple[int, int]]) -> list[tuple]:
    """Constituents; the chain of unary ones over one span is one node, "S VP"."""
    labels: dict[tuple[int, int], list[str]] = {}
    for start, end, label in gold.spans():
        if start < end:  # the tree of an empty sentence has no words
            labels.setdefault((words[start][0], words[end - 1][1]), []).append(label)
    return [(*span, " ".join(chain), None) for span, chain in labels.items()]


def _induced_spans(
    distances: Sequence[float],
    words: list[tuple[int, int]],
    keep: Sequence[bool],
    expected: set[tuple[int, int]],
) -> list[tuple]:
    before = [*accumulate(keep, initial=0)]  # of each word: how many words before it count
    first = {start: before[number] for number, (start, _) in enumerate(words)}
    last = {end: before[number + 1] for number, (_, end) in enumerate(words)}
    spans = []
    for start, end in spans_of_distances(distances).tolist():
        span = (first.get(start), last.get(end))  # None: the node cuts a word
        spans.append((start, end, "", span if span in expected else None))
    return spans


def _connected(spans: list[tuple], bounds: list[tuple[int, int]]) -> list[Node]:
    nodes: list[Node] = []
    owner = [~leaf for leaf, (start, end) in enumerate(bounds) for _ in range(start, end)]  # of each sub-word
    for start, end, label, hit in sorted(spans, key=lambda span: (span[1] - span[0], span[0])):
        children = tuple(dict.fromkeys(owner[start:end]))
        level = 1 + max((nodes[child].level for child in children if child >= 0), default=0)
        owner[start:end] = [len(nodes)] * (end - start)
        nodes.append(Node(start, end, label, hit, level, children))
    return nodes
