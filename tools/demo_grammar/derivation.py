"""Draws sentences with the demo's grammar: words, constituency tree and dependency heads in one pass."""

import itertools
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from demo_grammar.inflection import ENGLISH, GERMAN
from demo_grammar.table import RULES, VALUES, Node
from synmask.pipeline.syntax.treebank import Tree

LENGTHS = range(4, 31)
MAX_DEPTH = 8  # below, a part is made by its first rule
CONTRACTIONS = {("in", "dem"): "im", ("in", "das"): "ins"}


class Side(NamedTuple):
    """One language of a sentence: raw text, tree of its n tokens, heads (n; from 1, the root's is 0)."""

    text: str
    tree: Tree
    heads: tuple[int, ...]


class Use:
    """One use of a rule: the values of its variables, and the parts that its sides share."""

    def __init__(self, rng: random.Random, bound: dict[str, Any], depth: int = 0) -> None:
        self.rng, self.bound, self.depth = rng, bound, depth
        self.made: dict[str, list[tuple[Node, ...]]] = {}

    def nodes(self, parts: Sequence[Node], words: Mapping[str, Callable]) -> tuple[Node, ...]:
        """A side's nodes with the words of a language; one is the head."""
        chosen = [(part, nodes) for part in parts if (nodes := self._made(part, words))]
        head = next((part for part, _ in chosen if part.is_head), chosen[-1][0] if chosen else None)
        return tuple(
            node._replace(is_head=node.is_head and part is head) for part, nodes in chosen for node in nodes
        )

    def _made(self, part: Node, words: Mapping[str, Callable]) -> tuple[Node, ...]:
        if part.children:
            return (Node(part.label, True, "", self.nodes(part.children, words)),)
        if "/" in part.label:
            word, tag = part.label.split("/")
        elif ":" in part.label:
            variable, tag = part.label.split(":")
            word = getattr(self._value(variable), "english" if words is ENGLISH else "german")[0]
        else:
            name, *arguments = part.label.split(".")
            values = [self._value(argument) for argument in arguments]
            if name not in words:
                if part.label not in self.made:
                    self.made[part.label] = drawn(self.rng, name.rstrip("'"), values, self.depth + 1)
                return self.made[part.label][words is ENGLISH]
            tag, word = words[name](*values)
        return (Node(tag, True, word, ()),) if word.strip("-") else ()

    def _value(self, argument: str) -> Any:
        """A name, or the value of a variable; no two variables of a rule are the same word."""
        while argument in VALUES and argument not in self.bound:
            value = self.rng.choice(VALUES[argument])
            if isinstance(value, str) or value not in self.bound.values():
                self.bound[argument] = value
        return self.bound.get(argument, argument)


def drawn(
    rng: random.Random, name: str, values: Sequence[Any] = (), depth: int = 0
) -> list[tuple[Node, ...]]:
    """The nodes of a part in German and in English; none if no rule is for these values."""
    fitting = [(rule, bound) for rule in RULES[name] if (bound := rule.bound(values)) is not None]
    if not fitting:
        return [(), ()]
    fitting = fitting[:1] if depth > MAX_DEPTH else fitting
    [(rule, bound)] = rng.choices(fitting, [rule.weight for rule, _ in fitting])
    use = Use(rng, bound, depth)
    return [use.nodes(side, words) for side, words in zip(rule.sides, (GERMAN, ENGLISH), strict=True)]


def sentence(rng: random.Random) -> tuple[Side, Side]:
    """A sentence in German and in English, both of 4 to 30 tokens."""
    while True:
        (german,), (english,) = drawn(rng, "TOP")
        sides = side_of(german), side_of(english)
        if all(len(side.heads) in LENGTHS for side in sides):
            return sides


def side_of(root: Node) -> Side:
    """Text, tree and heads of a sentence."""
    tokens = iter(_as_written([*_leaves(root)]))
    heads: list[int] = []

    def visit(node: Node) -> tuple[Tree | None, int]:
        if not node.children:
            tag, word = next(tokens)
            heads.extend([0] if word else [])
            return (Tree(tag, (word,)), len(heads)) if word else (None, 0)
        visited = [visit(child) for child in node.children]
        head = next(n for child, (_, n) in zip(node.children, visited, strict=True) if child.is_head)
        for _, number in visited:
            if number and number != head:
                heads[number - 1] = head
        return Tree(node.label, tuple(tree for tree, _ in visited if tree)), head

    tree, _ = visit(root)
    return Side(re.sub(" ([,.])", r"\1", " ".join(tree.leaves())), tree, tuple(heads))


def _leaves(node: Node) -> Iterator[tuple[str, str]]:
    if not node.children:
        yield node.label, node.word
    for child in node.children:
        yield from _leaves(child)


def _as_written(tokens: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Drop the word of a comma beside another mark and of the article in "im"; write "an" and the capital."""
    for i, ((tag, word), (_, after)) in enumerate(itertools.pairwise(tokens)):
        if word == "," and (i == 0 or after in ",."):
            tokens[i] = tag, ""
        elif contracted := CONTRACTIONS.get((word, after)):
            tokens[i : i + 2] = ("APPRART", contracted), ("ART", "")
        elif word == "a" and after[0] in "aeiou":
            tokens[i] = tag, "an"
    first = next(i for i, (_, word) in enumerate(tokens) if word)
    tokens[first] = tokens[first][0], tokens[first][1].capitalize()
    return tokens
