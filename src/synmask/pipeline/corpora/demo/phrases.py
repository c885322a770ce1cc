"""Phrases with a head child, built by both linearisers; texts, trees and heads derived from them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from synmask.pipeline.syntax.treebank import Tree


class Word(NamedTuple):
    tag: str
    form: str


class Phrase(NamedTuple):
    label: str
    children: "tuple[Word | Phrase, ...]"
    head: int  # index of the head child


@dataclass(frozen=True)
class Side:
    """One language of a sentence: raw text, tree of its n tokens, heads (n; from 1, the root's is 0)."""

    text: str
    tree: Tree
    heads: tuple[int, ...]


Row = tuple[tuple[Side, ...], str]  # sentences and label of an example of a language understanding task


def phrase(label: str, *children: Word | Phrase | None, head: Word | Phrase) -> Phrase:
    """The phrase of those children that are not None; `head` is one of them."""
    kept = tuple(child for child in children if child is not None)
    return Phrase(label, kept, next(i for i, child in enumerate(kept) if child is head))


def unary(label: str, tag: str, form: str) -> Phrase:
    """The phrase of one word."""
    return Phrase(label, (Word(tag, form),), 0)


def words(node: Word | Phrase) -> Iterator[Word]:
    """The words of a phrase from left to right, or the word itself."""
    if isinstance(node, Word):
        yield node
    else:
        for child in node.children:
            yield from words(child)


def joined(clauses: list[Phrase], conjunctions: list[str], tags: tuple[str, str, str]) -> Phrase:
    """One main clause, or two with a comma and the conjunction between, with the full stop.

    `tags` are those of the comma, the conjunction and the full stop.
    """
    comma, conjunction, stop = tags
    if not conjunctions:
        return clauses[0]._replace(children=(*clauses[0].children, Word(stop, ".")))
    first, second = clauses
    between = Word(comma, ","), Word(conjunction, conjunctions[0])
    return phrase("S", first, *between, second, Word(stop, "."), head=first)


def side_of(root: Phrase) -> Side:
    """Text, tree and heads of a sentence; commas at its start or before another mark are dropped."""
    forms = [word.form for word in words(root)]
    keep = iter([form != "," or (i > 0 and forms[i + 1] not in ",.") for i, form in enumerate(forms)])
    heads: list[int] = []

    def visit(node: Word | Phrase) -> tuple[Tree | None, int]:
        if isinstance(node, Word):
            if not next(keep):
                return None, 0
            form = node.form if heads else node.form[0].upper() + node.form[1:]
            heads.append(0)
            return Tree(node.tag, (form,)), len(heads)
        visited = [visit(child) for child in node.children]
        head = visited[node.head][1]
        for tree, number in visited:
            if tree and number != head:
                heads[number - 1] = head
        return Tree(node.label, tuple(tree for tree, _ in visited if tree)), head

    tree, _ = visit(root)
    text = " ".join(tree.leaves()).replace(" ,", ",").replace(" .", ".")
    return Side(text, tree, tuple(heads))
