"""Decode with a model file: beam search, and the syntax that its guide induces."""

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import utils

from synmask.config.sections import Decoding
from synmask.files import UserError, all_writing, json_text, read_lines, write_all_lines, writing
from synmask.syntax.annotations import Annotations
from synmask.syntax.tree import bracketed, over_words, word_heads
from synmask.text import bpe, tokenise
from synmask.training.binarise import encode
from synmask.translation.average import Loaded, load_model
from synmask.translation.beam import BeamSearch, Hypothesis
from synmask.translation.dataset import AnnotatedPairs
from synmask.translation.task import read_templates

Jars = Callable[[str], Sequence[Path]]  # tokeniser → the jars of CoreNLP that it needs
PARSED_TOKENS = 4000  # per batch
MAX_SENTENCES = 128  # per batch: what a step computes then fits into a CPU's caches


def no_jars(tokeniser: str) -> list[Path]:
    return []


def decode_files(
    model: Path,
    sources: Sequence[Path],
    outputs: Sequence[Path],
    settings: Decoding,
    *,
    threads: int,
    annotations: Sequence[Path] = (),
    templates: Sequence[Path] = (),
) -> None:
    """Translate files of source sentences in BPE one by one; the model is loaded once.

    Writes OUTPUT.tok (tokenised hypotheses), .txt (detokenised) and .json (seconds, tokens) for each of
    `outputs`, in the order of `sources`.

    Args:
        annotations: the annotations of each file, if the model reads parses.
        templates: the templates of each file (`predict_templates`), if the model reads them.

    Raises:
        UserError: the numbers of sources and outputs differ; required annotations or templates are missing or
            belong to another text.
    """
    torch.set_num_threads(threads)
    transformer, task, text = load_model(model)
    if task.parsed and not annotations:
        raise UserError(f"{model}: reads {listed(task.parsed)} of a parser; give --annotations")
    templated = task.template_dictionary is not None
    if templated and not templates:
        raise UserError(f"{model}: reads templates; give --templates")
    parsed = annotations if task.parsed else [None] * len(sources)
    told = templates if templated else [None] * len(sources)
    if len({*map(len, (sources, outputs, parsed, told))}) > 1:
        what = "templates or annotations of each or none"
        raise UserError(f"{model}: give one output for each input, and {what}")
    search = BeamSearch([transformer], task.tgt_dict, settings)
    for source, output, syntax, template in zip(sources, outputs, parsed, told, strict=True):
        started = time.perf_counter()
        sentences = encoded(read_lines(source), transformer.encoder.max_positions(), task)
        rows = syntax and Annotations(syntax, [len(sentence) for sentence in sentences])
        given = template and read_templates(template, task.template_dictionary, len(sentences))
        with all_writing([f"{output}.{kind}" for kind in ("tok", "txt", "json")]) as (tok, txt, cost):
            hypotheses = _translate(transformer, task, search, sentences, settings.max_tokens, rows, given)
            seconds = time.perf_counter() - started
            words = [bpe.join_subwords(line) for line in hypotheses]
            tok.writelines(f"{line}\n" for line in words)
            txt.writelines(f"{line}\n" for line in detokenised(words, text))
            tokens = sum(len(line.split()) + 1 for line in hypotheses)
            cost.write(json_text({"decode_seconds": round(seconds, 2), "decoded_tokens": tokens}))


def predict_templates(model: Path, source: Path, output: Path, settings: Decoding, *, threads: int) -> None:
    """Write the best template for each source sentence; both are in BPE."""
    torch.set_num_threads(threads)
    loaded = load_model(model)
    with writing(output) as handle:  # opened first: a wrong file name is reported at once
        lines = best_templates(loaded, read_lines(source), settings, tell=True)
        handle.writelines(f"{line}\n" for line in lines)


def best_templates(loaded: Loaded, lines: Iterable[str], settings: Decoding, tell: bool = False) -> list[str]:
    """The best template for each source sentence, both in BPE; `tell`: print the progress."""
    transformer, task, _ = loaded
    search = BeamSearch([transformer], task.tgt_dict, settings)
    sentences = encoded(lines, transformer.encoder.max_positions(), task)
    return _translate(transformer, task, search, sentences, settings.max_tokens, tell=tell)


def parse_file(
    model: Path, source: Path, output: Path, distribution: Path, sentence: int | None, threads: int
) -> None:
    """Induce the syntax of a file of source sentences in BPE.

    Writes `output`, one JSON object per line (`_induced`), and `distribution`: the tokens of one sentence and
    its P_D, if the guide induces one. This is sentence number `sentence` (from 1), by default the first of 8
    to 14 words that has a split word.

    Raises:
        UserError: the model's guide induces no syntax, or there is no such sentence.
    """
    torch.set_num_threads(threads)
    lines = list(read_lines(source))
    chosen = _chosen([line.split() for line in lines], sentence, source)
    shown: dict[str, Any] = {"sentence": chosen + 1}
    rows = [""] * len(lines)
    for index, row, p in _induced(_inducing(model), lines):
        rows[index] = json.dumps(row, ensure_ascii=False)
        if index == chosen and p is not None:
            shown |= {"tokens": [*row["tokens"], "</s>"], "distribution": np.round(p, 6).tolist()}
    write_all_lines({distribution: json_text(shown).splitlines(), output: rows})


def parse_text(model: Path, lines: Iterable[str], *, jars: Jars = no_jars) -> list[dict[str, Any]]:
    """Induce the syntax of raw text, prepared as for `translate`; one object per line (`_induced`).

    Raises:
        UserError: the model's guide induces no syntax, or a line has no word.
    """
    torch.set_num_threads(1)
    loaded = _inducing(model)
    *_, split = prepared(lines, loaded.text, splitter_of(loaded.text), jars)
    for number, line in enumerate(split, start=1):
        if not line:
            raise UserError(f"line {number}: no word in it; give a sentence")
    return [row for _, row, _ in sorted(_induced(loaded, split), key=lambda found: found[0])]


def print_trees(model: Path, *, threads: int, jars: Jars = no_jars) -> None:
    """Print the tree over words of each line of raw text from standard input, as soon as it arrives.

    Trees are bracketed (`bracketed`). An empty line gives (FLAT), so that there is one tree per line.

    Raises:
        UserError: the model's guide induces no syntax, or a line is too long.
    """
    from synmask.text.lines import answer  # imported here: parsing BPE files does not depend on it

    torch.set_num_threads(threads)
    loaded = _inducing(model)
    text = loaded.text
    splitter = splitter_of(text)

    def reply(lines: list[str], first: int) -> Iterator[str]:
        *_, split = prepared(lines, text, splitter, jars)
        rows = sorted(_induced(loaded, split, first), key=lambda found: found[0])
        yield from (bracketed(*over_words(row["tokens"], row["distances"])) for _, row, _ in rows)

    most = None if starts_program(text) else 64
    answer(reply, input=None, output=None, most=most, prompt=f"{text['source']}>")


def starts_program(text: dict[str, Any]) -> bool:
    """Whether the source language's tokeniser is an external program, which takes seconds to start."""
    return tokenise.of_language(text["tokeniser"], text["source"]) not in ("moses", "none")


def _inducing(path: Path) -> Loaded:
    """`load_model`; raises a UserError if the model's guide induces no syntax."""
    loaded = load_model(path)
    guide = loaded.model.encoder.guide
    if guide is None or not guide.options.induces:
        raise UserError(f"{path}: this system induces no syntax; leave it out of the parsing")
    return loaded


def _induced(
    loaded: Loaded, lines: list[str], first: int = 1
) -> Iterator[tuple[int, dict[str, Any], np.ndarray | None]]:
    """(number, row, P_D with `</s>`) of each line in BPE, short lines first.

    A row contains `tokens` (n sub-words, without `</s>`), `distances` (the n-1 between them), `eos_distance`
    (before `</s>`) and, if the guide induces them, `heights` (n), `heads` of the words and likely `parents`
    of the sub-words (see `syntax.tree.word_heads`, `likely_parents`).
    """
    transformer, task, _ = loaded
    sources = task.sources(encoded(lines, transformer.encoder.max_positions(), task, first))
    for batch in _batches(sources, transformer, max_tokens=PARSED_TOKENS, equal_lengths=True):
        net = batch["net_input"]
        with torch.no_grad():
            induced = transformer.encoder.induce(net["src_tokens"], net["annotations"])
        for number, index in enumerate(batch["id"].tolist()):
            tokens, p = lines[index].split(), None
            distances = _rounded(induced.distance[number, : len(tokens)])
            row = {"tokens": tokens, "distances": distances[:-1]}
            row["eos_distance"] = distances[-1] if tokens else 0.0
            if induced.distribution is not None:
                p = induced.distribution[number].float().cpu().numpy()
                row["heights"] = _rounded(induced.height[number, : len(tokens)])
                row["heads"] = word_heads(p, tokens)
                row["parents"] = likely_parents(p)
            yield index, row, p


def likely_parents(distribution: np.ndarray, *, most: int = 3, least: float = 0.1) -> list[list[list]]:
    """The most probable parents of each of n sub-words: at most `most`, each at least `least` probable.

    Args:
        distribution: (n+1, n+1) P_D over the sub-words and `</s>`; row i belongs to token i.
    Returns:
        for each sub-word pairs [parent, probability], the most probable first; parent n is `</s>`.
    """
    others = distribution[:-1].copy()
    np.fill_diagonal(others, 0)
    ranked = np.argsort(-others, axis=1, kind="stable")[:, :most].tolist()
    return [
        [[parent, round(float(row[parent]), 2)] for parent in best if row[parent] >= least]
        for row, best in zip(others, ranked, strict=True)
    ]


def tokens_of(lines: list[str], text: dict[str, Any], jars: Jars, lowercase: bool) -> list[str]:
    tokeniser = tokenise.of_language(text["tokeniser"], text["source"])
    how = {"tokeniser": tokeniser, "lowercase": lowercase, "jars": jars(tokeniser)}
    return list(tokenise.tokenise(lines, text["source"], **how))


def splitter_of(text: dict[str, Any]) -> bpe.Splitter:
    """The splitter of words into sub-words by a model's text settings."""
    return bpe.Splitter(text["codes"], None if text["vocabulary"] is None else set(text["vocabulary"]))


def prepared(
    lines: Iterable[str], text: dict[str, Any], splitter: bpe.Splitter, jars: Jars
) -> tuple[list[str], list[str], list[str]]:
    """Raw text with single spaces, as tokens, and in BPE, by a model's text settings."""
    plain = [" ".join(line.split()) for line in lines]
    tokenised = tokens_of(plain, text, jars, text["lowercase"])
    return plain, tokenised, [splitter(line) for line in tokenised]


def listed(annotations: frozenset[str]) -> str:
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


def encoded(lines: Iterable[str], limit: int, task: Any, first: int = 1) -> list[torch.Tensor]:
    """Lines in BPE as ids; a line longer than `limit` is a UserError (lines are counted from `first`)."""
    sentences = []
    for number, line in enumerate(lines, start=first):
        sentences.append(encode(line, task.src_dict).long())
        if len(sentences[-1]) > limit:
            raise UserError(f"line {number}: longer than {limit} sub-words; split the sentence")
    return sentences


def _batches(
    sources: AnnotatedPairs, model: Any, max_tokens: int, equal_lengths: bool = False
) -> Iterator[dict[str, Any]]:
    """Batches of sentences of similar (or equal) length, on the model's device."""
    order = np.argsort(sources.src_sizes, kind="stable")
    limit = max(max_tokens, int(sources.src_sizes.max()))
    device = next(model.parameters()).device
    sizes = sources.src_sizes[order]
    borders = np.flatnonzero(np.diff(sizes)) + 1 if equal_lengths else []
    for group in np.split(order, borders):
        for indices in sources.batch_by_size(group, max_tokens=limit, max_sentences=MAX_SENTENCES):
            batch = sources.collater([sources[i] for i in indices])
            yield utils.move_to_cuda(batch) if device.type == "cuda" else batch


def _translate(
    model: Any,
    task: Any,
    search: BeamSearch,
    sentences: list[torch.Tensor],
    max_tokens: int,
    syntax: Sequence[np.ndarray] | None = None,
    templates: Sequence[torch.Tensor] | None = None,
    tell: bool = True,
) -> list[str]:
    """The best hypotheses in BPE, in the order of `sentences`. A sentence without tokens stays empty."""
    hypotheses = [""] * len(sentences)
    filled = sum(len(ids) > 1 for ids in sentences)
    done, started = 0, time.perf_counter()
    for results in searched(model, task, search, sentences, max_tokens, syntax, templates):
        for number, found in results.items():
            hypotheses[number] = task.tgt_dict.string(found[0].tokens)
        done += len(results)
        speed = done / (time.perf_counter() - started)
        if tell:
            print(f"{done}/{filled} sentences, {speed:.1f} per second", file=sys.stderr, flush=True)
    return hypotheses


def searched(
    model: Any,
    task: Any,
    search: BeamSearch,
    sentences: list[torch.Tensor],
    max_tokens: int,
    syntax: Sequence[np.ndarray] | None,
    templates: Sequence[torch.Tensor] | None,
) -> Iterator[dict[int, list[Hypothesis]]]:
    """For each batch: number of a sentence → its hypotheses, best first.

    Sentences without tokens are left out.
    """
    filled = [number for number, ids in enumerate(sentences) if len(ids) > 1]
    if not filled:
        return
    annotated = None if syntax is None else [syntax[number] for number in filled]
    told = None if templates is None else [templates[number] for number in filled]
    sources = task.sources([sentences[number] for number in filled], annotated, told)
    for batch in _batches(sources, model, max_tokens):
        yield dict(zip((filled[index] for index in batch["id"].tolist()), search(batch), strict=True))


def detokenised(lines: list[str], text: dict[str, Any]) -> list[str]:
    tokeniser = tokenise.of_language(text["tokeniser"], text["target"])
    return list(tokenise.detokenise(lines, text["target"], tokeniser))
