"""Using a model file: beam search, translation of new text, and the syntax that a guide induces."""

import json
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import utils
from fairseq.data import Dictionary
from fairseq.sequence_generator import SequenceGenerator

from synmask.engine.average import load_model
from synmask.engine.binarise import encode
from synmask.engine.dataset import AnnotatedPairs
from synmask.files import UserError, read_lines, write_json, write_lines
from synmask.syntax.tree import word_heads
from synmask.text import bpe, tokenise


def decode_file(
    model: Path,
    source: Path,
    output: Path,
    *,
    beam: int,
    length_penalty: float,
    max_tokens: int,
    threads: int,
) -> None:
    """Translate a file of source sentences in BPE.

    Writes `output`.tok (tokenised hypotheses), .txt (detokenised) and .json (seconds, tokens).
    """
    torch.set_num_threads(threads)
    transformer, task, text = load_model(model)
    started = time.perf_counter()
    sentences = _encoded(read_lines(source), transformer, task)
    generator = _generator(transformer, task.tgt_dict, beam, length_penalty)
    hypotheses = list(_translate(transformer, task, generator, sentences, max_tokens))
    seconds = time.perf_counter() - started
    words = [bpe.join_subwords(line) for line in hypotheses]
    write_lines(f"{output}.tok", words)
    write_lines(f"{output}.txt", _detokenised(words, text))
    tokens = sum(len(line.split()) + 1 for line in hypotheses)
    write_json(f"{output}.json", {"decode_seconds": round(seconds, 2), "decoded_tokens": tokens})


def translate(
    model: Path, lines: Iterable[str], *, beam: int = 5, length_penalty: float = 1.0, threads: int = 1
) -> Iterator[str]:
    """Translate raw text: tokenised, lower-cased and split as the model's training text was; detokenised."""
    torch.set_num_threads(threads)
    transformer, task, text = load_model(model)
    generator = _generator(transformer, task.tgt_dict, beam, length_penalty)
    sentences = _encoded(_split(lines, text), transformer, task)
    hypotheses = _translate(transformer, task, generator, sentences, max_tokens=4000)
    yield from _detokenised([bpe.join_subwords(line) for line in hypotheses], text)


def parse_file(
    model: Path, source: Path, output: Path, distribution: Path, sentence: int | None, threads: int
) -> None:
    """Induce the syntax of a file of source sentences in BPE.

    Writes `output`, a JSON object a line, see `_parsed`; and `distribution`, P_D of one sentence
    with its tokens: the one with the number `sentence` (from 1), or else the first of 8 to 14 words with a
    split word.

    Raises:
        UserError: the model's guide induces no syntax, or there is no such sentence.
    """
    torch.set_num_threads(threads)
    loaded = load_model(model)
    lines = list(read_lines(source))
    chosen = _chosen([line.split() for line in lines], sentence, source)
    rows = [""] * len(lines)
    for index, row, p in _parsed(model, loaded, lines):
        rows[index] = json.dumps(row, ensure_ascii=False)
        if index == chosen:
            tokens = [*row["tokens"], "</s>"]
            shown = {"sentence": chosen + 1, "tokens": tokens, "distribution": np.round(p, 6).tolist()}
            write_json(distribution, shown)
    write_lines(output, rows)


def parse_text(model: Path, lines: Iterable[str], *, threads: int = 1) -> list[dict[str, Any]]:
    """Induce the syntax of raw text, prepared as for `translate`; an object a line, see `_parsed`.

    Raises:
        UserError: the model's guide induces no syntax, or a line has no word.
    """
    torch.set_num_threads(threads)
    loaded = load_model(model)
    split = list(_split(lines, loaded[2]))
    for number, line in enumerate(split, start=1):
        if not line:
            raise UserError(f"line {number}: no word in it; give a sentence")
    return [row for _, row, _ in sorted(_parsed(model, loaded, split), key=lambda found: found[0])]


def _parsed(
    path: Path, loaded: tuple[Any, Any, dict[str, Any]], lines: list[str]
) -> Iterator[tuple[int, dict[str, Any], np.ndarray]]:
    """(number, row, P_D with `</s>`) of each line in BPE, the short ones first.

    A row holds `tokens` (the n sub-words, without `</s>`), `distances` (the n-1 between them), `eos_distance`
    (before `</s>`), `heights` (n) and `heads` (of the words, see `syntax.tree.word_heads`).
    """
    transformer, task, _ = loaded
    if transformer.encoder.guide is None:
        raise UserError(f"{path}: a system without a guide induces no syntax; leave it out of the parsing")
    sources = task.sources(_encoded(lines, transformer, task))
    for batch in _batches(sources, transformer, max_tokens=4000, equal_lengths=True):
        net = batch["net_input"]
        with torch.no_grad():
            prepared = transformer.encoder.induce(net["src_tokens"], net["annotations"])
        for number, index in enumerate(batch["id"].tolist()):
            tokens = lines[index].split()
            p = prepared.distribution[number].float().cpu().numpy()
            distances = _rounded(prepared.distance[number, : len(tokens)])
            row = {
                "tokens": tokens,
                "distances": distances[:-1],
                "eos_distance": distances[-1] if tokens else 0.0,
                "heights": _rounded(prepared.height[number, : len(tokens)]),
                "heads": word_heads(p, tokens),
            }
            yield index, row, p


def _rounded(values: torch.Tensor) -> list[float]:
    return [round(value, 6) for value in values.tolist()]


def _chosen(lines: list[list[str]], sentence: int | None, path: Path) -> int:
    if sentence is not None:
        if sentence > len(lines):
            raise UserError(
                f"{path}: no sentence {sentence}, only {len(lines)}; set `sentence` in config.yaml"
            )
        return sentence - 1

    def fits(line: list[str]) -> bool:
        pieces = sum(token.endswith("@@") for token in line)
        return pieces > 0 and 8 <= len(line) - pieces <= 14

    return next((number for number, line in enumerate(lines) if fits(line)), 0)


def _split(lines: Iterable[str], text: dict[str, Any]) -> Iterator[str]:
    """Raw text in BPE, by the text settings of a model."""
    tokens = tokenise.tokeniser(text["source"], tokenise=text["tokenise"], lowercase=text["lowercase"])
    splitter = bpe.Splitter(text["codes"], None if text["vocabulary"] is None else set(text["vocabulary"]))
    return (splitter(tokens(" ".join(line.split()))) for line in lines)


def _encoded(lines: Iterable[str], model: Any, task: Any) -> list[torch.Tensor]:
    """Lines in BPE as ids; a line longer than the model's positions is a UserError."""
    sentences, limit = [], model.encoder.max_positions()
    for number, line in enumerate(lines, start=1):
        sentences.append(encode(line, task.src_dict).long())
        if len(sentences[-1]) > limit:
            raise UserError(f"line {number}: longer than {limit} sub-words; split the sentence")
    return sentences


def _generator(model: Any, target: Dictionary, beam: int, length_penalty: float) -> SequenceGenerator:
    return SequenceGenerator([model], target, beam_size=beam, len_penalty=length_penalty)


def _batches(
    sources: AnnotatedPairs, model: Any, max_tokens: int, equal_lengths: bool = False
) -> Iterator[dict[str, Any]]:
    """Batches of sentences of similar length, on the model's device; with `equal_lengths`, without pads."""
    order = np.argsort(sources.src_sizes, kind="stable")
    limit = max(max_tokens, int(sources.src_sizes.max()))
    device = next(model.parameters()).device
    sizes = sources.src_sizes[order]
    borders = np.flatnonzero(np.diff(sizes)) + 1 if equal_lengths else []
    for group in np.split(order, borders):
        for indices in sources.batch_by_size(group, max_tokens=limit):
            batch = sources.collater([sources[i] for i in indices])
            yield utils.move_to_cuda(batch) if device.type == "cuda" else batch


def _translate(
    model: Any, task: Any, generator: SequenceGenerator, sentences: list[torch.Tensor], max_tokens: int
) -> list[str]:
    """Best hypotheses in BPE, in the order of `sentences`. A sentence without a token stays empty."""
    hypotheses = [""] * len(sentences)
    filled = [number for number, ids in enumerate(sentences) if len(ids) > 1]
    if not filled:
        return hypotheses
    done, started = 0, time.perf_counter()
    for batch in _batches(task.sources([sentences[number] for number in filled]), model, max_tokens):
        with torch.no_grad():
            results = generator.generate([model], batch)
        for index, result in zip(batch["id"].tolist(), results, strict=True):
            hypotheses[filled[index]] = task.tgt_dict.string(result[0]["tokens"])
        done += len(results)
        speed = done / (time.perf_counter() - started)
        print(f"{done}/{len(filled)} sentences, {speed:.1f} a second", file=sys.stderr, flush=True)
    return hypotheses


def _detokenised(lines: list[str], text: dict[str, Any]) -> list[str]:
    return list(tokenise.detokenise(lines, text["target"])) if text["tokenise"] else lines
