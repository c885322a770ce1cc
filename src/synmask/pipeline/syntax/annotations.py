"""Syntax for guides, per sub-word: dependency heads and constituency distances, from parses of words.

A file of annotations is one array (T, 3) of int16 for the T sub-words of a split, including each sentence's
`</s>`: first and last sub-word of the head word, counted from the sentence's start, and the distance of the
gap after the sub-word; -1 if there is none. The file is memory-mapped and shared by all systems.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

import numpy as np

from synmask.options import NO_TOKEN
from synmask.pipeline.config.base import Language, Tokeniser
from synmask.pipeline.disk import open_to_read, raise_unreadable
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import all_writing, json_text, read_lines
from synmask.pipeline.syntax.tree import tree_distances
from synmask.pipeline.syntax.treebank import UNPARSED, Tree, read_head_lines, read_trees, word_difference
from synmask.pipeline.text.notation import to_words, word_starts
from synmask.pipeline.text.spm import SentencePieceSplitter, model_in_codes

WITHIN_WORD_DISTANCE = 1  # the distance between sub-words of a word; between words it is at least 2
END_DISTANCE = 2000  # the distance before </s>: above that of any tree


def annotate_sentence(tokens: Sequence[str], heads: Sequence[int] | None, tree: Tree | None) -> np.ndarray:
    """The annotation of one sentence.

    Args:
        tokens: its n-1 sub-words, without `</s>`.
        heads: of its m words, from 1, 0 for the root's; None if unknown.
        tree: of its words; None if unknown.

    Returns:
        (n, 3) int16, see above. The head of a root is its own word; the head of `</s>` is `</s>`.
    """
    starts = np.array([*word_starts(tokens), True])
    word = starts.cumsum() - 1  # the word of each sub-word, `</s>` too
    first = starts.nonzero()[0]
    last = np.append(first[1:], len(starts)) - 1
    table = np.full((len(starts), 3), NO_TOKEN, dtype=np.int16)
    if heads is not None:
        itself = np.arange(len(first))
        parent = np.append(np.asarray(heads, dtype=np.int64) - 1, itself[-1])
        parent = np.where(parent < 0, itself, parent)[word]
        table[:, 0], table[:, 1] = first[parent], last[parent]
    if tree is not None:
        gaps = np.array([*tree_distances(tree), 0, 0])[word] + 1
        table[:-1, 2] = np.where(starts[1:], gaps[:-1], WITHIN_WORD_DISTANCE)
        table[-2:-1, 2] = END_DISTANCE
    return table


def annotate_file(
    *,
    subwords: Path,
    output: Path,
    trees: Path | None = None,
    heads: Path | None = None,
    kept: Path | None = None,
    codes: Path | None = None,
    language: Language | None = None,
    tokeniser: Tokeniser = "none",
) -> dict[str, int]:
    """Write dependency heads and constituency distances of sub-words, for systems that read them.

    Args:
        subwords: Sentences in BPE, or with --codes in sentencepiece's pieces.
        output: The annotations, .npy; counts go into a .json file beside it.
        trees: A bracketed tree of each sentence's words; FLAT or (()) marks an unparsed sentence.
        heads: Each sentence's heads, from 1, 0 for the root; empty if unknown.
        kept: clean/kept.* of `text`: which lines of trees and heads became sentences.
        codes: sentencepiece's models, in bpe/codes.
        language: Of the sentences in pieces.
        tokeniser: Of the sentences in pieces, which join the tokens of `char`.

    Returns:
        The numbers of "sentences", and of those "without_heads" and "without_distances".

    Raises:
        UserError: trees or heads do not match the sentences, and the message names the line; or there is no
            sentence.
    """
    counts = {"sentences": 0, "without_heads": 0, "without_distances": 0}
    table = bytearray()
    as_bpe = _splitter(codes, language, tokeniser).as_bpe if codes else str
    beside = output.with_suffix(".json")
    with all_writing([output, beside], "wb") as (handle, text):
        for tokens, tree, parents in read_parsed_sentences(subwords, trees, heads, kept, as_bpe):
            table += annotate_sentence(tokens, parents, tree).tobytes()
            counts["sentences"] += 1
            counts["without_heads"] += parents is None
            counts["without_distances"] += tree is None
        if not counts["sentences"]:
            raise UserError(f"{subwords}: empty; give a text in BPE")
        np.save(handle, np.frombuffer(table, np.int16).reshape(-1, 3))
        text.write(json_text(counts).encode())
    return counts


def _splitter(codes: Path, language: str | None, tokeniser: str) -> SentencePieceSplitter:
    try:
        return SentencePieceSplitter(model_in_codes(codes.read_text(), language or ""), tokeniser)
    except (OSError, ValueError) as error:
        raise UserError(f"{codes}: {error}; give bpe/codes of `synmask subwords --sentencepiece`") from None


def open_memmap(path: Path, advice: str) -> np.ndarray:
    """The whole numbers in an .npy file, memory-mapped.

    Raises:
        UserError: no such file, or a damaged one; the message ends with `advice`.
    """
    try:
        with open_to_read(path) as handle:
            np.lib.format.read_magic(handle)
            shape, _, dtype = np.lib.format.read_array_header_1_0(handle)
            if dtype.kind != "i":
                raise ValueError(f"numbers of type {dtype}")
            return np.memmap(handle, dtype, "r", handle.tell(), shape)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; {advice}") from None
    except (OSError, ValueError, EOFError) as error:
        raise_unreadable(path, error)
        raise UserError(f"{path}: damaged ({error}); {advice}") from None


class Annotations(Sequence):
    """The annotations of a split, one (n, 3) array per sentence, memory-mapped.

    Args:
        path: a file of `annotate_file`.
        sizes: (N,), the number of sub-words of each sentence, including `</s>`.

    Raises:
        UserError: no such file, or not of sentences of these sizes.
    """

    def __init__(self, path: Path, sizes: Sequence[int] | np.ndarray) -> None:
        self.table = open_memmap(path, "annotate the text again")
        self.ends = np.cumsum(sizes)
        if self.table.shape != (self.ends[-1] if len(self.ends) else 0, 3):
            raise UserError(f"{path}: annotations of another text; annotate it again")

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, index: int) -> np.ndarray:
        return self.table[self.ends[index - 1] if index else 0 : self.ends[index]]


_END = object()


def read_parsed_sentences(
    subwords: Path,
    trees: Path | None,
    heads: Path | None,
    kept: Path | None,
    as_bpe: Callable[[str], str] = str,
) -> Iterator[tuple[list[str], Tree | None, list[int] | None]]:
    """Yield the sub-words, tree and heads of each sentence; None without a file or a parse.

    Args:
        kept: clean/kept.* of `text`, the numbers of the lines of trees and heads that became sentences;
            without it, all did.
        as_bpe: a line of sub-words → as many, of which undoing BPE gives the words.

    Raises:
        UserError: a file cannot be read, or trees or heads do not match the sentences; the message names the
            line.
    """
    rows = zip_longest(
        (as_bpe(line).split() for line in read_lines(subwords)),
        _select_lines(read_trees(trees), kept) if trees else (None for _ in read_lines(subwords)),
        _select_lines(read_head_lines(heads), kept) if heads else (None for _ in read_lines(subwords)),
        fillvalue=_END,
    )
    for number, row in enumerate(rows, start=1):
        where = f"{subwords}, line {number}"
        if _END in row:
            raise UserError(f"{where}: not as many sentences as parses; parse the text again")
        tokens, tree, parents = row
        words = to_words(tokens)
        if parents and (len(parents) != len(words) or max(parents) > len(words)):
            mismatch = f"heads of {len(parents)} words, up to {max(parents)}, for {len(words)} words"
            raise UserError(f"{where}: {mismatch}; parse the text again")
        if tree is not None and (mismatch := word_difference(words, tree)):
            raise UserError(f"{where}: {mismatch} as in its tree; parse the text again")
        if tree is not None and tree.label in UNPARSED:
            tree = parents = None
        yield tokens, tree, parents or None


def _select_lines(rows: Iterable, kept: Path | None) -> Iterator:
    """The rows whose numbers (from 1) are in the file `kept`."""
    if kept is None:
        return iter(rows)
    try:
        numbers = {int(line) for line in read_lines(kept)}
    except ValueError:
        raise UserError(f"{kept}: not the line numbers that `synmask text` writes; give these") from None
    return (row for number, row in enumerate(rows, start=1) if number in numbers)
