"""Columns of text in a terminal, where Chinese characters take two places and accents none."""

from collections.abc import Sequence

from rich.cells import cell_len

from synmask.pipeline.reporting.html import shown


def filled(text: str, width: int, sign: str = " ") -> str:
    """The text, filled up to a width in places of the terminal."""
    return text + sign * (width - cell_len(text))


def aligned(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as lines of text: words at the left in the first column, numbers at the right in the others."""
    texts = [[*map(shown, row)] for row in (heads, *rows)]
    first, *others = (max(map(cell_len, column)) for column in zip(*texts, strict=True))
    lines = ("  ".join([filled(name, first), *map(_at_the_right, cells, others)]) for name, *cells in texts)
    return "\n".join(map(str.rstrip, lines))


def _at_the_right(text: str, width: int) -> str:
    return " " * (width - cell_len(text)) + text
