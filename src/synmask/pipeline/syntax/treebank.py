"""Constituency trees, and bracketed (Penn-style) files of them."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unicodedata import normalize

from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_lines
from synmask.pipeline.text.escapes import unescape

ESCAPE = re.compile("-(=*)([LR][RSC]B-)")  # of a bracket; with =, of a word that looks like one
BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
FLAT = "FLAT"  # the label of trees of unparsed sentences
FAILED = "()"  # that of (()), EVALB's failed parse
UNPARSED = frozenset({FLAT, FAILED})
# STTS' tag "$(" is a token of its own, as in ($( -)
TREE_TOKEN = re.compile(r"(?<=\()\$\((?:[-=][^\s()]*)?(?!\S)|[()]|[^\s()]+")


@dataclass(frozen=True)
class Tree:
    """A constituency tree. Every word is the only child of its preterminal: `Tree("NN", ("dog",))`.

    Only the flat tree of an empty sentence and a failed parse have no words. No method recurses, so trees can
    have any depth.
    """

    label: str
    children: tuple["Tree | str", ...]

    def is_preterminal(self) -> bool:
        return bool(self.children) and isinstance(self.children[0], str)

    def walk(self) -> Iterator[tuple["Tree", bool]]:
        """Each constituent twice, when its bracket opens (True) and closes (False); each preterminal once."""
        stack = [(self, True)]
        while stack:
            tree, opens = stack.pop()
            yield tree, opens
            if opens and not tree.is_preterminal():
                stack.append((tree, False))
                stack.extend((child, True) for child in reversed(tree.children))

    def preterminals(self) -> Iterator["Tree"]:
        """The subtrees with one word each, from left to right."""
        return (tree for tree, _ in self.walk() if tree.is_preterminal())

    def leaves(self) -> list[str]:
        """The n words."""
        return [tree.children[0] for tree in self.preterminals()]

    def tags(self) -> list[str]:
        """The labels of the n preterminals."""
        return [tree.label for tree in self.preterminals()]

    def spans(self) -> list[tuple[int, int, str]]:
        """(start, end, label), half-open, of each constituent above the preterminals, from the root down.

        Each constituent of a unary chain gives its own span.
        """
        spans: list[tuple[int, int, str]] = []
        inside: list[int] = []  # the numbers of the spans that are not closed
        position = 0
        for tree, opens in self.walk():
            if tree.is_preterminal():
                position += 1
            elif opens:
                inside.append(len(spans))
                spans.append((position, position, tree.label))
            else:
                number = inside.pop()
                spans[number] = (spans[number][0], position, tree.label)
        return spans

    def __str__(self) -> str:
        """The tree in brackets on one line; round brackets in words become -LRB- and -RRB-."""
        parts = []
        for tree, opens in self.walk():
            if tree.is_preterminal():
                parts.append(f" ({tree.label} {escape_brackets(tree.children[0])})")
            else:
                parts.append(f" ({tree.label}" if opens else ")")
        return "".join(parts)[1:]


def is_same_word(word: str, other: str) -> bool:
    """Whether two words are the same but for case and Moses' escapes (&apos;)."""
    return word == other or unescape(word).lower() == unescape(other).lower()


def word_difference(words: Sequence[str], tree: Tree) -> str | None:
    """How the words of a sentence differ from a tree's; None if they do not, or it is a failed parse."""
    leaves = tree.leaves()
    if tree.label == FAILED:
        return None
    if len(words) != len(leaves):
        return f"{len(words)} words, not {len(leaves)}"
    for number, (word, leaf) in enumerate(zip(words, leaves, strict=True), start=1):
        if not is_same_word(word, leaf):
            difference = f'word {number} is "{word}", not "{leaf}"'
            if is_same_word(normalize("NFC", word), normalize("NFC", leaf)):
                difference += ": the same in another Unicode form; write both in NFC (uconv -x nfc)"
            return difference
    return None


def escape_brackets(word: str) -> str:
    """The word as written in a bracketed file: ( as -LRB-, and the word -LRB- itself as -=LRB-."""
    return ESCAPE.sub(r"-=\1\2", word).replace("(", "-LRB-").replace(")", "-RRB-")


def _unescape_brackets(word: str) -> str:
    return ESCAPE.sub(lambda match: f"-{match[1][1:]}{match[2]}" if match[1] else BRACKETS[match[0]], word)


def flat_tree(words: Sequence[str]) -> Tree:
    """The tree of an unparsed sentence: (FLAT (X a) (X b)); (FLAT) if it is empty."""
    return Tree(FLAT, tuple(Tree("X", (word,)) for word in words))


def read_trees(path: str | Path) -> Iterator[Tree]:
    """Yield the trees of a bracketed file (.gz or plain) with one or more lines per tree.

    For a folder, yield the trees of all files that end in .mrg, at any depth, in order of names.

    An outer bracket without a label is a constituent with the label "", as in EVALB. Function tags and
    indices (NP-SBJ-1, NP=2) are cut from labels, traces (-NONE-) and constituents without words are removed,
    and bracket words are unescaped. Empty lines are ignored; the tree of an empty sentence is written (FLAT),
    a failed parse (()).

    Raises:
        UserError: unbalanced brackets, text outside of brackets, a word that shares its constituent, a tree
            without words, a file without trees; the message names file and line.
    """
    path = Path(path)
    files = sorted(filter(Path.is_file, path.rglob("*.mrg"))) if path.is_dir() else [path]
    if not files:
        raise UserError(f"{path}: no file that ends in .mrg in it; give a bracketed treebank")
    for file in files:
        yield from parse_trees(read_lines(file), str(file))


def read_head_lines(path: Path) -> Iterator[list[int]]:
    """Yield the heads of each sentence's words, from 1, 0 for the root's.

    Raises:
        UserError: a line has something else; the message names it.
    """
    for number, line in enumerate(read_lines(path), start=1):
        if not re.fullmatch(r"( *\d{1,9}\b)* *", line):
            raise UserError(f"{path}, line {number}: heads are numbers between spaces; parse the text again")
        yield [int(head) for head in line.split()]


def parse_trees(lines: Iterable[str], path: str) -> Iterator[Tree]:
    """The trees of a file's lines; see `read_trees`."""
    stack: list[_Bracket] = []
    line = 0
    any_tree = False
    for line, text in enumerate(lines, start=1):
        for token in TREE_TOKEN.findall(text):
            if token == "(":
                stack.append(_Bracket(line))
            elif not stack:
                fault = '")" without its "("' if token == ")" else f'"{token}" outside of brackets'
                raise UserError(f"{path}, line {line}: {fault}; fix the tree")
            elif token != ")":
                stack[-1].add(token)
            else:
                closed = stack.pop()
                try:
                    tree = closed.tree(outermost=not stack)
                except ValueError as error:
                    raise UserError(f"{path}, line {line}: {error}; fix the tree") from None
                if stack:
                    stack[-1].children.append(tree)
                else:
                    any_tree = True
                    yield tree
    if stack:
        raise UserError(f'{path}, line {stack[0].line}: "(" is never closed; fix the tree')
    if not any_tree:
        raise UserError(f"{path}, line {max(line, 1)}: no tree in this file; give a bracketed treebank")


@dataclass
class _Bracket:
    """The constituent read since its "(" on `line`; None marks a removed child."""

    line: int
    label: str = ""
    children: list[Tree | str | None] = field(default_factory=list)

    def add(self, token: str) -> None:
        if self.label or self.children:
            self.children.append(_unescape_brackets(token))
        else:
            self.label = token

    def tree(self, outermost: bool) -> Tree | None:
        """The constituent, or None if no word is left in it."""
        children = tuple(child for child in self.children if child is not None and child is not _NOTHING)
        if outermost and self.label == FLAT and not self.children:
            return flat_tree([])
        if outermost and not self.label and len(self.children) == 1 and self.children[0] is _NOTHING:
            return Tree(FAILED, ())
        if self.label == "-NONE-" or not children:
            if outermost:
                raise ValueError("a tree without words")
            return None if self.label or self.children else _NOTHING
        words = [child for child in children if isinstance(child, str)]
        if words and len(children) > 1:
            raise ValueError(f'the word "{words[0]}" shares its constituent; give it a bracket of its own')
        if self.label:
            return Tree(_plain_label(self.label), children)
        if outermost and not words:
            return children[0] if children[0].label == FLAT else Tree("", children)
        raise ValueError("a constituent without a label")


_NOTHING = Tree("", ())  # "()"


def _plain_label(label: str) -> str:
    """NP-SBJ-1 → NP; -LRB- stays."""
    return re.split("[-=]", label, maxsplit=1)[0] or label
