"""Text for readers: Markdown, terminals, where Chinese characters take two places; and right to left."""

import re
from collections.abc import Sequence
from unicodedata import bidirectional

from rich.cells import cell_len

from synmask.pipeline.languages import DIRECTION, split_direction

MAX_NAMES = 3  # names per list


def printable(text: str) -> str:
    """A text of a user's file as pages, SVG files and terminals can show it: control characters and the like,
    which XML forbids and terminals obey, become �."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", "\ufffd", text)


def right_to_left(text: str) -> bool:
    """Whether the first letter of a text is of a script that is written from right to left."""
    directions = (bidirectional(character) for character in text)
    return next((direction != "L" for direction in directions if direction in ("L", "R", "AL")), False)


def isolate(text: str) -> str:
    """A text that has no effect on the order of what stands around it: in Unicode's isolates, if it has
    letters that are written from right to left."""
    turns = any(bidirectional(character) in ("R", "AL") for character in text)
    return f"\u2068{text}\u2069" if turns else text


def escape_markdown(text: str) -> str:
    """Escape text for Markdown, so that it makes no image, link, HTML or emphasis, and ends no heading."""
    special = r"[\\`*~\[\]|]|<(?=[A-Za-z/!?])|&(?=[#\w])|(?<!\w)_|_(?!\w)|(?<=\s)#(?=#*$)"
    return re.sub(special, r"\\\g<0>", text)


def markdown_table(heads: Sequence[str], align: str, rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; `align` has "l" or "r" for each column."""
    rule = "|".join({"l": ":--", "r": "--:"}[side] for side in align)
    first, *others = (f"| {' | '.join(row)} |" for row in (heads, *rows))
    return "\n".join([first, f"|{rule}|", *others])


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as lines of text: words at the left in the first column, numbers at the right in the others."""
    texts = [[*map(printable, row)] for row in (heads, *rows)]
    first, *others = (max(map(cell_len, column)) for column in zip(*texts, strict=True))
    lines = (
        "  ".join([pad(isolate(name), first), *(pad(*cell, "r") for cell in zip(cells, others, strict=True))])
        for name, *cells in texts
    )
    return "\n".join(map(str.rstrip, lines))


def pad(text: str, width: int, side: str = "l", sign: str = " ") -> str:
    """The text at the left or right ("l", "r") of a cell with a width in places of the terminal."""
    filling = sign * (width - cell_len(text))
    return text + filling if side == "l" else filling + text


def arrow(direction: str) -> str:
    """A direction for readers: "de-en" becomes "De→En", "pt-BR-en" "Pt-BR→En"; others stay as they are."""
    if not re.fullmatch(DIRECTION, direction):
        return direction
    return "→".join(language[0].upper() + language[1:] for language in split_direction(direction))


def count_of_jobs(jobs: int, trainings: int) -> str:
    """The number of jobs and of trainings among them.

    >>> count_of_jobs(1, 0), count_of_jobs(3000, 1)
    ('1 job', '3,000 jobs, 1 of them a training')
    """
    total = f"{jobs:,} job{'s' * (jobs != 1)}"
    trained = "a training" if trainings == 1 else "trainings"
    return f"{total}, {trainings:,} of them {trained}" if trainings else total


def first_names(names: list[str]) -> str:
    """The first `MAX_NAMES` names, and the number of the others."""
    rest = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + rest


def duration(seconds: float) -> str:
    """Seconds for humans.

    >>> duration(42), duration(100), duration(3700), duration(200000)
    ('42 s', '1 min 40 s', '1 h 1 min', '2 d 7 h')
    """
    days, hours = divmod(int(seconds) // 3600, 24)
    minutes, rest = divmod(int(seconds) % 3600, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    first = next((place for place, (count, _) in enumerate(parts) if count), 3)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count) or "0 s"
