"""Drop sentence pairs that are too short, too long, too different in length, or have an endless word."""

from collections.abc import Sequence
from pathlib import Path

from synmask.pipeline.arguments import Json
from synmask.pipeline.config.sections import Lengths
from synmask.pipeline.files import UserError, all_writing, read_pairs

LONGEST_WORD = 1000  # characters; the default of clean-corpus-n.perl


def clean_files(
    *,
    source_in: Path,
    source_out: Path,
    target_in: Path,
    target_out: Path,
    kept: Path,
    settings: Json[Lengths],
) -> dict[str, int]:
    """Keep the pairs that meet the limits on length and length ratio.

    They are those that Moses' clean-corpus-n.perl keeps (`fate`).

    Args:
        source_in: Source tokens.
        source_out: Kept source tokens.
        target_in: Target tokens.
        target_out: Kept target tokens.
        kept: Output: the numbers of the lines that were kept, to select trees and other data of them.
        settings: '{"min_tokens": 1, "max_tokens": 175, "max_ratio": 1.5}'.

    Returns:
        The number of pairs by fate.

    Raises:
        UserError: the files differ in length or cannot be read, or no pair is kept.
    """
    counts = {"kept": 0, "too_short": 0, "too_long": 0, "ratio": 0, "long_word": 0}
    limits = settings.model_dump()
    outputs = [source_out, target_out, kept]
    with all_writing(outputs) as (source_file, target_file, numbers):
        for number, (source, target) in enumerate(read_pairs(source_in, target_in), start=1):
            source_tokens, target_tokens = source.split(), target.split()
            found = fate(source_tokens, target_tokens, **limits)
            if found == "kept":
                source_file.write(" ".join(source_tokens) + "\n")
                target_file.write(" ".join(target_tokens) + "\n")
                numbers.write(f"{number}\n")
            counts[found] += 1
        if not counts["kept"]:
            raise UserError(
                f"{source_in}, {target_in}: cleaning keeps none of {sum(counts.values())} pairs "
                f"({counts['too_short']} too short, {counts['too_long']} too long, "
                f"{counts['ratio']} of different length, {counts['long_word']} with a word of more than "
                f"{LONGEST_WORD} characters); check the files or widen the limits"
            )
    return counts


def fate(
    source: Sequence[str],
    target: Sequence[str],
    min_tokens: int,
    max_tokens: int | None,
    max_ratio: float | None,
) -> str:
    """The fate of a pair of tokens: "kept", "too_short", "too_long", "ratio" or "long_word".

    A pair is kept if both sides have `min_tokens` to `max_tokens` tokens, neither has more than `max_ratio`
    times as many as the other, and no token has more than 1000 characters; None means no limit.
    """
    shorter, longer = sorted((len(source), len(target)))
    if shorter < min_tokens:
        return "too_short"
    if max_tokens is not None and longer > max_tokens:
        return "too_long"
    if max_ratio is not None and longer / shorter > max_ratio:
        return "ratio"
    if max(map(len, (*source, *target))) > LONGEST_WORD:
        return "long_word"
    return "kept"
