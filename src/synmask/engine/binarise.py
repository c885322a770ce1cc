"""BPE text → fairseq's dictionaries and binary, memory-mapped data, as `fairseq-preprocess` writes them."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import torch
from fairseq.data import Dictionary, indexed_dataset

from synmask.files import UserError, read_lines, renamed, writing


def binarise(text: Path, output: Path, source: str, target: str) -> None:
    """Write `output`/dict.LANG.txt and `output`/SPLIT.SOURCE-TARGET.LANG.{bin,idx} from `text`/SPLIT.LANG.

    The dictionaries are separate, hold the training split's symbols by falling frequency and are padded to
    a multiple of 8, as fairseq's are (same file, same bytes). `output` is a folder; its dictionaries are
    written last, so that they are there only when everything is.

    Raises:
        UserError: a split is missing or has no sentence.
    """
    output.mkdir(parents=True, exist_ok=True)
    dictionaries = {language: _dictionary(text / f"train.{language}") for language in (source, target)}
    for language, dictionary in dictionaries.items():
        for split in ("train", "valid", "test"):
            _binarise_file(
                text / f"{split}.{language}", output / f"{split}.{source}-{target}.{language}", dictionary
            )
    for language, dictionary in dictionaries.items():
        with writing(output / f"dict.{language}.txt") as handle:
            dictionary.save(handle)


def encode(line: str, dictionary: Dictionary) -> torch.Tensor:
    """The ids of a line's symbols and of `</s>`: (n,) int32."""
    indices, unknown = dictionary.indices, dictionary.unk()
    ids = [indices.get(symbol, unknown) for symbol in line.split(" ") if symbol]
    return torch.tensor([*ids, dictionary.eos()], dtype=torch.int32)


def _dictionary(path: Path) -> Dictionary:
    counts: Counter[str] = Counter()
    for line in read_lines(path):
        counts.update(symbol for symbol in line.split(" ") if symbol)
    if not counts:
        raise UserError(f"{path}: no sentence in it; check the corpus and the cleaning limits in config.yaml")
    dictionary = Dictionary()
    for symbol, count in sorted(counts.items()):  # fairseq breaks ties by name, so order does not matter
        dictionary.add_symbol(symbol, count)
    dictionary.finalize(threshold=0, nwords=-1, padding_factor=8)
    return dictionary


def _binarise_file(path: Path, prefix: Path, dictionary: Dictionary) -> None:
    sentences = (encode(line, dictionary) for line in read_lines(path))
    write_binary(prefix, sentences, len(dictionary), str(path))


def write_binary(prefix: Path, sentences: Iterable[torch.Tensor], symbols: int, name: str) -> None:
    """Write sentences of ids below `symbols`, which came from `name`, as PREFIX.bin and PREFIX.idx.

    Raises:
        UserError: there is no sentence.
    """
    with renamed(Path(f"{prefix}.idx")) as index, renamed(Path(f"{prefix}.bin")) as data:
        builder = indexed_dataset.make_builder(str(data), impl="mmap", vocab_size=symbols)
        empty = True
        for sentence in sentences:
            builder.add_item(sentence)
            empty = False
        if empty:
            raise UserError(f"{name}: empty")
        builder.finalize(str(index))
