"""The pairs of a training set that the length limits keep, where these choose before the corpus is split."""

from collections.abc import Sequence
from pathlib import Path

from synmask.pipeline.files import Pair, read_lines, read_pairs, write_lines
from synmask.pipeline.text.clean import outcome
from synmask.pipeline.text.tokenise import tokenise


def pairs_within_limits(
    folder: Path, languages: Sequence[str], max_tokens: int, max_ratio: float, threads: int
) -> list[tuple[Pair, Pair]]:
    """The pairs of the files LANGUAGE in `folder` that `clean.outcome` keeps, each with its Moses tokens.

    Raises:
        UserError: the files differ in length.
    """
    texts = [folder / language for language in languages]
    tokens = [folder / f"{language}.tok" for language in languages]
    for text, output, language in zip(texts, tokens, languages, strict=True):
        write_lines(output, tokenise(read_lines(text), language, threads=threads))
    rows = zip(read_pairs(*texts), read_pairs(*tokens), strict=True)
    return [
        (pair, split)
        for pair, split in rows
        if outcome(split[0].split(), split[1].split(), 1, max_tokens, max_ratio) == "kept"
    ]
