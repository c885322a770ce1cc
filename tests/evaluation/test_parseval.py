"""Scores from counts, the rows beside the induced trees, what sub-words suffer, and files that do not fit."""

import functools
import json

import numpy as np
import pytest

from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation.parseval import evaluate, evaluate_files
from synmask.pipeline.evaluation.protocols import ParsedCorpus
from synmask.pipeline.files import write_lines
from synmask.pipeline.reporting.score_trees import as_text
from synmask.pipeline.syntax.parses import Parse
from synmask.pipeline.syntax.tree import bracket_tree, counted_words, spans_of_distances, word_distances

DOG = "(S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (DT a) (NN cat))) (. .))"


@pytest.fixture
def words(corpus):
    """The scores by the protocol `words`."""
    return lambda trees, parses: evaluate(corpus(trees, parses))[0]["protocols"]["words"]


def test_corpus_scores_count_spans_and_sentence_f1_counts_sentences(words, parse):
    trees = [
        "(S (A a) (B b) (C c) (D d))",
        "(S (NP (A a) (B b)) (C c))",
        "(S (UH yes) (. .))",
        "(S (A a) (B b))",
    ]
    parses = [parse("a b c d", 1, 2, 3), parse("a b c", 1, 2), parse("yes .", 1), parse("a b", 1)]
    result = words(trees, parses)
    # flat: gold empty, 2 predicted: F1 0; then 1 of 1; two words: nothing to find, nothing predicted: F1 1
    assert (result["sentences"], result["skipped"]) == (3, 1)
    assert result["rows"]["induced"] == pytest.approx(
        {"precision": 100 / 3, "recall": 100, "f1": 50, "sentence_f1": 100 * 2 / 3}
    )
    assert result["rows"]["oracle"] == pytest.approx(result["rows"]["induced"])
    assert result["rows"]["right-branching"]["sentence_f1"] == pytest.approx(100 / 3)


def test_recall_by_label(words, parse):
    found = words([DOG], [parse("the dog saw a cat .", 2, 4, 5, 1, 0)])[
        "recall_by_label"
    ]  # ((the dog) saw) (a cat .)
    assert list(found) == ["NP", "VP"]
    assert (found["NP"]["gold"], found["NP"]["induced"], found["NP"]["right-branching"]) == (2, 100, 50)
    assert (found["VP"]["gold"], found["VP"]["induced"], found["VP"]["right-branching"]) == (1, 0, 100)
    chain = words(["(ROOT (S (S (VP (A a) (B b))) (C c)))"], [parse("a b c", 1, 2)])["recall_by_label"]
    assert {label: row["gold"] for label, row in chain.items()} == {"S": 1, "VP": 1}


def test_the_random_row_is_the_mean_of_five_seeds(corpus, parse):
    text, slots = "the dog saw a cat .", np.array([0.0] * 5 + [np.inf])
    f1 = []
    for seed in range(5):
        guess = np.where(np.isfinite(slots), np.random.default_rng(seed).random(6), 0)[:5]
        result, _ = evaluate(corpus([DOG], [parse(text, *guess)]))
        f1.append(result["protocols"]["words"]["rows"]["induced"]["f1"])
    assert len(set(f1)) > 1
    assert result["protocols"]["words"]["rows"]["random"]["f1"] == pytest.approx(np.mean(f1))


@functools.cache
def binary_trees(start, end):
    """All binary trees over leaves start..end-1, each as its set of spans of two leaves or more."""
    if end - start < 2:
        return [frozenset()]
    return [
        left | right | {(start, end)}
        for split in range(start + 1, end)
        for left in binary_trees(start, split)
        for right in binary_trees(split, end)
    ]


def test_the_oracle_is_the_best_of_all_binary_trees(random_sentences):
    best = expected = total = 0
    trees, parses = random_sentences
    for tree in trees:
        keep = counted_words(tree)
        spans = {(sum(keep[:start]), sum(keep[:end])) for start, end, _ in tree.spans()}
        spans = {(start, end) for start, end in spans if 1 < end - start < sum(keep)}
        best += max((len(spans & other) for other in binary_trees(0, sum(keep))), default=0)
        expected += len(spans)
        total += max(sum(keep) - 2, 0)
    assert expected > 50
    oracle = evaluate(ParsedCorpus(trees, parses))[0]["protocols"]["words"]["rows"]["oracle"]
    assert oracle["precision"] == pytest.approx(100 * best / total)
    assert oracle["recall"] == pytest.approx(100 * best / expected)


def test_words_that_the_sub_word_tree_cuts_and_splits_that_are_ties(corpus, parse):
    tree = "(S (A ab) (B c) (C def))"
    text = "a@@ b c d@@ e@@ f"
    for distances, cut, tied in [
        ((1, 5, 4, 2, 1), 0, 0),
        ((6, 5, 4, 2, 1), 1, 0),  # a@@ stands alone at the top
        ((1, 5, 2, 4, 1), 1, 0),  # c d@@ | e@@ f
        ((3, 3, 3, 3, 3), 1, 4),  # d@@ e@@ f ends the sentence
        ((1, 2, 2, 1, 1), 0, 2),  # the two 2s, and the last two 1s
        ((1, 2, 1, 2, 1), 1, 1),  # the 1s lie in different constituents
    ]:
        result, _ = evaluate(corpus([tree], [parse(text, *distances)]))
        assert result["cut_words"] == {"cut": cut, "split": 2}
        assert result["ties"] == {"tied": tied, "splits": 5}


def test_how_much_of_the_distances_within_sentences_the_labels_explain(corpus, parse):
    def explained(*sentences):
        trees = [f"(S (A {text.replace('@@ ', '').replace(' ', ') (A ')}))" for text, _ in sentences]
        parses = [parse(text, *distances) for text, distances in sentences]
        return evaluate(corpus(trees, parses))[0]["explained_by_labels_within_sentences"]

    # piece-piece 1, piece-whole 2, whole-piece 3, whole-whole 4; then a level of each sentence's own, too
    one, two = "a@@ b c d@@ e@@ f", "c c a@@ b"
    assert explained((one, (1, 2, 3, 1, 1)), (two, (4, 3, 1))) == pytest.approx(1)
    assert explained((one, (1, 2, 3, 1, 1)), (two, (94, 93, 91))) == pytest.approx(1)
    # Without their means: -2.5, -0.5, 0.5, 2.5 and -2.5, -2.5, 0.5, 4.5. Sums of squares: 46 in all, 3 within
    # piece-piece (mean -2), 0 within piece-whole, 2 within whole-whole (mean 3.5).
    same = "a@@ b@@ c d e"
    assert explained((same, (0, 2, 3, 5)), (same, (10, 10, 13, 17))) == pytest.approx(1 - 5 / 46)
    assert explained(("a b c d", (1, 2, 4)), (two, (7, 7, 7))) == 0  # whole-whole alone varies
    assert explained((one, (0.1,) * 5), (two, (0.7,) * 3)) is None  # between sentences only
    assert explained((one, (1, 2, float("inf"), 2, 1)), (two, (1, 2, 3))) is None


def test_no_sentence_disturbs_another(random_sentences):
    trees, parses = random_sentences
    _, together = evaluate(ParsedCorpus(trees[:40], parses[:40]))
    for number in range(40):
        if len(trees[number].leaves()) > 1 and "NN" in trees[number].tags():
            try:
                _, alone = evaluate(ParsedCorpus([trees[number]], [parses[number]]))
            except UserError:
                continue  # nothing to score in it
            for protocol, counts in alone.items():
                assert counts["gold"] == [together[protocol]["gold"][number]]
                assert counts["induced"]["matched"] == [together[protocol]["induced"]["matched"][number]]


def test_long_sentences_need_no_recursion(parse):
    from synmask.pipeline.syntax.treebank import Tree

    words, tree = 2000, Tree("N", ("w",))
    for _ in range(words - 1):
        tree = Tree("X", (Tree("N", ("w",)), tree))
    falling = parse("w " * words, *range(words - 1, 0, -1), eos=words)
    result, _ = evaluate(ParsedCorpus([tree], [falling]))
    for protocol in ("words", "evalb"):
        assert result["protocols"][protocol]["rows"]["induced"]["f1"] == 100
    assert len(spans_of_distances(falling.distances)) == words - 1


GOLD = "(S (NP (D the) (N dogs)) (VP (V bark) (ADVP (A very) (A loudly))) (. .))\n"


def row(distances, tokens=("the", "do@@", "gs", "bark", "very", "loudly", "."), **kwargs):
    return json.dumps({"tokens": list(tokens), "distances": distances, "eos_distance": 9.5} | kwargs) + "\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "gold").write_text(GOLD)
    (tmp_path / "heads").write_text("2 3 0 5 3 3\n")
    return tmp_path / "gold", tmp_path / "predicted", tmp_path / "heads"


def test_files(files):
    files[1].write_text(
        row([2, 1, 4, 3, 1, 5], heads=[2, 3, 0, 3, 4, 0])
    )  # ((the dogs) (bark (very loudly))) .
    result, counts = evaluate_files(*files)
    found = result["protocols"]["words"]["rows"]
    assert found["induced"] == pytest.approx(found["oracle"])
    assert counts["words"] == {
        "gold": [3],
        "induced": {"matched": [3], "predicted": [3]},
        "right-branching": {"matched": [2], "predicted": [3]},
        "balanced": {"matched": [3], "predicted": [3]},
    }
    assert result["dependencies"]["words"] == 5
    assert result["dependencies"]["rows"]["induced"] == {"directed": 60, "undirected": 80}
    assert evaluate_files(*files[:2])[0]["dependencies"] is None
    files[1].write_text(row([2, 1, 4, 3, 1, 5]))  # a system without heads
    assert evaluate_files(*files)[0]["dependencies"] is None


def test_sentences_that_nobody_parsed_are_left_out(files):
    files[1].write_text(row([2, 1, 4, 3, 1, 5], heads=[2, 3, 0, 3, 4, 0]))
    before, _ = evaluate_files(*files)
    files[0].write_text(GOLD + "(FLAT (X a) (X b) (X c))\n")
    files[1].write_text(files[1].read_text() + row([1, 2], ["a", "b", "c"], heads=[0, 1, 1]))
    files[2].write_text(files[2].read_text() + "0 0 0\n")
    after, counts = evaluate_files(*files)
    assert after == before | {"unparsed": 1}
    assert len(counts["words"]["gold"]) == 1
    files[0].write_text("(FLAT (X a) (X b) (X c))\n")
    files[1].write_text(row([1, 2], ["a", "b", "c"]))
    with pytest.raises(UserError, match="no sentence has a gold tree"):
        evaluate_files(*files[:2])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "no json\n",
            "predicted: neither a tree in brackets nor what `synmask parse` writes; give one of these",
        ),
        ("[1]\n", "predicted: neither a tree in brackets"),
        ("{}\n", "predicted, line 1: not tokens, distances and eos_distance"),
        (row([1] * 6) + "(S)\n", "predicted, line 2: not tokens"),
        ("(S (NP the\n", r'predicted, line 1: "\(" is never closed'),
        (")", "predicted: neither a tree in brackets"),
        ("(S (A b)) )", 'predicted, line 1: "\\)" without its'),
        ("", "predicted, line 1: no tree in this file"),
        (
            "((the dogs) (bark very) .)\n",
            r"predicted, line 1: .* shares .*; or, if trees have no labels, give one per line with as many words",
        ),
        (
            "((the cats) (bark (very loudly)) .)\n",
            'predicted: line 1: word 2 is "cats", not "dogs" as in the gold tree',
        ),
        (
            "(X (X the) (X (X do@@) (X gs)))\n",
            'predicted, tree 1: "do@@" is a piece of a word; give trees over',
        ),
        (row([1, 2, 3, 1, 1, None]), "predicted, line 1: not tokens"),
        (row([1], [1, 2]), "predicted, line 1: not tokens"),
        ('{"tokens": null, "distances": [], "eos_distance": 1}\n', "predicted, line 1: not tokens"),
        (row([1, 2, 3, 1, 1, 5], heads=["x"] * 6), "predicted, line 1: not tokens"),
        (row([1, 2, 3, 1, 1, float("nan")]), "predicted, line 1: not tokens"),
        (row([1, 2]), "predicted, line 1: 2 distances for 7 tokens"),
        (row([1, 2, 3, 1, 1, 5]) * 2, r"gold, .*predicted: line 2: more parses than gold trees \(1\)"),
        (
            row([1, 2], ["the", "dogs", "bark"]),
            "gold, .*predicted: line 1: 3 words, not 6 as in the gold tree",
        ),
        (
            row([1, 2, 3, 1, 1, 5], ["a", "do@@", "gs", "bark", "very", "loudly", "."]),
            'gold, .*predicted: line 1: word 1 is "a", not "the" as in the gold tree',
        ),
        (row([1] * 6, heads=[1, 2]), "predicted, line 1: 2 induced heads for 6 words; parse again"),
        (row([1] * 6, heads=[7] * 6), "predicted, line 1: an induced head outside of 0 to 6"),
        (row([1] * 6, heads=[-1] * 6), "predicted, line 1: an induced head outside of 0 to 6"),
        (row([1] * 6, heights=[1, 2]), "predicted, line 1: 2 heights for 7 tokens"),
        (row([1] * 6, parents=[[]]), "predicted, line 1: 1 lists of parents for 7 tokens"),
        (row([1] * 6, parents=[[[8, 0.5]]] * 7), "predicted, line 1: a parent outside of 0 to 7"),
    ],
)
def test_files_that_do_not_fit_are_named_with_their_line(files, text, message):
    files[1].write_text(text)
    with pytest.raises(UserError, match=message):
        evaluate_files(*files[: 3 if "heads" in text else 2])


def test_too_few_parses_and_nothing_to_score(files):
    files[0].write_text(GOLD * 2)
    files[1].write_text(row([1, 2, 3, 1, 1, 5]))
    with pytest.raises(UserError, match=r"line 2: more gold trees than parses \(1\)"):
        evaluate_files(*files)
    files[0].write_text("(S (UH yes))\n")
    files[1].write_text(row([], ["yes"]))
    with pytest.raises(UserError, match=r"gold, .*predicted: no sentence has two words"):
        evaluate_files(*files[:2])


def test_trees_in_brackets_score_as_the_distances_that_make_them(random_sentences, tmp_path):
    trees, parses = random_sentences
    write_lines(tmp_path / "gold.mrg", map(str, trees))
    made, lines = [], []
    for tree, parse in zip(trees, parses, strict=True):
        distances, words = word_distances(parse.tokens, parse.distances)
        lines.append(bracket_tree(distances, words))
        made.append(Parse(tree.leaves(), distances, 0.0))
    write_lines(tmp_path / "labelled", lines)
    write_lines(tmp_path / "bare", (line.replace("(X ", "(") for line in lines))
    expected, their_counts = evaluate(ParsedCorpus(trees, made))
    for name in ("labelled", "bare"):
        found, counts = evaluate_files(tmp_path / "gold.mrg", tmp_path / name)
        assert found["protocols"].keys() == {"words", "evalb"}
        for protocol, scores in found["protocols"].items():
            assert scores == expected["protocols"][protocol]
            assert counts[protocol] == their_counts[protocol]
        assert found["cut_words"] is found["ties"] is found["explained_by_labels_within_sentences"] is None


def test_a_tree_that_is_not_binary_is_scored_as_it_is(files, tmp_path):
    files[1].write_text(GOLD)
    for protocol in evaluate_files(*files[:2])[0]["protocols"].values():
        induced = protocol["rows"]["induced"]
        assert (induced["precision"], induced["recall"]) == (100, 100)
    files[1].write_text("(the dogs (bark very loudly) .)\n")  # one span that counts, of three
    found = evaluate_files(*files[:2])[1]["words"]["induced"]
    assert found == {"matched": [1], "predicted": [1]}
    files[1].write_text("(TOP (S (X the) (X dogs) (VP (X bark) (X very) (X loudly)) (X .)))\n")
    found, counts = evaluate_files(*files[:2])
    assert counts["words"]["induced"] == {"matched": [1], "predicted": [1]}
    assert found["protocols"]["evalb"]["rows"]["induced"]["precision"] == 100  # TOP is deleted
    assert found["protocols"]["evalb"]["rows"]["induced"]["recall"] == 50


@pytest.mark.parametrize(
    ("dash", "rule"),
    [
        ("$*LRB*", "by the gold tags"),
        ("$-LRB-", "by the gold tags"),
        ("$(", "by the gold tags"),
        ("PONCT", "by the gold tags; where a tag is not known (PONCT; 1 of 5 leaves), by Unicode's"),
        ("_", "by the gold tags; where a tag is not known (_; 1 of 5 leaves), by Unicode's"),
    ],
)
def test_the_name_of_a_signs_tag_changes_no_score(files, dash, rule):
    files[0].write_text(f"(S (NP (DT Die) (NN Katze)) ({dash} —) (VP (VVFIN schläft) (ADV hier)))\n")
    files[1].write_text("(((Die Katze) —) (schläft hier))\n")
    found, _ = evaluate_files(*files[:2])
    assert found["protocols"]["words"]["rows"]["induced"]["f1"] == 100
    assert found["protocols"]["words"]["rows"]["right-branching"]["f1"] == 50
    assert f"recognised {rule}" in as_text(found)


@pytest.mark.parametrize(("dog", "cat"), [("(X {})", "(X {})"), ("({})", "{}")])  # with labels, and without
def test_failed_parses_are_skipped_and_counted(files, dog, cat):
    """As EVALB does; also where a treebank's own tree is missing."""
    gold = "( (NP (NNP Anna)) (VP (VBZ runs) (RB home)) (. .) )\n(())\n(S (NP (DT a) (NN b)) (V c))\n"
    files[0].write_text(gold)
    anna = f"({'X ' * ('X' in dog)}{' '.join(dog.format(word) for word in ['Anna', 'runs', 'home', '.'])})"
    abc = f"({'X ' * ('X' in cat)}{' '.join(cat.format(word) for word in 'abc')})"
    files[1].write_text(f"{anna}\n{abc}\n{abc}\n")
    whole, _ = evaluate_files(*files[:2])
    assert (whole["unparsed"], whole["failed"]) == (1, 0)
    assert whole["protocols"]["words"]["sentences"] == 2
    files[1].write_text(f"(())\n{abc}\n{abc}\n")
    found, counts = evaluate_files(*files[:2])
    assert (found["unparsed"], found["failed"], counts["words"]["gold"]) == (1, 1, [1])
    assert "1 sentences without a gold tree are left out" in as_text(found)
    assert "1 sentences whose parse failed, (()), are skipped" in as_text(found)
    files[1].write_text("(())\n" * 3)
    with pytest.raises(UserError, match="every predicted parse failed"):
        evaluate_files(*files[:2])


OUTER = "( (S (NP (DT the) (NN dog)) (VP (VBD barked)) (. .)) )\n"


@pytest.mark.parametrize(
    ("gold", "predicted", "precision", "recall"),
    [
        (OUTER, OUTER, 100, 100),
        (OUTER, OUTER.replace("( (S", "(ROOT (S"), 100, 100),
        (OUTER.replace("( (S", "(ROOT (S"), OUTER, 100, 100),
        (OUTER, OUTER.replace("( (S", "(TOP (S"), 100, 75),  # TOP is deleted: 3 brackets, 4 in gold
        (OUTER.replace("( (S", "(TOP (S"), OUTER, 75, 100),
        (OUTER, "( (S (DT the) (VP (NN dog) (VBD barked)) (. .)) )\n", 200 / 3, 50),
    ],
)
def test_an_outer_bracket_without_a_label_counts_as_in_evalb(files, gold, predicted, precision, recall):
    files[0].write_text(gold)
    files[1].write_text(predicted)
    found = evaluate_files(*files[:2])[0]["protocols"]
    induced = found["evalb"]["rows"]["induced"]
    assert (induced["precision"], induced["recall"]) == pytest.approx((precision, recall))
    files[0].write_text(gold.replace("( (S", "(S").replace(") )", ")"))
    if "ROOT" not in gold and "TOP" not in gold:
        assert evaluate_files(*files[:2])[0]["protocols"]["words"] == found["words"]


def test_sentences_that_evalb_leaves_out_for_their_tags_are_counted(files):
    files[0].write_text(OUTER * 3)
    wrong = OUTER.replace("(. .)", "(NN .)")
    files[1].write_text(OUTER + wrong + OUTER.replace("(NN dog)", "(VB dog)"))
    found = evaluate_files(*files[:2])[0]
    assert found["other_deletions"] == 1
    assert "1 sentence has predicted tags that delete other words, and EVALB would leave them out" in as_text(
        found
    )
    files[1].write_text("((the dog) (barked .))\n" * 3)  # has no tags
    assert evaluate_files(*files[:2])[0]["other_deletions"] is None


def test_trees_in_brackets_have_no_heads(files):
    files[1].write_text(GOLD)
    with pytest.raises(UserError, match="trees in brackets have no heads; leave --heads out"):
        evaluate_files(*files)


def test_the_terminal_shows_what_there_is(files):
    files[1].write_text(GOLD)
    text = as_text(evaluate_files(*files[:2])[0])
    assert "evalb: " in text
    assert "paper" not in text
    assert "split words" not in text


def test_labels_that_look_like_numbers_stay_as_they_are(tmp_path):
    (tmp_path / "gold").write_text("(007 (012 (A a) (B b)) (1e3 (C c) (nan (D d) (-0x1 (E e) (F f)))))\n")
    (tmp_path / "trees").write_text("((a b) (c (d (e f))))\n")
    lines = as_text(evaluate_files(tmp_path / "gold", tmp_path / "trees")[0]).splitlines()
    rows = [line.split() for line in lines[lines.index("words: recall by label") + 2 :]][:4]
    assert rows == [
        [label, "1", "100.00", *row[3:]]
        for label, row in zip(["-0x1", "012", "1e3", "nan"], rows, strict=True)
    ]
