from collections import Counter

import pytest

from synmask.pipeline import languages
from synmask.pipeline.config.sections import Lengths
from synmask.pipeline.errors import UserError
from synmask.pipeline.text import clean as cleaning


def clean(pairs, **limits):
    """Clean (source, target) strings → the counts, and the pairs that are left."""
    fates = Counter()
    left = [(source, target) for _, source, target in cleaning.clean(pairs, Lengths(**limits), fates)]
    return fates, left


def test_the_rules_by_example():
    kept = [("a b c", "x y"), ("a b", "x y z"), ("a", "x"), ("a b c d", "w x y z")]
    pairs = [
        kept[0],
        ("", "x"),  # too short, on either side
        ("a", " "),
        kept[1],
        ("a b c d e", "v w x y"),  # too long, on either side
        ("a b c d", "v w x y z"),
        ("a b c d e", ""),  # too short goes before too long
        ("a b c d e", "x"),  # too long goes before ratio
        ("a b c d", "x y"),  # ratio, on either side
        ("a", "x y"),
        kept[2],
        kept[3],
    ]
    fates = Counter()
    numbers = [number for number, *_ in cleaning.clean(pairs, Lengths(max_tokens=4), fates)]
    counts, left = clean(pairs, max_tokens=4)
    assert counts == fates
    assert counts == {"kept": 4, "too_short": 3, "too_long": 3, "ratio": 2, "long_word": 0}
    assert left == kept
    assert numbers == [1, 4, 11, 12]


def test_min_tokens():
    counts, left = clean([("a b", "x y"), ("a", "x"), ("a b", "x")], min_tokens=2)
    assert counts == {"kept": 1, "too_short": 2, "too_long": 0, "ratio": 0, "long_word": 0}
    assert left == [("a b", "x y")]


def test_a_word_that_is_too_long():
    longest = "ä" * 1000  # characters, not bytes
    pairs = [(f"a {longest}ä", "x y"), ("a b", f"x {longest}ä"), (f"{longest} b", f"x {longest}")]
    counts, left = clean(pairs)
    assert counts == {"kept": 1, "too_short": 0, "too_long": 0, "ratio": 0, "long_word": 2}
    assert left == pairs[2:]


def test_characters_are_counted_where_there_are_no_words():
    """Twelve characters are three Thai words, which fit one English word or nine of them at a ratio of 3."""
    pairs = [
        ("กขคงกขคงกขคง", "a"),
        ("กขคงกขคง กขคง", " ".join("abcdefghi")),
        ("กขคงกขคงกขคง", " ".join("abcdefghij")),
    ]
    fates, limits = Counter(), Lengths(max_ratio=3, max_tokens=9)
    assert [number for number, *_ in cleaning.clean(pairs, limits, fates, (4, None))] == [1, 2]
    assert fates["too_long"] == 1
    assert languages.characters_per_word("th", "char") == 4
    assert languages.characters_per_word("th", "icu") is None
    assert languages.characters_per_word("de", "char") == 5


def test_white_space_is_one_space():
    assert clean([("  a \t b ", "x\u00a0y")])[1] == [("a b", "x y")]


FATES = {"kept": 100, "too_short": 0, "too_long": 0, "ratio": 0, "long_word": 0}


@pytest.mark.parametrize("few", [{}, {"kept": 91, "ratio": 9}])
def test_few_dropped_pairs_are_no_note(capsys, few):
    assert cleaning.describe_dropped(FATES | few) == ""
    cleaning.check_dropped("mine", FATES | few)
    assert capsys.readouterr().err == ""


def test_a_tenth_of_dropped_pairs_is_a_note(capsys):
    languages.print_note.cache_clear()
    cleaning.check_dropped("mine", FATES | {"kept": 900, "too_short": 10, "ratio": 90})
    assert capsys.readouterr().err == (
        "note: mine: 100 of 1,000 training pairs are dropped: 10 too short, 90 of too different length; "
        "to keep more, raise corpora.mine.text.max_ratio (null: no limit)\n"
    )


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("too_short", "1,800 too short; lower corpora.mine.text.min_tokens, or check"),
        ("too_long", "1,800 too long; raise corpora.mine.text.max_tokens (null: no limit), or check"),
        (
            "ratio",
            "1,800 of too different length; raise corpora.mine.text.max_ratio (null: no limit), or check",
        ),
        ("long_word", "1,800 with a word of more than 1000 characters; split these in the files, or check"),
    ],
)
def test_nine_tenths_of_dropped_pairs_are_an_error(reason, words):
    with pytest.raises(UserError) as error:
        cleaning.check_dropped("mine", FATES | {"kept": 200, reason: 1800})
    assert str(error.value).startswith(f"mine: 1,800 of 2,000 training pairs are dropped: {words}")
    cleaning_less = FATES | {"kept": 201, reason: 1799}
    cleaning.check_dropped("mine", cleaning_less)


@pytest.mark.parametrize(
    "limits", [{"min_tokens": 0}, {"min_tokens": 5, "max_tokens": 4}, {"max_ratio": 0.5}]
)
def test_senseless_limits(limits):
    with pytest.raises(ValueError, match=[*limits][-1]):
        clean([("a", "x")], **limits)


def test_no_limits():
    pairs = [("a", "x " * 500), ("b " * 300, "y"), ("", "z")]
    counts, left = clean(pairs, max_tokens=None, max_ratio=None)
    assert counts == {"kept": 2, "too_short": 1, "too_long": 0, "ratio": 0, "long_word": 0}
    assert [len(target.split()) for _, target in left] == [500, 1]
