"""From raw text to tokens: Moses' tokeniser, and word segmenters (text/segment.py)."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import get_args

import regex

from synmask.pipeline import languages
from synmask.pipeline.arguments import Json, Threads
from synmask.pipeline.config.base import Language, Tokeniser
from synmask.pipeline.files import read_lines, write_lines
from synmask.pipeline.text import segment
from synmask.pipeline.text.escapes import unescape
from synmask.pipeline.text.moses import ABBREVIATIONS, Tokenizer
from synmask.pipeline.text.parallel import map_lines
from synmask.pipeline.tokens import Tokens

# Characters with a meaning for Moses or in trees, and the full-width forms that authors use after segmenting.
FULL_WIDTH = str.maketrans("|[]", "｜［］")
MOSES = Tokens()


def _moses_tokenizer(language: str) -> Tokenizer:
    """Moses' tokeniser; a note says if it has no rules for the language."""
    code = languages.closest_language(language, ABBREVIATIONS)
    if languages.script_of(language) in languages.WITHOUT_SPACES:
        fault = "does not split text that is written without spaces"
        other = languages.default_tokeniser(language)[0]
        languages.print_note(
            f"{languages.describe_language(language)}: Moses {fault}; `tokeniser: {other}` does"
        )
    elif code not in ABBREVIATIONS:
        fault = "has no abbreviations of this language and uses those of English"
        languages.print_note(f"{languages.describe_language(language)}: Moses {fault}")
    return Tokenizer(code)


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
    kwargs = {"tokeniser": settings.tokeniser_of(language), "lowercase": settings.lowercase}
    write_lines(output, tokenise(read_lines(input), language, threads=threads, jars=jars, **kwargs))


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
            "corenlp" as PASCAL prepared News Commentary: Moses, unescaped, a space after a full stop inside a
            token, then CoreNLP; "juman" for Japanese, "stanford" for Chinese, after which `| [ ]` become
            full-width; "icu" and "mecab" (text/segment.py); "char" for characters as readers see them
            (Unicode's grapheme clusters), ▁ for a space; "none" for text that is segmented already.
        lowercase: after tokenising, since upper case helps to distinguish abbreviations from sentence ends.
        threads: processes of Moses or Juman.
        jars: CoreNLP's, for "corenlp" and "stanford".
    Raises:
        UserError: the tokeniser's program or a jar is missing or fails.
        ValueError: there is no such tokeniser.
    """
    if tokeniser == "corenlp":
        words = segment.penn_tokens(
            map_lines(partial(_moses_for_corenlp, _moses_tokenizer(language)), lines, threads), jars
        )
    elif tokeniser == "juman":
        words = (line.translate(FULL_WIDTH) for line in segment.juman(lines, threads))
    elif tokeniser == "stanford":
        words = (line.translate(FULL_WIDTH) for line in segment.stanford(lines, jars))
    elif tokeniser in LINEWISE:
        words = map_lines(LINEWISE[tokeniser](language), lines, threads)
    elif tokeniser == "none":
        words = iter(lines)
    else:
        raise ValueError(f"tokeniser: expected one of {', '.join(get_args(Tokeniser))}, got {tokeniser!r}")
    return map(str.lower, words) if lowercase else words


def _split_characters(line: str) -> str:
    return f" {languages.BLANK} ".join(" ".join(regex.findall(r"\X", part)) for part in line.split())


LINEWISE = {
    "moses": lambda language: partial(_moses, _moses_tokenizer(language)),
    "icu": lambda language: partial(segment.icu, languages.base_language(language)),
    "mecab": lambda _: segment.mecab,
    "char": lambda _: _split_characters,
}


def _moses(tokenizer: Tokenizer, line: str) -> str:
    return tokenizer.tokenize(line, return_str=True).rstrip()


def _moses_for_corenlp(tokenizer: Tokenizer, line: str) -> str:
    """Moses tokens without escapes, and with a space between a full stop and a capital inside a token."""
    text = unescape(_moses(tokenizer, line))
    return " ".join(re.sub(r"([.!?])([A-Z])", r"\1 \2", text).split())
