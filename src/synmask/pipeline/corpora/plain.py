"""A corpus of two aligned text files, the user's own or downloaded."""

from collections.abc import Sequence
from pathlib import Path

from synmask.pipeline.files import UserError, all_writing, read_pairs

Expected = int | tuple[int, int]  # number of pairs, or the least and the most


def write_pair(
    source_in: Sequence[str | Path],
    target_in: Sequence[str | Path],
    source_out: str | Path,
    target_out: str | Path,
    name: str,
    *,
    split: str = "text",
    expected: Expected | None = None,
) -> int:
    """Copy aligned files (plain or .gz) with white space as single spaces; return the number of lines.

    The files of each side are joined in their order. White space is Unicode's: tabs, no-break spaces, line
    separators; it is stripped from line ends. Both outputs are written, or neither.

    Raises:
        UserError: a file is missing, damaged, empty or not UTF-8, line counts differ, or there are not
            `expected` pairs. `name` is the corpus's and `split` its part, for the message.
    """
    count = 0
    with all_writing([source_out, target_out]) as (source_file, target_file):
        for one, other in zip(source_in, target_in, strict=True):
            before = count
            for source, target in read_pairs(one, other):
                source_file.write(" ".join(source.split()) + "\n")
                target_file.write(" ".join(target.split()) + "\n")
                count += 1
            if count == before:
                raise UserError(f"{name}: {one} and {other} are empty; give files with one sentence per line")
        check_count(name, split, count, expected)
    return count


def count_pairs(source: str | Path, target: str | Path) -> int:
    """The number of line pairs of two aligned files; raises as `read_pairs`."""
    return sum(1 for _ in read_pairs(source, target))


def check_count(name: str, split: str, count: int, expected: Expected | None) -> None:
    """Check a split's number of pairs against config.yaml: a number, or the least and the most.

    Raises:
        UserError: it differs.
    """
    if expected is None:
        return
    least, most = (expected, expected) if isinstance(expected, int) else expected
    if not least <= count <= most:
        wanted = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        raise UserError(
            f"{name}: {split} has {count:,} pairs, not {wanted}; its files are not the expected ones "
            f"(or fix corpora.{name}.pairs in config.yaml)"
        )
