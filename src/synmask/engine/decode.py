"""Using a model file: beam search, translation of new text, and the syntax that a guide induces."""

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
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
from synmask.syntax.annotations import Annotations, annotate_file
from synmask.text import bpe, tokenise

# Parses a file of sentences in their true case: (language, that file, the corpus' tokens, output's prefix).
Parse = Callable[[str, Path, Path, Path], None]


def decode_file(
    model: Path,
    source: Path,
    output: Path,
    *,
    beam: int,
    length_penalty: float,
    max_tokens: int,
    threads: int,
    annotations: Path | None = None,
) -> None:
    """Translate a file of source sentences in BPE.

    Writes `output`.tok (tokenised hypotheses), .txt (detokenised) and .json (seconds, tokens).

    Args:
        annotations: the sentences' annotations, where the model reads what a parser gives.

    Raises:
        UserError: annotations are needed and missing, or of another text.
    """
    torch.set_num_threads(threads)
    transformer, task, text = load_model(model)
    started = time.perf_counter()
    sentences = _encoded(read_lines(source), transformer, task)
    syntax = None
    if task.parsed:
        if annotations is None:
            raise UserError(f"{model}: reads {_listed(task.parsed)} of a parser; give --annotations")
        syntax = Annotations(annotations, [len(sentence) for sentence in sentences])
    generator = _generator(transformer, task.tgt_dict, beam, length_penalty)
    hypotheses = _translate(transformer, task, generator, sentences, max_tokens, syntax)
    seconds = time.perf_counter() - started
    words = [bpe.join_subwords(line) for line in hypotheses]
    write_lines(f"{output}.tok", words)
    write_lines(f"{output}.txt", _detokenised(words, text))
    tokens = sum(len(line.split()) + 1 for line in hypotheses)
    write_json(f"{output}.json", {"decode_seconds": round(seconds, 2), "decoded_tokens": tokens})


def translate(
    model: Path,
    lines: Iterable[str],
    *,
    beam: int = 5,
    length_penalty: float = 1.0,
    threads: int = 1,
    parse: Parse | None = None,
) -> Iterator[str]:
    """Translate raw text: tokenised, lower-cased and split as the model's training text was; detokenised.

    Args:
        parse: the parser of new text, for a model that reads what one gives.

    Raises:
        UserError: the model needs a parser and there is none, or a line is too long.
    """
    torch.set_num_threads(threads)
    transformer, task, text = load_model(model)
    if task.parsed and parse is None:
        raise UserError(f"{model}: reads {_listed(task.parsed)}, which only a parser gives; there is none")
    generator = _generator(transformer, task.tgt_dict, beam, length_penalty)
    splitter = bpe.Splitter(text["codes"], None if text["vocabulary"] is None else set(text["vocabulary"]))
    tokens = tokenise.tokeniser(text["source"], tokenise=text["tokenise"], lowercase=text["lowercase"])
    plain = [" ".join(line.split()) for line in lines]
    tokenised = [tokens(line) for line in plain]
    split = [splitter(line) for line in tokenised]
    sentences = _encoded(split, transformer, task)
    syntax = None
    if task.parsed:
        cased = tokenise.tokeniser(text["source"], tokenise=text["tokenise"], lowercase=False)
        syntax = _parsed(text["source"], [cased(line) for line in plain], tokenised, split, parse)
    hypotheses = _translate(transformer, task, generator, sentences, max_tokens=4000, syntax=syntax)
    yield from _detokenised([bpe.join_subwords(line) for line in hypotheses], text)


def _parsed(
    language: str, cased: list[str], tokens: list[str], split: list[str], parse: Parse
) -> list[np.ndarray]:
    """The annotations of sentences, by a parser that reads `cased` and speaks of `tokens`."""
    with TemporaryDirectory() as folder:
        prefix = Path(folder) / "new"
        for name, lines in (("cased", cased), ("tokens", tokens), ("bpe", split)):
            write_lines(f"{prefix}.{name}", lines)
        parse(language, Path(f"{prefix}.cased"), Path(f"{prefix}.tokens"), prefix)
        files = {name: Path(f"{prefix}.{name}") for name in ("trees", "heads")}
        annotate_file(Path(f"{prefix}.bpe"), Path(f"{prefix}.npy"), **files)
        sizes = [len(line.split()) + 1 for line in split]
        return [np.array(rows) for rows in Annotations(Path(f"{prefix}.npy"), sizes)]


def parse_file(
    model: Path, source: Path, output: Path, distribution: Path, sentence: int | None, threads: int
) -> None:
    """Induce the syntax of a file of source sentences in BPE.

    Writes `output`, a JSON object a line: `tokens` (sub-words, without `</s>`), `distances` (one a gap
    between them) and, of a guide that induces them, `heights` and `heads` (0-based argmax of P_D; the number
    of tokens stands for `</s>`); and `distribution`, P_D of one sentence with its tokens: the one with the
    number `sentence` (from 1), or else the first of 8 to 14 words with a split word.

    Raises:
        UserError: the model's guide induces no syntax, or there is no such sentence.
    """
    torch.set_num_threads(threads)
    transformer, task, _ = load_model(model)
    guide = transformer.encoder.guide
    if guide is None or not guide.options.induces:
        raise UserError(f"{model}: this system induces no syntax; leave it out of the parsing")
    lines = [line.split() for line in read_lines(source)]
    chosen = _chosen(lines, sentence, source)
    shown: dict[str, Any] = {"sentence": chosen + 1}
    rows: list[str] = [""] * len(lines)
    sources = task.sources(_encoded(map(" ".join, lines), transformer, task))
    for batch in _batches(sources, transformer, max_tokens=4000, equal_lengths=True):
        net = batch["net_input"]
        with torch.no_grad():
            induced = transformer.encoder.induce(net["src_tokens"], net["annotations"])
        for row, index in enumerate(batch["id"].tolist()):
            tokens = lines[index]
            value = {"tokens": tokens, "distances": _rounded(induced.distance[row, : len(tokens) - 1])}
            if induced.distribution is not None:
                p = induced.distribution[row].float().cpu().numpy()
                value["heights"] = _rounded(induced.height[row, : len(tokens)])
                value["heads"] = p[:-1].argmax(-1).tolist()
                if index == chosen:
                    shown |= {"tokens": [*tokens, "</s>"], "distribution": np.round(p, 6).tolist()}
            rows[index] = json.dumps(value, ensure_ascii=False)
    write_json(distribution, shown)
    write_lines(output, rows)


def _listed(annotations: frozenset[str]) -> str:
    return " and ".join(sorted(annotations))


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
    model: Any,
    task: Any,
    generator: SequenceGenerator,
    sentences: list[torch.Tensor],
    max_tokens: int,
    syntax: Sequence[np.ndarray] | None = None,
) -> list[str]:
    """Best hypotheses in BPE, in the order of `sentences`. A sentence without a token stays empty."""
    hypotheses = [""] * len(sentences)
    filled = [number for number, ids in enumerate(sentences) if len(ids) > 1]
    if not filled:
        return hypotheses
    done, started = 0, time.perf_counter()
    annotated = None if syntax is None else [syntax[number] for number in filled]
    sources = task.sources([sentences[number] for number in filled], annotated)
    for batch in _batches(sources, model, max_tokens):
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
