"""Drop sentence pairs that are too short, too long or too unlike in length."""

from pathlib import Path

from synmask.corpora.plain import read_pairs
from synmask.files import UserError, writing


def clean_files(
    source_in: str | Path,
    target_in: str | Path,
    source_out: str | Path,
    target_out: str | Path,
    kept_out: str | Path,
    *,
    min_tokens: int,
    max_tokens: int,
    max_ratio: float,
) -> dict[str, int]:
    """Copy the pairs that Moses' clean-corpus-n.perl keeps; return how many had which fate.

    Kept are pairs with `min_tokens` to `max_tokens` tokens (separated by white space) on both sides,
    neither side having more than `max_ratio` times as many as the other. Their line numbers (from 1) go to
    `kept_out`, so that what belongs to the lines, such as trees, can be selected alike.

    Returns:
        The numbers of pairs under "kept", "too_short", "too_long", "ratio" (the first that applies).

    Raises:
        UserError: the files differ in length or cannot be read, or no pair is kept.
        ValueError: `min_tokens` < 1, `max_tokens` < `min_tokens`, or `max_ratio` < 1.
    """
    if not 1 <= min_tokens <= max_tokens or max_ratio < 1:
        raise ValueError(
            "expected 1 <= min_tokens <= max_tokens and max_ratio >= 1, "
            f"got {min_tokens}, {max_tokens} and {max_ratio}"
        )
    counts = {"kept": 0, "too_short": 0, "too_long": 0, "ratio": 0}
    with writing(source_out) as source_file, writing(target_out) as target_file, writing(kept_out) as numbers:
        for number, (source, target) in enumerate(read_pairs(source_in, target_in), start=1):
            source_tokens, target_tokens = source.split(), target.split()
            shorter, longer = sorted((len(source_tokens), len(target_tokens)))
            if shorter < min_tokens:
                fate = "too_short"
            elif longer > max_tokens:
                fate = "too_long"
            elif longer / shorter > max_ratio:
                fate = "ratio"
            else:
                fate = "kept"
                source_file.write(" ".join(source_tokens) + "\n")
                target_file.write(" ".join(target_tokens) + "\n")
                numbers.write(f"{number}\n")
            counts[fate] += 1
        if not counts["kept"]:
            raise UserError(
                f"{source_in}, {target_in}: cleaning keeps none of {sum(counts.values())} pairs "
                f"({counts['too_short']} too short, {counts['too_long']} too long, "
                f"{counts['ratio']} of unlike length); check the files or widen the limits"
            )
    return counts
