"""Drop sentence pairs that are too short, too long, too different in length, or have an endless word."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from synmask.pipeline.config.sections import Lengths
from synmask.pipeline.errors import UserError
from synmask.pipeline.languages import print_note

LONGEST_WORD = 1000  # characters; the default of clean-corpus-n.perl
NOTED_DROPPED, REFUSED_DROPPED = 0.1, 0.9  # of dropped pairs
# Why a pair is dropped → in words, and what keeps it
REASONS = {
    "too_short": ("too short", "lower corpora.{name}.text.min_tokens"),
    "too_long": ("too long", "raise corpora.{name}.text.max_tokens (null: no limit)"),
    "ratio": ("of too different length", "raise corpora.{name}.text.max_ratio (null: no limit)"),
    "long_word": (f"with a word of more than {LONGEST_WORD} characters", "split these in the files"),
}


def clean(
    pairs: Iterable[tuple[str, str]],
    limits: Lengths,
    outcomes: Counter[str],
    per_word: Sequence[float | None] = (None, None),
) -> Iterator[tuple[int, str, str]]:
    """Yield the number (from 1), source and target tokens of the pairs that meet the limits.

    They are those that Moses' clean-corpus-n.perl keeps.

    Args:
        outcomes: counts all pairs by their `outcome`.
        per_word: of each side, how many characters count as a token (`languages.characters_per_word`); None:
            its tokens are words, and are counted.
    """
    outcomes.update(dict.fromkeys(("kept", *REASONS), 0))
    settings = limits.model_dump(include={*Lengths.model_fields})
    for number, (source, target) in enumerate(pairs, start=1):
        source_tokens, target_tokens = source.split(), target.split()
        result = outcome(source_tokens, target_tokens, **settings, per_word=per_word)
        outcomes[result] += 1
        if result == "kept":
            yield number, " ".join(source_tokens), " ".join(target_tokens)


def outcome(
    source: Sequence[str],
    target: Sequence[str],
    min_tokens: int,
    max_tokens: int | None,
    max_ratio: float | None,
    per_word: Sequence[float | None] = (None, None),
) -> str:
    """The outcome for a pair of tokens: "kept", "too_short", "too_long", "ratio" or "long_word".

    A pair is kept if both sides have `min_tokens` to `max_tokens` tokens, neither has more than `max_ratio`
    times as many as the other, and no token has more than 1000 characters; None means no limit.
    """
    shorter, longer = sorted(map(_length, (source, target), per_word))
    if shorter < min_tokens:
        return "too_short"
    if max_tokens is not None and longer > max_tokens:
        return "too_long"
    if max_ratio is not None and longer / shorter > max_ratio:
        return "ratio"
    if max(map(len, (*source, *target))) > LONGEST_WORD:
        return "long_word"
    return "kept"


def _length(tokens: Sequence[str], per_word: float | None) -> int:
    return len(tokens) if per_word is None else math.ceil(sum(map(len, tokens)) / per_word)


def describe_dropped(outcomes: Mapping[str, int]) -> str:
    """How many training pairs are dropped, by reason; "" below a tenth of all."""
    every = sum(outcomes.values())
    count = every - outcomes["kept"]
    if count < NOTED_DROPPED * every:
        return ""
    reasons = ", ".join(
        f"{outcomes[reason]:,} {words}" for reason, (words, _) in REASONS.items() if outcomes[reason]
    )
    return f"{count:,} of {every:,} training pairs are dropped: {reasons}"


def advice_to_keep(name: str, outcomes: Mapping[str, int]) -> str:
    """The key that keeps the pairs of the corpus `name` that are dropped for the most frequent reason."""
    return REASONS[max(REASONS, key=lambda reason: outcomes[reason])][1].format(name=name)


def check_dropped(name: str, outcomes: Mapping[str, int]) -> None:
    """Note that a tenth or more of the training pairs of the corpus `name` are dropped.

    Raises:
        UserError: nine tenths or more are.
    """
    if not (words := describe_dropped(outcomes)):
        return
    advice = advice_to_keep(name, outcomes)
    every = sum(outcomes.values())
    if every - outcomes["kept"] >= REFUSED_DROPPED * every:
        raise UserError(f"{name}: {words}; {advice}, or check that the files are aligned")
    print_note(f"{name}: {words}; to keep more, {advice}")
