"""The protocols' counts: by hand, and against loops over sets and lists of spans."""

from collections import Counter

import numpy as np
import pytest

from synmask.pipeline.evaluation.parseval import evaluate
from synmask.pipeline.evaluation.protocols import ParsedCorpus
from synmask.pipeline.syntax.tree import balanced, counted_words, left_branching, right_branching
from synmask.pipeline.syntax.treebank import is_same_word

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
    assert found["balanced"] == percentages(3, 3, 3)  # (the dog) (saw (a cat))
    assert found["oracle"] == percentages(3, 3, 3)
    assert not [name for name in found if "punctuation" in name]


def test_words_take_commas_out_of_both_trees(corpus, parse):
    tree = "(S (NP (A a) (, ,) (B b)) (C c))"
    # ((a ,) b) c and (a (, b)) c are the same tree without the comma; a ((, b) c) is another
    for distances, f1 in [((1, 2, 3), 100), ((2, 1, 3), 100), ((3, 1, 2), 0)]:
        assert rows(corpus([tree], [parse("a , b c", *distances)]), "words")["induced"]["f1"] == f1


def test_words_are_neither_punctuation_nor_currency_signs(gold, corpus, parse):
    dollars = "(NP (QP ($ $) (CD 2) (CC or)) ($ C$) (CD 3))"
    brackets = "(NP ($-LRB- -LRB-) (NN Haus) ($, ,) (# #) ($. .))"  # STTS' tag "$(" among them
    assert [*map(counted_words, gold(dollars, brackets))] == [
        [False, True, True, False, True],
        [False, True, False, False, False],
    ]
    found = rows(corpus([dollars], [parse("$ 2 or C$ 3", 1, 1, 1, 1)]), "words")
    assert found["oracle"] == percentages(1, 1, 1)  # {2 or}
    assert found["left-branching"] == percentages(1, 1, 1)
    assert found["right-branching"] == found["induced"] == percentages(0, 1, 1)  # {or 3}


def test_words_grow_trivial_trees_over_the_words_that_count(corpus, parse):
    tree = "(S (X (A a) (, ,) (, ,) (B b)) (Y (C c) (Z (D d) (E e))))"  # {a b}, {c d e}, {d e}
    found = rows(corpus([tree], [parse("a , , b c d e", 3, 9, 2, 5, 4, 1)]), "words")
    assert found["balanced"] == percentages(
        3, 3, 3
    )  # (a b) (c (d e)); of all seven leaves, (a , ,) (b c d e)
    assert found["right-branching"] == percentages(2, 3, 3)
    # an induced tree is split with its punctuation: between a and b, where the largest gap is
    assert found["induced"] == percentages(2, 3, 3)
    low = corpus([tree], [parse("a , , b c d e", 3, 4, 2, 5, 4, 1)])
    assert rows(low, "words")["induced"] == percentages(3, 3, 3)


def test_words_drop_the_distances_inside_words(corpus, parse):
    tree = "(S (NP (A ab) (B c)) (C def))"
    split = parse("a@@ b c d@@ e@@ f", 9, 1, 2, 8, 8)
    assert rows(corpus([tree], [split]), "words")["induced"]["f1"] == 100


def test_words_count_a_unary_chain_once(corpus, parse):
    tree = "(ROOT (S (S (VP (A a) (B b))) (C c)))"
    assert rows(corpus([tree], [parse("a b c", 1, 2)]), "words")["induced"] == percentages(1, 1, 1)


def test_paper_by_hand(corpus, parse):
    # gold, right-factored over the@@ ir dog saw a cat . </s>: {the@@ ir, the@@ ir dog, a cat, saw a cat, saw a cat .,
    # the whole without </s>, the whole}; every prediction has one span more, which nothing matches
    tree = DOG.replace("the", "their")
    good = parse("the@@ ir dog saw a cat .", 0, 1, 4, 2, 1, 3, eos=5)
    found = rows(corpus([tree], [good]), "paper")
    assert found["induced"] == percentages(7, 8, 7)
    assert found["oracle"] == percentages(7, 8, 7)
    assert found["right-branching-with-punctuation"] == percentages(1, 8, 7)
    # the whole, the@@ ir dog saw a cat ., a cat, saw a cat: ((the@@ (ir (dog (saw (a cat))))) .) </s>
    assert found["right-branching-punctuation-high"] == percentages(4, 8, 7)
    # the whole without </s>, the@@ ir, the@@ ir dog, the whole
    assert found["left-branching-with-punctuation"] == percentages(4, 8, 7)
    low = parse("the@@ ir dog saw a cat .", 0, 1, 4, 2, 1, 3, eos=3.5)  # saw a cat . </s>
    assert rows(corpus([tree], [low]), "paper")["induced"] == percentages(6, 8, 7)


def test_paper_cuts_lines_and_drops_escapes(corpus, parse):
    def finds(tree, text, *distances):
        """How many of its spans the tree of these distances has."""
        corpora = corpus([tree], [parse(text, *distances, eos=99)])
        return round(rows(corpora, "paper")["induced"]["recall"] * (len(distances) + 1) / 100)

    # the constituent {. b} is cut in two: (a .) (b c)
    two = "(S (A a) (X (. .) (B b)) (C c))"
    assert finds(two, "a . b c", 1, 9, 1) == 4
    assert finds(two, "a . b c", 2, 1, 3) == 2
    # the tree without &quot; is (a b) c; &quot; goes with b, as if it were a piece of it, not with a
    quote = "(S (X (X (A a) (NN &quot;)) (B b)) (C c))"
    assert finds(quote, "a &quot; b c", 2, 1, 3) == 4
    assert finds(quote, "a &quot; b c", 1, 2, 3) == 3
    # behind the last word that is kept it goes with that
    end = "(S (A a) (X (B b) (C c)) (NN &quot;))"
    assert finds(end, "a b c &quot;", 3, 2, 1) == 4
    assert finds(end, "a b c &quot;", 2, 1, 3) == 2
    # the second part, "&quot; .", has one word that is kept and gives no distance, so that what comes before
    # </s> comes before the full stop, which forms the last constituent with </s>
    short = "(S (A a) (! !) (NN &quot;) (. .))"
    assert finds(short, "a ! &quot; .", 1, 3, 5) == 3
    assert rows(corpus([short], [parse("a ! &quot; .", 1, 3, 5, eos=1)]), "paper")["oracle"]["recall"] == 100


def test_paper_splits_ties_at_the_first(corpus, parse):
    tree = "(S (A a) (B b) (C c))"
    assert rows(corpus([tree], [parse("a b c", 1, 1, eos=2)]), "paper")["induced"] == percentages(3, 4, 3)
    assert rows(corpus([tree], [parse("a b c", 1, 1, eos=1)]), "paper")["induced"] == percentages(1, 4, 3)


def test_an_infinite_distance_before_the_end_loses_no_span(corpus, parse):
    tree = "(S (A a) (B b) (C c))"
    for eos, finite in ((float("inf"), 1e9), (float("-inf"), -1e9)):
        found, expected = (
            rows(corpus([tree] * 2, [parse("a b c", 2, 1, eos=end), parse("a b c", 2, 1, eos=3)]), "paper")
            for end in (eos, finite)
        )
        assert found == expected


def test_evalb_by_hand(corpus, parse):
    # COLLINS.prm takes the full stop and TOP away; what is left of gold: S 0-5, NP 0-2, VP 2-5, NP 3-5, NP 3-4
    tree = "(TOP (S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (NP (DT a)) (NN cat))) (. .)))"
    # (((the dog) (saw (a cat))) .): 0-5 twice, 0-2, 2-5, 3-5
    high = corpus([tree], [parse("the dog saw a cat .", 1, 3, 2, 1, 4)])
    assert rows(high, "evalb")["induced"] == percentages(4, 5, 5)
    # right-branching: 0-5, 1-5, 2-5, 3-5, and (cat .) is 4-5
    assert rows(high, "evalb")["right-branching-with-punctuation"] == percentages(3, 5, 5)
    assert rows(high, "evalb")["right-branching-punctuation-high"] == percentages(
        3, 5, 5
    )  # 0-5 twice, 1-5, 2-5, 3-5
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


def distances_of_words(parse):
    gaps = zip(parse.tokens, [*parse.distances, None], strict=True)
    return [distance for token, distance in gaps if not token.endswith("@@")][:-1]


def without(spans, keep):
    return [(sum(keep[:start]), sum(keep[:end])) for start, end in spans]


def slow_words(tree, parse, grow):
    """An induced tree loses its punctuation after it is split, a grown one has none."""
    keep = [tag not in (",", ".", "$,", "$", "#") for tag in tree.tags()]
    length = sum(keep)
    if length < 2:
        return None
    guess = (
        split_at_the_largest(grow(length))
        if grow
        else without(split_at_the_largest(distances_of_words(parse)), keep)
    )
    gold, found = (
        {(a, b) for a, b in spans if 1 < b - a < length}
        for spans in (without([span[:2] for span in tree.spans()], keep), guess)
    )
    return len(gold & found), len(found), len(gold)


def slow_evalb(tree, parse, grow):
    keep = [tag not in (",", ".") for tag in tree.tags()]
    if not any(keep):
        return None
    distances = grow(len(keep)) if grow else distances_of_words(parse)
    gold = Counter(without([(a, b) for a, b, label in tree.spans() if label != "TOP"], keep))
    found = Counter(without(split_at_the_largest(distances), keep))
    both = [Counter({span: n for span, n in spans.items() if span[1] > span[0]}) for spans in (gold, found)]
    return (both[0] & both[1]).total(), both[1].total(), both[0].total()


def heights(node, kept):
    """Depth of a tree of the kept words alone, factored to the right, and a distance for each gap."""
    parts = []

    def descend(node):  # → depth and distances, or None without kept words; the words come in order
        if isinstance(node.children[0], str):
            parts.append(None)
            return (1, []) if len(parts) - 1 in kept else None
        found = [part for part in map(descend, node.children) if part]
        if not found:
            return None
        depth, distances = found.pop()
        while found:
            left, between = found.pop()
            higher = max(left, depth)
            depth, distances = higher + 1, [*between, higher, *distances]
        return depth, distances

    return descend(node)[1]


def slow_paper(tree, parse, grow):
    """As the published scripts do it: gold distances word by word, zeros put in for pieces, then the same
    algorithm for both trees; -1 parts what lies between full stops."""
    words = " ".join(parse.tokens).replace("@@ ", "").split()
    expected, part = [], []
    for number, word in enumerate(words):
        part.append(number)
        if word in (".", "!", "?") or number == len(words) - 1:
            kept = [place for place in part if "&" not in words[place]]
            if len(kept) > 1:
                values = [0] * (len(part) - 1)
                for place, value in zip(kept, heights(tree, kept), strict=False):
                    values[place - part[0]] = value
                expected += values
            if number < len(words) - 1:
                expected.append(-1)
            part = []
    expected.append(1999)
    for place, token in enumerate(parse.tokens):
        if token.endswith("@@"):
            expected.insert(place, 0)
    expected += [0] * (len(parse.tokens) - len(expected))
    expected = [999 if value == -1 else value + 1 for value in expected]
    distances = grow(len(parse.tokens) + 1) if grow else [*parse.distances, parse.eos_distance]
    gold, found = set(split_at_the_largest(expected)), set(split_at_the_largest(distances))
    return len(gold & found), len(found) + 1, len(gold)


def slow_rows(trees, parses, protocol):
    """(matched, predicted, gold) of each sentence, for the induced tree and three trivial ones."""
    slow, leaves = {
        "words": (slow_words, ""),
        "paper": (slow_paper, "-with-punctuation"),
        "evalb": (slow_evalb, "-with-punctuation"),
    }[protocol]
    growing = {"right-branching": right_branching, "left-branching": left_branching, "balanced": balanced}
    rows = {"induced": None} | {name + leaves: grow for name, grow in growing.items()}
    counts = {
        name: [slow(tree, parse, grow) for tree, parse in zip(trees, parses, strict=True)]
        for name, grow in rows.items()
    }
    return {name: [row for row in found if row] for name, found in counts.items()}


@pytest.mark.parametrize("protocol", ["words", "paper", "evalb"])
def test_against_loops(random_sentences, protocol):
    trees, parses = random_sentences
    result, counts = evaluate(ParsedCorpus(trees, parses))
    found = result["protocols"][protocol]
    for name, expected in slow_rows(trees, parses, protocol).items():
        matched, predicted, gold = np.sum(expected, axis=0)
        sentences = [200 * m / (p + g) if p + g else 100 for m, p, g in expected]
        assert found["rows"][name] == percentages(matched, predicted, gold) | {
            "sentence_f1": pytest.approx(np.mean(sentences))
        }
        assert found["sentences"] == len(expected)
        if name.startswith(("induced", "right-branching")):
            kept, name = counts[protocol], name.removesuffix("-with-punctuation")
            triples = zip(kept[name]["matched"], kept[name]["predicted"], kept["gold"], strict=True)
            assert sum(np.array(list(triples))) == pytest.approx([matched, predicted, gold])
    assert found["sentences"] + found["skipped"] == len(trees)
    assert (found["skipped"] > 0) == (protocol != "paper")


def test_right_factoring(gold, parse):
    trees = gold("(S (A a) (X (B b) (C c) (D d)) (Y (Z (E e) (F f))))", "(S (A a))", "(S (A a) (B b))")
    parses = [parse("a b c d e f", 1, 1, 1, 1, 1), parse("a"), parse("a b", 1)]
    found = ParsedCorpus(trees, parses).binary
    assert sorted(map(tuple, found.tolist())) == [(0, 6), (1, 4), (1, 6), (2, 4), (4, 6), (7, 9)]


def test_moses_escapes_and_case_do_not_matter():
    assert is_same_word("&apos;s", "'s")
    assert is_same_word("It", "it")
    assert not is_same_word("it", "is")
    assert not is_same_word("?x=1&timestamp=5", "?x=1×tamp=5")
