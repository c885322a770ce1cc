"""Raw text as tokens and sub-words, by the text settings of a model."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from synmask.pipeline.config.base import EXTERNAL
from synmask.pipeline.text import bpe
from synmask.pipeline.text.tokenise import tokenise
from synmask.pipeline.tokens import ModelText

Jars = Callable[[str], Sequence[Path]]  # tokeniser → the jars of CoreNLP that it needs


def no_jars(tokeniser: str) -> list[Path]:
    return []


def starts_program(text: ModelText) -> bool:
    """Whether the source language's tokeniser is an external program, which takes seconds to start."""
    return text.tokeniser_of(text.source) in EXTERNAL


def tokens_of(lines: list[str], text: ModelText, jars: Jars, lowercase: bool) -> list[str]:
    tokeniser = text.tokeniser_of(text.source)
    kwargs = {"tokeniser": tokeniser, "lowercase": lowercase, "jars": jars(tokeniser)}
    return list(tokenise(lines, text.source, **kwargs))


def splitter_of(text: ModelText) -> bpe.Splitter:
    """The splitter of words into sub-words by a model's text settings."""
    return bpe.Splitter(text.codes, None if text.vocabulary is None else set(text.vocabulary))


def prepared(
    lines: Iterable[str], text: ModelText, splitter: bpe.Splitter, jars: Jars
) -> tuple[list[str], list[str], list[str]]:
    """Raw text with single spaces, as tokens, and in BPE, by a model's text settings."""
    plain = [" ".join(line.split()) for line in lines]
    tokenised = tokens_of(plain, text, jars, text.lowercase)
    return plain, tokenised, [splitter(line) for line in tokenised]
