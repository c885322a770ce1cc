"""From sub-words and tokens back to plain text."""

import re
from collections.abc import Iterable, Iterator

import regex

from synmask.pipeline import languages
from synmask.pipeline.text.moses import ABBREVIATIONS, Detokenizer

# Letters of scripts that are written without spaces, and all full-width forms
_UNSPACED = (
    r"\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Bopo}"
    r"\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}\p{scx=Tibt}\uFF00-\uFFEF"
)
_SPACED = rf"[[!-~\p{{L}}\p{{M}}\p{{Nd}}]--[{_UNSPACED}]]"
SPACE_TO_DROP = regex.compile(rf"(?V1)(?<!{_SPACED}) | (?!{_SPACED})")
HALF_WIDTH = str.maketrans("｜［］", "|[]")  # what tokenise.FULL_WIDTH replaces


def join_subwords(line: str) -> str:
    """Undo BPE: "un@@ glaub@@ lich" → "unglaublich"."""
    return (line + " ").replace("@@ ", "").rstrip(" ")


def detokenise(lines: Iterable[str], language: str, tokeniser: str = "moses") -> Iterator[str]:
    """Yield each line of tokens as plain text: without escapes and full-width signs, with punctuation joined
    to words."""
    if tokeniser == "none":
        yield from lines
    elif tokeniser in ("juman", "stanford"):  # spaces stay between words of scripts that have them
        for line in lines:
            yield SPACE_TO_DROP.sub("", line).translate(HALF_WIDTH)
    else:
        code = languages.code_among(ABBREVIATIONS, language)
        detokenizer = Detokenizer(code)
        for line in lines:
            if tokeniser == "corenlp" and code == "en":  # "didn ' t", "O ' Neill"
                line = re.sub(r"(?<=n) ' (?=t\b)|(?<=\bO) ' (?=[A-Z])", "'", line)
            yield detokenizer.detokenize(line.split())
