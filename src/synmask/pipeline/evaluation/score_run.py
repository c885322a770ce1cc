"""The scores of a run, and those of its sentences."""

from pathlib import Path

from synmask.pipeline.arguments import Json, Lowercase, OneOrMore, TrainJson, together
from synmask.pipeline.config.run_info import TranslationInfo
from synmask.pipeline.evaluation.bleu import read_texts, score
from synmask.pipeline.evaluation.records import by_split, of_run
from synmask.pipeline.evaluation.sentences import (
    members,
    perplexity,
    read_probabilities,
    score_sets,
    sentence_rows,
)
from synmask.pipeline.files import all_writing, csv_text, json_text, sha256
from synmask.pipeline.owner import checksums, read_record
from synmask.pipeline.text.overlap import overlaps


def score_run(
    *,
    splits: OneOrMore[str],
    hypotheses: OneOrMore[Path],
    references: OneOrMore[Path],
    reference_tokens: OneOrMore[Path],
    sets: tuple[str, ...] = (),
    set_files: tuple[Path, ...] = (),
    lowercase: Lowercase = False,
    run: Json[TranslationInfo],
    train: TrainJson,
    output: Path,
    sentences: Path,
    prepared: tuple[Path, ...] = (),
) -> None:
    """Score a run: its scores on each split, and counts and log-probabilities by sentence of the last split.

    Args:
        splits: Names of the splits, such as valid and test.
        hypotheses: Prefix of `decode`'s output for each, made with --references.
        references: Plain reference text of each.
        reference_tokens: Tokenised reference of each.
        sets: Names of the sets that the last split is made of, which are also scored apart.
        set_files: Raw text of each set, in one language: its lines are counted.
        run: The run: corpus, direction, system, seed, settings.
        output: scores.json.
        sentences: Output: sentences.csv, for significance tests.
        prepared: Source and target tokens of the training set, then of each split, to count the pairs that
            they share.
    """
    found, sums, kwargs = {}, {}, {"lowercase": lowercase, "language": run.target}
    parts = together(
        splits=splits, hypotheses=hypotheses, references=references, reference_tokens=reference_tokens
    )
    for split, hypothesis, reference, tokens in parts:
        texts = read_texts(f"{hypothesis}.txt", reference, f"{hypothesis}.tok", tokens)
        plain, tokenised = texts[:2], texts[2:]
        files = [Path(f"{hypothesis}.{kind}") for kind in ("txt", "tok", "forced.csv")]
        cost = read_record(Path(f"{hypothesis}.json"), files, run.given(), train)
        probable = read_probabilities(f"{hypothesis}.forced.csv", len(plain[0]))
        probability = {"perplexity": float(perplexity(probable.sum(axis=0)))}
        checksum = {"hypotheses": sha256(f"{hypothesis}.tok")[:16]}
        found[split] = score(plain, tokenised, **kwargs) | probability | cost | checksum
        sums[files[0].name] = sha256(files[0])
    scores = by_split(found)
    of_sets = members(together(sets=sets, set_files=set_files), len(plain[0]))  # of the last split
    if sets:
        scores |= {"test_sets": score_sets(of_sets, plain, tokenised, probable, **kwargs)}
    if prepared:
        named = {"sets": ("train", *splits), "source": prepared[::2], "target": prepared[1::2]}
        scores |= {"overlap": overlaps(together(**named))}
    counts = csv_text(sentence_rows(plain, tokenised, probable, of_sets, **kwargs))
    with all_writing([output, sentences]) as (scored, counted):
        scored.write(json_text(of_run(run, train, scores, sums | checksums(output, {sentences: counts}))))
        counted.write(counts)
