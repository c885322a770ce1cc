"""A corpus of two aligned text files, the user's own or downloaded."""

from collections.abc import Sequence
from pathlib import Path

from synmask.pipeline.config.sections import Pairs
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import all_writing, read_pairs
from synmask.pipeline.languages import print_note


def write_pair(
    name: str, files: Sequence[tuple[Path, Path]], outputs: Sequence[Path], expected: Pairs | None = None
) -> int:
    """Check aligned raw files (.gz or plain) and write them as plain text, joined in their order.

    White space becomes single spaces. It is Unicode's: tabs, no-break spaces, line separators; it is stripped
    from line ends. Both outputs are written, or neither. A note counts empty source lines.

    Args:
        name: the corpus' name, for messages.
        files: raw source and target text.
        outputs: plain source and target text, SPLIT.LANGUAGE.
        expected: number of pairs: a number, or the least and the most.

    Returns:
        The number of pairs.

    Raises:
        UserError: a file is missing, damaged, empty or not UTF-8, line counts differ, or there are not as
            many pairs as expected.
    """
    count = empty = 0
    split = outputs[0].stem
    with all_writing(outputs) as (source_file, target_file):
        for texts, translations in files:
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
        check_count(name, split, count, expected)
    if empty and split != "train":  # `clean` leaves out those of the training set
        sources = ", ".join(str(texts) for texts, _ in files)
        print_note(
            f"{name}: {empty:,} of {count:,} source lines are empty, and so are their translations: {sources}"
        )
    return count


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
