"""From raw text to tokens and back: Moses' tokeniser, and word segmenters (text/segment.py)."""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import regex
from sacremoses import MosesDetokenizer, MosesTokenizer
from sacremoses.corpus import NonbreakingPrefixes

from synmask.pipeline import languages
from synmask.pipeline.config.base import Language
from synmask.pipeline.config.sections import Tokens
from synmask.pipeline.files import read_lines, write_lines
from synmask.pipeline.options import Json, Threads
from synmask.pipeline.text import segment
from synmask.pipeline.text.parallel import map_lines

# Characters with a meaning for Moses or in trees, and the full-width forms that authors use after segmenting.
FULL_WIDTH = str.maketrans("|[]", "｜［］")
HALF_WIDTH = {full: half for half, full in FULL_WIDTH.items()}
ALPHA = r"\p{Alphabetic}"  # Perl's IsAlpha
NUMBER = r"\p{N}"  # Perl's IsN
# Moses' languages with lists of abbreviations.
ABBREVIATIONS = frozenset(NonbreakingPrefixes().available_langs.values())

MOSES = Tokens()


class _Tokenizer(MosesTokenizer):
    """sacremoses' tokeniser with the output of today's tokenizer.perl, and faster at full stops.

    sacremoses 0.2.0 differs from the Perl script (version of November 2018 or later) in three points: the
    full stop at the end of a line stays with an abbreviation ("Linie A."); its classes of letters and numbers
    contain combining signs of Indian scripts and lack Chinese characters; and a line that ends in .' gets a
    space at its end. tests/text/test_tokenise.py has an example of each.
    """

    PAD_NOT_ISALNUM = regex.compile(rf"([^{ALPHA}\p{{Nd}}\s\.'`,\-])"), r" \1 "
    COMMA_SEPARATE_1 = regex.compile(rf"([^{NUMBER}]),"), r"\1 , "
    COMMA_SEPARATE_2 = regex.compile(rf",([^{NUMBER}])"), r" , \1"
    COMMA_SEPARATE_3 = regex.compile(rf"([{NUMBER}]),$"), r"\1 ,"
    _OUTSIDE = regex.compile(rf"([^{ALPHA}])'([^{ALPHA}])"), r"\1 ' \2"
    _AFTER = regex.compile(rf"([{ALPHA}])'([^{ALPHA}])"), r"\1 ' \2"
    _BETWEEN = regex.compile(rf"([{ALPHA}])'([{ALPHA}])")
    ENGLISH_SPECIFIC_APOSTROPHE = (
        _OUTSIDE,
        (regex.compile(rf"([^{ALPHA}{NUMBER}])'([{ALPHA}])"), r"\1 ' \2"),
        _AFTER,
        (_BETWEEN, r"\1 '\2"),
        (regex.compile(rf"([{NUMBER}])'([s])"), r"\1 '\2"),
    )
    FR_IT_SPECIFIC_APOSTROPHE = (
        _OUTSIDE,
        (regex.compile(rf"([^{ALPHA}])'([{ALPHA}])"), r"\1 ' \2"),
        _AFTER,
        (_BETWEEN, r"\1' \2"),
    )
    _ALPHA = regex.compile(ALPHA)
    _LOWER = regex.compile(r"\p{Lowercase}")

    def islower(self, text: str) -> bool:  # called with one character
        return self._LOWER.match(text) is not None

    def isanyalpha(self, text: str) -> bool:
        return self._ALPHA.search(text) is not None

    def handles_nonbreaking_prefixes(self, text: str) -> str:
        head, _, last = text.rstrip().rpartition(" ")
        if last.endswith(".") and len(last) > 1:
            last = f"{last[:-1]} ."
        text = f"{head} {last}"
        return super().handles_nonbreaking_prefixes(text) if "." in head else text


def moses_code(language: str) -> str:
    """Moses' code of a language: fra → fr."""
    return languages.known_as(language, ABBREVIATIONS) or languages.shortest(language)


def _tokenizer(language: str) -> _Tokenizer:
    """Moses' tokeniser; a note says if it has no rules for the language."""
    code = moses_code(language)
    if languages.script(language) in languages.WITHOUT_SPACES:
        what = "does not split text that is written without spaces"
        languages.note(f"{languages.named(language)}: Moses {what}; `tokeniser` has others")
    elif code not in ABBREVIATIONS:
        what = "has no abbreviations of this language and uses those of English"
        languages.note(f"{languages.named(language)}: Moses {what}")
    return _Tokenizer(code)


def tokenise_file(
    *,
    input: Path,
    output: Path,
    language: Language,
    settings: Json[Tokens] = MOSES,
    threads: Threads = 1,
    jars: tuple[Path, ...] = (),
) -> None:
    """Tokenise plain text; optionally lower-case it.

    Args:
        input: Plain text, one sentence per line.
        output: Tokens, separated by spaces.
        language: Its language code.
        settings: '{"tokeniser": "moses", "lowercase": false}'.
        jars: CoreNLP's jars, if the tokeniser needs them.
    """
    how = {"tokeniser": settings.tokeniser_of(language), "lowercase": settings.lowercase}
    write_lines(output, tokenise(read_lines(input), language, threads=threads, jars=jars, **how))


def tokenise(
    lines: Iterable[str],
    language: str,
    *,
    tokeniser: str = "moses",
    lowercase: bool = False,
    threads: int = 1,
    jars: Sequence[Path] = (),
) -> Iterator[str]:
    """Yield the tokens of each line, separated by one space; an empty line stays empty.

    Args:
        tokeniser: "moses" like tokenizer.perl: `& | < > ' " [ ]` are escaped, punctuation is not normalised,
            a language without its own rules uses the English abbreviations, and a note on stderr says so;
            "corenlp" as PASCAL prepared News
            Commentary: Moses, unescaped, a space after a full stop inside a token, then CoreNLP; "juman" for
            Japanese, "stanford" for Chinese, after which `| [ ]` become full-width; "none" for text that is
            segmented already.
        lowercase: after tokenising, since upper case helps to distinguish abbreviations from sentence ends.
        threads: processes of Moses or Juman.
        jars: CoreNLP's, for "corenlp" and "stanford".
    Raises:
        UserError: the tokeniser's program or a jar is missing or fails.
        ValueError: there is no such tokeniser.
    """
    if tokeniser == "moses":
        return map_lines(partial(_moses, _tokenizer(language), lowercase), lines, threads)
    if tokeniser == "corenlp":
        words = segment.penn(map_lines(partial(_rejoined, _tokenizer(language)), lines, threads), jars)
    elif tokeniser == "juman":
        words = (line.translate(FULL_WIDTH) for line in segment.juman(lines, threads))
    elif tokeniser == "stanford":
        words = (line.translate(FULL_WIDTH) for line in segment.stanford(lines, jars))
    elif tokeniser == "none":
        words = iter(lines)
    else:
        raise ValueError(f"tokeniser: expected moses, corenlp, juman, stanford or none, got {tokeniser!r}")
    return map(str.lower, words) if lowercase else words


def _moses(tokenizer: MosesTokenizer, lowercase: bool, line: str) -> str:
    tokens = tokenizer.tokenize(line, return_str=True).rstrip()
    return tokens.lower() if lowercase else tokens


def _rejoined(tokenizer: MosesTokenizer, line: str) -> str:
    """Moses tokens without escapes, and with a space between a full stop and a capital inside a token."""
    text = html.unescape(_moses(tokenizer, False, line))
    return " ".join(re.sub(r"([.!?])([A-Z])", r"\1 \2", text).split())


def detokenise(lines: Iterable[str], language: str, tokeniser: str = "moses") -> Iterator[str]:
    """Yield each line of tokens as plain text: without escapes and full-width signs, with punctuation joined
    to words."""
    if tokeniser == "none":
        yield from lines
    elif tokeniser in ("juman", "stanford"):  # spaces only between words in Latin letters or digits
        for line in lines:
            yield re.sub(r"(?<![!-~]) | (?![!-~])", "", line).translate(HALF_WIDTH)
    else:
        code = moses_code(language)
        detokenizer = MosesDetokenizer(code)
        for line in lines:
            if tokeniser == "corenlp" and code == "en":  # "didn ' t", "O ' Neill"
                line = re.sub(r"(?<=n) ' (?=t\b)|(?<=\bO) ' (?=[A-Z])", "'", line)
            yield detokenizer.detokenize(line.split())
