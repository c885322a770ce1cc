"""BPE labels: which tokens are pieces of a split word (docs/method.md)."""

import numpy as np

WHOLE, PADDING_LABEL, PIECE = 0, 1, 2  # a piece ends in "@@", or follows one that does; `</s>` is whole
EOS = 2  # the index of `</s>` in fairseq's dictionaries


def bpe_labels(ids: np.ndarray, continues: np.ndarray) -> np.ndarray:
    """The BPE labels of a sentence, (n,) int64: WHOLE or PIECE.

    Args:
        ids: (n,), indices of a dictionary; continues: (V,) bool, True at its symbols that end in "@@".
    """
    piece = continues[ids]
    piece[1:] |= continues[ids[:-1]]
    return np.where(piece & (ids != EOS), PIECE, WHOLE)
