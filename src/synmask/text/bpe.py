"""Byte-pair encoding of words (Sennrich et al. 2016), by subword-nmt."""

import io
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from pathlib import Path

from subword_nmt.apply_bpe import BPE, read_vocabulary
from subword_nmt.learn_bpe import learn_bpe

from synmask.files import UserError, all_writing, read_lines, write_lines
from synmask.text.parallel import map_lines


def learn(
    inputs: Sequence[str | Path], codes: str | Path, vocabularies: Sequence[str | Path], merges: int
) -> int:
    """Learn one list of merge operations on all `inputs` (joint BPE), write it as `codes`, return its length.

    For each input a file of `vocabularies` gets the sub-words that the codes make of it, "sub-word count"
    a line, the most frequent first, as `subword-nmt get-vocab` counts them.

    The same codes as `subword-nmt learn-bpe -s MERGES` on the files one after the other, in any order: of
    pairs that are as frequent, the one last in code point order is merged. It stops before `merges`, with a
    line on stderr, when no pair is left that occurs twice.

    Raises:
        UserError: an input cannot be read, or no pair of characters in them occurs twice.
        ValueError: `merges` < 1.
    """
    if merges < 1:
        raise ValueError(f"merges: expected at least 1, got {merges}")
    counts = [_count_words(path) for path in inputs]
    words = sum(counts, Counter())
    learned = io.StringIO()
    if any(len(word) > 1 for word in words):  # else the library fails
        with redirect_stderr(io.StringIO()):  # its progress bar
            learn_bpe((f"{word} {count}" for word, count in words.items()), learned, merges, is_dict=True)
    text = learned.getvalue()
    count = text.count("\n") - 1  # the first line is the version
    names = ", ".join(map(str, inputs))
    if count < 1:
        raise UserError(
            f"{names}: no BPE merge to learn, no two characters occur together twice; give more text"
        )
    if count < merges:
        print(f"{names}: learned {count} merges, not {merges}: no other pair occurs twice", file=sys.stderr)
    splitter = Splitter(text)
    with all_writing([codes, *vocabularies]) as (handle, *others):
        handle.write(text)
        for other, words in zip(others, counts, strict=True):
            other.writelines(f"{line}\n" for line in _vocabulary(splitter, words))
    return count


def _vocabulary(splitter: "Splitter", words: Mapping[str, int]) -> list[str]:
    """The lines of the vocabulary of words, which occur so many times."""
    pieces: Counter[str] = Counter()
    for word, times in words.items():
        for piece in splitter(word).split(" "):
            pieces[piece] += times
    ordered = sorted(pieces.items(), key=lambda item: (-item[1], item[0]))
    return [f"{piece} {times}" for piece, times in ordered]


def _count_words(path: str | Path) -> Counter[str]:
    words: Counter[str] = Counter()
    for line in read_lines(path):
        words.update(line.split(" "))
    del words[""]  # of double spaces and empty lines
    return words


def apply_file(
    input: str | Path,
    output: str | Path,
    codes: str | Path,
    *,
    threads: int = 1,
    vocabulary: str | Path | None = None,
    vocabulary_threshold: int | None = None,
) -> None:
    """Split the words of `input` into sub-words: "unglaublich" → "un@@ glaub@@ lich".

    The same as `subword-nmt apply-bpe`; spaces at the ends of a line are dropped. With a `vocabulary`
    (lines "sub-word count", as `subword-nmt get-vocab` writes on text with BPE), sub-words that it does not
    hold at least `vocabulary_threshold` times are split further.

    Raises:
        UserError: a file cannot be read, or `codes` or `vocabulary` is not such a file.
    """
    known = None if vocabulary is None else frequent(vocabulary, vocabulary_threshold)
    try:
        splitter = Splitter("\n".join(read_lines(codes)), known)
    except ValueError:
        raise UserError(f"{codes}: not a list of BPE merges; remove it and learn it again") from None
    write_lines(output, map_lines(splitter, read_lines(input), threads))


def frequent(vocabulary: str | Path, threshold: int | None) -> set[str]:
    """The sub-words that a vocabulary file holds at least `threshold` times (None: all).

    Raises:
        UserError: not such a file.
    """
    try:
        return read_vocabulary(read_lines(vocabulary), threshold)
    except ValueError:
        raise UserError(
            f"{vocabulary}: not a BPE vocabulary; each line must be a sub-word and its count"
        ) from None


def join_subwords(line: str) -> str:
    """Undo BPE: "un@@ glaub@@ lich" → "unglaublich"."""
    return (line + " ").replace("@@ ", "").rstrip(" ")


class Splitter:
    """Splits the words of lines; keeps each word's sub-words ready as a string, which is several times
    faster than the library's own cache.

    Args:
        codes: the merge operations, as text.
        vocabulary: sub-words outside it are split further, down to characters.
    Raises:
        ValueError: `codes` is no list of merge operations.
    """

    def __init__(self, codes: str, vocabulary: set[str] | None = None) -> None:
        try:
            with redirect_stderr(io.StringIO()):
                self._bpe = BPE(io.StringIO(codes), vocab=vocabulary)
        except SystemExit:  # the library's way to say that a line is not a pair
            raise ValueError("not a list of BPE merges") from None
        self._known = {"": ""}

    def __call__(self, line: str) -> str:
        known = self._known
        words = line.split(" ")
        for word in words:
            if word not in known:
                known[word] = " ".join(self._bpe.segment_tokens([word]))
        return " ".join([known[word] for word in words if word])
