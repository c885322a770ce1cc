"""BPE labels: which tokens are pieces of a split word (docs/method.md)."""

import numpy as np

WHOLE = 0  # a whole word, or </s>
PADDING = 1
PIECE = 2  # a piece of a split word: ends in "@@", or follows such a token


def labels_of_ids(ids: np.ndarray, continues: np.ndarray, *, padding: int = 1, eos: int = 2) -> np.ndarray:
    """The BPE labels of sentences given as dictionary indices.

    Args:
        ids: (..., n) integers; sentences lie along the last axis and are padded on the right.
        continues: (V,) bool, True at symbols that end in "@@".
        padding, eos: the indices of the pad and of `</s>` (by default a fairseq dictionary's).

    Returns:
        (..., n) int64: 0 whole word or `</s>`, 2 piece of a split word, 1 padding.
    """
    piece = continues[ids]
    piece[..., 1:] |= continues[ids[..., :-1]]
    labels = np.where(piece & (ids != eos), PIECE, WHOLE)
    labels[ids == padding] = PADDING
    return labels
