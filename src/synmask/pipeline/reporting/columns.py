"""Columns of text in a terminal, where Chinese characters take two places and accents none."""

from collections.abc import Sequence

from rich.cells import cell_len

from synmask.pipeline.reporting.html import shown


def filled(text: str, width: int, sign: str = " ") -> str:
    """The text, filled up to a width in places of the terminal."""
    return text + sign * (width - cell_len(text))


def columns(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The cells of `rows`, each as wide as its column: words at the left in the first, numbers at the right
    in the others. Control characters, which a terminal obeys, become �."""
    rows = [[*map(shown, row)] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    return [
        [
            filled(cell, width) if place == 0 else " " * (width - cell_len(cell)) + cell
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in rows
    ]


def aligned(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as lines of text, two spaces between its columns."""
    return "\n".join("  ".join(row).rstrip() for row in columns([heads, *rows]))
