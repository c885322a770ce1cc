"""From sub-words and tokens back to plain text."""

import re
from collections.abc import Iterable, Iterator

from synmask.pipeline import languages
from synmask.pipeline.text.moses import ABBREVIATIONS, Detokenizer

HALF_WIDTH = str.maketrans("｜［］", "|[]")  # what tokenise.FULL_WIDTH replaces


def join_subwords(line: str) -> str:
    """Undo BPE: "un@@ glaub@@ lich" → "unglaublich"."""
    return (line + " ").replace("@@ ", "").rstrip(" ")


def detokenise(lines: Iterable[str], language: str, tokeniser: str = "moses") -> Iterator[str]:
    """Yield each line of tokens as plain text: without escapes and full-width signs, with punctuation joined
    to words."""
    if tokeniser == "none":
        yield from lines
    elif tokeniser in ("juman", "stanford"):  # spaces only between words in Latin letters or digits
        for line in lines:
            yield re.sub(r"(?<![!-~]) | (?![!-~])", "", line).translate(HALF_WIDTH)
    else:
        code = languages.code_among(ABBREVIATIONS, language)
        detokenizer = Detokenizer(code)
        for line in lines:
            if tokeniser == "corenlp" and code == "en":  # "didn ' t", "O ' Neill"
                line = re.sub(r"(?<=n) ' (?=t\b)|(?<=\bO) ' (?=[A-Z])", "'", line)
            yield detokenizer.detokenize(line.split())
