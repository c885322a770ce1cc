"""Moses tokenising and detokenising, by sacremoses."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from sacremoses import MosesDetokenizer, MosesTokenizer

from synmask.files import read_lines, write_lines
from synmask.text.parallel import map_lines


class _Tokenizer(MosesTokenizer):
    """sacremoses' tokeniser with the same output, faster at full stops.

    At one inside a line the library builds a set of up to 10,000 characters each time (0.2 to 0.7 ms, when
    a whole line takes 0.02), and it searches every token for one by a regular expression.
    """

    _lower = frozenset(MosesTokenizer.IsLower)

    def __init__(self, language: str) -> None:
        super().__init__(language)
        self._alpha = frozenset(self.IsAlpha)  # the language may have added to it

    def islower(self, text: str) -> bool:
        return self._lower.issuperset(text)

    def isanyalpha(self, text: str) -> bool:
        return not self._alpha.isdisjoint(text)

    def handles_nonbreaking_prefixes(self, text: str) -> str:
        head, _, last = text.rstrip().rpartition(" ")
        if "." in head:
            return super().handles_nonbreaking_prefixes(text)
        return " ".join([*head.split(), super().handles_nonbreaking_prefixes(last)])


def tokenise_file(
    input: str | Path,
    output: str | Path,
    language: str,
    *,
    tokenise: bool = True,
    lowercase: bool = False,
    threads: int = 1,
) -> None:
    """Write the Moses tokens of each line of `input`, separated by one space, as `output`.

    Text that is segmented already (`tokenise` false) keeps its tokens.

    As Moses' tokenizer.perl: `& | < > ' " [ ]` are escaped, punctuation is not normalised. Letters are
    made lower-case after tokenising (upper case helps to tell abbreviations from sentence ends).
    An empty line stays empty. A language without Moses rules of its own gets the English abbreviations.

    Raises:
        UserError: `input` is missing, damaged or not UTF-8.
    """
    work = tokeniser(language, tokenise=tokenise, lowercase=lowercase)
    write_lines(output, map_lines(work, read_lines(input), threads))


def tokeniser(language: str, *, tokenise: bool = True, lowercase: bool = False) -> Callable[[str], str]:
    """What `tokenise_file` does to one line; it can be sent to another process."""
    return partial(_tokenise, _Tokenizer(language) if tokenise else None, lowercase)


def _tokenise(tokenizer: MosesTokenizer | None, lowercase: bool, line: str) -> str:
    tokens = tokenizer.tokenize(line, return_str=True) if tokenizer else line
    return tokens.lower() if lowercase else tokens


def detokenise(lines: Iterable[str], language: str) -> Iterator[str]:
    """Yield each line of Moses tokens as ordinary text: escapes undone, punctuation joined to its word."""
    detokenizer = MosesDetokenizer(language)
    for line in lines:
        yield detokenizer.detokenize(line.split())
