"""Trees from distances, against the paper's algorithm written as it is printed: recursively."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synmask.syntax.tree import (
    balanced,
    bracketed,
    is_punctuation,
    left_branching,
    not_punctuation,
    random_distances,
    restrict,
    restricted_spans,
    right_branching,
    spans_of_distances,
    word_distances,
    word_starts,
)
from synmask.syntax.treebank import Tree, read_trees

few_values = st.integers(0, 4).map(float)  # so that many are equal
distances_lists = st.lists(few_values, max_size=25)


def spans_by_recursion(distances, start=0):
    """gap → span: split at the first of the largest distances, then both sides again."""
    if not distances:
        return {}
    split = distances.index(max(distances))
    return {
        start + split: (start, start + len(distances) + 1),
        **spans_by_recursion(distances[:split], start),
        **spans_by_recursion(distances[split + 1 :], start + split + 1),
    }


def span_set(distances):
    return set(map(tuple, spans_of_distances(distances).tolist()))


@given(distances_lists)
def test_spans_are_those_of_the_recursive_algorithm(distances):
    expected = spans_by_recursion(distances)
    assert [tuple(span) for span in spans_of_distances(distances).tolist()] == [
        expected[gap] for gap in range(len(distances))
    ]


def test_spans_of_ties_infinities_and_one_leaf():
    assert spans_of_distances([]).shape == (0, 2)
    assert spans_of_distances([1, 1, 1]).tolist() == [[0, 4], [1, 4], [2, 4]]
    assert spans_of_distances([0.5, np.inf, -np.inf]).tolist() == [[0, 2], [0, 4], [2, 4]]


@pytest.mark.parametrize("bad", [[[1.0, 2.0]], [1.0, float("nan")]])
def test_spans_refuse_what_is_not_a_row_of_numbers(bad):
    with pytest.raises(ValueError, match="distances"):
        spans_of_distances(bad)


def test_long_sentences_of_any_shape_need_no_recursion():
    for distances in (right_branching(20_000), left_branching(20_000), balanced(20_000)):
        assert len(span_set(distances)) == 19_999
        assert bracketed(distances, ["w"] * 20_000).count("(") == 39_999


def test_sub_words_become_words_and_keep_the_gaps_between_them():
    tokens = ["über@@", "setz@@", "ung", "ist", "schwer@@", "er"]
    assert word_starts(tokens) == [True, False, False, True, True, False]
    assert word_distances([9, 8, 1, 2, 7], tokens) == (["übersetzung", "ist", "schwerer"], [1.0, 2.0])
    assert word_distances([], ["ja"]) == (["ja"], [])
    with pytest.raises(ValueError, match="tokens"):
        word_distances([1.0], tokens)


def test_baselines_by_hand():
    def brackets(distances):
        return bracketed(distances, list("abcdef"[: len(distances) + 1])).replace("(X ", "(")

    assert brackets(right_branching(4)) == "((a) ((b) ((c) (d))))"
    assert brackets(left_branching(4)) == "((((a) (b)) (c)) (d))"
    assert brackets(balanced(5)) == "(((a) (b)) ((c) ((d) (e))))"
    assert brackets(right_branching(5, high=2)) == "((((a) ((b) (c))) (d)) (e))"
    assert brackets(right_branching(3, high=3)) == "(((a) (b)) (c))"
    assert [right_branching(1), left_branching(1), balanced(1)] == [[], [], []]


def test_random_trees_split_at_every_gap_equally_often_and_follow_the_seed():
    rng = np.random.default_rng(1)
    roots = [int(np.argmax(random_distances(4, rng))) for _ in range(3000)]
    assert np.bincount(roots) == pytest.approx([1000] * 3, abs=100)
    assert random_distances(9, np.random.default_rng(7)) == random_distances(9, np.random.default_rng(7))


@given(st.data(), distances_lists)
def test_restricting_takes_leaves_out_of_the_tree(data, distances):
    """Projecting the full tree's spans on the kept leaves gives the same tree."""
    count = len(distances) + 1
    keep = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    before = np.concatenate(([0], np.cumsum(keep)))
    projected = {(before[start], before[end]) for start, end in span_set(distances)}
    assert span_set(restrict(distances, keep)) == {(a, b) for a, b in projected if b - a > 1}


@given(st.integers(1, 12), st.integers(0, 4))
def test_without_final_punctuation_attaching_it_high_changes_nothing(words, marks):
    keep = [True] * words + [False] * marks
    plain, high = right_branching(words + marks), right_branching(words + marks, high=marks)
    assert (
        span_set(restrict(plain, keep)) == span_set(restrict(high, keep)) == span_set(right_branching(words))
    )


@pytest.mark.parametrize(
    ("word", "tag", "expected"),
    [
        *(
            (".", tag, True)
            for tag in [".", ",", ":", "``", "''", "-LRB-", "-RRB-", "$,", "$.", "$(", "PUNCT"]
        ),
        ("...", "X", True),
        ("?!", "XX", True),
        ("(", "$", True),
        ("$", "$", False),
        ("a.", "X", False),
        (".", "NN", False),
        ("dog", "NN", False),
    ],
)
def test_punctuation_by_tag_or_without_a_tag_by_its_characters(word, tag, expected):
    assert is_punctuation(word, tag) is expected


def test_gold_spans_without_punctuation(tmp_path):
    text = "(S (NP (DT the) (NN dog)) (, ,) (VP (VP (VB saw) (NP (PRP it))) (. !)) (. .))"
    (tmp_path / "gold.mrg").write_text(text)
    (tree,) = read_trees(tmp_path / "gold.mrg")
    keep = not_punctuation(tree)
    assert keep == [True, True, False, True, True, False, False]
    assert restricted_spans(tree, keep) == {(0, 2): {"NP"}, (2, 4): {"VP"}}


@given(st.lists(few_values, min_size=1, max_size=12))
def test_brackets_are_read_back_as_the_same_tree(tmp_path_factory, distances):
    path = tmp_path_factory.mktemp("trees") / "tree.mrg"
    words = ["(", ")", *map(str, distances)][: len(distances) + 1]
    path.write_text(bracketed(distances, words))
    (tree,) = read_trees(path)
    assert isinstance(tree, Tree)
    assert tree.leaves() == words
    assert {(start, end) for start, end, _ in tree.spans()} == span_set(distances)


def test_brackets_need_one_distance_a_gap():
    with pytest.raises(ValueError, match="words"):
        bracketed([1.0], ["a"])
