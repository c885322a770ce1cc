import itertools

import pytest
from sacrebleu.metrics import CHRF

from synmask.pipeline.files import read_aligned
from synmask.pipeline.reporting import examples as module
from synmask.pipeline.reporting.examples import MAX_SENTENCES


def examples(source, reference, names, **kwargs):
    """The examples of files, one for each run of `names`."""
    return module.examples(read_aligned([source, reference, *names.values()], ""), [*names], **kwargs)


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_words_that_differ_are_marked_on_both_sides(tmp_path):
    sides = {
        "source": ["Die Katze"],
        "reference": ["the cat sat down"],
        "a": ["the cat sat"],
        "b": ["the big cat sat"],
    }
    source, reference, a, b = (write(tmp_path / name, lines) for name, lines in sides.items())
    names = {("A", 1): a, ("A", 2): b, ("B", 2): b, ("B", 3): a}
    (found,) = examples(source, reference, names)
    assert found.reference == [("the cat sat ", []), ("down", [0, 1, 2, 3])]
    assert [one.words for one in found.translations[:2]] == [
        [("the cat sat", False)], [("the ", False), ("big ", True), ("cat sat", False)],
    ]  # fmt: skip
    chrf = CHRF()
    for one, text in zip(
        found.translations, ["the cat sat", *["the big cat sat"] * 2, "the cat sat"], strict=True
    ):
        assert one.chrf == chrf.sentence_score(text, ["the cat sat down"]).score
    first, second, same_seed, other_seed = found.translations
    assert first.gain is second.gain is None  # the baseline's own
    assert same_seed.gain == 0  # on A's seed 2
    assert other_seed.gain == 0  # A has no seed 3: on its first one


@pytest.mark.parametrize(
    ("language", "reference", "a", "b", "marked"),
    [
        ("zh", "他们喜欢音乐。", "他们喜欢音乐。", "我们喜欢音乐。", ["我"]),
        ("yue", "他们喜欢 CD。", "他们喜欢 CD。", "他们喜欢 DVD。", ["DVD"]),
        ("ja", "猫が公園で寝る。", "猫が公園で寝る。", "犬が公園で寝る。", ["犬"]),
        ("en", "It sleeps.", "It sleeps.", "It eats.", ["eats"]),  # not its full stop
        ("en", '"So" &amp; so', '"So" &amp; so', '"No" &amp; so &quot;', ["No", '"']),
    ],
)
def test_words_are_those_of_the_metric(tmp_path, language, reference, a, b, marked):
    sides = {"source": ["x"], "reference": [reference], "a": [a], "b": [b]}
    source, expected, *files = (write(tmp_path / name, lines) for name, lines in sides.items())
    names = {("A", 1): files[0], ("B", 1): files[1]}
    (found,) = examples(source, expected, names, language=language)
    assert [text.rstrip() for text, differs in found.translations[1].words if differs] == marked
    if "&" not in b:
        assert "".join(text for text, _ in found.translations[1].words) == b


def test_case_differs_only_where_the_metric_sees_it(tmp_path):
    sides = {"source": ["x"], "reference": ["the cat"], "a": ["a Cat"], "b": ["The CAT"]}
    source, expected, a, b = (write(tmp_path / name, lines) for name, lines in sides.items())
    for lowercase, words in ((True, [("The CAT", False)]), (False, [("The CAT", True)])):
        (found,) = examples(source, expected, {("A", 1): a, ("B", 1): b}, lowercase=lowercase)
        assert found.translations[1].words == words


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
    found = examples(files["source"], files["reference"], {("A", 1): files["first"], ("B", 1): files["last"]})
    assert len(found) == MAX_SENTENCES
    assert [example.source for example in found] == [f"Satz {example.number}" for example in found]
    numbers = [example.number for example in found]
    assert numbers[0] == 100  # there `first` is wrong in 99 words, `last` in none
    assert numbers[-1] == 1
    steps = {one - other for one, other in itertools.pairwise(numbers)}
    assert steps <= {3, 4}
    worse, better = found[0].translations
    assert [differs for _, differs in better.words] == [False]
    assert worse.words[0][1]
    gains = [example.translations[1].gain for example in found]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > 50 > 0 > -50 > gains[-1]


def test_sentences_that_all_translate_alike_are_no_examples(files):
    assert (
        examples(files["source"], files["reference"], {("A", 1): files["first"], ("B", 1): files["first"]})
        == []
    )
