"""Translations sentence by sentence, in the style of compare-mt: scores, gains, words that differ."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby, pairwise
from typing import Any

from sacrebleu.metrics import CHRF

from synmask.pipeline.evaluation.bleu import words_of
from synmask.pipeline.reporting.html import sample_evenly

MAX_SENTENCES = 30
Name = tuple[str, int]  # a system's label and a seed


@dataclass
class ShownTranslation:
    """One run's translation: stretches of it, and whether the reference lacks their words; chrF, its gain."""

    words: list[tuple[str, bool]]
    chrf: float
    gain: float | None


@dataclass
class Example:
    """A test sentence: its number (from 1), source, reference, translations.

    The reference consists of stretches, with the indices of the translations that lack their words. Joined,
    stretches are the text, with its spaces.
    """

    number: int
    source: str
    reference: list[tuple[str, list[int]]]
    translations: list[ShownTranslation]


def examples(
    sides: Sequence[Sequence[str]], names: Sequence[Name], *, language: str = "en", lowercase: bool = False
) -> list[Example]:
    """MAX_SENTENCES sentences that the runs translate differently, the last system's largest gain first.

    All that differ are ordered by the gain in chrF of the last system over the first, in their first seeds,
    and sampled at equal steps, so that gains and losses are representative. A run's gain is over the first
    system's run with the same seed or, if that is missing, with its first seed.

    Args:
        sides: the lines of the source, of the reference, and of each run's detokenised translations.
        names: of the runs, the baseline's first.
        language: the target's; words are those of `bleu.words_of`.
        lowercase: compare without case.
    """
    chrf = CHRF(lowercase=lowercase)
    last = next(place for place, (system, _) in enumerate(names) if system == names[-1][0])
    baselines = [_baseline(names, place) for place in range(len(names))]
    ranked = []
    for index, (text, expected, *lines) in enumerate(zip(*sides, strict=True)):
        if len({*lines}) > 1:
            first, other = (chrf.sentence_score(lines[place], [expected]).score for place in (0, last))
            ranked.append((first - other, index, text, expected, lines))
    split, chosen = words_of(language), []
    for _, index, text, expected, lines in sample_evenly(sorted(ranked), MAX_SENTENCES):
        scores = [chrf.sentence_score(line, [expected]).score for line in lines]
        words = [split(line) for line in (expected, *lines)]
        pieces = [_pieces(*pair) for pair in zip((expected, *lines), words, strict=True)]
        if lowercase:
            words = [[word.lower() for word in line_words] for line_words in words]
        reference_words, *translated_words = words
        translations = []
        for own_words, own_pieces, score, base in zip(
            translated_words, pieces[1:], scores, baselines, strict=True
        ):
            stretches = _stretches(own_pieces, _differing(own_words, reference_words))
            translations.append(
                ShownTranslation(stretches, score, None if base is None else score - scores[base])
            )
        missing = [_differing(reference_words, line_words) for line_words in translated_words]
        flags = [
            [place for place, is_missing in enumerate(word) if is_missing]
            for word in zip(*missing, strict=True)
        ]
        stretches = _stretches(pieces[0], flags)
        chosen.append(Example(index + 1, text, stretches, translations))
    return chosen


def _baseline(names: Sequence[Name], place: int) -> int | None:
    """The index of the run that a run's gain is measured against; None for the baseline's own runs."""
    system, seed = names[place]
    if system == names[0][0]:
        return None
    return names.index((names[0][0], seed)) if (names[0][0], seed) in names else 0


def _differing(words: Sequence[str], others: Sequence[str]) -> list[bool]:
    """For each word, whether the other text lacks it, by their longest common stretches."""
    differs = [True] * len(words)
    for start, _, size in SequenceMatcher(None, words, others, autojunk=False).get_matching_blocks():
        differs[start : start + size] = [False] * size
    return differs


def _pieces(line: str, words: Sequence[str]) -> list[str]:
    """The line cut before each of its words; where a word is not in it (of "&quot;", `"`), the words."""
    starts, place = [], 0
    for word in words:
        if (start := line.find(word, place)) < 0:
            return [f"{word} " for word in words]
        starts.append(start)
        place = start + len(word)
    return [line[start:end] for start, end in pairwise([*starts, len(line)])]


def _stretches(pieces: Iterable[str], flags: Iterable[Any]) -> list[tuple[str, Any]]:
    """Join neighbouring pieces with the same flag."""
    pairs = groupby(zip(pieces, flags, strict=True), key=lambda pair: pair[1])
    return [("".join(piece for piece, _ in group), flag) for flag, group in pairs]
