"""Text for readers: in Markdown, and in a terminal, where Chinese characters take two places."""

import re
from collections.abc import Iterable, Sequence

from rich.cells import cell_len


def shown(text: str) -> str:
    """A text of a user's file as pages, SVG files and terminals can show it: control characters and the like,
    which XML forbids and terminals obey, become �."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", "\ufffd", text)


def plain(text: str) -> str:
    """Escape text for Markdown, so that it makes no image, link, HTML or emphasis, and ends no heading."""
    special = r"[\\`*~\[\]|]|<(?=[A-Za-z/!?])|&(?=[#\w])|(?<!\w)_|_(?!\w)|(?<=\s)#(?=#*$)"
    return re.sub(special, r"\\\g<0>", text)


def pipes(heads: Iterable[str], align: str, rows: Iterable[Iterable[str]]) -> list[str]:
    """The lines of a table; `align` has "l" or "r" for each column."""

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |"

    rule = "".join("|---" if side == "l" else "|---:" for side in align)
    return [line(heads), f"{rule}|", *map(line, rows)]


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
