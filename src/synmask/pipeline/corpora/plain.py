"""A corpus of two aligned text files, the user's own or downloaded."""

from collections.abc import Sequence
from pathlib import Path

from synmask.pipeline.config.sections import Pairs
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import all_writing, read_pairs, together
from synmask.pipeline.languages import note


def write_pair(
    *,
    name: str,
    source_in: Sequence[Path],
    source_out: Path,
    target_in: Sequence[Path],
    target_out: Path,
    pairs: Pairs | None = None,
) -> dict[str, int]:
    """Check aligned raw files (.gz or plain) and write them as plain text; several are joined in their order.

    White space becomes single spaces. It is Unicode's: tabs, no-break spaces, line separators; it is stripped
    from line ends. Both outputs are written, or neither.

    Args:
        name: The corpus' name, for messages.
        source_in: Raw source text.
        source_out: Plain source text.
        target_in: Raw target text.
        target_out: Plain target text.
        pairs: Expected number of pairs: a number, or the least and the most.

    Returns:
        The numbers of "pairs" and of "empty" source lines, whose translations are empty, too.

    Raises:
        UserError: a file is missing, damaged, empty or not UTF-8, line counts differ, or there are not as
            many pairs as expected.
    """
    count = empty = 0
    with all_writing([source_out, target_out]) as (source_file, target_file):
        for texts, translations in together(source_in=source_in, target_in=target_in):
            before = count
            for source, target in read_pairs(texts, translations):
                source_file.write(" ".join(source.split()) + "\n")
                target_file.write(" ".join(target.split()) + "\n")
                count += 1
                empty += not source.split()
            if count == before:
                raise UserError(
                    f"{name}: {texts} and {translations} are empty; give files with one sentence per line"
                )
        check_count(name, source_out.stem, count, pairs)
    if empty and source_out.stem != "train":  # `clean` leaves out those of the training set
        files = ", ".join(map(str, source_in))
        note(f"{name}: {empty:,} of {count:,} source lines are empty, and so are their translations: {files}")
    return {"pairs": count, "empty": empty}


def count_pairs(source: str | Path, target: str | Path) -> int:
    """The number of line pairs of two aligned files; raises as `read_pairs`."""
    return sum(1 for _ in read_pairs(source, target))


def check_count(name: str, split: str, count: int, expected: Pairs | None) -> None:
    """Check a split's number of pairs against config.yaml: a number, or the least and the most.

    Raises:
        UserError: it differs.
    """
    if expected is None:
        return
    least, most = (expected, expected) if isinstance(expected, int) else expected
    if not least <= count <= most:
        bounds = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        raise UserError(
            f"{name}: {split} has {count:,} pairs, not {bounds}; its files are not the expected ones "
            f"(or fix corpora.{name}.pairs in config.yaml)"
        )
