"""GPT-2's byte-level BPE (Radford et al. 2019), used by RoBERTa, with the library `tokenizers`.

A vocabulary consists of two files, as published for GPT-2: encoder.json, a JSON object of tokens and ids, and
vocab.bpe, a head line and the merge operations. In tokens, each byte is one printable character; a space is
Ġ. RoBERTa adds a third, dict.txt (fairseq's dictionary, "ID COUNT" per line): the rows of its embeddings.
"""

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_json, read_lines, write_json, write_lines

MERGES_HEADER = "#version: 0.2"
UNMERGED = re.compile("<.*>|madeupword.*")  # tokens that no merge makes
BATCH = 10_000  # lines encoded at a time, to limit memory

# One thread encodes SST-2 in 3 s, and avoids the library's warning when a process forks later. The library
# reads this at every call; if users set it to true, RAYON_NUM_THREADS limits the threads.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def encode_batch(lines: Sequence[str], folder: Path) -> list[list[int]]:
    """The ids of each line's tokens, as from fairseq's `GPT2BPE`; none for an empty line.

    No special token or leading space is added, and no special token is recognised in the text: "<s>" is three
    characters. Decoding the ids gives the same bytes.

    Args:
        folder: holds encoder.json and vocab.bpe.
    Raises:
        UserError: a file is missing or not of this kind, or they do not belong together.
    """
    encoder_json, vocab_bpe = folder / "encoder.json", folder / "vocab.bpe"
    encoder, merges = read_encoder(encoder_json), read_merges(vocab_bpe)
    return _encode_with(tokenizer(encoder, merges, f"{encoder_json}, {vocab_bpe}"), lines)


def byte_lengths(pieces: Sequence[Sequence[int]], folder: Path) -> list[list[int]]:
    """The number of bytes of each token of each line of `encode_batch`."""
    bytes_of = {number: len(token) for token, number in read_encoder(folder / "encoder.json").items()}
    return [[bytes_of[number] for number in line] for line in pieces]


def learn_byte_bpe(texts: Sequence[str], merges: int, folder: str | Path) -> int:
    """Learn merge operations on lines of text; write encoder.json, vocab.bpe, dict.txt; return their number.

    The 256 bytes come first, so that any text can be encoded, then the merges. dict.txt lists every id, with
    count 0 if it does not occur in `texts`. Learning stops before `merges`, with a line on stderr, when no
    pair occurs twice.

    Raises:
        UserError: there is no text.
    """
    folder = Path(folder)
    if not any(texts):
        raise UserError(f"{folder}: no text to learn its byte-level BPE from; give some")
    learner = _with_pre_tokenizer(Tokenizer(BPE()))
    trainer = BpeTrainer(
        vocab_size=256 + merges, min_frequency=2, initial_alphabet=ByteLevel.alphabet(), show_progress=False
    )
    learner.train_from_iterator(texts, trainer)
    model = json.loads(learner.to_str())["model"]
    learned = [" ".join(pair) for pair in model["merges"]]
    if len(learned) < merges:
        print(
            f"{folder}: learned {len(learned)} merges, not {merges}: no other pair occurs twice",
            file=sys.stderr,
        )
    counts = Counter({number: 0 for number in model["vocab"].values()})
    for ids in _encode_with(learner, texts):
        counts.update(ids)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))  # fairseq's order
    write_lines(folder / "dict.txt", (f"{number} {count}" for number, count in ordered))
    write_lines(folder / "vocab.bpe", [MERGES_HEADER, *learned])
    write_json(folder / "encoder.json", model["vocab"])
    return len(learned)


def read_encoder(path: str | Path) -> dict[str, int]:
    """Read tokens and ids from an encoder.json (or Hugging Face's vocab.json).

    Raises:
        UserError: no such file, or not of this kind.
    """
    encoder = read_json(path)
    if not isinstance(encoder, dict) or not all(type(number) is int for number in encoder.values()):
        raise UserError(f"{path}: not an encoder.json of GPT-2's kind, which gives tokens their ids")
    return encoder


def read_merges(path: str | Path) -> list[tuple[str, str]]:
    """Read the merge operations of a vocab.bpe (or Hugging Face's merges.txt), in order.

    Raises:
        UserError: no such file, or not of this kind.
    """
    merges = []
    for number, line in enumerate(read_lines(path), start=1):
        if number == 1 and line.startswith("#version"):
            continue
        pair = tuple(line.split(" "))
        if len(pair) != 2 or not all(pair):
            raise UserError(f"{path}, line {number}: not two tokens; is it GPT-2's vocab.bpe?")
        merges.append(pair)
    return merges


def tokenizer(encoder: dict[str, int], merges: Sequence[tuple[str, str]], called: str) -> Tokenizer:
    """The library's tokenizer for a vocabulary, named `called` in error messages.

    Raises:
        UserError: one of the 256 bytes, a token in or from a merge, or a token's merge is missing.
    """
    if missing := sorted(set(ByteLevel.alphabet()) - set(encoder)):
        raise UserError(f"{called}: no token {missing[0]!r}, but each of the 256 bytes must have one")
    for left, right in merges:
        if missing := [token for token in (left, right, left + right) if token not in encoder]:
            raise UserError(f"{called} do not belong together: a merge has {missing[0]!r}, which has no id")
    merged = {left + right for left, right in merges}
    for token in encoder.keys() - merged:
        if len(token) > 1 and not UNMERGED.fullmatch(token):
            raise UserError(f"{called} do not belong together: no merge makes {token!r}; is one cut short?")
    return _with_pre_tokenizer(Tokenizer(BPE(encoder, merges)))


def _with_pre_tokenizer(words: Tokenizer) -> Tokenizer:
    """Set GPT-2's regular expression, which splits text into words, each with the space before it."""
    words.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=True)
    return words


def _encode_with(words: Tokenizer, lines: Sequence[str]) -> list[list[int]]:
    ids: list[list[int]] = []
    for start in range(0, len(lines), BATCH):
        batch = words.encode_batch_fast(lines[start : start + BATCH], add_special_tokens=False)
        ids.extend(encoding.ids for encoding in batch)
    return ids
