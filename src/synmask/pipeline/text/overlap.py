"""Count the pairs of a validation or test set that another set has, too."""

from collections.abc import Iterable
from pathlib import Path

from synmask.pipeline.files import read_pairs
from synmask.pipeline.languages import note

NOTED_SHARE = 0.01  # above this share, a note reports it: some short sentences occur in every set


def overlaps(sets: Iterable[tuple[str, Path, Path]]) -> dict[str, int]:
    """How many pairs of each set occur in those before it: {"valid in train": 3, "test in train": 0, …}.

    Args:
        sets: name, source and target tokens of train, valid and test, in this order.
    """
    sets, found = list(sets), {}
    for place, (name, *files) in enumerate(sets):
        pairs = [_plain(pair) for pair in read_pairs(*files)] if place else []
        wanted = set(pairs)
        for earlier, *others in sets[:place]:
            shared = {pair for pair in map(_plain, read_pairs(*others)) if pair in wanted}
            count = sum(pair in shared for pair in pairs)
            found[f"{name} in {earlier}"] = count
            if count > NOTED_SHARE * len(pairs):
                where = ", ".join(map(str, files + others))
                note(f"{count:,} of {len(pairs):,} pairs of {name} are in {earlier}, too: {where}")
    return found


def _plain(pair: tuple[str, str]) -> tuple[str, str]:
    """With white space as `clean` writes it."""
    return " ".join(pair[0].split()), " ".join(pair[1].split())
