import itertools

import pytest

from synmask.files import UserError
from synmask.reporting.examples import SHOWN, examples, parts


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_parts_are_what_both_have_what_is_more_and_what_is_lacking():
    assert parts("the big cat sat", "the cat sat down") == [
        ("same", "the"), ("more", "big"), ("same", "cat sat"), ("less", "down"),
    ]  # fmt: skip
    assert parts("a b", "a c") == [("same", "a"), ("more", "b"), ("less", "c")]
    assert parts("", "a") == [("less", "a")]
    assert parts("a  b", "a b") == [("same", "a b")]


@pytest.fixture
def files(tmp_path):
    """100 sentences of 100 words; system `last` is right in ever more words, `first` in ever fewer; 10 are alike."""
    reference = [" ".join(f"w{k}" for k in range(100))] * 110

    def wrong(count):
        return " ".join(f"{'x' if k < count else 'w'}{k}" for k in range(100))

    sides = {
        "source": [f"Satz {number}" for number in range(1, 111)],
        "reference": reference,
        "first": [*(wrong(number) for number in range(100)), *reference[:10]],
        "last": [*(wrong(99 - number) for number in range(100)), *reference[:10]],
    }
    return {name: write(tmp_path / name, lines) for name, lines in sides.items()}


def test_examples_go_at_equal_steps_from_the_largest_gain_to_the_largest_loss(files):
    found = examples(files["source"], files["reference"], {"A": files["first"], "B": files["last"]})
    assert len(found) == SHOWN
    assert [example.source for example in found] == [f"Satz {example.number}" for example in found]
    numbers = [example.number for example in found]
    assert numbers[0] == 100  # there `first` is wrong in 99 words, `last` in none
    assert numbers[-1] == 1
    steps = {one - other for one, other in itertools.pairwise(numbers)}
    assert steps <= {5, 6}
    assert found[0].translations["B"] == [("same", found[0].reference)]
    assert found[0].translations["A"][0][0] == "more"


def test_sentences_that_all_translate_alike_are_no_examples(files):
    assert examples(files["source"], files["reference"], {"A": files["first"], "B": files["first"]}) == []


def test_sides_that_do_not_fit_are_named(files, tmp_path):
    short = write(tmp_path / "short", ["a"])
    with pytest.raises(UserError, match=r"lines differ: .*source 110, .*short 1; decode the test set again"):
        examples(files["source"], files["reference"], {"A": short})
