"""The notation of sub-words: a piece that does not end its word ends in "@@".

Some would be misread: as one of fairseq's own symbols, or as the beginning of the next word.
"""

import re
from collections.abc import Sequence

# Names of the symbols of fairseq's dictionaries, and of the rows that they are filled up with.
RESERVED_SYMBOL = re.compile(r"<s>|<pad>|</s>|<unk>|madeupword[0-9]{4}")


def join_subwords(line: str) -> str:
    """Undo BPE: "un@@ glaub@@ lich" → "unglaublich"."""
    return (line + " ").replace("@@ ", "").rstrip(" ")


def to_words(tokens: Sequence[str]) -> list[str]:
    """The words of sub-words; a piece without an end is one, too."""
    return " ".join(tokens).replace("@@ ", "").split()


def word_starts(tokens: Sequence[str]) -> list[bool]:
    """Whether each of the n sub-words begins a word: all but those after a piece that ends in "@@"."""
    return [index == 0 or not tokens[index - 1].endswith("@@") for index in range(len(tokens))]


def split_reserved(pieces: list[str]) -> list[str]:
    """The pieces of a word; if its last one would be misread, it is split once more.

    "<pad>" → "<@@ pad>", and "a@@" → "a@@@ @". Undoing BPE undoes both.
    """
    last = pieces[-1]
    if RESERVED_SYMBOL.fullmatch(last):
        return [*pieces[:-1], f"{last[0]}@@", last[1:]]
    if last.endswith("@@"):
        return [*pieces[:-1], f"{last[:-1]}@@", last[-1]]
    return pieces


def reserved_fault(pieces: Sequence[str]) -> str | None:
    """Why a sentence in BPE would be misread; None if it would not."""
    if pieces and pieces[-1].endswith("@@"):
        return f"{pieces[-1]!r} at its end goes on in the next word, and there is none"
    reserved = next(filter(RESERVED_SYMBOL.fullmatch, pieces), None)
    return reserved and f"{reserved!r} is a symbol of fairseq's own"
