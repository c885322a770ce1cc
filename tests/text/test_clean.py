import pytest

from synmask.pipeline.config.sections import Lengths
from synmask.pipeline.files import UserError, read_lines, write_lines
from synmask.pipeline.text.clean import clean_files


def clean(folder, pairs, **limits):
    """Clean (source, target) strings; return the counts and the pairs that are left."""
    for side, name in enumerate(["in.de", "in.en"]):
        write_lines(folder / name, [pair[side] for pair in pairs])
    counts = clean_files(
        source_in=folder / "in.de",
        source_out=folder / "out.de",
        target_in=folder / "in.en",
        target_out=folder / "out.en",
        kept=folder / "kept",
        settings=Lengths(**limits),
    )
    return counts, list(zip(read_lines(folder / "out.de"), read_lines(folder / "out.en"), strict=True))


def test_the_rules_by_example(tmp_path):
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
    counts, left = clean(tmp_path, pairs, max_tokens=4)
    assert counts == {"kept": 4, "too_short": 3, "too_long": 3, "ratio": 2, "long_word": 0}
    assert left == kept
    assert list(read_lines(tmp_path / "kept")) == ["1", "4", "11", "12"]


def test_min_tokens(tmp_path):
    counts, left = clean(tmp_path, [("a b", "x y"), ("a", "x"), ("a b", "x")], min_tokens=2)
    assert counts == {"kept": 1, "too_short": 2, "too_long": 0, "ratio": 0, "long_word": 0}
    assert left == [("a b", "x y")]


def test_a_word_that_is_too_long(tmp_path):
    longest = "ä" * 1000  # characters, not bytes
    pairs = [(f"a {longest}ä", "x y"), ("a b", f"x {longest}ä"), (f"{longest} b", f"x {longest}")]
    counts, left = clean(tmp_path, pairs)
    assert counts == {"kept": 1, "too_short": 0, "too_long": 0, "ratio": 0, "long_word": 2}
    assert left == pairs[2:]


def test_white_space_is_one_space(tmp_path):
    assert clean(tmp_path, [("  a \t b ", "x\u00a0y")])[1] == [("a b", "x y")]


def test_nothing_kept(tmp_path):
    with pytest.raises(UserError) as error:
        clean(tmp_path, [("", ""), ("a", "x y"), ("a " * 200, "x")])
    assert (
        "in.en: cleaning keeps none of 3 pairs (1 too short, 1 too long, 1 of different length, 0 with a word"
        in str(error.value)
    )
    assert "\n" not in str(error.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.de", "in.en"]


def test_unequal_files(tmp_path):
    write_lines(tmp_path / "a", ["x", "y"])
    write_lines(tmp_path / "b", ["x"])
    with pytest.raises(UserError, match=r"a has 2 lines, .*b has 1"):
        clean_files(
            source_in=tmp_path / "a",
            source_out=tmp_path / "c",
            target_in=tmp_path / "b",
            target_out=tmp_path / "d",
            kept=tmp_path / "e",
            settings=Lengths(max_tokens=9, max_ratio=9.0),
        )
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    "limits", [{"min_tokens": 0}, {"min_tokens": 5, "max_tokens": 4}, {"max_ratio": 0.5}]
)
def test_senseless_limits(tmp_path, limits):
    with pytest.raises(ValueError, match=[*limits][-1]):
        clean(tmp_path, [("a", "x")], **limits)


def test_no_limits(tmp_path):
    pairs = [("a", "x " * 500), ("b " * 300, "y"), ("", "z")]
    counts, left = clean(tmp_path, pairs, max_tokens=None, max_ratio=None)
    assert counts == {"kept": 2, "too_short": 1, "too_long": 0, "ratio": 0, "long_word": 0}
    assert [len(target.split()) for _, target in left] == [500, 1]
