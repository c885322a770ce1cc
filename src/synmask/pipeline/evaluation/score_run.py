"""The scores of a run, and those of its sentences."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from synmask.pipeline.arguments import Lowercase, OneOrMore, RunFolder
from synmask.pipeline.disk import sha256
from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation.bleu import read_texts, score
from synmask.pipeline.evaluation.sentences import (
    perplexity,
    read_probabilities,
    score_sets,
    sentence_rows,
    sets_of_sentences,
)
from synmask.pipeline.files import csv_text, json_text, read_json, write_all, zip_equal
from synmask.pipeline.languages import split_direction
from synmask.pipeline.record import checksums, read_record, read_run, scores_of
from synmask.pipeline.text.clean import describe_dropped


def score_run(
    *,
    run: RunFolder,
    splits: OneOrMore[str],
    references: OneOrMore[Path],
    reference_tokens: OneOrMore[Path],
    sets: tuple[str, ...] = (),
    set_files: tuple[Path, ...] = (),
    lowercase: Lowercase = False,
    pairs: Path | None = None,
) -> None:
    """Score a run: its scores on each split, and counts and log-probabilities by sentence of the last split.

    It reads `decode`'s RUN/hypothesis.SPLIT.*, made with --references, and writes RUN/scores.json and, for
    significance tests, RUN/sentences.csv.

    Args:
        splits: Names of the splits, such as valid and test.
        references: Plain reference text of each.
        reference_tokens: Tokenised reference of each.
        sets: Names of the sets that the last split is made of, which are also scored apart.
        set_files: Raw text of each set, in one language: its lines are counted.
        pairs: pairs.json of `synmask text`, whose notes become part of the scores: pairs that sets share, and
            training pairs that were dropped.
    """
    record, results, sums = read_run(run, "direction"), {}, {}
    kwargs = {"lowercase": lowercase, "language": split_direction(record["direction"])[1]}
    parts = zip_equal(splits=splits, references=references, reference_tokens=reference_tokens)
    for split, reference, tokens in parts:
        hypothesis = run / f"hypothesis.{split}"
        texts = read_texts(f"{hypothesis}.txt", reference, f"{hypothesis}.tok", tokens)
        plain, tokenised = texts[:2], texts[2:]
        files = [Path(f"{hypothesis}.{suffix}") for suffix in ("txt", "tok", "forced.csv")]
        cost = {"decoding": None} | read_record(Path(f"{hypothesis}.json"), files, record)
        probable = read_probabilities(f"{hypothesis}.forced.csv", len(plain[0]))
        probability = {"perplexity": float(perplexity(probable.sum(axis=0)))}
        checksum = {"hypotheses": sha256(f"{hypothesis}.tok")[:16]}
        results[split] = score(plain, tokenised, **kwargs) | probability | cost | checksum
        sums[files[0].name] = sha256(files[0])
    scores = by_split(results)
    scores["decoding"] = _decoding(run, scores["decoding"])
    of_sets = sets_of_sentences(zip_equal(sets=sets, set_files=set_files), len(plain[0]))  # of the last split
    if sets:
        scores |= {"test_sets": score_sets(of_sets, plain, tokenised, probable, **kwargs)}
    if pairs:
        of_pairs = read_json(pairs)
        scores |= {"overlap": of_pairs["overlap"]}
        if words := describe_dropped(of_pairs["train"]):
            scores |= {"dropped": words}
    counts = csv_text(sentence_rows(plain, tokenised, probable, of_sets, **kwargs))
    output, sentences = run / "scores.json", run / "sentences.csv"
    sums |= checksums(output, {sentences: counts})
    write_all({output: json_text(scores_of(record, scores, sums)), sentences: counts})


def by_split(results: Mapping[str, dict]) -> dict[str, Any]:
    """Split → results as result → split → value; signatures are the same for all splits."""
    first = next(iter(results.values()))
    result = {key: {split: values.get(key) for split, values in results.items()} for key in first}
    return result | {"signatures": first["signatures"]}


def _decoding(run: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """How all splits were decoded, from the settings of each: these must be known, and alike."""
    first = next(iter(settings.values()))
    for split, other in settings.items():
        if other is None or other != first:
            why = "does not say how it was decoded" if other is None else "decoded with other settings"
            raise UserError(f"{run}/hypothesis.{split}.json: {why}; decode again")
    return first
