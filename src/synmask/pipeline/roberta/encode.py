"""Texts as RoBERTa's input, and their parses as the syntax of its tokens (roberta/examples.py)."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary

from synmask.options import NO_TOKEN
from synmask.pipeline.arguments import CountOption, OneOrMore, TaskName
from synmask.pipeline.corpora.tasks import Examples, read_task
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import line_key, write_json, writing
from synmask.pipeline.roberta.examples import (
    SYNTAX_COLUMNS,
    EncodedExamples,
    read_encoded,
    syntax_path,
    write_encoded,
)
from synmask.pipeline.roberta.weights import load_dictionary
from synmask.pipeline.syntax.pieces import ParsedText, annotate_pieces, read_parsed_texts
from synmask.pipeline.tasks import TASKS
from synmask.pipeline.text import gpt2

BEGIN, END = Dictionary().bos(), Dictionary().eos()  # `<s>` and `</s>`, the same in all dictionaries
ExampleTexts = Sequence[Sequence[str]]  # one or two sentences per example


def encode_task(*, task: TaskName, input: Path, weights: Path, max_tokens: CountOption, output: Path) -> None:
    """Write one part of a task, or a test set, as ids for RoBERTa.

    Args:
        input: Output of `glue`.
        weights: Folder with encoder.json, vocab.bpe and dict.txt.
        max_tokens: Truncate longer examples.
        output: PART.npz.
    """
    write_encoded(output, encode_examples(read_task(task, input, test=True), task, weights, max_tokens))


def encode_examples(examples: Examples, task: str, weights: Path, max_tokens: int) -> EncodedExamples:
    """A task's examples as RoBERTa's input (`encode_sentences`); targets are NaN in a test set."""
    targets = [*map(TASKS[task].target, examples.labels)] or [math.nan] * len(examples.texts)
    return encode_sentences(examples.texts, targets, weights, max_tokens)


def encode_sentences(
    texts: ExampleTexts, targets: Sequence[float], weights: Path, max_tokens: int
) -> EncodedExamples:
    """RoBERTa's input for examples, at most `max_tokens` each; of `weights` only the vocabulary is read."""
    dictionary = load_dictionary(weights)
    pieces = iter(_encode_texts([sentence for example in texts for sentence in example], weights))
    rows = [
        join_sentences(
            [[dictionary.index(str(piece)) for piece in next(pieces)] for _ in example], max_tokens
        )
        for example in texts
    ]
    tokens, starts = np.fromiter(chain.from_iterable(rows), np.int32), np.cumsum([0, *map(len, rows)])
    return EncodedExamples(tokens, starts, np.array(targets, dtype=np.float32))


def _encode_texts(sentences: Sequence[str], weights: Path) -> list[list[int]]:
    """Their ids without the blanks around them, which fairseq's recipe for GLUE strips, too."""
    return gpt2.encode_batch([sentence.strip() for sentence in sentences], weights)


def join_sentences(sentences: list[list[int]], max_tokens: int) -> list[int]:
    """One or two sentences as ids, `<s> a </s>` or `<s> a </s> </s> b </s>`.

    If these are more than `max_tokens`, the longer sentence loses its last token until they fit; of equally
    long ones, that which was shorter, or the first, as in the tokenizer of an exported model.
    """
    room = max_tokens - 2 * len(sentences)
    if room < len(sentences):
        raise UserError(
            f"max_tokens {max_tokens}: too few for a token of each sentence and the marks; give more"
        )
    by_length = sorted(sentences, key=len)
    while sum(map(len, sentences)) > room:
        max(by_length, key=len).pop()
    first, *others = sentences
    row = [BEGIN, *first, END]
    for other in others:
        row += [END, *other, END]
    return row


def annotate_task(
    *, task: TaskName, input: Path, data: Path, weights: Path, parses: OneOrMore[Path]
) -> dict[str, int]:
    """Write words and dependency heads of a part's sub-words, for systems that read them.

    Args:
        input: Output of `glue`.
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
    known = _read_parses(parses)
    sentences = [text for example in examples.texts for text in example]
    if missing := next((text for text in sentences if line_key(text) not in known), None):
        raise UserError(f"{input}: no parse of {missing!r:.60}; parse the task again")
    return _write_syntax(data, encoded, examples.texts, weights, known)


def encode_parses(
    *, parses: OneOrMore[Path], weights: Path, max_tokens: CountOption, output: Path
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
    known = {text: parsed for text, parsed in _read_parses(parses).items() if text.strip()}
    if not known:
        raise UserError(f"{', '.join(map(str, parses))}: no sentence; give parses of some")
    texts = [(text,) for text in known]
    encoded = encode_sentences(texts, [0.0] * len(texts), weights, max_tokens)
    write_encoded(output, encoded)
    return _write_syntax(output, encoded, texts, weights, known)


def _read_parses(prefixes: Iterable[Path]) -> dict[str, ParsedText | None]:
    """The parse of each sentence by its `line_key`."""
    return {line_key(text): parse for text, parse in read_parsed_texts(prefixes)}


def _write_syntax(
    part: Path,
    encoded: EncodedExamples,
    texts: ExampleTexts,
    weights: Path,
    known: Mapping[str, ParsedText | None],
) -> dict[str, int]:
    """Write the syntax of examples, whose sentences are in `known`; the counts."""
    sentences = [text for example in texts for text in example]
    parses = [known[line_key(text)] for text in sentences if text.strip()]
    lengths, lost = iter(gpt2.byte_lengths(_encode_texts(sentences, weights), weights)), 0
    table = np.full((len(encoded.tokens), SYNTAX_COLUMNS), [NO_TOKEN, NO_TOKEN, 0, 0], dtype=np.int16)
    for index, example in enumerate(texts):
        rows = encoded.part(table, index)
        for number, (text, (start, end)) in enumerate(zip(example, _spans(encoded[index]), strict=True), 1):
            annotated, missed = annotate_pieces(
                text.strip(), next(lengths)[: end - start], known[line_key(text)]
            )
            places = annotated[:, :2]
            places[places != NO_TOKEN] += start
            rows[start:end] = np.insert(annotated, 2, number, axis=1)
            lost += missed
    counts = {
        "sentences": len(sentences),
        "empty": sum(not text.strip() for text in sentences),
        "unparsed": parses.count(None),
        "words": sum(len(parse.words) for parse in parses if parse is not None),
        "not_found": lost,
    }
    with writing(syntax_path(part), "wb") as handle:
        np.save(handle, table)
    write_json(syntax_path(part).with_suffix(".json"), counts)
    return counts


def _spans(row: np.ndarray) -> list[tuple[int, int]]:
    """The spans of an example's sentences in `<s> a </s>` or `<s> a </s> </s> b </s>`."""
    first, *others = np.flatnonzero(row == END).tolist()
    return [(1, first), (first + 2, others[-1])] if others else [(1, first)]
