"""Raw text as tokens and sub-words, by the text settings of a model."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

from synmask.pipeline.config.base import EXTERNAL
from synmask.pipeline.text import bpe, spm
from synmask.pipeline.text.detokenise import detokenise, join_subwords
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


def has_pieces(text: ModelText) -> bool:
    """Whether a model's sub-words are sentencepiece's, and not BPE's."""
    return text.codes.startswith("{")


def splitter_of(text: ModelText, language: str) -> bpe.Splitter | spm.Splitter:
    """The splitter of a language's tokens into sub-words by a model's text settings.

    Raises:
        ValueError: its codes are of no kind.
    """
    if has_pieces(text):
        return _pieces(spm.model_of(text.codes, language), text.tokeniser_of(language))
    return bpe.Splitter(text.codes, None if text.vocabulary is None else set(text.vocabulary))


_pieces = cache(spm.Splitter)


def models_of(text: ModelText) -> dict[str, bytes]:
    """The models of sentencepiece of both sides, as files."""
    sides = {"source.spm": text.source, "target.spm": text.target}
    return {name: spm.model_of(text.codes, language) for name, language in sides.items()}


def as_bpe(line: str, text: ModelText, language: str) -> str:
    """As many sub-words, of which undoing BPE makes words (`spm.Splitter.spelled`)."""
    return splitter_of(text, language).spelled(line) if has_pieces(text) else line


def restore_text(lines: Iterable[str], text: ModelText) -> tuple[list[str], list[str]]:
    """Translations in sub-words as tokens, and as plain text."""
    tokeniser = text.tokeniser_of(text.target)
    words = [join_subwords(as_bpe(line, text, text.target)) for line in lines]
    plain = [*detokenise(words, text.target, tokeniser)]
    if tokeniser == "char":  # which pieces join
        plain = [line.strip() for line in plain]
        words = [*tokenise(plain, text.target, tokeniser=tokeniser)]
    return words, plain


def prepare_lines(
    lines: Iterable[str], text: ModelText, splitter: Callable[[str], str], jars: Jars
) -> tuple[list[str], list[str], list[str]]:
    """Raw text with single spaces, as tokens, and in BPE, by a model's text settings."""
    plain = [" ".join(line.split()) for line in lines]
    tokenised = tokens_of(plain, text, jars, text.lowercase)
    return plain, tokenised, [splitter(line) for line in tokenised]
