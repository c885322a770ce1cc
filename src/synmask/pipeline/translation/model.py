"""A trained model in Python: `synmask.pipeline.load`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from synmask.pipeline.config.sections import DEFAULT_DECODING, Decoding
from synmask.pipeline.errors import UserError
from synmask.pipeline.syntax.tree import bracket_tree, word_distances
from synmask.pipeline.translation.forced import log_probabilities
from synmask.pipeline.translation.inputs import encode_lines
from synmask.pipeline.translation.parse import induce_syntax
from synmask.pipeline.translation.translate import Candidate, Translator


@dataclass(frozen=True)
class InducedParse:
    """The syntax that a model induces for a sentence of n sub-words.

    Attributes:
        tree: over words, bracketed.
        tokens: the n sub-words.
        distance: (n-1), between neighbours; height: (n), or None.
        distribution: (n+1, n+1) P_D: row i is the distribution of token i's parent, the last token `</s>`; or
            None.
    """

    tree: str
    tokens: list[str]
    distance: np.ndarray
    height: np.ndarray | None
    distribution: np.ndarray | None


class TrainedModel:
    """The model in a file of `synmask average`, from any source: loading it runs no code of the file.

    Raises:
        UserError: it is no model file, or reads what only a parser gives.
    """

    def __init__(self, path: str | Path, settings: Decoding = DEFAULT_DECODING, *, threads: int = 1) -> None:
        self.path, self._settings = Path(path), settings
        self._translator = Translator([self.path], settings, threads=threads)

    def translate(
        self,
        lines: Sequence[str],
        nbest: int = 1,
        *,
        beam: int | None = None,
        length_penalty: float | None = None,
        batch: int = 64,
    ) -> list[str] | list[list[Candidate]]:
        """The translation of each line of text.

        Args:
            nbest: with more than 1, so many translations of each line with scores, best first.
            beam: hypotheses that are kept at each step; default: those of `load`.
            length_penalty: exponent of the length in the score; default: that of `load`.
            batch: lines that are translated together.

        Raises:
            TypeError: `lines` is one text, or one of them is no text.
            UserError: a line is too long, `nbest` is above the beam size, or a number is out of its range.
        """
        _check_lines(lines)
        if batch < 1:
            raise UserError(f"batch must be at least 1, not {batch}")
        translator = self._translator
        translator.use(override_decoding(self._settings, beam=beam, length_penalty=length_penalty))
        if nbest > translator.settings.beam:
            raise UserError(f"nbest {nbest}: the beam holds {translator.settings.beam} translations")
        translations = [*translator([*lines], batch=batch, nbest=nbest, scored=nbest > 1)]
        return translations if nbest > 1 else [best.text for (best,) in translations]

    def parse(self, lines: Sequence[str]) -> list[InducedParse]:
        """The syntax that the model's guide induces for each line of text.

        Raises:
            TypeError: `lines` is one text.
            UserError: the guide induces none, or a line is empty or too long.
        """
        _check_lines(lines)
        return [
            InducedParse(
                bracket_tree(*word_distances(row["tokens"], row["distances"])),
                row["tokens"],
                np.array(row["distances"]),
                np.array(row["heights"]) if "heights" in row else None,
                distribution,
            )
            for row, distribution in induce_syntax(self.path, self._translator.loaded, lines)
        ]

    def score(self, sources: Sequence[str], references: Sequence[str]) -> list[float]:
        """The log-probability of each reference translation: the sum over its sub-words and `</s>`.

        Raises:
            TypeError: `sources` or `references` is one text.
            UserError: other numbers of lines, a line is too long, or the model file cannot split references.
        """
        _check_lines(sources, references)
        model, task, text, _ = self._translator.loaded
        if len(sources) != len(references):
            raise UserError(f"{len(sources)} sources, {len(references)} references; give one for each")
        if text.settings.vocabulary is not None or task.template_dictionary is not None:
            raise UserError(f"{self.path}: has a vocabulary_threshold or reads templates; use `decode`")
        *_, split = text.encode(references, text.target)
        expected = encode_lines(split, model.max_decoder_positions(), task.tgt_dict)
        ids = self._translator.encode([*sources])[-1]
        pairs = task.sources(ids, references=expected)
        return log_probabilities(model, pairs, self._translator.settings.max_tokens)


def override_decoding(settings: Decoding, **values: float | None) -> Decoding:
    """The settings with the values that are not None.

    Raises:
        UserError: a value is out of its range.
    """
    values = {name: value for name, value in values.items() if value is not None}
    try:
        return Decoding.model_validate(settings.model_dump() | values)
    except ValidationError as error:
        fault = error.errors()[0]
        raise UserError(f"{fault['loc'][0]} {fault['input']!r}: {fault['msg']}") from None


def _check_lines(*texts: Sequence[str]) -> None:
    """Refuse a text where lines are needed, since its characters would pass for them, and what is no text."""
    for lines in texts:
        if isinstance(lines, str):
            raise TypeError(f"give a list of texts, such as [{lines!r}], not one text")
        for number, line in enumerate(lines, start=1):
            if not isinstance(line, str):
                raise TypeError(f"line {number} must be a text, not {type(line).__name__}")
