"""Raw text as a model reads and writes it, by the text settings in its file."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

from synmask.pipeline.config.base import EXTERNAL
from synmask.pipeline.text import bpe, spm
from synmask.pipeline.text.detokenise import detokenise
from synmask.pipeline.text.notation import join_subwords
from synmask.pipeline.text.tokenise import tokenise
from synmask.pipeline.tokens import ModelText

Jars = Callable[[str], Sequence[Path]]  # tokeniser → the jars of CoreNLP that it needs


def no_jars(tokeniser: str) -> list[Path]:
    return []


class TextProcessor:
    """Makes sub-words of raw text for a model, and text of the sub-words that it writes.

    Attributes:
        settings: those in the model's file; jars: those of CoreNLP, at first none.
    """

    def __init__(self, settings: ModelText) -> None:
        self.settings = settings
        self.jars: Jars = no_jars
        self.source, self.target = settings.source, settings.target
        self.splitter = cache(self._splitter)
        self.has_pieces = settings.codes.startswith("{")  # of sentencepiece, and not of BPE

    @property
    def starts_program(self) -> bool:
        """Whether the source language's tokeniser is an external program, which takes seconds to start."""
        return self.settings.tokeniser_of(self.source) in EXTERNAL

    def _splitter(self, language: str) -> bpe.BpeSplitter | spm.SentencePieceSplitter:
        """The splitter of the tokens of a language; a ValueError for codes of no kind."""
        if self.has_pieces:
            model = spm.model_in_codes(self.settings.codes, language)
            return spm.SentencePieceSplitter(model, self.settings.tokeniser_of(language))
        vocabulary = self.settings.vocabulary
        return bpe.BpeSplitter(self.settings.codes, None if vocabulary is None else set(vocabulary))

    def tokenise(self, lines: Iterable[str], language: str, *, lowercase: bool) -> list[str]:
        tokeniser = self.settings.tokeniser_of(language)
        kwargs = {"tokeniser": tokeniser, "lowercase": lowercase, "jars": self.jars(tokeniser)}
        return [*tokenise(lines, language, **kwargs)]

    def encode(
        self, lines: Iterable[str], language: str | None = None
    ) -> tuple[list[str], list[str], list[str]]:
        """Raw text, of the source by default, with single spaces, as tokens, and in sub-words."""
        language = language or self.source
        plain = [" ".join(line.split()) for line in lines]
        tokens = self.tokenise(plain, language, lowercase=self.settings.lowercase)
        return plain, tokens, [*map(self.splitter(language), tokens)]

    def decode(self, lines: Iterable[str]) -> tuple[list[str], list[str]]:
        """Translations in sub-words as tokens, and as plain text."""
        tokeniser = self.settings.tokeniser_of(self.target)
        words = [join_subwords(self.as_bpe(line, self.target)) for line in lines]
        plain = [*detokenise(words, self.target, tokeniser)]
        if tokeniser == "char":  # which pieces join
            plain = [line.strip() for line in plain]
            words = [*tokenise(plain, self.target, tokeniser=tokeniser)]
        return words, plain

    def as_bpe(self, line: str, language: str) -> str:
        """As many sub-words, of which undoing BPE makes words (`SentencePieceSplitter.as_bpe`)."""
        return self.splitter(language).as_bpe(line) if self.has_pieces else line

    def piece_models(self) -> dict[str, bytes]:
        """The models of sentencepiece of both sides, as files."""
        sides = {"source.spm": self.source, "target.spm": self.target}
        return {name: spm.model_in_codes(self.settings.codes, language) for name, language in sides.items()}
