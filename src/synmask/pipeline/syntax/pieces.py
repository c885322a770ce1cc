"""Transfer dependency heads of words to sub-words that are pieces of the raw text (GPT-2's).

A piece is a sequence of the text's bytes, often with the space before a word; it may be part of a word, a
word, or several (`."`). It belongs to the word of its first byte; spaces belong to the word after them.
"""

import string
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import numpy as np

from synmask.options import NO_TOKEN
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import existing_or_packed, read_lines
from synmask.pipeline.syntax.treebank import FLAT
from synmask.pipeline.text.escapes import unescape

BOM = "\ufeff"  # inside a text a space without width


class ParsedText(NamedTuple):
    """The m words of a sentence as in its text, and their heads, from 1, 0 for the root's."""

    words: Sequence[str]
    heads: Sequence[int]


def read_parsed_texts(prefixes: Iterable[Path]) -> Iterator[tuple[str, ParsedText | None]]:
    """Each sentence of PREFIX.text with its parse from PREFIX.tokens (Moses'), .trees and .heads; None if the
    sentence is unparsed (its tree is flat). The names may end in .gz.

    Raises:
        UserError: a file is missing, or the files do not match.
    """
    for prefix in prefixes:
        paths = (f"{prefix}.{ending}" for ending in ("text", "tokens", "trees", "heads"))
        files = [read_lines(existing_or_packed(path)) for path in paths]
        try:
            for text, tokens, tree, heads in zip(*files, strict=True):
                parsed = ParsedText([*map(unescape, tokens.split())], [int(head) for head in heads.split()])
                if len(parsed.words) != len(parsed.heads) or max(parsed.heads, default=0) > len(parsed.words):
                    raise ValueError
                yield text, None if tree.startswith(f"({FLAT}") else parsed
        except ValueError:
            raise UserError(
                f"{prefix}: text, tokens, trees and heads do not fit; parse the text again"
            ) from None


def find_words(text: str, words: Sequence[str]) -> list[tuple[int, int] | None]:
    """The span of each word, including the spaces before it, in bytes of UTF-8; None if not found.

    Words are searched from left to right. After a word that is not found, the next is searched only as far as
    both could extend.
    """
    spans: list[tuple[int, int] | None] = []
    place = lost = 0
    for word in words:
        spaces = place
        while place < len(text) and (text[place].isspace() or text[place] == BOM):
            place += 1
        start = text.find(word, place, place + len(word) + 2 * lost)
        if start < 0:
            spans.append(None)
            lost += len(word) + 1
        else:
            begin = spaces if start == place else start
            place, lost = start + len(word), 0
            spans.append((begin, place))
    if text.isascii():
        return spans
    before = [0, *accumulate(len(character.encode()) for character in text)]
    return [span and (before[span[0]], before[span[1]]) for span in spans]


def annotate_pieces(text: str, pieces: Sequence[int], parsed: ParsedText | None) -> tuple[np.ndarray, int]:
    """Words and heads of a sentence's pieces, and how many of its words were not found.

    Args:
        pieces: the number of bytes of each of the k pieces, from the start of the text, without truncated
            ones.

    Returns:
        (k, 3) int16: the first piece of the piece's word; the first piece of that word's head (the word
        itself for a root, and if the head was truncated or not found); 1 for pieces of punctuation, else 0.
        Pieces that belong to no word have -1, -1, 0. A word without a piece of its own is merged with the
        word that its first piece belongs to.
    """
    table = np.full((len(pieces), 3), [NO_TOKEN, NO_TOKEN, 0], dtype=np.int16)
    if parsed is None:
        return table, 0
    spans, ends = find_words(text, parsed.words), list(accumulate(pieces))
    owner = [NO_TOKEN] * len(pieces)  # the word of each piece
    first = [NO_TOKEN] * len(spans)  # the first piece with a part of the word
    for number, span in reversed([*enumerate(spans)]):  # a piece of two words belongs to the first of them
        if span and (start := bisect_right(ends, span[0])) < len(ends):  # else it was truncated
            first[number] = start
            for piece in range(start, min(bisect_left(ends, span[1]) + 1, len(ends))):
                owner[piece] = number
    begins = {number: index for index, number in reversed(list(enumerate(owner))) if number != NO_TOKEN}
    node = [  # the piece that represents each word
        begins.get(number, begins[owner[index]]) if index != NO_TOKEN else NO_TOKEN
        for number, index in enumerate(first)
    ]
    heads: dict[int, int] = {}
    for number, head in enumerate(parsed.heads):
        parent = node[head - 1] if head else NO_TOKEN
        if node[number] not in (NO_TOKEN, parent) and parent != NO_TOKEN:
            heads.setdefault(node[number], parent)
    for index, number in enumerate(owner):
        if number != NO_TOKEN:
            start = begins[number]
            table[index] = start, heads.get(start, start), is_punctuation(parsed.words[number])
    return table, spans.count(None)


def is_punctuation(word: str) -> bool:
    """Whether a word consists of punctuation (Unicode's, and ASCII symbols such as $ and <)."""
    return all(c in string.punctuation or unicodedata.category(c).startswith("P") for c in word)
