"""The sizes of corpora."""

import gzip
import zlib

from synmask.pipeline.config.schema import Config


def number_of_pairs(config: Config, corpus: str, language: str) -> int | None:
    """The number of training pairs: from the configuration, or the lines of the user's file in `language`.

    None if neither says it.
    """
    entry = config.corpora[corpus]
    number = entry.generate.train if entry.generate else entry.pairs.get("train")
    if number is None and entry.files:
        number = _lines(*config.raw_files(corpus, "train", language))
    return sum(number) // 2 if isinstance(number, tuple) else number


def _lines(path: str) -> int | None:
    """Number of lines of a text (.gz or plain); None if it cannot be read."""
    try:
        with gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb") as file:
            return sum(1 for _ in file)
    except (OSError, EOFError, zlib.error):
        return None
