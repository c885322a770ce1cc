"""Byte-pair encoding of words (Sennrich et al. 2016), by subword-nmt."""

import io
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from pathlib import Path

from subword_nmt.apply_bpe import BPE, read_vocabulary
from subword_nmt.learn_bpe import learn_bpe

from synmask.pipeline.errors import UserError
from synmask.pipeline.files import count_words, read_lines
from synmask.pipeline.text.notation import split_reserved


def learn_joint_bpe(inputs: Sequence[Path], merges: int) -> tuple[list[str], list[list[str]]]:
    """Learn a joint BPE → the lines of its codes, and those of each file's vocabulary.

    The codes equal those of `subword-nmt learn-bpe -s MERGES` on the concatenated files, in any order: of
    equally frequent pairs, the last one in code point order is merged. Learning stops before MERGES, with a
    line on stderr, when no pair occurs twice. A vocabulary has lines "sub-word count", the most frequent
    first, with the counts of `subword-nmt get-vocab`.

    Args:
        inputs: token files of all languages.
        merges: how many merge operations.

    Raises:
        UserError: an input cannot be read, or no pair of characters in them occurs twice.
    """
    counts = [count_words(path) for path in inputs]
    words = sum(counts, Counter())
    learned = io.StringIO()
    if any(len(word) > 1 for word in words):  # else the library raises
        with redirect_stderr(io.StringIO()):  # its progress bar
            learn_bpe((f"{word} {count}" for word, count in words.items()), learned, merges, is_dict=True)
    codes = learned.getvalue().split("\n")[:-1]
    count = len(codes) - 1  # the first line is the version
    names = ", ".join(map(str, inputs))
    if count < 1:
        raise UserError(
            f"{names}: no BPE merge to learn, no two characters occur together twice; give more text"
        )
    if count < merges:
        print(f"{names}: learned {count} merges, not {merges}: no other pair occurs twice", file=sys.stderr)
    splitter = BpeSplitter("\n".join(codes))
    return codes, [_vocabulary_lines(splitter, words) for words in counts]


def _vocabulary_lines(splitter: "BpeSplitter", words: Mapping[str, int]) -> list[str]:
    """The lines of the vocabulary of words, which occur so many times."""
    pieces: Counter[str] = Counter()
    for word, times in words.items():
        for piece in splitter(word).split(" "):
            pieces[piece] += times
    ordered = sorted(pieces.items(), key=lambda item: (-item[1], item[0]))
    return [f"{piece} {times}" for piece, times in ordered]


def read_frequent(vocabulary: Path, threshold: int) -> set[str]:
    """The sub-words with counts of at least `threshold` in a vocabulary file.

    Raises:
        UserError: not a vocabulary file.
    """
    try:
        return read_vocabulary(read_lines(vocabulary), threshold)
    except ValueError:
        raise UserError(
            f"{vocabulary}: not a BPE vocabulary; each line must be a sub-word and its count"
        ) from None


class BpeSplitter:
    """Splits the words of lines as `subword-nmt apply-bpe`: "unglaublich" → "un@@ glaub@@ lich".

    A sub-word that would be misread is split once more (`split_reserved`); spaces at line ends are dropped.
    Each word's sub-words are cached as a string, which is several times faster than the library's own cache.

    Args:
        codes: the merge operations, as text.
        vocabulary: sub-words outside it are split further, down to characters.
    Raises:
        ValueError: `codes` is not a list of merge operations.
    """

    def __init__(self, codes: str, vocabulary: set[str] | None = None) -> None:
        try:
            with redirect_stderr(io.StringIO()):
                self._bpe = BPE(io.StringIO(codes), vocab=vocabulary)
        except SystemExit:  # how the library reports a line that is not a pair
            raise ValueError("not a list of BPE merges") from None
        self._known = {"": ""}

    def __call__(self, line: str) -> str:
        known = self._known
        words = line.split(" ")
        for word in words:
            if word not in known:
                known[word] = " ".join(split_reserved(self._bpe.segment_tokens([word])))
        return " ".join([known[word] for word in words if word])
