"""Sentences and sentence pairs as RoBERTa's input, PART.npz, and the syntax of their tokens beside it.

The syntax, syntax.PART.npy, is one array (T, 4) of int16 for the T tokens of PART.npz: the first sub-word of
the token's word; the first sub-word of the word's head (for a root, of the word itself); the sentence of the
example, 1 or 2; 1 for punctuation. Positions count from the start of the example. `<s>` and `</s>` have -1,
-1, 0, 0; unknown words have -1 for both positions. The file is memory-mapped.
"""

import io
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from synmask.pipeline.disk import open_to_read, raise_unreadable
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import write_all
from synmask.pipeline.roberta.weights import Weights
from synmask.pipeline.syntax.annotations import open_memmap

SYNTAX_COLUMNS = 4  # of the syntax


@dataclass(frozen=True)
class EncodedExamples:
    """Examples as ids: `tokens` (T,) of all examples, example i from starts[i] to starts[i+1]; `targets`
    (N,), class numbers or, for a regression, scores; NaN in a test set."""

    tokens: np.ndarray
    starts: np.ndarray
    targets: np.ndarray

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> np.ndarray:
        return self.part(self.tokens, index)

    def part(self, values: np.ndarray, index: int) -> np.ndarray:
        """The part of `values` (T, ...), one per token, that belongs to an example."""
        return values[self.starts[index] : self.starts[index + 1]]

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.starts)


def write_encoded(path: Path, encoded: EncodedExamples) -> None:
    packed = io.BytesIO()  # a zip seeks in what it is written to, which a device cannot
    np.savez(packed, tokens=encoded.tokens, starts=encoded.starts, targets=encoded.targets)
    write_all({path: packed.getvalue()})


def read_encoded(path: Path) -> EncodedExamples:
    """Read a file of `write_encoded`.

    Raises:
        UserError: missing or damaged.
    """
    try:
        with open_to_read(path) as handle, np.load(handle) as arrays:
            encoded = EncodedExamples(arrays["tokens"], arrays["starts"], arrays["targets"])
        kinds = [array.dtype.kind for array in vars(encoded).values()]
        if kinds != ["i", "i", "f"] or any(array.ndim != 1 for array in vars(encoded).values()):
            raise ValueError("other arrays than write_encoded's")
        if len(encoded.starts) != len(encoded) + 1 or encoded.starts[-1] != len(encoded.tokens):
            raise ValueError("of other lengths than write_encoded's")
        return encoded
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; encode its sentences") from None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise_unreadable(path, error)
        raise UserError(f"{path}: damaged encoded sentences; delete it and rerun") from None


def syntax_path(part: Path) -> Path:
    """The path of the syntax of PART.npz, beside it."""
    return part.with_name(f"syntax.{part.stem}.npy")


def read_syntax(part: Path, encoded: EncodedExamples) -> np.ndarray:
    """The annotations (T, 4) of the tokens of PART.npz, memory-mapped.

    Raises:
        UserError: missing, damaged, or of other examples.
    """
    path = syntax_path(part)
    table = open_memmap(path, "annotate the task again")
    if table.shape != (len(encoded.tokens), SYNTAX_COLUMNS):
        raise UserError(f"{path}: annotations of other examples; annotate the task again")
    return table


def read_examples(path: Path, weights: Weights, *, test: bool = False) -> EncodedExamples:
    """Read examples that must fit `weights` and, except for a `test` set, have labels.

    Raises:
        UserError: they do not, or as for `read_encoded`.
    """
    encoded = read_encoded(path)
    ids, sizes = encoded.tokens, encoded.sizes
    fits = len(encoded) and ids.min() >= 0 and ids.max() < len(weights.dictionary)
    if not fits or sizes.min() < 2:
        raise UserError(f"{path}: no sentences for these weights; encode the task again")
    if sizes.max() > (most := weights.shape.max_positions):
        raise UserError(
            f"{path}: {sizes.max()} tokens in an example, the weights take {most}; lower max_tokens"
        )
    if not test and np.isnan(encoded.targets).any():
        raise UserError(f"{path}: a test set, without labels; give a part that has them")
    return encoded
