"""Dependency accuracy, by hand and against loops."""

import numpy as np
import pytest

from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation.attachment import attachment, read_heads


def test_by_hand():
    # "the dog saw a cat ." without the full stop
    gold, counted = [[2, 3, 0, 5, 3, 3]], np.array([True] * 5 + [False])
    rows = attachment(gold, [[2, 3, 0, 3, 4, 1]], counted)["rows"]
    assert rows["induced"] == {"directed": 60, "undirected": 80}  # "cat" on "a": the other way round
    assert rows["left-neighbour"] == {"directed": 0, "undirected": 60}  # root the dog saw a
    assert rows["right-neighbour"] == {"directed": 60, "undirected": 60}  # dog saw a cat root


def test_neighbours_skip_punctuation_and_stay_in_their_sentence():
    gold = [[3, 3, 0], [0, 1]]  # a , b | c d
    counted = np.array([True, False, True, True, True])
    rows = attachment(gold, [[0, 0, 0], [0, 0]], counted)["rows"]
    assert rows["right-neighbour"] == {"directed": 50, "undirected": 75}  # 3 root | 2 root
    assert rows["left-neighbour"] == {"directed": 50, "undirected": 75}  # root 1 | root 1


def test_random_heads_are_any_other_word_or_the_root():
    sentences = 20_000
    gold = [[0, 1, 1]] * sentences
    counted = np.ones(3 * sentences, dtype=bool)
    rows = attachment(gold, gold, counted)["rows"]
    assert rows["random"]["directed"] == pytest.approx(100 / 3, abs=0.5)
    # 1: 0, or 2 or 3, whose head it is; 2 and 3: 1 alone
    assert rows["random"]["undirected"] == pytest.approx(100 * (1 + 1 / 3 + 1 / 3) / 3, abs=0.5)


def test_against_loops():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 9, 60).tolist()
    gold, induced = ([rng.integers(0, n + 1, n).tolist() for n in lengths] for _ in range(2))
    counted = rng.random(sum(lengths)) < 0.8
    found = attachment(gold, induced, counted)
    directed = undirected = word = 0
    for truth, heads in zip(gold, induced, strict=True):
        counts = counted[word : word + len(heads)]
        for number, head in enumerate(heads, start=1):
            if counts[number - 1]:
                back = head > 0 and counts[head - 1] and truth[head - 1] == number
                directed += truth[number - 1] == head
                undirected += truth[number - 1] == head or back
        word += len(heads)
    total = int(counted.sum())
    assert found["words"] == total
    assert found["rows"]["induced"] == pytest.approx(
        {"directed": 100 * directed / total, "undirected": 100 * undirected / total}
    )


def test_no_word_is_right_because_it_heads_the_full_stop():
    """Like the neighbours, which are words that count: "barks" is the root, and the full stop depends on it."""
    gold, counted = [[2, 0, 2]], np.array([True, True, False])
    found = attachment(gold, [[0, 3, 0]], counted)["rows"]
    assert found["induced"] == {"directed": 0, "undirected": 0}
    assert found["right-neighbour"] == {"directed": 100, "undirected": 100}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2 0\n1 x\n", "heads, line 2: heads are numbers between spaces"),
        ("2 1234567890\n", "heads, line 1: heads are numbers between spaces"),  # Python refuses 4301 digits
        ("2 0\n0\n", "heads, line 2: expected 2 heads from 0 to 2"),
        ("2 0\n3 0\n", "heads, line 2: expected 2 heads from 0 to 2"),
        ("2 0\n", "heads: fewer lines than gold trees, at line 2"),
        ("2 0\n2 0\n0\n", "heads: more lines than gold trees, at line 3"),
    ],
)
def test_heads_that_do_not_fit_are_named(tmp_path, text, message):
    (tmp_path / "heads").write_text(text)
    with pytest.raises(UserError, match=message):
        [*read_heads(tmp_path / "heads", [2, 2])]


def test_heads_are_read(tmp_path):
    (tmp_path / "heads").write_text("2 0\n\n")
    assert [*read_heads(tmp_path / "heads", [2, 0])] == [[2, 0], []]
