"""Trees from distances, against the paper's algorithm written as it is printed: recursively."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synmask.pipeline.syntax.tree import (
    balanced,
    bracket_tree,
    count_ties,
    counted_words,
    counts_as_word,
    left_branching,
    right_branching,
    slots_of,
    spans_of_distances,
    spans_of_forest,
    word_distances,
    word_heads,
)
from synmask.pipeline.syntax.treebank import Tree, read_trees
from synmask.pipeline.text.notation import word_starts

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
        assert bracket_tree(distances, ["w"] * 20_000).count("(") == 39_999


@given(st.lists(distances_lists, min_size=1, max_size=6))
def test_a_forest_is_its_trees_end_to_end(forest):
    spans, offset, expected = spans_of_forest(slots_of(forest)), 0, []
    for tree in forest:
        expected += (spans_of_distances(tree) + offset).tolist()
        offset += len(tree) + 1
    assert spans.tolist() == expected


@pytest.mark.parametrize(
    ("distances", "expected"),
    [([], 0), ([1], 0), ([2, 1, 2], 1), ([1, 1, 1], 2), ([1, 2, 1], 0), ([1, 2, 1, 1], 1), ([np.inf] * 2, 1)],
)
def test_ties_are_the_splits_that_a_rule_decides(distances, expected):
    assert count_ties(slots_of([distances])) == expected


def test_words_begin_after_whole_words():
    tokens = ["über@@", "setz@@", "ung", "ist", "schwer@@", "er"]
    assert word_starts(tokens) == [True, False, False, True, True, False]
    assert word_starts(["ja"]) == [True]


def test_heads_of_words_by_hand():
    tokens = ["a@@", "b", "c", "d@@", "e"]
    p = np.zeros((6, 6))
    p[0, 1] = 0.9  # within the word: does not count
    p[0, 2], p[1, 3], p[1, 4] = 0.5, 0.3, 0.3  # c gets 0.5, de 0.6
    p[2, 5] = 1  # c is the root
    p[3, 0], p[4, 5], p[3, 1] = 0.3, 0.5, 0.3  # ab gets 0.6, the root 0.5
    p[5, 2] = 1
    assert word_heads(p, tokens) == [3, 0, 1]
    assert word_heads(np.array([[0.9, 0.1], [1.0, 0.0]]), ["ja"]) == [0]


def test_baselines_by_hand():
    def brackets(distances):
        return bracket_tree(distances, list("abcdef"[: len(distances) + 1])).replace("(X ", "(")

    assert brackets(right_branching(4)) == "((a) ((b) ((c) (d))))"
    assert brackets(left_branching(4)) == "((((a) (b)) (c)) (d))"
    assert brackets(balanced(5)) == "(((a) (b)) ((c) ((d) (e))))"
    assert brackets(right_branching(5, final=2)) == "((((a) ((b) (c))) (d)) (e))"
    assert brackets(right_branching(3, final=3)) == "(((a) (b)) (c))"
    assert [right_branching(1), left_branching(1), balanced(1)] == [[], [], []]


@pytest.mark.parametrize(
    ("word", "tag", "expected"),
    [
        *(
            ("a", tag, False)
            for tag in [
                ".", ",", ":", "``", "''", "-LRB-", "-RRB-", "HYPH", "NFP", "$", "#", "PU", "$,", "$.", "$(",
                "$*LRB*", "$[", "PUNCT",
            ]
        ),
        # signs that Penn, STTS and universal dependencies have among their words
        *((".", tag, True) for tag in ["NN", "CC", "SYM", "POS", "XY", "KON", "VV", "NOUN"]),
        ("dog", "NN", True),
        *(
            (word, tag, False)
            for tag in ["X", "XX", "_", "PONCT", "punct", "$*LRB*-NK", "COMMA"]
            for word in ["...", "?!", "-", "—", "„", "«", "·", "。", "、", "(", "``", "''", "´", "$", "#", "€",
                         "&quot;", "&apos;", "&#91;", "@-@"]
        ),
        *(
            (word, tag, True)
            for tag in ["X", "XX", "_", "NC", "VMFIN|VVFIN"]
            for word in ["a.", "&apos;s", "3", "US$", "½", "👍", "°", "々", "é"]
        ),
    ],
)  # fmt: skip
def test_words_count_by_their_tag_or_if_it_is_not_known_by_their_characters(word, tag, expected):
    assert counts_as_word(word, tag) is expected


def test_punctuation_does_not_count(tmp_path):
    text = "(S (NP (DT the) (NN dog)) (, ,) (VP (VP (VB saw) (NP (PRP it))) (. !)) (. .))"
    (tmp_path / "gold.mrg").write_text(text)
    (tree,) = read_trees(tmp_path / "gold.mrg")
    keep = counted_words(tree)
    assert keep == [True, True, False, True, True, False, False]


@given(st.lists(few_values, min_size=1, max_size=12))
def test_brackets_are_read_back_as_the_same_tree(tmp_path_factory, distances):
    path = tmp_path_factory.mktemp("trees") / "tree.mrg"
    words = ["(", ")", *map(str, distances)][: len(distances) + 1]
    path.write_text(bracket_tree(distances, words))
    (tree,) = read_trees(path)
    assert isinstance(tree, Tree)
    assert tree.leaves() == words
    assert {(start, end) for start, end, _ in tree.spans()} == span_set(distances)


def test_distances_inside_words_and_escapes_are_dropped():
    tokens = ["un@@", "glaub@@", "lich", "&apos;s", "&amp;nbsp;", "&nbsp;", "?x=1&timestamp=5", "x@@"]
    distances, words = word_distances(tokens, [9.0, 8.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    assert words == ["unglaublich", "'s", "&nbsp;", "&nbsp;", "?x=1&timestamp=5", "x@@"]
    assert distances == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert word_distances([], []) == ([], [])
    assert bracket_tree([], []) == "(FLAT)"
