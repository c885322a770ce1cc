"""BPE text → dictionaries and memory-mapped binary data, as `fairseq-preprocess` writes them."""

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import numpy as np
import torch
from fairseq.data import Dictionary, indexed_dataset

from synmask.pipeline.disk import naming_read_errors, replacing
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import count_words, read_lines, writing


def binarise(
    *,
    text: Path,
    output: Path,
    source: str,
    target: str,
    symbols: Mapping[str, Collection[str]] | None = None,
) -> None:
    """Write dictionaries and binary data for fairseq.

    Each language has its own dictionary of the training split's symbols, the most frequent first, padded to a
    multiple of 8. The files equal fairseq's byte for byte. Only train and valid are written. `decode` reads
    text, so a new test set does not affect trainings.

    Args:
        text: folder with {train,valid}.LANGUAGE in BPE.
        output: folder for dict.LANGUAGE.txt and SPLIT.SOURCE-TARGET.LANGUAGE.{bin,idx}.
        symbols: those of each language that may be in its dictionary; None: all.

    Raises:
        UserError: a split is missing, or has no sentence.
    """
    for language in (source, target):
        dictionary = _count_symbols(text / f"train.{language}", symbols and symbols[language])
        for split in ("train", "valid"):
            path = text / f"{split}.{language}"
            sentences = (encode_line(line, dictionary) for line in read_lines(path))
            prefix = output / f"{split}.{source}-{target}.{language}"
            write_binary(prefix, sentences, len(dictionary), str(path))
        with writing(output / f"dict.{language}.txt") as handle:
            dictionary.save(handle)


def encode_line(line: str, dictionary: Dictionary) -> torch.Tensor:
    """The ids of a line's symbols and of `</s>`: (n,) int32."""
    indices, unknown = dictionary.indices, dictionary.unk()
    ids = [indices.get(symbol, unknown) for symbol in line.split(" ") if symbol]
    return torch.tensor([*ids, dictionary.eos()], dtype=torch.int32)


def _count_symbols(path: Path, known: Collection[str] | None) -> Dictionary:
    """The symbols of a text in BPE, or those of them that are `known`."""
    counts = count_words(path)
    if not counts:
        raise UserError(f"{path}: no sentence in it; check the corpus and the cleaning limits in config.yaml")
    dictionary = Dictionary()
    for symbol, count in sorted(counts.items()):  # fairseq breaks ties by name, so the order has no effect
        if known is None or symbol in known:
            dictionary.add_symbol(symbol, count)
    dictionary.finalize(threshold=0, nwords=-1, padding_factor=8)
    return dictionary


def write_binary(prefix: Path, sentences: Iterable[torch.Tensor], symbols: int, name: str) -> None:
    """Write sentences of ids below `symbols` as PREFIX.bin and PREFIX.idx; errors name their source, `name`.

    Raises:
        UserError: there is no sentence.
    """
    with replacing([Path(f"{prefix}.idx"), Path(f"{prefix}.bin")]) as (index, data):
        builder = indexed_dataset.make_builder(str(data), impl="mmap", vocab_size=symbols)
        empty = True
        for sentence in sentences:
            builder.add_item(sentence)
            empty = False
        if empty:
            raise UserError(f"{name}: empty")
        builder.finalize(str(index))


def read_dictionary(path: Path) -> Dictionary:
    """Read a fairseq dictionary.

    Raises:
        UserError: the file is missing or is no dictionary.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file; make its folder again")
    try:
        with naming_read_errors(path):
            dictionary = Dictionary.load(str(path))
    except OSError:
        raise
    except Exception as error:  # fairseq raises plain exceptions, too
        text = " ".join(str(error).split())
        raise UserError(f"{path}: not a fairseq dictionary ({text}); delete its folder and rerun") from None
    if len(dictionary) == dictionary.nspecial:
        raise UserError(f"{path}: no symbol in it; delete its folder and rerun")
    return dictionary


def read_binary(prefix: Path, dictionary: Dictionary) -> indexed_dataset.MMapIndexedDataset:
    """The sentences of PREFIX.bin and PREFIX.idx, memory-mapped and all checked.

    Raises:
        UserError: a file is missing or damaged, or has ids that `dictionary` lacks.
    """
    index, data = Path(f"{prefix}.idx"), Path(f"{prefix}.bin")
    try:
        with naming_read_errors(index):
            whole = _is_whole_index(index.read_bytes(), os.path.getsize(data))
    except FileNotFoundError:
        whole = False
    if whole:
        with naming_read_errors(data):
            sentences = indexed_dataset.MMapIndexedDataset(str(prefix))
        ids = np.frombuffer(sentences._bin_buffer, dtype=sentences._index.dtype)
        ended = ids[np.cumsum(sentences.sizes, dtype=np.int64) - 1] == dictionary.eos()
        if ended.all() and ids.min() >= 0 and ids.max() < len(dictionary):
            return sentences
    raise UserError(f"{prefix}: binarised data missing or damaged; delete its folder and rerun")


def symbol_counts(sentences: indexed_dataset.MMapIndexedDataset, dictionary: Dictionary) -> np.ndarray:
    """(V,) how often each symbol of `dictionary` occurs in the sentences of `read_binary`."""
    ids = np.frombuffer(sentences._bin_buffer, dtype=sentences._index.dtype)
    return np.bincount(ids, minlength=len(dictionary))


def _is_whole_index(index: bytes, size: int) -> bool:
    """Whether `index` is a complete index of `size` bytes of data.

    An index consists of a magic number (9 bytes), a version (8), the type of the ids (1), the number of
    sentences (8), the lengths of all sentences (4 each) and their start positions (8 each).
    """
    magic = indexed_dataset.MMapIndexedDataset.Index._HDR_MAGIC + (1).to_bytes(8, "little")
    count = int.from_bytes(index[18:26], "little")
    dtype = indexed_dataset._code_to_dtype.get(index[17]) if len(index) > 17 else None
    if not index.startswith(magic) or dtype is None or not count or len(index) != 26 + 12 * count:
        return False
    sizes = np.frombuffer(index, np.int32, count, 26)
    starts = np.frombuffer(index, np.int64, count, 26 + 4 * count)
    ends, width = sizes.cumsum(dtype=np.int64), np.dtype(dtype).itemsize
    return bool((sizes > 0).all() and (starts == (ends - sizes) * width).all() and ends[-1] * width == size)
