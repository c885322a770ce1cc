"""From tokens back to plain text."""

import re
from collections.abc import Iterable, Iterator

import regex

from synmask.pipeline import languages
from synmask.pipeline.languages import BLANK, SPACED_CHARACTER
from synmask.pipeline.text.moses import ABBREVIATIONS, Detokenizer

SPACE_TO_DROP = regex.compile(rf"(?V1)(?<!{SPACED_CHARACTER}) | (?!{SPACED_CHARACTER})")
HALF_WIDTH = str.maketrans("｜［］", "|[]")  # what tokenise.FULL_WIDTH replaces


def detokenise(lines: Iterable[str], language: str, tokeniser: str = "moses") -> Iterator[str]:
    """Yield each line of tokens as plain text: without escapes and full-width signs, with punctuation joined
    to words."""
    if tokeniser == "none":
        yield from lines
    elif tokeniser == "char":
        yield from (line.replace(" ", "").replace(BLANK, " ") for line in lines)
    elif tokeniser in ("icu", "mecab"):
        yield from (SPACE_TO_DROP.sub("", line).replace(BLANK, " ") for line in lines)
    elif tokeniser in ("juman", "stanford"):  # spaces stay between words of scripts that have them
        for line in lines:
            yield SPACE_TO_DROP.sub("", line).translate(HALF_WIDTH)
    else:
        code = languages.closest_language(language, ABBREVIATIONS)
        detokenizer = Detokenizer(code)
        for line in lines:
            if tokeniser == "corenlp" and code == "en":  # "didn ' t", "O ' Neill"
                line = re.sub(r"(?<=n) ' (?=t\b)|(?<=\bO) ' (?=[A-Z])", "'", line)
            yield detokenizer.detokenize(line.split())
