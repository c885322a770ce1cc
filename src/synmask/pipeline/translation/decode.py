"""Decode with a model file by beam search."""

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from synmask.pipeline.config.sections import Decoding
from synmask.pipeline.files import UserError, all_writing, json_text, read_lines, writing
from synmask.pipeline.syntax.annotations import Annotations
from synmask.pipeline.text import bpe
from synmask.pipeline.translation.average import Loaded, load_model
from synmask.pipeline.translation.beam import BeamSearch, Hypothesis
from synmask.pipeline.translation.forced import encoded_references, log_probabilities, write_probabilities
from synmask.pipeline.translation.inputs import batches, detokenised, encoded
from synmask.pipeline.translation.task import read_templates


def decode_files(
    model: Path,
    sources: Sequence[Path],
    outputs: Sequence[Path],
    settings: Decoding,
    *,
    threads: int,
    references: Sequence[Path] = (),
    annotations: Sequence[Path] = (),
    templates: Sequence[Path] = (),
) -> None:
    """Translate files of source sentences in BPE one by one; the model is loaded once.

    Writes OUTPUT.tok (tokenised hypotheses), .txt (detokenised) and .json (seconds, tokens) for each of
    `outputs`, in the order of `sources`; with references also OUTPUT.forced.csv, their log-probabilities.

    Args:
        references: the reference translations of each file, in BPE.
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
    expected = references or [None] * len(sources)
    if len({*map(len, (sources, outputs, parsed, told, expected))}) > 1:
        what = "references, templates or annotations of each or none"
        raise UserError(f"{model}: give one output for each input, and {what}")
    search = BeamSearch([transformer], task.tgt_dict, settings)
    for source, output, syntax, template, wanted in zip(
        sources, outputs, parsed, told, expected, strict=True
    ):
        started = time.perf_counter()
        sentences = encoded(read_lines(source), transformer.encoder.max_positions(), task)
        rows = syntax and Annotations(syntax, [len(sentence) for sentence in sentences])
        given = template and read_templates(template, task.template_dictionary, len(sentences))
        forced = wanted and encoded_references(wanted, transformer, task, len(sentences))
        kinds = ("tok", "txt", "json", *(["forced.csv"] if wanted else []))
        with all_writing([f"{output}.{kind}" for kind in kinds]) as (tok, txt, cost, *probable):
            hypotheses = _translate(transformer, task, search, sentences, settings.max_tokens, rows, given)
            seconds = time.perf_counter() - started
            words = [bpe.join_subwords(line) for line in hypotheses]
            tok.writelines(f"{line}\n" for line in words)
            txt.writelines(f"{line}\n" for line in detokenised(words, text))
            tokens = sum(len(line.split()) + 1 for line in hypotheses)
            cost.write(json_text({"decode_seconds": round(seconds, 2), "decoded_tokens": tokens}))
            for handle in probable:
                values = log_probabilities(
                    transformer, task, sentences, forced, settings.max_tokens, rows, given
                )
                write_probabilities(handle, values, forced)


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


def listed(annotations: frozenset[str]) -> str:
    return " and ".join(sorted(annotations))


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
    for batch in batches(sources, model, max_tokens):
        yield dict(zip((filled[index] for index in batch["id"].tolist()), search(batch), strict=True))
