"""A corpus of two aligned text files, the user's own or one that is downloaded as such."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from synmask.files import UserError, read_lines, writing


def write_pair(
    source_in: str | Path, target_in: str | Path, source_out: str | Path, target_out: str | Path, name: str
) -> int:
    """Copy two aligned files (plain or .gz), with one space for any run of white space; return the lines.

    White space is Unicode's: tabs, no-break spaces, line separators; it goes at the ends of a line.
    Both outputs appear when all is right, or neither does.

    Raises:
        UserError: a file is missing, damaged, empty or not UTF-8, or their line counts differ. `name`
            is the corpus's, for the message.
    """
    count = 0
    with writing(source_out) as source_file, writing(target_out) as target_file:
        for source, target in read_pairs(source_in, target_in):
            source_file.write(" ".join(source.split()) + "\n")
            target_file.write(" ".join(target.split()) + "\n")
            count += 1
        if not count:
            raise UserError(
                f"{name}: {source_in} and {target_in} are empty; give files with one sentence a line"
            )
    return count


def read_pairs(source: str | Path, target: str | Path) -> Iterator[tuple[str, str]]:
    """Yield the line pairs of two aligned files.

    Raises:
        UserError: a file is missing, damaged or not UTF-8, or, after the last pair, they differ in length.
    """
    counts = [0, 0]
    for pair in zip_longest(read_lines(source), read_lines(target)):
        for side, line in enumerate(pair):
            counts[side] += line is not None
        if counts[0] == counts[1]:
            yield pair
    if counts[0] != counts[1]:
        raise UserError(
            f"{source} has {counts[0]} lines, {target} has {counts[1]}: "
            "line n of one must translate line n of the other"
        )
