"""Reads the demo's grammar, `grammar.txt`, which explains its notation."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Word(NamedTuple):
    kind: str
    german: list[str]
    english: list[str]


class Node(NamedTuple):
    """A word or a phrase, in a sentence or in a rule; in a rule, a symbol is a word."""

    label: str  # of a word, its tag
    is_head: bool
    word: str
    children: "tuple[Node, ...]"


class Rule(NamedTuple):
    weight: int
    parameters: list[str]
    sides: list[tuple[Node, ...]]

    def bound(self, values: Sequence[Any]) -> dict[str, Any] | None:
        """The values of its variables; None if it is not for these values."""
        bound = {}
        for parameter, value in zip(self.parameters, values, strict=True):
            variable, _, kinds = parameter.rpartition("=") if len(parameter) > 1 else (parameter, "", "")
            if kinds and getattr(value, "kind", value) not in kinds.split(","):
                return None
            bound[variable] = value
        return bound


def _words(table: str) -> dict[str, list[Word]]:
    """Kind → its words."""
    return {
        kind: [Word(kind, *(side.split() for side in entry.split("="))) for entry in entries.split(",")]
        for kind, entries in re.findall(r"^(\w+)(.*(?:\n .*)*)", table, re.MULTILINE)
    }


def _values(table: str, words: dict[str, list[Word]]) -> dict[str, list[str | Word]]:
    """Variable → what it is drawn from; a kind of word is a variable, too."""
    values: dict[str, list] = {**words}
    for variables, names in re.findall(r"([\w ]+) = ([\w ]+)", table):
        for variable in variables.split():
            values[variable] = [value for name in names.split() for value in words.get(name, [name])]
    return values


def read_rules(table: str) -> dict[str, list[Rule]]:
    """Name → its rules."""
    rules = defaultdict(list)
    for line in re.sub(r"\n +\|", " |", table).split("\n"):
        if " =" in line:
            left, right = line.split(" =")
            *weight, symbol = left.split()
            name, *parameters = symbol.split(".")
            sides = [_parts(iter(re.findall(r"\)\*?|[^\s)]+", side)))[0] for side in right.split("|")]
            rules[name].append(Rule(int(*weight or [1]), parameters, sides))
    return dict(rules)


def _parts(tokens: Iterator[str]) -> tuple[tuple[Node, ...], str]:
    """The parts up to the end or to the bracket that closes their phrase, and the last token."""
    parts = []
    for token in tokens:
        if token[0] == ")":
            return tuple(parts), token
        children, end = _parts(tokens) if token[0] == "(" else ((), token)
        parts.append(Node(token.strip("(*"), end[-1] == "*", "", children))
    return tuple(parts), ""


_text = re.sub("#.*", "", Path(__file__).with_name("grammar.txt").read_text(encoding="utf-8"))
_of_words, _of_variables, _of_rules = _text.split("---")
VALUES = _values(_of_variables, _words(_of_words))
RULES = read_rules(_of_rules)
