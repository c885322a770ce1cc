"""Syntax for guides on RoBERTa's tasks: parses of sentences → annotations of the tokens of PART.npz.

An annotation file, syntax.PART.npy, is one array (T, 4) of int16 for the T tokens of PART.npz: the first
sub-word of the token's word; the first sub-word of the word's head (for a root, of the word itself); the
sentence of the example, 1 or 2; 1 for punctuation. Positions count from the start of the example. `<s>` and
`</s>` have -1, -1, 0, 0; unknown words have -1 for both positions. The file is memory-mapped.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary

from synmask.pipeline.corpora.tasks import read_task
from synmask.pipeline.files import UserError, write_json, writing
from synmask.pipeline.options import CountOption, Some, TaskName
from synmask.pipeline.roberta.encoded import (
    COLUMNS,
    NONE,
    Encoded,
    encode,
    read_encoded,
    syntax_file,
    write_encoded,
)
from synmask.pipeline.roberta.weights import load_dictionary
from synmask.pipeline.syntax.pieces import Parsed, annotate, read_parsed
from synmask.pipeline.text import gpt2

END = Dictionary().eos()  # `</s>`, the same in all dictionaries


def annotate_task(
    *, task: TaskName, input: Path, data: Path, weights: Path, parses: Some[Path]
) -> dict[str, int]:
    """Write words and dependency heads of a part's sub-words, for systems that read them.

    Args:
        input: Output of `glue` or `demo-task`.
        data: Output of `encode-task`, PART.npz; makes syntax.PART.npy and, with counts, .json.
        weights: Folder with encoder.json and vocab.bpe.
        parses: Prefixes of parsed sentences: PREFIX.text, .tokens, .trees, .heads.

    Returns:
        The numbers of "sentences", of those that are "empty" or otherwise "unparsed", of "words" in the
        others, and of words "not_found" in the text.

    Raises:
        UserError: a file is missing, a sentence has no parse there, or `data` is of other examples.
    """
    examples, encoded = read_task(task, input, test=True), read_encoded(data)
    if len(examples.texts) != len(encoded):
        raise UserError(
            f"{data}: {len(encoded)} examples, {input} has {len(examples.texts)}; encode it again"
        )
    known = dict(read_parsed(parses))
    sentences = [text for example in examples.texts for text in example]
    if missing := next((text for text in sentences if text not in known), None):
        raise UserError(f"{input}: no parse of {missing!r:.60}; parse the task again")
    pieces = gpt2.encode(sentences, weights)
    return _write(data, encoded, examples.texts, gpt2.lengths(pieces, weights), known)


def encode_parses(
    *, parses: Some[Path], weights: Path, max_tokens: CountOption, output: Path
) -> dict[str, int]:
    """Write parsed sentences as ids, with their dependency heads, for `continue-pretraining`.

    Args:
        parses: Prefixes of parsed sentences: PREFIX.text, .tokens, .trees, .heads.
        weights: A weights folder.
        max_tokens: Truncate longer sentences.
        output: PART.npz; beside it syntax.PART.npy and, with counts, .json.

    Returns:
        The counts of `annotate_task`.

    Raises:
        UserError: a file is missing or does not fit, there is no sentence, or `max_tokens` is too small.
    """
    known = {text: parsed for text, parsed in read_parsed(parses) if text.strip()}
    if not known:
        raise UserError(f"{', '.join(map(str, parses))}: no sentence; give parses of some")
    dictionary = load_dictionary(weights)
    pieces = gpt2.encode([*known], weights)
    encoded = encode([[sentence] for sentence in pieces], dictionary, max_tokens, [0.0] * len(known))
    write_encoded(output, encoded)
    return _write(output, encoded, [(text,) for text in known], gpt2.lengths(pieces, weights), known)


def _write(
    part: Path,
    encoded: Encoded,
    texts: Sequence[Sequence[str]],
    pieces: Iterable[Sequence[int]],
    known: Mapping[str, Parsed | None],
) -> dict[str, int]:
    """Write the annotations of examples; `pieces` are the lengths in bytes of each sentence's pieces."""
    lengths = iter(pieces)
    counts = Counter({name: 0 for name in ("sentences", "empty", "unparsed", "words", "not_found")})
    table = np.full((len(encoded.tokens), COLUMNS), [NONE, NONE, 0, 0], dtype=np.int16)
    for index, example in enumerate(texts):
        rows = encoded.part(table, index)
        for number, (text, (start, end)) in enumerate(zip(example, _spans(encoded[index]), strict=True), 1):
            found, lost = annotate(text, next(lengths)[: end - start], known[text])
            known_places = found[:, :2] != NONE
            found[:, :2][known_places] += start
            rows[start:end] = np.insert(found, 2, number, axis=1)
            _count(counts, text, known[text], lost)
    with writing(syntax_file(part), "wb") as handle:
        np.save(handle, table)
    write_json(syntax_file(part).with_suffix(".json"), counts)
    return dict(counts)


def _spans(row: np.ndarray) -> list[tuple[int, int]]:
    """The spans of an example's sentences in `<s> a </s>` or `<s> a </s> </s> b </s>`."""
    first, *others = np.flatnonzero(row == END).tolist()
    return [(1, first), (first + 2, others[-1])] if others else [(1, first)]


def _count(counts: Counter, text: str, parsed: Parsed | None, lost: int) -> None:
    counts["sentences"] += 1
    if not text.strip():
        counts["empty"] += 1
    elif parsed is None:
        counts["unparsed"] += 1
    else:
        counts["words"] += len(parsed.words)
        counts["not_found"] += lost
