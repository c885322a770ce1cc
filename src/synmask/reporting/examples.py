"""Translations side by side, their differences from the reference marked word by word."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Literal

from synmask.files import UserError, read_lines

Part = tuple[Literal["same", "more", "less"], str]
SHOWN = 20


@dataclass
class Example:
    """A test sentence: its number (from 1), source, reference, and each system's translation in parts.

    Parts are words that are in the reference, too ("same"), that are not ("more"), and those of the reference
    that are lacking here ("less").
    """

    number: int
    source: str
    reference: str
    translations: dict[str, list[Part]]


def examples(source: Path, reference: Path, hypotheses: Mapping[str, Path]) -> list[Example]:
    """SHOWN of the sentences that the systems translate differently, best for the last system first.

    All that differ are ordered by how much closer to the reference the last system is than the first, and
    taken at equal steps, so that gains and losses are shown as they come, not picked.

    Args:
        source, reference: plain text, a sentence a line.
        hypotheses: system → its detokenised translations.
    Raises:
        UserError: the files do not have the same number of lines.
    """
    sides = {path: list(read_lines(path)) for path in (source, reference, *hypotheses.values())}
    if len({*map(len, sides.values())}) > 1:
        lines = ", ".join(f"{path} {len(side)}" for path, side in sides.items())
        raise UserError(f"lines differ: {lines}; decode the test set again")
    translations = [sides[path] for path in hypotheses.values()]
    ranked = sorted(
        (-_gain(sides[reference][index], given), index)
        for index, given in enumerate(zip(*translations, strict=True))
        if len(set(given)) > 1
    )
    chosen = []
    for _, index in _spread(ranked):
        expected = sides[reference][index]
        translated = {system: parts(sides[path][index], expected) for system, path in hypotheses.items()}
        chosen.append(Example(index + 1, sides[source][index], expected, translated))
    return chosen


def parts(hypothesis: str, reference: str) -> list[Part]:
    """A translation against the reference: runs of words that both have, more than it, less than it."""
    found, expected = hypothesis.split(), reference.split()
    result: list[Part] = []
    matcher = SequenceMatcher(None, found, expected, autojunk=False)
    for _, start, end, start_expected, end_expected in matcher.get_opcodes():
        if found[start:end] == expected[start_expected:end_expected]:
            result.append(("same", " ".join(found[start:end])))
            continue
        if start < end:
            result.append(("more", " ".join(found[start:end])))
        if start_expected < end_expected:
            result.append(("less", " ".join(expected[start_expected:end_expected])))
    return result


def _gain(reference: str, translations: Sequence[str]) -> float:
    """Likeness to the reference of the last translation, less that of the first."""
    words = reference.split()
    first, last = (
        SequenceMatcher(None, text.split(), words, autojunk=False).ratio()
        for text in (translations[0], translations[-1])
    )
    return last - first


def _spread(ranked: list) -> list:
    """SHOWN of a list at equal steps, its first and last among them; all of a shorter one."""
    if len(ranked) <= SHOWN:
        return ranked
    return [ranked[round(step * (len(ranked) - 1) / (SHOWN - 1))] for step in range(SHOWN)]
