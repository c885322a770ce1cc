"""Rules and probes on sentences whose heads are known by construction."""

import json

import numpy as np
import probe
import pytest
from probe import SentenceWords, evaluate, evaluate_files, sentence_of
from scipy.optimize import check_grad

from synmask.pipeline.errors import UserError
from synmask.pipeline.syntax.parses import Parse

TREES = "(S (DT the) (NN dog) (VB barks) (. .))\n" * 3 + "(S (NN dogs) (VB bark) (. !))\n"
HEADS = "2 3 0 3\n" * 3 + "2 0 2\n"


def sentence(gold, letters=None, induced=None, parser=None):
    count = len(gold)
    return SentenceWords(
        np.array(letters or [1] * count),
        np.array(gold),
        np.array(induced or gold),
        np.zeros((count, count, 6)) if parser is None else parser,
    )


def drawn(count, seed=0, *, informative):
    """Sentences with heads drawn at random, which the parser's first feature tells, or not."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        size = int(rng.integers(3, 9))
        gold = [int(rng.choice([k for k in range(1, size + 1) if k != i])) for i in range(1, size + 1)]
        parser = rng.normal(size=(size, size, 6))
        if informative:
            parser[..., 0] = 0
            parser[np.arange(size), np.array(gold) - 1, 0] = 1
        found.append(sentence(gold, parser=parser))
    return found


@pytest.mark.parametrize(
    ("rule", "heads"),
    [
        ("left neighbour", [0, 1, 2, 3, 4]),
        ("right neighbour", [2, 3, 4, 5, 0]),
        ("second to the left", [0, 0, 1, 2, 3]),
        ("second to the right", [3, 4, 5, 0, 0]),
        ("first word", [0, 1, 1, 1, 1]),
        ("second word", [2, 0, 2, 2, 2]),
        ("middle word", [3, 3, 0, 3, 3]),
        ("last word", [5, 5, 5, 5, 0]),
        ("next longer word", [2, 4, 4, 0, 0]),
        ("previous longer word", [0, 0, 2, 0, 4]),
    ],
)
def test_a_rule_finds_the_heads_that_it_names(rule, heads):
    one = sentence([0] * 5, letters=[2, 4, 3, 6, 1])
    assert probe._heads(rule, one).tolist() == heads


def test_the_other_half_of_the_sentences_chooses_the_rule():
    left, last = sentence([0, 1, 2, 3, 4]), sentence([5, 5, 5, 5, 0])
    found = evaluate([last, left] * 4)
    assert found["rule"] == "last word"
    assert found["rules"]["last word"] == 100
    assert found["attachment"] == {"induced": 100, "best rule": 20}  # 4 → 5, for 5 → 4
    assert found["words"] == 20
    assert found["counts"]["attachment"] == {
        "words": [5] * 4,
        "right": {"induced": [5] * 4, "best rule": [1] * 4},
    }


def test_a_head_counts_in_either_direction():
    one = sentence([2, 0, 2], induced=[0, 1, 1])
    assert probe._right(one, one.induced).tolist() == [False, True, False]


def test_two_signs_are_two_heads():
    parse = Parse(["a", ",", "!"], [1.0, 2.0], 3.0, heads=[2, 0, 0], heights=[1.0] * 3, parents=[[]] * 3)
    counted = np.array([True, False, False])
    for gold, right in ((2, True), (3, False)):
        one = sentence_of(["a", ",", "!"], counted, [gold, 0, 0], parse)
        assert probe._right(one, one.induced).tolist() == [right]


def test_a_probe_uses_what_the_parser_knows():
    found = evaluate(drawn(200, informative=True))["probe"]
    assert found["position and parser"] == found["position, length and parser"] == 100
    assert found["position"] < 40


def test_a_parser_that_knows_nothing_does_not_help():
    found = evaluate(drawn(400, informative=False))["probe"]
    assert found["position and parser"] < found["position"] + 4


def test_a_probe_of_positions_finds_neighbours_and_edges():
    for gold in ([2, 3, 4, 5, 0], [0, 1, 1, 1, 1]):
        assert evaluate([sentence(gold)] * 10)["probe"]["position"] == 100


def test_a_probe_of_lengths_finds_the_long_word():
    rng = np.random.default_rng(1)
    found = []
    for _ in range(60):
        letters, long = [2, 3, 2, 3, 2, 3], int(rng.integers(6))
        letters[long] = 9
        found.append(sentence([0 if i == long else long + 1 for i in range(6)], letters))
    scores = evaluate(found)["probe"]
    assert scores["position and length"] == 100
    assert scores["position"] < 50


def test_the_candidates_are_the_other_words_of_the_sentence():
    x, there, right, sizes = probe._block(("position",), [sentence([2, 0]), sentence([3, 1, 0])])
    assert x.shape[:2] == there.shape
    assert there.tolist() == [[False, True, False], [False, True, True], [True, False, True]]
    assert right.tolist() == [1, 2, 0]
    assert sizes == [1, 2]  # the roots have no head to find


def test_the_loss_has_the_right_gradient():
    rng = np.random.default_rng(2)
    x, open_ = rng.normal(size=(7, 5, 4)), np.ones((7, 5), dtype=bool)
    open_[:3, 4] = False
    given = (x, open_, rng.integers(0, 4, 7))
    error = check_grad(
        lambda w: probe._loss(w, *given)[0], lambda w: probe._loss(w, *given)[1], rng.normal(size=4)
    )
    assert error < 1e-5


def test_words_that_count_are_numbered_anew():
    parse = Parse(
        ["a@@", "b", ",", "c"], [3.0, 1.0, 2.0], 0.0, heads=[3, 1, 0], heights=[1.0, 4.0, 0.0, 2.5],
        parents=[[(3, 0.5)], [(3, 0.7), (2, 0.1)], [(4, 0.9)], [(0, 0.2), (1, 0.3)]],
    )  # fmt: skip
    one = sentence_of(["ab", ",", "c"], np.array([True, False, True]), [2, 3, 0], parse)
    assert one.letters.tolist() == [2, 1]
    assert one.gold.tolist() == [-2, 0]  # the first word's head is the comma
    assert one.induced.tolist() == [2, 0]
    p, back, height, between, below, below_own = np.moveaxis(one.parser, 2, 0)
    assert p == pytest.approx(np.array([[0, 0.6], [0.5, 0]]))
    assert back == pytest.approx(p.T)
    assert height.tolist() == [[4.0, 2.5], [4.0, 2.5]]
    assert between.tolist() == [[0, 2.0], [2.0, 0]]  # the largest gap between the words, none inside them
    assert below.tolist() == below_own.tolist() == [[1, 1], [1, 1]]


@pytest.fixture
def files(tmp_path):
    rows = []
    for line in TREES.splitlines():
        tokens = [part.split(")")[0] for part in line.split(" ")[2::2]]
        count = len(tokens)
        rows.append({
            "tokens": tokens, "distances": [1.0] * (count - 1), "eos_distance": 2.0, "heights": [0.0] * count,
            "heads": [0] * count, "parents": [[]] * count,
        })  # fmt: skip
    (tmp_path / "gold").write_text(TREES)
    (tmp_path / "heads").write_text(HEADS)
    (tmp_path / "trees").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path, rows


def test_files_are_read_and_punctuation_is_left_out(files):
    folder, _ = files
    found = evaluate_files(folder / "gold", folder / "heads", folder / "trees")
    assert found["words"] == 3 + 2
    assert found["attachment"]["induced"] == 40  # the two roots


def test_a_system_without_heads_is_refused(files):
    folder, rows = files
    del rows[1]["heads"]
    (folder / "trees").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(
        UserError, match="trees: no heights, heads and parents; this system induces constituents alone"
    ):
        evaluate_files(folder / "gold", folder / "heads", folder / "trees")


def test_what_no_probe_can_read_is_refused(files):
    folder, rows = files
    rows[1]["distances"][0] = float("inf")
    (folder / "trees").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(UserError, match="trees: an infinite distance"):
        evaluate_files(folder / "gold", folder / "heads", folder / "trees")


def test_sentences_of_roots_alone_are_refused():
    sentence = SentenceWords(np.ones(2), np.zeros(2, int), np.zeros(2, int), np.zeros((2, 2, 6)))
    with pytest.raises(UserError, match="without a word that has a word as its head"):
        evaluate([sentence] * 4)


def test_too_few_sentences_are_refused(files):
    folder, _ = files
    for name in ("gold", "heads", "trees"):
        path = folder / name
        path.write_text(path.read_text().splitlines()[0] + "\n")
    with pytest.raises(UserError, match="fewer than two sentences of two words"):
        evaluate_files(folder / "gold", folder / "heads", folder / "trees")
