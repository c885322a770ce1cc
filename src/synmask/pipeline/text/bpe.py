"""Byte-pair encoding of words (Sennrich et al. 2016), by subword-nmt."""

import io
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stderr
from pathlib import Path
from typing import Annotated

from pydantic import Field
from subword_nmt.apply_bpe import BPE, read_vocabulary
from subword_nmt.learn_bpe import learn_bpe

from synmask.pipeline.arguments import CountOption, OneOrMore, Threads, Whole
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import all_writing, read_lines, together, write_lines
from synmask.pipeline.text.parallel import map_lines
from synmask.pipeline.text.reserved import readable


def learn(
    *, inputs: OneOrMore[Path], codes: Path, vocabularies: OneOrMore[Path], merges: CountOption
) -> None:
    """Learn a joint BPE; write its codes and each file's sub-word vocabulary.

    The codes equal those of `subword-nmt learn-bpe -s MERGES` on the concatenated files, in any order: of
    equally frequent pairs, the last one in code point order is merged. Learning stops before MERGES, with a
    line on stderr, when no pair occurs twice.

    Args:
        inputs: Token files of all languages.
        codes: Output: the merge operations.
        vocabularies: Output: one file per input, with lines 'sub-word count', the most frequent first, and
            the counts of `subword-nmt get-vocab`.
        merges: How many merge operations.

    Raises:
        UserError: an input cannot be read, or no pair of characters in them occurs twice.
    """
    together(inputs=inputs, vocabularies=vocabularies)
    counts = [_count_words(path) for path in inputs]
    words = sum(counts, Counter())
    learned = io.StringIO()
    if any(len(word) > 1 for word in words):  # else the library raises
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
    *,
    input: Path,
    output: Path,
    codes: Path,
    vocabulary: Path | None = None,
    vocabulary_threshold: Annotated[Whole, Field(ge=0)] = 0,
    most: CountOption | None = None,
    threads: Threads = 1,
) -> None:
    """Split words into sub-words: "unglaublich" → "un@@ glaub@@ lich".

    The same as `subword-nmt apply-bpe`, except that what would be misread is split once more (`readable`);
    spaces at line ends are dropped.

    Args:
        input: Tokens.
        output: Sub-words; all but a word's last end in @@.
        codes: The merge operations of learn-bpe.
        vocabulary: The language's vocabulary of learn-bpe.
        vocabulary_threshold: Split sub-words further that are rarer in the vocabulary; 0: no limit.
        most: Refuse longer sentences; default: no limit.

    Raises:
        UserError: a file cannot be read, or is of another kind; a sentence is too long.
    """
    known = frequent(vocabulary, vocabulary_threshold) if vocabulary and vocabulary_threshold else None
    lines = map_lines(splitter_of(codes, known), read_lines(input), threads)
    write_lines(output, _limited(lines, input, most))


def splitter_of(codes: str | Path, known: set[str] | None = None) -> "Splitter":
    """The splitter by a file of BPE codes, into sub-words that are `known` (None: all).

    Raises:
        UserError: the file cannot be read, or is of another kind.
    """
    try:
        return Splitter("\n".join(read_lines(codes)), known)
    except ValueError:
        raise UserError(f"{codes}: not a list of BPE merges; remove it and learn it again") from None


def _limited(lines: Iterable[str], path: str | Path, most: int | None) -> Iterator[str]:
    """The lines in BPE of a file, none of them longer than `most` sub-words."""
    for number, line in enumerate(lines, start=1):
        if most is not None and (length := len(line.split())) > most:
            what = f"{length:,} sub-words, a model reads {most:,}; split the sentence in the corpus' file"
            raise UserError(f"{path}, line {number}: {what}")
        yield line


def frequent(vocabulary: str | Path, threshold: int | None) -> set[str]:
    """The sub-words with counts of at least `threshold` in a vocabulary file (None: all).

    Raises:
        UserError: not a vocabulary file.
    """
    try:
        return read_vocabulary(read_lines(vocabulary), threshold)
    except ValueError:
        raise UserError(
            f"{vocabulary}: not a BPE vocabulary; each line must be a sub-word and its count"
        ) from None


class Splitter:
    """Splits the words of lines; caches each word's sub-words as a string, which is several times faster than
    the library's own cache.

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
                known[word] = " ".join(readable(self._bpe.segment_tokens([word])))
        return " ".join([known[word] for word in words if word])
