"""Scores of translations, of induced trees and of language understanding."""

import csv
import json
import shlex
import sys
from pathlib import Path

from synmask.pipeline.cli.options import (
    CountOption,
    Gpus,
    Identity,
    Json,
    Lowercase,
    Parts,
    Some,
    TaskName,
    Threads,
    TrainJson,
    run_of,
    together,
)
from synmask.pipeline.config.base import Language
from synmask.pipeline.config.run_info import RunInfo, TranslationInfo
from synmask.pipeline.files import UserError, all_writing, json_text, read_object, sha256, write_json
from synmask.pipeline.gpus import lease


def score(
    hypotheses: Path, references: Path, /, *, language: Language = "en", lowercase: Lowercase = False
) -> None:
    """Score translations: sacreBLEU, chrF and tokenised BLEU, each with its signature.

    For example: `synmask score hypotheses.txt references.txt --language en`. For tokenised BLEU, Moses' rules
    tokenise both (not in zh and ja).

    Args:
        hypotheses: Translations, plain text, one sentence per line.
        references: Reference translations of the same sentences.
        language: Their language code (ISO 639, perhaps with a script or region: pt_BR); Chinese, Japanese and
            Korean have tokenisers of their own.
    """
    from synmask.pipeline.evaluation.bleu import score_texts
    from synmask.pipeline.reporting.metrics import METRICS

    found = score_texts(hypotheses, references, language=language, lowercase=lowercase)
    width = max(len(METRICS[name].label) for name in found["scores"])
    for name, value in found["scores"].items():
        print(f"{METRICS[name].label:<{width}}  {value:6.2f}  {found['signatures'][name]}")


def score_run(
    *,
    splits: Some[str],
    hypotheses: Some[Path],
    references: Some[Path],
    reference_tokens: Some[Path],
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
    from synmask.pipeline.evaluation.bleu import read_texts, score
    from synmask.pipeline.evaluation.sentences import (
        members,
        perplexity,
        read_probabilities,
        score_sets,
        sentence_rows,
    )
    from synmask.pipeline.owner import check_owner
    from synmask.pipeline.text.overlap import overlaps

    found, how = {}, {"lowercase": lowercase, "language": run.target}
    parts = together(
        splits=splits, hypotheses=hypotheses, references=references, reference_tokens=reference_tokens
    )
    for split, hypothesis, reference, tokens in parts:
        texts = read_texts(f"{hypothesis}.txt", reference, f"{hypothesis}.tok", tokens)
        plain, tokenised = texts[:2], texts[2:]
        cost = read_object(f"{hypothesis}.json")
        if whose := cost.pop("run", None):
            check_owner(Path(f"{hypothesis}.json"), {"run": whose}, run.given(), "settings")
        probable = read_probabilities(f"{hypothesis}.forced.csv", len(plain[0]))
        probability = {"perplexity": float(perplexity(probable.sum(axis=0)))}
        checksum = {"hypotheses": sha256(f"{hypothesis}.tok")[:16]}
        found[split] = score(plain, tokenised, **how) | probability | cost | checksum
    scores = _by_split(found)
    of_sets = members(together(sets=sets, set_files=set_files), len(plain[0]))  # of the last split
    if sets:
        scores |= {"test_sets": score_sets(of_sets, plain, tokenised, probable, **how)}
    if prepared:
        named = {"sets": ("train", *splits), "source": prepared[::2], "target": prepared[1::2]}
        scores |= {"overlap": overlaps(together(**named))}
    rows = [*sentence_rows(plain, tokenised, probable, of_sets, **how)]
    with all_writing([output, sentences]) as (scored, counted):
        scored.write(json_text(_of_run(run, train, scores)))
        csv.writer(counted, lineterminator="\n").writerows(rows)


def score_templates(
    *,
    splits: Some[str],
    predicted: Some[Path],
    gold: Some[Path],
    run: Json[TranslationInfo],
    train: TrainJson,
    output: Path,
) -> None:
    """Score predicted templates: BLEU on words and labels, and the share of exact matches.

    Args:
        splits: Names of the splits, such as valid and test.
        predicted: Output of `predict-templates` for each.
        gold: Output of `templates` for each.
        run: The run: corpus, direction, system, seed, settings.
        output: scores.json.
    """
    from synmask.pipeline.evaluation.bleu import score_templates

    parts = together(splits=splits, predicted=predicted, gold=gold)
    found = {split: score_templates(ours, theirs, run.target) for split, ours, theirs in parts}
    write_json(output, _of_run(run, train, _by_split(found)))


def parse(
    *,
    model: Path,
    input: Path | None = None,
    output: Path | None = None,
    distribution: Path | None = None,
    sentence: CountOption | None = None,
    threads: Threads = 1,
    gpus: Gpus = 0,
    configfile: tuple[Path, ...] = (),
    identity: Identity = None,
) -> None:
    """Print the trees that a system induces for raw text, or write distances, heights and heads of BPE text.

    For example: `echo 'Der Arzt sieht die Frau.' | synmask parse --model average.pt` prints a bracketed tree
    over words for each line as soon as it arrives, (FLAT) for an empty line. The workflow calls
    `synmask parse --model average.pt --input valid.de --output trees.jsonl --distribution p_d.json`

    Args:
        model: A model file of `average` with a guide that induces syntax.
        input: Source sentences in BPE; default: raw text from standard input.
        output: Output: one JSON object per line; needs --input.
        distribution: Output: P_D of one sentence as JSON; needs --input.
        sentence: Number of this sentence, from 1; default: the first of 8 to 14 words that has a split word.
        configfile: Your own files, which override config.yaml; read if CoreNLP tokenised the text.
    """
    from synmask.pipeline.cli.constituency import tokeniser_jars
    from synmask.pipeline.translation.parse import parse_file, print_trees

    files = [path for path in (input, output, distribution) if path is not None]
    if len(files) not in (0, 3) or (sentence is not None and not files):
        raise UserError("give --input, --output and --distribution together, or none of them for raw text")
    with lease(gpus):
        if files:
            parse_file(model, *files, sentence, threads, run_of(identity))
        else:
            print_trees(model, threads=threads, jars=tokeniser_jars(configfile))


def parseval(
    gold: Path,
    predicted: Path,
    *,
    heads: Path | None = None,
    run: Json[RunInfo | None] = None,
    output: Path | None = None,
    counts: Path | None = None,
) -> None:
    """Score predicted trees against gold trees, and right-branching, random and other trivial trees, too.

    For example: `synmask parseval valid.mrg trees.jsonl`, `synmask parseval wsj/23 predicted.txt`

    Args:
        gold: A bracketed treebank, one or more lines per tree; or a folder or .zip of .mrg files.
        predicted: Output of `parse`; or any parser's bracketed trees, with labels, or without labels and one
            per line: (the (dog barks)).
        heads: Gold dependency heads, one sentence per line.
        run: The run: corpus, direction, system, seed.
        output: parse.json; default: print tables.
        counts: Output: counts per sentence, for significance tests.
    """
    from synmask.pipeline.evaluation.parseval import evaluate_files
    from synmask.pipeline.reporting.parse_text import as_text

    info = run.given() if run else {}
    result, by_sentence = evaluate_files(gold, predicted, heads)
    if output is None:
        print(as_text(result))
    texts = {
        output: json_text(info | result | _made()),
        counts: json.dumps(info | {"counts": by_sentence}, sort_keys=True, separators=(",", ":")),
    }
    asked = [path for path in texts if path is not None]
    with all_writing(asked) as handles:
        for path, handle in zip(asked, handles, strict=True):
            handle.write(texts[path])


def nlu_score(
    *,
    task: TaskName,
    parts: Parts,
    gold: Some[Path],
    predicted: Some[Path],
    run: Json[RunInfo],
    train: TrainJson,
    output: Path,
    examples: Path,
) -> None:
    """Score predictions for a task of language understanding: Matthews, accuracy, F1, correlations.

    Args:
        gold: TSV of each part.
        predicted: Predictions for each part: one label or number per line.
        run: The run: corpus, task, system, seed, settings.
        output: scores.json.
        examples: Output: examples.csv, each answer beside the gold one, for significance tests.
    """
    from synmask.pipeline.corpora.tasks import read_task
    from synmask.pipeline.evaluation.task_scores import EXAMPLES, read_predictions, score

    scores, checksums, rows = {}, {}, [EXAMPLES]
    for part, path, answers in together(parts=parts, gold=gold, predicted=predicted):
        labels = read_task(task, path).labels
        given = read_predictions(task, answers, len(labels))
        scores[part], checksums[part] = score(task, labels, given), sha256(answers)[:16]
        rows += [[part, *pair] for pair in zip(given, labels, strict=True)]
    found = {"task": task, "scores": scores, "answers": checksums}
    with all_writing([output, examples]) as (scored, answered):
        scored.write(json_text(_of_run(run, train, found)))
        csv.writer(answered, lineterminator="\n").writerows(rows)


def nlu_baselines(
    *, task: TaskName, train: Path, parts: Parts, gold: Some[Path], run: Json[RunInfo], output: Path
) -> None:
    """Score two baselines: the most frequent label, and a linear model of the words alone.

    Args:
        train: TSV to learn from.
        gold: TSV of each part to predict.
        run: The run: the benchmark, as corpus.
        output: baselines.json.
    """
    from synmask.pipeline.corpora.tasks import read_task
    from synmask.pipeline.evaluation import task_scores

    known = read_task(task, train)
    asked = {part: read_task(task, path) for part, path in together(parts=parts, gold=gold)}
    scores = {
        name: {part: answer(task, known, examples) for part, examples in asked.items()}
        for name, answer in (("majority", task_scores.majority), ("bag-of-words", task_scores.bag_of_words))
    }
    write_json(output, run.given() | {"task": task, "scores": scores} | _made())


def glue_submission(
    *,
    files: Some[str],
    rows: Some[CountOption],
    predicted: Some[Path],
    chosen: Some[Path],
    run: Json[RunInfo],
    output: Path,
    summary: Path,
) -> None:
    """Pack the answers to GLUE's test sets as its server takes them, and check each column.

    Args:
        files: Files of the zip, such as CoLA.tsv.
        rows: Number of examples of each file.
        predicted: Predictions for each file: outputs of `predict-test`.
        chosen: The seed that predicted each file: outputs of `predict-test`.
        run: The run: the benchmark, as corpus, and the system.
        output: NAME.zip.
        summary: Output: which seeds answered, as JSON.
    """
    from synmask.pipeline.evaluation.submission import write_submission

    answers, seeds, counts = {}, {}, {}
    for name, count, path, seed in together(files=files, rows=rows, predicted=predicted, chosen=chosen):
        answers[name], seeds[name], counts[name] = path, seed, count
    write_submission(answers, seeds, counts, output, summary, run.given() | _made())


def _by_split(found: dict[str, dict]) -> dict:
    """Split → results as result → split → value; signatures are the same for all splits."""
    first = next(iter(found.values()))
    result = {key: {split: values[key] for split, values in found.items()} for key in first}
    return result | {"signatures": first["signatures"]}


def _of_run(run: RunInfo, train: Path, scores: dict) -> dict:
    """The contents of a run's scores.json."""
    return run.given() | read_object(train) | scores | _made() | {"command": shlex.join(sys.argv)}


def _made() -> dict:
    """The versions and the commit that made the scores."""
    from synmask.pipeline.provenance import commit, versions

    return {"versions": versions(), "commit": commit()}
