"""Sub-words of sentencepiece (Kudo and Richardson 2018), in the notation of BPE: "un", "lich▁" → "un@@ lich".

The models mark the end of a word, not its beginning, so each piece has one name in this notation, and labels
and words are found in it as in BPE. An exported tokenizer takes this file along.
"""

import base64
import json
from typing import Any

from synmask.pipeline.languages import BLANK
from synmask.pipeline.text.notation import RESERVED_SYMBOL, split_reserved

CHARACTERS = "char"  # the tokeniser whose tokens the pieces join again


def model_in_codes(codes: str, language: str) -> bytes:
    """The model of a language in codes: {"sentencepiece": {language: model in base64}} as JSON.

    Raises:
        ValueError: the codes are of another kind, or have no such model.
    """
    try:
        return base64.b64decode(json.loads(codes)["sentencepiece"][language], validate=True)
    except (LookupError, TypeError, ValueError) as error:
        raise ValueError(f"no sentencepiece model of {language} ({error})") from None


class SentencePieceSplitter:
    """Splits the tokens of lines into a model's pieces.

    A piece inside a word ends in "@@"; "▁" alone after such a piece ends the word. Of characters
    (`tokeniser: char`), the pieces join those of a line, and each piece is a word, with the space after it.
    A piece that would be misread (text/notation.py) is split into its characters.

    Attributes:
        symbols: the sub-words of the model's pieces → the pieces.

    Raises:
        ValueError: it is no model.
    """

    def __init__(self, model: bytes, tokeniser: str) -> None:
        from sentencepiece import SentencePieceProcessor

        try:
            self._processor: Any = SentencePieceProcessor(model_proto=model)
        except RuntimeError:
            raise ValueError("no sentencepiece model") from None
        self.joins = tokeniser == CHARACTERS
        pieces = [*enumerate(map(self._processor.id_to_piece, range(len(self._processor))))]
        self._bytes = {piece for number, piece in pieces if self._processor.is_byte(number)}
        known = (piece for number, piece in pieces if not self._processor.is_unknown(number))
        self.symbols = {self._symbol(piece): piece for piece in known}

    def __call__(self, line: str) -> str:
        text = line.replace(" ", "").replace(BLANK, " ") if self.joins else line
        if BLANK not in text:
            pieces = self._processor.encode(text, out_type=str)
            return " ".join(symbol for piece in pieces for symbol in self._subwords(piece))
        words = (
            word if word == BLANK else " ".join(self._letters(word)) if BLANK in word else self(word)
            for word in text.split(" ")
        )
        return " ".join(filter(None, words))

    def as_bpe(self, line: str) -> str:
        """As many sub-words, in which the last one of a word stands for its "▁" and its bytes.

        "xyz@@ ▁" → "@@ xyz", and "<0xC3>@@ <0xA9>@@ ▁" → "@@ @@ é": undoing BPE gives the words.
        """
        symbols: list[str] = []
        word: list[str] = []
        if not self.joins:  # whether an unknown piece ends a word shows in the next one
            line = line.replace("<unk> ▁", "<unk>@@ ▁")
        for symbol in line.split(" "):
            word.append(symbol)
            if not symbol.endswith("@@"):
                symbols += self._word_as_bpe(word)
                word = []
        symbols += self._word_as_bpe(word) if word else []  # unfinished
        last = symbols[-1].removesuffix(BLANK)
        if self.joins and last and not last.endswith("@@"):
            symbols[-1] = last
        return " ".join(symbols)

    def _word_as_bpe(self, word: list[str]) -> list[str]:
        names = [symbol.removesuffix("@@") for symbol in word]
        if len(word) == 1 or not (word[-1] == BLANK or self._bytes.intersection(names)):
            return word
        if names[-1] == BLANK and not self.joins:
            names.pop()
        coded = (bytes.fromhex(name[3:5]) if name in self._bytes else name.encode() for name in names)
        text = "".join(b"".join(coded).decode("utf-8", "replace").split())
        parts = split_reserved([text]) if text else word
        return [*["@@"] * (len(word) - len(parts)), *parts]

    def _symbol(self, piece: str) -> str:
        if piece in self._bytes:
            return f"{piece}@@"
        if self.joins or piece == BLANK:
            return piece
        return piece[:-1] if piece.endswith(BLANK) else f"{piece}@@"

    def _subwords(self, piece: str) -> list[str]:
        """The sub-word of a piece, or those of its characters."""
        symbol = self._symbol(piece)
        ends = self.joins or piece.endswith(BLANK)
        if piece not in self._bytes and ends and (RESERVED_SYMBOL.fullmatch(symbol) or symbol.endswith("@@")):
            return self._letters(symbol)
        return [symbol]

    def _letters(self, word: str) -> list[str]:
        return [*word] if self.joins else [*(f"{letter}@@" for letter in word), BLANK]
