"""Parsing scores: by hand, and against all binary trees of a sentence, built as nested pairs."""

import functools

import numpy as np
import pytest

from synmask.evaluation.parseval import cut_words, evaluate
from synmask.files import UserError
from synmask.syntax.tree import random_distances, right_branching
from synmask.syntax.treebank import Tree, read_trees


@pytest.fixture
def gold(tmp_path):
    def read(*trees):
        (tmp_path / "gold.mrg").write_text("\n".join(trees), encoding="utf-8")
        return list(read_trees(tmp_path / "gold.mrg"))

    return read


DOG = "(S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (DT a) (NN cat))) (. .))"


def parse(text, *distances):
    return text.split(), list(distances)


def test_one_sentence_by_hand(gold):
    # Without the full stop: gold {the dog, saw a cat, a cat}; induced (the (((dog saw) a) cat)) . has
    # {dog saw a cat, dog saw a, dog saw}: none of them. Then one with two of three right.
    wrong = evaluate(gold(DOG), [parse("the dog saw a cat .", 4, 1, 2, 3, 5)])
    assert wrong["rows"]["induced"] == {"precision": 0, "recall": 0, "f1": 0, "sentence_f1": 0}
    part = evaluate(gold(DOG), [parse("The dog saw a cat .", 2, 4, 5, 1, 0)])  # ((the dog) saw) (a cat .)
    assert part["rows"]["induced"] == pytest.approx(
        {"precision": 100 * 2 / 3, "recall": 100 * 2 / 3, "f1": 100 * 2 / 3, "sentence_f1": 100 * 2 / 3}
    )
    right = part["rows"]["right-branching"]  # {dog saw a cat, saw a cat, a cat}
    assert right["f1"] == pytest.approx(100 * 2 / 3)
    left = part["rows"]["left-branching"]  # {the dog, the dog saw, the dog saw a}
    assert left["recall"] == pytest.approx(100 / 3)
    balanced = part["rows"]["balanced"]  # (the (dog saw)) (a (cat .))
    assert balanced["recall"] == pytest.approx(100 / 3)
    assert part["recall_by_label"]["NP"] == pytest.approx(
        part["recall_by_label"]["NP"] | {"gold": 2, "induced": 100, "right-branching": 50}
    )
    assert part["recall_by_label"]["VP"]["induced"] == 0
    assert list(part["recall_by_label"]) == ["NP", "VP"]
    assert (part["protocol"], part["sentences"], part["skipped"]) == ("words", 1, 0)


def test_corpus_scores_count_spans_and_sentence_f1_counts_sentences(gold):
    flat = "(S (A a) (B b) (C c) (D d))"
    one = "(S (NP (A a) (B b)) (C c))"
    trees = gold(flat, one, "(S (UH yes) (. .))", "(S (A a) (B b))")
    parses = [parse("a b c d", 1, 2, 3), parse("a b c", 1, 2), parse("yes .", 1), parse("a b", 1)]
    result = evaluate(trees, parses)
    # flat: gold empty, 2 predicted: F1 0; one: 1 of 1; two words: nothing to find, nothing predicted: F1 1
    assert result["sentences"] == 3
    assert result["skipped"] == 1
    assert result["rows"]["induced"] == pytest.approx(
        {"precision": 100 / 3, "recall": 100, "f1": 50, "sentence_f1": 100 * 2 / 3}
    )
    assert result["rows"]["oracle"] == pytest.approx(result["rows"]["induced"])
    assert result["rows"]["right-branching"]["sentence_f1"] == pytest.approx(100 / 3)


def test_unary_chains_count_once_and_for_each_label(gold):
    tree = "(ROOT (S (S (VP (A a) (B b))) (C c)))"
    result = evaluate(gold(tree), [parse("a b c", 1, 2)])
    assert result["rows"]["induced"] == {"precision": 100, "recall": 100, "f1": 100, "sentence_f1": 100}
    assert {label: row["gold"] for label, row in result["recall_by_label"].items()} == {"S": 1, "VP": 1}


def test_commas_are_taken_out_of_both_trees(gold):
    tree = "(S (NP (A a) (, ,) (B b)) (C c))"
    # ((a ,) b) c and (a (, b)) c are the same tree without the comma; a ((, b) c) is another
    for distances, f1 in [((1, 2, 3), 100), ((2, 1, 3), 100), ((3, 1, 2), 0)]:
        assert evaluate(gold(tree), [parse("a , b c", *distances)])["rows"]["induced"]["f1"] == f1


def test_moses_escapes_and_case_do_not_matter(gold):
    tree = "(S (NP (A It) (B 's)) (C &))"
    assert evaluate(gold(tree), [parse("it &apos;s &amp;", 1, 2)])["sentences"] == 1


def test_the_random_row_is_the_mean_of_five_seeds(gold):
    trees = gold(DOG)
    words = trees[0].leaves()
    guesses = [random_distances(len(words), np.random.default_rng(seed)) for seed in range(5)]
    rows = [evaluate(trees, [(words, guess)])["rows"] for guess in guesses]
    expected = np.mean([row["induced"]["f1"] for row in rows])
    assert rows[0]["random"]["f1"] == pytest.approx(expected)
    assert list(rows[0]) == ["induced", "right-branching", "left-branching", "balanced", "random", "oracle"]


@functools.cache
def binary_trees(start, end):
    """All binary trees over leaves start..end-1, each as its set of spans of two leaves or more."""
    if end - start == 1:
        return [frozenset()]
    return [
        left | right | {(start, end)}
        for split in range(start + 1, end)
        for left in binary_trees(start, split)
        for right in binary_trees(split, end)
    ]


def random_tree(rng, size, label="S"):
    if size == 1:
        return Tree("NN", ("w",))
    parts = int(rng.integers(2, size + 1))
    cuts = np.sort(rng.choice(np.arange(1, size), parts - 1, replace=False))
    sizes = np.diff(np.concatenate(([0], cuts, [size])))
    return Tree(label, tuple(random_tree(rng, int(part), str(rng.choice(["NP", "VP"]))) for part in sizes))


def slow_scores(gold_tree, distances):
    """(matched, predicted, gold) of one tree, its spans found by splitting recursively."""

    def split(gaps, start):
        if not gaps:
            return set()
        at = gaps.index(max(gaps))
        return (
            {(start, start + len(gaps) + 1)} | split(gaps[:at], start) | split(gaps[at + 1 :], start + at + 1)
        )

    whole = (0, len(distances) + 1)
    expected = {(start, end) for start, end, _ in gold_tree.spans() if end - start > 1} - {whole}
    found = split(list(distances), 0) - {whole}
    return len(expected & found), len(found), len(expected)


def test_against_slow_scores_and_the_best_of_all_binary_trees():
    rng = np.random.default_rng(0)
    trees = [random_tree(rng, int(size)) for size in rng.integers(3, 8, 40)]
    distances = [rng.permutation(len(tree.leaves()) - 1).tolist() for tree in trees]
    result = evaluate(trees, [(tree.leaves(), gaps) for tree, gaps in zip(trees, distances, strict=True)])
    counts = np.array([slow_scores(tree, gaps) for tree, gaps in zip(trees, distances, strict=True)])
    matched, predicted, expected = counts.sum(0)
    f1 = [2 * m / (p + g) if g else float(p == 0) for m, p, g in counts]
    assert result["rows"]["induced"] == pytest.approx(
        {
            "precision": 100 * matched / predicted,
            "recall": 100 * matched / expected,
            "f1": 200 * matched / (predicted + expected),
            "sentence_f1": 100 * np.mean(f1),
        }
    )
    best = []
    for tree in trees:
        size = len(tree.leaves())
        spans = {(start, end) for start, end, _ in tree.spans()} - {(0, size)}
        best.append(max(len(spans & other) for other in binary_trees(0, size)))
    total = sum(len(tree.leaves()) - 2 for tree in trees)
    assert result["rows"]["oracle"]["precision"] == pytest.approx(100 * sum(best) / total)
    assert result["rows"]["oracle"]["recall"] == pytest.approx(100 * sum(best) / expected)


def test_words_that_the_sub_word_tree_cuts():
    tokens = ["a@@", "b", "c", "d@@", "e@@", "f"]
    assert cut_words([1, 5, 4, 2, 1], tokens) == 0
    assert cut_words([6, 5, 4, 2, 1], tokens) == 1  # a@@ stands alone at the top
    assert cut_words(right_branching(6), tokens) == 1  # "d@@ e@@ f" ends the sentence
    assert cut_words([1, 5, 2, 4, 1], tokens) == 1  # c d@@ | e@@ f
    assert cut_words([1, 2], ["a", "b", "c"]) == 0
    with pytest.raises(ValueError, match="tokens"):
        cut_words([1.0], tokens)


@pytest.mark.parametrize(
    ("parses", "message"),
    [
        ([parse("the dog saw a cat .", *range(5)), parse("a b", 1)], "line 2: the parse has 2 words, .* 3;"),
        ([parse("the dog saw a cat .", *range(5)), parse("a b x", 1, 2)], 'line 2, word 3: "x" .*"c"'),
        ([parse("the dog saw a cat .", *range(5)), parse("a b c", 1)], "line 2: 1 distances for 3 words"),
        ([parse("the dog saw a cat .", *range(5))], r"line 2: more gold trees than parses \(1\)"),
        ([parse("the dog saw a cat .", *range(5)), *[parse("a b c", 1, 2)] * 2], "line 3: more parses"),
    ],
)
def test_parses_that_do_not_fit_the_gold_trees_are_named(gold, parses, message):
    with pytest.raises(UserError, match=message):
        evaluate(gold(DOG, "(S (A a) (B b) (C c))"), parses)


def test_nothing_to_score_is_an_error(gold):
    with pytest.raises(UserError, match="no sentence"):
        evaluate(gold("(S (UH yes) (. .))"), [parse("yes .", 1)])
