"""Count the pairs of a validation or test set that an earlier set has, too."""

from collections.abc import Iterable, Iterator

from synmask.pipeline.files import Pair
from synmask.pipeline.languages import print_note

NOTED_OVERLAP = 0.01  # above this share, a note reports it: some short sentences occur in every set


class Overlap:
    """Holds the small sets in memory, and compares the training set's pairs with them as they pass.

    Pairs are the same if both sides have the same tokens.
    """

    def __init__(self) -> None:
        self._held: dict[str, list[Pair]] = {}
        self._wanted: set[Pair] = set()
        self._trained: set[Pair] = set()

    def add(self, split: str, pairs: Iterable[Pair]) -> None:
        """Add a set; those before it are earlier ones."""
        self._held[split] = [(" ".join(source.split()), " ".join(target.split())) for source, target in pairs]
        self._wanted.update(self._held[split])

    def add_training_pair(self, source: str, target: str) -> None:
        """See a pair of the training set; its tokens are separated by single spaces."""
        if (source, target) in self._wanted:
            self._trained.add((source, target))

    def counts(self) -> dict[str, int]:
        """How many pairs of each set occur in each earlier one: {"valid in train": 3, …}."""
        return {f"{split} in {earlier}": count for split, earlier, count in self._counted()}

    def note(self, where: str) -> None:
        """Print a note on each set of which more than a hundredth occurs in an earlier one."""
        for split, earlier, count in self._counted():
            if count > NOTED_OVERLAP * len(self._held[split]):
                print_note(
                    f"{where}: {count:,} of {len(self._held[split]):,} pairs of {split} are in {earlier}, too"
                )

    def _counted(self) -> Iterator[tuple[str, str, int]]:
        seen = {"train": self._trained}
        for split, pairs in self._held.items():
            for earlier, others in seen.items():
                yield split, earlier, sum(pair in others for pair in pairs)
            seen[split] = set(pairs)
