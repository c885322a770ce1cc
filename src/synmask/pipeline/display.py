"""Text for readers: Markdown, terminals, where Chinese characters take two places; and right to left."""

import re
from collections.abc import Iterable, Sequence
from unicodedata import bidirectional

from rich.cells import cell_len

from synmask.pipeline.languages import DIRECTION, sides


def shown(text: str) -> str:
    """A text of a user's file as pages, SVG files and terminals can show it: control characters and the like,
    which XML forbids and terminals obey, become �."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", "\ufffd", text)


def right_to_left(text: str) -> bool:
    """Whether the first letter of a text is of a script that is written from right to left."""
    directions = (bidirectional(character) for character in text)
    return next((direction != "L" for direction in directions if direction in ("L", "R", "AL")), False)


def isolated(text: str) -> str:
    """A text that has no effect on the order of what stands around it: in Unicode's isolates, if it has
    letters that are written from right to left."""
    isolate = any(bidirectional(character) in ("R", "AL") for character in text)
    return f"\u2068{text}\u2069" if isolate else text


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


def padded(heads: Sequence[str], align: str, rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown whose columns stand below each other; `align` has "l" or "r" for each column."""
    columns = [*zip(heads, *rows, strict=True)]
    widths = [max(cell_len(head) + 2, *map(cell_len, cells)) for head, *cells in columns]
    texts = [
        [(filled if side == "l" else _at_the_right)(cell, width) for cell in column]
        for column, side, width in zip(columns, align, widths, strict=True)
    ]
    rules = [
        f":{'-' * (width + 1)}" if side == "l" else f"{'-' * (width + 1)}:"
        for side, width in zip(align, widths, strict=True)
    ]
    first, *others = (f"| {' | '.join(cells)} |" for cells in zip(*texts, strict=True))
    return "\n".join([first, f"|{'|'.join(rules)}|", *others])


def filled(text: str, width: int, sign: str = " ") -> str:
    """The text, filled up to a width in places of the terminal."""
    return text + sign * (width - cell_len(text))


def aligned(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as lines of text: words at the left in the first column, numbers at the right in the others."""
    texts = [[*map(shown, row)] for row in (heads, *rows)]
    first, *others = (max(map(cell_len, column)) for column in zip(*texts, strict=True))
    lines = (
        "  ".join([filled(isolated(name), first), *map(_at_the_right, cells, others)])
        for name, *cells in texts
    )
    return "\n".join(map(str.rstrip, lines))


def _at_the_right(text: str, width: int) -> str:
    return " " * (width - cell_len(text)) + text


def arrow(direction: str) -> str:
    """A direction for readers: "de-en" becomes "De→En", "pt-BR-en" "Pt-BR→En"; others stay as they are."""
    if not re.fullmatch(DIRECTION, direction):
        return direction
    return "→".join(language[0].upper() + language[1:] for language in sides(direction))
