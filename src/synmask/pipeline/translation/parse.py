"""Parse with a model file: the syntax that its guide induces."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from synmask.pipeline.arguments import CountOption, Threads, on_gpus
from synmask.pipeline.config.loading import tokeniser_jars
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import json_text, read_lines, write_all
from synmask.pipeline.record import NO_RUN, new_record, run_beside
from synmask.pipeline.syntax.tree import bracket_tree, word_distances, word_heads
from synmask.pipeline.text.lines import answer_lines
from synmask.pipeline.translation.inputs import encode_lines, inference_batches, report_unknown_words
from synmask.pipeline.translation.model_file import LoadedModel, load_model
from synmask.pipeline.translation.raw_text import Jars, no_jars

MAX_BATCH_TOKENS = 4000
MAX_PARENTS, MIN_PROBABILITY = 3, 0.1  # of the likely parents of a sub-word


@on_gpus
def parse(
    *,
    model: Path,
    input: Path | None = None,
    subwords: Path | None = None,
    output: Path | None = None,
    distribution: Path | None = None,
    sentence: CountOption | None = None,
    threads: Threads = 1,
    configfile: tuple[Path, ...] = (),
) -> None:
    """Print the trees that a system induces for raw text, or write distances, heights and heads of BPE text.

    For example: `echo 'Der Arzt sieht die Frau.' | synmask parse --model average.pt` prints a bracketed tree
    over words for each line as soon as it arrives, (FLAT) for an empty line, and
    `synmask parse --model average.pt --input news.de --output news.trees` writes them to a file. The workflow
    calls `synmask parse --model average.pt --subwords valid.de --output trees.jsonl --distribution p_d.json`

    Args:
        model: A model file of `average` with a guide that induces syntax, or `demo` for the one that is
            shipped. For --subwords, it must be of the training in the train.json beside it, if there is one.
        input: A file of raw text (.gz or plain); default: standard input.
        subwords: Source sentences in BPE, instead of raw text.
        output: Output: a tree per line; default: standard output. Of --subwords: one JSON object per line;
            the .json beside them names their run.
        distribution: Output: P_D of one sentence as JSON; needs --subwords.
        sentence: Number of this sentence, from 1; default: the first of 8 to 14 words that has a split word.
        configfile: Your own files, which override config.yaml; read if CoreNLP tokenised the text.

    Raises:
        UserError: the model belongs to another run, or its guide induces no syntax; or there is no sentence,
            or not this one.
    """
    if subwords is None and (distribution or sentence):
        raise UserError("--distribution and --sentence need --subwords, a text in BPE")
    if subwords and not (output and distribution and input is None):
        raise UserError("give --subwords with --output and --distribution, and without --input")
    torch.set_num_threads(threads)
    run = run_beside(model) if subwords else NO_RUN
    loaded = load_model(model, run, tokeniser_jars(configfile))
    _check_induces(model, loaded)
    if subwords is None:
        return _write_trees(loaded, input, output)
    lines = [" ".join(line.split()) for line in read_lines(subwords)]  # any white space is between tokens
    if not lines:
        raise UserError(f"{subwords}: empty; give sentences in BPE")
    chosen = _choose_sentence([line.split() for line in lines], sentence, subwords)
    example: dict[str, Any] = {"sentence": chosen + 1}
    rows = [""] * len(lines)
    for index, row, p in _induce(loaded, lines, name=subwords):
        rows[index] = json.dumps(row, ensure_ascii=False)
        if index == chosen and p is not None:
            example |= {"tokens": [*row["tokens"], "</s>"], "distribution": np.round(p, 6).tolist()}
    text, beside = "".join(f"{row}\n" for row in rows), output.with_suffix(".json")
    whose = {"run": run, "training": loaded.saved.get("training")}
    write_all(
        {
            output: text,
            beside: json_text(new_record(beside, **whose, texts={output: text})),
            distribution: json_text(example | new_record(distribution, **whose, texts={})),
        }
    )


def parse_text(model: Path, lines: Iterable[str], *, jars: Jars = no_jars) -> list[dict[str, Any]]:
    """Induce the syntax of raw text, prepared as for `translate`; one object per line (`_induce`).

    Raises:
        UserError: the model's guide induces no syntax, or a line has no word.
    """
    torch.set_num_threads(1)
    return [row for row, _ in induce_syntax(model, load_model(model, jars=jars), lines)]


def induce_syntax(
    path: Path, loaded: LoadedModel, lines: Iterable[str]
) -> list[tuple[dict[str, Any], np.ndarray | None]]:
    """As `parse_text`, by the model of the file `path`, and P_D with `</s>` of each line."""
    _check_induces(path, loaded)
    *_, split = loaded.text.encode(lines)
    for number, line in enumerate(split, start=1):
        if not line:
            raise UserError(f"line {number}: no word in it; give a sentence")
    report_unknown_words(split, loaded.task.src_dict)
    return [(row, p) for _, row, p in sorted(_induce(loaded, split), key=lambda parse: parse[0])]


def _write_trees(loaded: LoadedModel, input: Path | None, output: Path | None) -> None:
    """Write the tree over words (`bracket_tree`) of each line of raw text, as soon as it arrives."""

    def reply(lines: list[str], first: int) -> Iterator[str]:
        *_, split = loaded.text.encode(lines)
        rows = sorted(_induce(loaded, split, first), key=lambda parse: parse[0])
        yield from (bracket_tree(*word_distances(row["tokens"], row["distances"])) for _, row, _ in rows)

    most = None if loaded.text.starts_program else 64
    answer_lines(reply, input=input, output=output, most=most, prompt=f"{loaded.text.source}>")


def _check_induces(path: Path, loaded: LoadedModel) -> None:
    guide = loaded.model.encoder.guide
    if guide is None or not guide.options.induces:
        raise UserError(
            f"{path}: this system induces no syntax; give a model of one that does, such as grammar"
        )


def _induce(
    loaded: LoadedModel, lines: list[str], first: int = 1, name: Path | None = None
) -> Iterator[tuple[int, dict[str, Any], np.ndarray | None]]:
    """(number, row, P_D with `</s>`) of each line in BPE, short lines first.

    A row contains `tokens` (n sub-words, without `</s>`), `distances` (the n-1 between them), `eos_distance`
    (before `</s>`) and, if the guide induces them, `heights` (n), `heads` of the words and likely `parents`
    of the sub-words (see `syntax.tree.word_heads`, `likely_parents`).
    """
    if not lines:
        return
    transformer, task, text, _ = loaded
    sources = task.sources(
        encode_lines(lines, transformer.encoder.max_positions(), task.src_dict, first, name)
    )
    for batch in inference_batches(sources, transformer, MAX_BATCH_TOKENS, equal_lengths=True):
        net = batch["net_input"]
        with torch.no_grad():
            induced = transformer.encoder.induce(net["src_tokens"], net["annotations"])
        for number, index in enumerate(batch["id"].tolist()):
            tokens, p = text.as_bpe(lines[index], text.source).split(), None
            distances = _round(induced.distance[number, : len(tokens)])
            row = {"tokens": tokens, "distances": distances[:-1]}
            row["eos_distance"] = distances[-1] if tokens else 0.0
            if induced.distribution is not None:
                p = induced.distribution[number].float().cpu().numpy()
                row["heights"] = _round(induced.height[number, : len(tokens)])
                row["heads"] = word_heads(p, tokens)
                row["parents"] = likely_parents(p)
            yield index, row, p


def likely_parents(distribution: np.ndarray) -> list[list[list]]:
    """The most probable parents of each of n sub-words: MAX_PARENTS at most, each with MIN_PROBABILITY.

    Args:
        distribution: (n+1, n+1) P_D over the sub-words and `</s>`; row i belongs to token i.
    Returns:
        for each sub-word pairs [parent, probability], the most probable first; parent n is `</s>`.
    """
    others = distribution[:-1].copy()
    np.fill_diagonal(others, 0)
    ranked = np.argsort(-others, axis=1, kind="stable")[:, :MAX_PARENTS].tolist()
    return [
        [[parent, round(float(row[parent]), 2)] for parent in best if row[parent] >= MIN_PROBABILITY]
        for row, best in zip(others, ranked, strict=True)
    ]


def _round(values: torch.Tensor) -> list[float]:
    return [round(value, 6) for value in values.tolist()]


def _choose_sentence(lines: list[list[str]], sentence: int | None, path: Path) -> int:
    if sentence is not None:
        if sentence > len(lines):
            advice = "give another (--sentence, or `sentence` of the corpus)"
            raise UserError(f"{path}: no sentence {sentence}, only {len(lines)}; {advice}")
        return sentence - 1

    def fits(line: list[str]) -> bool:
        pieces = sum(token.endswith("@@") for token in line)
        return pieces > 0 and 8 <= len(line) - pieces <= 14

    chosen = (number for rule in (fits, bool) for number, line in enumerate(lines) if rule(line))
    return next(chosen, 0)
