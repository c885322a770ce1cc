import numpy as np
import pytest

from synmask.pipeline.text.labels import bpe_labels


def slow_labels(tokens):
    """The rule, one token at a time."""
    labels = []
    for i, token in enumerate(tokens):
        if token == "</s>":
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
    assert bpe_labels(np.array([whole, piece, piece, whole, whole]), CONTINUES).tolist() == [0, 2, 2, 2, 0]
    assert bpe_labels(np.array([piece]), CONTINUES).tolist() == [2]
    assert bpe_labels(np.zeros(0, int), CONTINUES).tolist() == []


def test_the_end_of_a_sentence_is_a_whole_word():
    assert bpe_labels(np.array([5, 2]), CONTINUES).tolist() == [2, 0]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_against_the_slow_rule(dtype):
    rng = np.random.default_rng(0)
    for _ in range(300):
        ids = np.append(rng.integers(3, len(SYMBOLS), rng.integers(0, 12)), 2).astype(dtype)
        before = ids.copy()
        labels = bpe_labels(ids, CONTINUES)
        assert labels.dtype == np.int64
        assert labels.tolist() == slow_labels([SYMBOLS[i] for i in ids])
        assert (ids == before).all()
