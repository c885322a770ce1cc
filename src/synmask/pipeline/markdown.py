"""Text as Markdown."""

import re
from collections.abc import Iterable


def plain(text: str) -> str:
    """Escape text for Markdown, so that it makes no image, link, HTML or emphasis."""
    return re.sub(r"[\\`*\[\]|]|<(?=[A-Za-z/!?])|&(?=[#\w])|(?<!\w)_|_(?!\w)", r"\\\g<0>", text)


def pipes(heads: Iterable[str], align: str, rows: Iterable[Iterable[str]]) -> list[str]:
    """The lines of a table; `align` has "l" or "r" for each column."""

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |"

    rule = "".join("|---" if side == "l" else "|---:" for side in align)
    return [line(heads), f"{rule}|", *map(line, rows)]
