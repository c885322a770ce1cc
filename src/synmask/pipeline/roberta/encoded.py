"""Files of sentences and sentence pairs as RoBERTa's input, PART.npz, and the syntax beside them."""

import io
import math
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary

from synmask.pipeline.corpora.tasks import Examples, read_task
from synmask.pipeline.files import UserError, writing
from synmask.pipeline.options import CountOption, TaskName
from synmask.pipeline.roberta.weights import Weights, load_dictionary
from synmask.pipeline.tasks import TASKS
from synmask.pipeline.text import gpt2

COLUMNS = 4  # of an annotation (roberta/task_syntax.py): word, head, sentence, punctuation
NONE = -1


@dataclass(frozen=True)
class Encoded:
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


def encode(
    texts: Sequence[Sequence[Sequence[int]]], dictionary: Dictionary, most: int, targets: Sequence[float]
) -> Encoded:
    """RoBERTa's input for each example: `<s> a </s>`, for a pair `<s> a </s> </s> b </s>`.

    An example with more than `most` tokens is truncated: the longer sentence loses its last token until the
    example fits (as in BERT).

    Args:
        texts: one or two sentences per example, each as GPT-2 BPE ids.
        most: maximum number of tokens per example, special ones included.
    """
    rows = [_row([_ids(sentence, dictionary) for sentence in example], dictionary, most) for example in texts]
    return Encoded(
        np.concatenate(rows).astype(np.int32),
        np.cumsum([0, *map(len, rows)]),
        np.asarray(targets, dtype=np.float32),
    )


def _ids(sentence: Sequence[int], dictionary: Dictionary) -> list[int]:
    return [dictionary.index(str(piece)) for piece in sentence]


def _row(sentences: list[list[int]], dictionary: Dictionary, most: int) -> np.ndarray:
    room = most - 2 * len(sentences)
    if room < len(sentences):
        raise UserError(f"max_tokens {most}: too few for a token of each sentence and the marks; give more")
    while (over := sum(map(len, sentences)) - room) > 0:
        longest = max(sentences, key=len)
        rest = max((len(other) for other in sentences if other is not longest), default=0)
        del longest[len(longest) - min(over, max(1, len(longest) - rest)) :]
    begin, end = [dictionary.bos()], [dictionary.eos()]
    row = begin + sentences[0] + end
    for other in sentences[1:]:
        row += end + other + end
    return np.array(row)


def encode_file(examples: Examples, task: str, weights: Path, most: int) -> Encoded:
    """A task's examples as RoBERTa's input, at most `most` tokens each; targets are NaN in a test set.

    Of the folder `weights` only the vocabulary is read.
    """
    dictionary = load_dictionary(weights)
    sentences = [sentence for example in examples.texts for sentence in example]
    pieces = iter(gpt2.encode(sentences, weights))
    texts = [[next(pieces) for _ in example] for example in examples.texts]
    labels = TASKS[task].labels
    targets = [labels.index(label) if labels else float(label) for label in examples.labels]
    return encode(texts, dictionary, most, targets or [math.nan] * len(texts))


def encode_task(*, task: TaskName, input: Path, weights: Path, max_tokens: CountOption, output: Path) -> None:
    """Write one part of a task, or a test set, as ids for RoBERTa.

    Args:
        input: Output of `glue` or `demo-task`.
        weights: Folder with encoder.json, vocab.bpe and dict.txt.
        max_tokens: Truncate longer examples.
        output: PART.npz.
    """
    write_encoded(output, encode_file(read_task(task, input, test=True), task, weights, max_tokens))


def write_encoded(path: Path, encoded: Encoded) -> None:
    packed = io.BytesIO()  # a zip seeks in what it is written to, which a device cannot
    np.savez(packed, tokens=encoded.tokens, starts=encoded.starts, targets=encoded.targets)
    with writing(path, "wb") as handle:
        handle.write(packed.getbuffer())


def read_encoded(path: Path) -> Encoded:
    """Read a file of `write_encoded`.

    Raises:
        UserError: missing or damaged.
    """
    try:
        with np.load(path) as arrays:
            encoded = Encoded(arrays["tokens"], arrays["starts"], arrays["targets"])
        kinds = [array.dtype.kind for array in vars(encoded).values()]
        if kinds != ["i", "i", "f"] or any(array.ndim != 1 for array in vars(encoded).values()):
            raise ValueError("other arrays than write_encoded's")
        if len(encoded.starts) != len(encoded) + 1 or encoded.starts[-1] != len(encoded.tokens):
            raise ValueError("of other lengths than write_encoded's")
        return encoded
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
        raise UserError(f"{path}: encoded sentences missing or damaged; delete it and rerun") from None


def syntax_file(part: Path) -> Path:
    """The path of the syntax of PART.npz, beside it."""
    return part.with_name(f"syntax.{part.stem}.npy")


def read_syntax(part: Path, encoded: Encoded) -> np.ndarray:
    """The annotations (T, 4) of the tokens of PART.npz, memory-mapped (roberta/task_syntax.py).

    Raises:
        UserError: missing, damaged, or of other examples.
    """
    path = syntax_file(part)
    try:
        table = np.load(path, mmap_mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{path}: cannot be read ({error}); annotate the task again") from None
    if getattr(table, "shape", None) != (len(encoded.tokens), COLUMNS):
        raise UserError(f"{path}: annotations of other examples; annotate the task again")
    return table


def read_fitting(path: Path, weights: Weights, *, test: bool = False) -> Encoded:
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
