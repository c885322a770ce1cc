"""The sizes of corpora."""

import gzip
import zlib
from collections.abc import Callable, Iterable

from synmask.pipeline.config.data_files import DataFiles
from synmask.pipeline.config.schema import Config


def number_of_pairs(config: Config, corpus: str, language: str) -> int | None:
    """The number of training pairs: from the configuration, or the lines of the user's file in `language`.

    None if neither says it.
    """
    entry = config.corpora[corpus]
    number = entry.generate.train if entry.generate else entry.pairs.get("train")
    if number is None and entry.files:
        number = _total(*DataFiles(config).raw_files(corpus, "train", language), lambda line: 1)
    return sum(number) // 2 if isinstance(number, tuple) else number


def bytes_of_text(paths: Iterable[str]) -> int | None:
    """The size of texts, unpacked; None if one cannot be read."""
    sizes = [_total(path, len) for path in paths]
    return None if None in sizes else sum(sizes)


def _total(path: str, of: Callable[[bytes], int]) -> int | None:
    """The sum of this number of each line of a text (.gz or plain); None if it cannot be read."""
    try:
        with gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb") as file:
            return sum(map(of, file))
    except (OSError, EOFError, zlib.error):
        return None
