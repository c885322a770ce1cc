"""What the protocols count: by hand, and against loops over sets and lists of spans."""

from collections import Counter

import numpy as np
import pytest

from synmask.evaluation.parseval import evaluate
from synmask.evaluation.protocols import Corpus, right_factored
from synmask.syntax.parses import same_word
from synmask.syntax.tree import balanced, left_branching, right_branching

DOG = "(S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (DT a) (NN cat))) (. .))"


def percentages(matched, predicted, gold):
    return {
        "precision": pytest.approx(100 * matched / predicted),
        "recall": pytest.approx(100 * matched / gold),
        "f1": pytest.approx(200 * matched / (predicted + gold)),
    }


def rows(corpus, protocol):
    result, _ = evaluate(corpus)
    return {
        name: {key: value for key, value in row.items() if key != "sentence_f1"}
        for name, row in result["protocols"][protocol]["rows"].items()
    }


def test_words_by_hand(corpus, parse):
    # without the full stop: gold {the dog, saw a cat, a cat}
    wrong = corpus(
        [DOG], [parse("the dog saw a cat .", 4, 1, 2, 3, 5)]
    )  # {dog saw a cat, dog saw a, dog saw}
    assert rows(wrong, "words")["induced"] == percentages(0, 3, 3)
    part = corpus([DOG], [parse("The dog saw a cat .", 2, 4, 5, 1, 0)])  # ((the dog) saw) (a cat .)
    found = rows(part, "words")
    assert found["induced"] == percentages(2, 3, 3)
    assert found["right-branching"] == percentages(2, 3, 3)  # {dog saw a cat, saw a cat, a cat}
    assert found["left-branching"] == percentages(1, 3, 3)  # {the dog, the dog saw, the dog saw a}
    assert found["balanced"] == percentages(1, 3, 3)  # (the (dog saw)) (a (cat .))
    assert found["oracle"] == percentages(3, 3, 3)
    assert "right-branching-high" not in found  # without the full stop it is the right-branching tree


def test_words_take_commas_out_of_both_trees(corpus, parse):
    tree = "(S (NP (A a) (, ,) (B b)) (C c))"
    # ((a ,) b) c and (a (, b)) c are the same tree without the comma; a ((, b) c) is another
    for distances, f1 in [((1, 2, 3), 100), ((2, 1, 3), 100), ((3, 1, 2), 0)]:
        assert rows(corpus([tree], [parse("a , b c", *distances)]), "words")["induced"]["f1"] == f1


def test_words_drop_the_distances_inside_words(corpus, parse):
    tree = "(S (NP (A ab) (B c)) (C def))"
    split = parse("a@@ b c d@@ e@@ f", 9, 1, 2, 8, 8)
    assert rows(corpus([tree], [split]), "words")["induced"]["f1"] == 100


def test_words_count_a_unary_chain_once(corpus, parse):
    tree = "(ROOT (S (S (VP (A a) (B b))) (C c)))"
    assert rows(corpus([tree], [parse("a b c", 1, 2)]), "words")["induced"] == percentages(1, 1, 1)


def test_paper_by_hand(corpus, parse):
    # gold, right-factored over the@@ ir dog saw a cat . </s>: {the@@ ir, the@@ ir dog, a cat, saw a cat, saw a cat .,
    # the whole without </s>, the whole}, and one that nothing matches
    tree = DOG.replace("the", "their")
    good = parse("the@@ ir dog saw a cat .", 0, 1, 4, 2, 1, 3, eos=5)
    found = rows(corpus([tree], [good]), "paper")
    assert found["induced"] == percentages(7, 7, 8)
    assert found["oracle"] == percentages(7, 7, 8)
    assert found["right-branching"] == percentages(1, 7, 8)
    # the whole, the@@ ir dog saw a cat ., a cat, saw a cat: ((the@@ (ir (dog (saw (a cat))))) .) </s>
    assert found["right-branching-high"] == percentages(4, 7, 8)
    # the whole without </s>, the@@ ir, the@@ ir dog, the whole
    assert found["left-branching"] == percentages(4, 7, 8)
    low = parse("the@@ ir dog saw a cat .", 0, 1, 4, 2, 1, 3, eos=3.5)  # saw a cat . </s>
    assert rows(corpus([tree], [low]), "paper")["induced"] == percentages(6, 7, 8)


def test_paper_splits_ties_at_the_first(corpus, parse):
    tree = "(S (A a) (B b) (C c))"
    assert rows(corpus([tree], [parse("a b c", 1, 1, eos=2)]), "paper")["induced"] == percentages(3, 3, 4)
    assert rows(corpus([tree], [parse("a b c", 1, 1, eos=1)]), "paper")["induced"] == percentages(1, 3, 4)


def test_evalb_by_hand(corpus, parse):
    # COLLINS.prm takes the full stop and TOP away; what is left of gold: S 0-5, NP 0-2, VP 2-5, NP 3-5, NP 3-4
    tree = "(TOP (S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (NP (DT a)) (NN cat))) (. .)))"
    # (((the dog) (saw (a cat))) .): 0-5 twice, 0-2, 2-5, 3-5
    high = corpus([tree], [parse("the dog saw a cat .", 1, 3, 2, 1, 4)])
    assert rows(high, "evalb")["induced"] == percentages(4, 5, 5)
    # right-branching: 0-5, 1-5, 2-5, 3-5, and (cat .) is 4-5
    assert rows(high, "evalb")["right-branching"] == percentages(3, 5, 5)
    assert rows(high, "evalb")["right-branching-high"] == percentages(3, 5, 5)  # 0-5 twice, 1-5, 2-5, 3-5
    # the second whole-sentence bracket finds a ROOT, which COLLINS.prm does not know
    rooted = corpus([tree.replace("TOP", "ROOT")], [parse("the dog saw a cat .", 1, 3, 2, 1, 4)])
    assert rows(rooted, "evalb")["induced"] == percentages(5, 5, 6)


def test_evalb_knows_penn_punctuation_only(corpus, parse):
    # brackets that hold nothing but deleted words go, too; STTS' "$," is a word like any other
    tree = "(S (A a) (X (, ,) (: -)) (B b) (Y ($, ,)))"
    found = rows(corpus([tree], [parse("a , - b ,", 3, 1, 2, 4)]), "evalb")  # ((a ((, -) b)) ,)
    # gold: S 0-3, Y 2-3; predicted: a , - b , 0-3; a , - b 0-2; , - b 1-2; (, -) holds no word
    assert found["induced"] == percentages(1, 3, 2)


def split_at_the_largest(distances, start=0):
    """The spans of the tree, by recursion."""
    if not distances:
        return []
    at = distances.index(max(distances))
    left, right = (
        split_at_the_largest(distances[:at], start),
        split_at_the_largest(distances[at + 1 :], start + at + 1),
    )
    return [(start, start + len(distances) + 1), *left, *right]


def words_by_loops(tree, parse):
    """The distances between words; which words are no punctuation; for COLLINS.prm, which are no deleted ones."""
    gaps = zip(parse.tokens, [*parse.distances, None], strict=True)
    distances = [distance for token, distance in gaps if not token.endswith("@@")][:-1]
    plain = [tag not in (",", ".", "$,") for tag in tree.tags()]
    collins = [tag not in (",", ".") for tag in tree.tags()]
    return distances, plain, collins


def without(spans, keep):
    return [(sum(keep[:start]), sum(keep[:end])) for start, end in spans]


def slow_words(tree, distances, keep):
    length = sum(keep)
    if length < 2:
        return None

    def counted(spans):
        return {(a, b) for a, b in without(spans, keep) if 1 < b - a < length}

    gold, found = counted([span[:2] for span in tree.spans()]), counted(split_at_the_largest(distances))
    return len(gold & found), len(found), len(gold)


def slow_evalb(tree, distances, keep):
    if not any(keep):
        return None
    gold = Counter(without([(a, b) for a, b, label in tree.spans() if label != "TOP"], keep))
    found = Counter(without(split_at_the_largest(distances), keep))
    both = [Counter({span: n for span, n in spans.items() if span[1] > span[0]}) for spans in (gold, found)]
    return (both[0] & both[1]).total(), both[1].total(), both[0].total()


def slow_paper(tree, tokens, distances):
    """As the published script does it: gold distances, then the same algorithm for both trees."""

    def height(node):  # of the binary tree: a constituent's is one more than its higher part's
        parts = node.children
        if isinstance(parts[0], str):
            return 0, [[]], 1
        heights = [height(part) for part in parts]
        high, between, size = heights[-1]
        for left, other, more in reversed(heights[:-1]):
            high = 1 + max(left, high)
            between, size = [*other, [high], *between], size + more
        return high, between, size

    gaps = [value for part in height(tree)[1] for value in part]
    words = [index for index, token in enumerate(tokens) if not token.endswith("@@")]
    expected = [0.0] * (len(tokens) - 1)
    for word, value in zip(words, gaps, strict=False):
        expected[word] = value
    expected = [value + 1 for value in [*expected, 1999]]
    gold, found = set(split_at_the_largest(expected)), set(split_at_the_largest(distances))
    return len(gold & found), len(found), len(gold) + 1


def slow_rows(trees, parses, protocol):
    """(matched, predicted, gold) of each sentence, for the induced tree and three trivial ones."""
    rows = {"induced": [], "right-branching": [], "left-branching": [], "balanced": []}
    for tree, parse in zip(trees, parses, strict=True):
        distances, plain, collins = words_by_loops(tree, parse)
        sub_words = [*parse.distances, parse.eos_distance]
        for name, grow in zip(rows, [None, right_branching, left_branching, balanced], strict=True):
            if protocol == "paper":
                guess = grow(len(sub_words) + 1) if grow else sub_words
                rows[name].append(slow_paper(tree, parse.tokens, guess))
            else:
                guess = grow(len(distances) + 1) if grow else distances
                slow, keep = (slow_words, plain) if protocol == "words" else (slow_evalb, collins)
                rows[name].append(slow(tree, guess, keep))
    return {name: [row for row in counts if row] for name, counts in rows.items()}


@pytest.mark.parametrize("protocol", ["words", "paper", "evalb"])
def test_against_loops(random_sentences, protocol):
    trees, parses = random_sentences
    result, counts = evaluate(Corpus(trees, parses))
    found = result["protocols"][protocol]
    for name, expected in slow_rows(trees, parses, protocol).items():
        matched, predicted, gold = np.sum(expected, axis=0)
        sentences = [200 * m / (p + g) if p + g else 100 for m, p, g in expected]
        assert found["rows"][name] == percentages(matched, predicted, gold) | {
            "sentence_f1": pytest.approx(np.mean(sentences))
        }
        assert found["sentences"] == len(expected)
        if name in ("induced", "right-branching"):
            kept = counts[protocol]
            triples = zip(kept[name]["matched"], kept[name]["predicted"], kept["gold"], strict=True)
            assert sum(np.array(list(triples))) == pytest.approx([matched, predicted, gold])
    assert found["sentences"] + found["skipped"] == len(trees)
    assert (found["skipped"] > 0) == (protocol != "paper")


def test_right_factoring(gold):
    trees = gold("(S (A a) (X (B b) (C c) (D d)) (Y (Z (E e) (F f))))", "(S (A a))", "(S (A a) (B b))")
    spans = np.array([(0, 6), (1, 4), (4, 6), (4, 6), (6, 7), (7, 9)])
    assert [tree.spans()[0][:2] for tree in trees] == [(0, 6), (0, 1), (0, 2)]
    found = right_factored(spans, np.array([6, 1, 2]))
    assert sorted(map(tuple, found.tolist())) == [(0, 6), (1, 4), (1, 6), (2, 4), (4, 6), (7, 9)]


def test_moses_escapes_and_case_do_not_matter():
    assert same_word("&apos;s", "'s")
    assert same_word("It", "it")
    assert not same_word("it", "is")
