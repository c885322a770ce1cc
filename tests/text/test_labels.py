import numpy as np
import pytest

from synmask.pipeline.text.labels import labels_of_ids


def slow_labels(tokens):
    """The rule, one token at a time."""
    labels = []
    for i, token in enumerate(tokens):
        if token == "<pad>":
            labels.append(1)
        elif token == "</s>":
            labels.append(0)
        elif token.endswith("@@") or (i > 0 and tokens[i - 1].endswith("@@")):
            labels.append(2)
        else:
            labels.append(0)
    return labels


SYMBOLS = ["<s>", "<pad>", "</s>", "<unk>", "a", "b@@", "c", "d@@", "@@", "e@"]
CONTINUES = np.array([symbol.endswith("@@") for symbol in SYMBOLS])


def test_by_example():
    whole, piece = SYMBOLS.index("a"), SYMBOLS.index("b@@")
    assert labels_of_ids(np.array([whole, piece, piece, whole, whole]), CONTINUES).tolist() == [0, 2, 2, 2, 0]
    assert labels_of_ids(np.array([piece]), CONTINUES).tolist() == [2]


def test_the_end_of_a_sentence_is_a_whole_word():
    assert labels_of_ids(np.array([5, 2]), CONTINUES).tolist() == [2, 0]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_against_the_slow_rule(dtype):
    rng = np.random.default_rng(0)
    for _ in range(300):
        batch, n = rng.integers(1, 5), rng.integers(1, 12)
        ids = rng.integers(3, len(SYMBOLS), (batch, n)).astype(dtype)
        for row, length in zip(ids, rng.integers(1, n + 1, batch), strict=True):
            row[length - 1] = 2
            row[length:] = 1
        before = ids.copy()
        expected = [slow_labels([SYMBOLS[i] for i in row]) for row in ids]
        labels = labels_of_ids(ids, CONTINUES)
        assert labels.dtype == np.int64
        assert labels.tolist() == expected
        assert (ids == before).all()
        assert [labels_of_ids(row, CONTINUES).tolist() for row in ids] == expected


def test_other_special_symbols():
    labels = labels_of_ids(
        np.array([[1, 2, 0, 3, 3]]), np.array([False, True, False, False]), padding=3, eos=0
    )
    assert labels.tolist() == [[2, 2, 0, 1, 1]]


def test_no_tokens():
    assert labels_of_ids(np.zeros((2, 0), int), CONTINUES).shape == (2, 0)
