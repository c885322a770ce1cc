"""Scores of translations, of induced trees and of language understanding."""

import json
import shlex
import sys
from pathlib import Path

from synmask.cli.options import ConfigFile, Count, Gpus, Json, Lowercase, Some, Threads, together
from synmask.config.runs import RunInfo, TranslationInfo
from synmask.files import UserError
from synmask.gpus import lease


def score(
    *texts: Path,
    language: str = "en",
    lowercase: Lowercase = False,
    splits: tuple[str, ...] = (),
    hypotheses: tuple[Path, ...] = (),
    references: tuple[Path, ...] = (),
    reference_tokens: tuple[Path, ...] = (),
    run: Json[TranslationInfo | None] = None,
    train: Path | None = None,
    output: Path | None = None,
) -> None:
    """Score translations: sacreBLEU, chrF and tokenised BLEU, each with its signature.

    For example: `synmask score hypotheses.txt references.txt --language en` prints a table. The workflow
    writes scores.json of a run and gives, instead of two files, --splits and all that follow.

    Args:
        texts: A file of translations and one of references, plain text, a sentence per line. For tokenised
            BLEU both are tokenised by Moses' rules (not in zh and ja).
        language: The language of the two files.
        splits: Names of what is scored, such as valid and test.
        hypotheses: Prefix of `decode`'s output for each.
        references: Plain reference text of each.
        reference_tokens: Tokenised reference of each.
        run: What was run: corpus, direction, system, seed, settings.
        train: train.json of the run.
        output: scores.json.
    """
    workflow = (splits, hypotheses, references, reference_tokens, run, train, output)
    if len(texts) == 2 and not any(workflow):
        from synmask.evaluation.bleu import score_texts

        rows = score_texts(*texts, language=language, lowercase=lowercase)
        width = max(len(name) for name, *_ in rows)
        for name, value, signature in rows:
            print(f"{name:<{width}}  {value:6.2f}  {signature}")
    elif not texts and all(workflow):
        _score_run(splits, hypotheses, references, reference_tokens, lowercase, run, train, output)
    else:
        options = "--splits, --hypotheses, --references, --reference-tokens, --run, --train and --output"
        raise UserError(f"give two files, translations and references; or instead {options}, all of them")


def _score_run(
    splits: tuple[str, ...],
    hypotheses: tuple[Path, ...],
    references: tuple[Path, ...],
    reference_tokens: tuple[Path, ...],
    lowercase: bool,
    run: TranslationInfo,
    train: Path,
    output: Path,
) -> None:
    """Write a run's scores.json."""
    from synmask.evaluation.bleu import score
    from synmask.files import read_object, write_json

    found = {}
    parts = together(
        splits=splits, hypotheses=hypotheses, references=references, reference_tokens=reference_tokens
    )
    for split, hypothesis, reference, tokens in parts:
        sides = (f"{hypothesis}.txt", reference, f"{hypothesis}.tok", tokens)
        scores = score(*sides, lowercase=lowercase, language=run.target)
        found[split] = scores | read_object(f"{hypothesis}.json")
    result = {key: {split: values[key] for split, values in found.items()} for key in found[splits[0]]}
    signatures = {"signatures": result["signatures"][splits[0]]}  # those of all: no text decides them
    made = _made() | {"command": shlex.join(sys.argv)}
    write_json(output, run.given() | read_object(train) | result | signatures | made)


def score_templates(
    *,
    splits: Some[str],
    predicted: Some[Path],
    gold: Some[Path],
    run: Json[TranslationInfo],
    train: Path,
    output: Path,
) -> None:
    """Score predicted templates: BLEU on words and labels, and the share that is right.

    Args:
        splits: Names of what is scored, such as valid and test.
        predicted: Output of `predict-templates` for each.
        gold: Output of `templates` for each.
        run: What was run: corpus, direction, system, seed, settings.
        train: train.json of the run.
        output: scores.json.
    """
    from synmask.evaluation.templates import score_templates
    from synmask.files import read_object, write_json

    parts = together(splits=splits, predicted=predicted, gold=gold)
    found = {split: score_templates(ours, theirs, run.target) for split, ours, theirs in parts}
    result = {key: {split: values[key] for split, values in found.items()} for key in ("scores", "sentences")}
    signatures = {"signatures": found[splits[0]]["signatures"]}  # those of all: no text decides them
    made = _made() | {"command": shlex.join(sys.argv)}
    write_json(output, run.given() | read_object(train) | result | signatures | made)


def significance(
    *,
    hypothesis: Path,
    baseline: Path,
    reference: Path,
    reference_tokens: Path,
    lowercase: Lowercase = False,
    run: Json[TranslationInfo],
    output: Path,
) -> None:
    """Test a run against the baseline of the same seed by paired approximate randomisation.

    Args:
        hypothesis: Prefix of `decode`'s output.
        baseline: Prefix of `decode`'s output for the baseline.
        reference: Plain reference text.
        reference_tokens: Tokenised reference.
        run: The run and the baseline's name.
        output: significance-BASELINE.json.
    """
    from synmask.evaluation.bleu import bleu
    from synmask.evaluation.significance import compare
    from synmask.files import write_json

    metrics = {}
    for metric, kind, gold in (("sacrebleu", "txt", reference), ("bleu_tokenised", "tok", reference_tokens)):
        how = bleu(metric, run.target, lowercase=lowercase)
        metrics[metric] = compare(f"{hypothesis}.{kind}", f"{baseline}.{kind}", gold, how)
    write_json(output, run.given() | {"metrics": metrics})


def sentences(
    *,
    hypothesis: Path,
    reference: Path,
    source: Path,
    language: str,
    lowercase: Lowercase = False,
    output: Path,
) -> None:
    """Write BLEU's counts of each test sentence, with the length and split words of its source.

    For confidence intervals and groups of sentences.

    Args:
        hypothesis: Detokenised hypotheses.
        reference: Plain reference text.
        source: Source sentences in BPE.
        language: The target's code.
        output: CSV, one row per sentence.
    """
    from synmask.evaluation.sentences import write_sentences

    write_sentences(hypothesis, reference, source, output, language=language, lowercase=lowercase)


def parse(
    *,
    model: Path,
    input: Path | None = None,
    output: Path | None = None,
    distribution: Path | None = None,
    sentence: Count | None = None,
    threads: Threads = 1,
    gpus: Gpus = 0,
    config: ConfigFile = Path("config.yaml"),
) -> None:
    """Print the trees that a system induces for raw text, or write distances, heights and heads of BPE.

    For example: `echo 'Der Arzt sieht die Frau.' | synmask parse --model average.pt` prints a bracketed tree
    over words per line, as soon as the line comes; (FLAT) for an empty one. The workflow calls
    `synmask parse --model average.pt --input valid.de --output trees.jsonl --distribution p_d.json`

    Args:
        model: A model file of `average` with a guide that induces syntax.
        input: Source sentences in BPE; default: raw text from standard input.
        output: A JSON object a line; for --input.
        distribution: Output: P_D of one sentence, JSON; for --input.
        sentence: Its number, from 1; default: the first of 8 to 14 words with a split one.
        config: Says where CoreNLP is, for text that it tokenised.
    """
    from synmask.cli.syntax import tokeniser_jars
    from synmask.translation.decode import parse_file, print_trees

    files = [path for path in (input, output, distribution) if path is not None]
    if len(files) not in (0, 3) or (sentence is not None and not files):
        raise UserError("give --input, --output and --distribution together, or none of them for raw text")
    with lease(gpus):
        if files:
            parse_file(model, *files, sentence, threads)
        else:
            print_trees(model, threads=threads, jars=tokeniser_jars(config))


def parseval(
    gold: Path,
    predicted: Path,
    *,
    heads: Path | None = None,
    run: Json[RunInfo | None] = None,
    output: Path | None = None,
    counts: Path | None = None,
) -> None:
    """Score predicted trees against gold trees, beside right-branching, random and other trivial trees.

    For example: `synmask parseval valid.mrg trees.jsonl`, `synmask parseval wsj/23 predicted.txt`

    Args:
        gold: A bracketed treebank, one tree a line or many lines a tree; or a folder or .zip of .mrg files.
        predicted: Output of `parse`; or any parser's trees in brackets, with labels, or one a line without:
            (the (dog barks)).
        heads: Gold dependency heads, a line a sentence.
        run: What was run.
        output: parse.json; default: print tables.
        counts: Output: the sentences' counts, for tests of significance.
    """
    from synmask.evaluation.parseval import evaluate_files
    from synmask.files import all_writing, json_text
    from synmask.reporting.parse_tables import as_text

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
    task: str,
    parts: Some[str],
    gold: Some[Path],
    predicted: Some[Path],
    run: Json[RunInfo],
    train: Path,
    output: Path,
) -> None:
    """Score predictions for a task of language understanding: Matthews, accuracy, F1, correlations.

    Args:
        task: cola, rte, …
        parts: Names of the parts, such as dev.
        gold: TSV of each part.
        predicted: Predictions for each part: one label or number per line.
        run: The run: corpus, task, system, seed, settings.
        train: train.json of the run.
        output: scores.json.
    """
    from synmask.corpora.tasks import read_task
    from synmask.evaluation.nlu import read_predictions, score
    from synmask.files import read_object, write_json

    scores = {}
    for part, path, answers in together(parts=parts, gold=gold, predicted=predicted):
        examples = read_task(task, path)
        scores[part] = score(task, examples.labels, read_predictions(task, answers, examples))
    made = _made() | {"command": shlex.join(sys.argv)}
    write_json(output, run.given() | read_object(train) | {"task": task, "scores": scores} | made)


def nlu_significance(
    *,
    task: str,
    parts: Some[str],
    gold: Some[Path],
    predicted: Some[Path],
    baseline: Some[Path],
    run: Json[RunInfo],
    output: Path,
) -> None:
    """Test the answers to a task against the baseline's of the same seed; paired approximate randomisation.

    Args:
        task: cola, rte, …
        parts: Names of the parts, such as dev.
        gold: TSV of each part.
        predicted: Of each part a label, or a number, a line.
        baseline: The same of the baseline.
        run: What was run and the baseline's name.
        output: significance-BASELINE.json.
    """
    from synmask.corpora.tasks import read_task
    from synmask.evaluation.nlu import compare, read_predictions
    from synmask.files import write_json

    tests = {}
    for part, path, *answers in together(parts=parts, gold=gold, predicted=predicted, baseline=baseline):
        examples = read_task(task, path)
        tests[part] = compare(task, examples.labels, *(read_predictions(task, a, examples) for a in answers))
    write_json(output, run.given() | {"task": task, "parts": tests})


def nlu_baselines(
    *, task: str, train: Path, parts: Some[str], gold: Some[Path], run: Json[RunInfo], output: Path
) -> None:
    """Score two baselines: the most frequent label, and a linear model of the words alone.

    Args:
        task: cola, rte, …
        train: TSV to learn from.
        parts: Names of the parts, such as dev.
        gold: TSV of each part, to answer.
        run: The run: the benchmark, as corpus.
        output: baselines.json.
    """
    from synmask.corpora.tasks import read_task
    from synmask.evaluation import nlu
    from synmask.files import write_json

    known = read_task(task, train)
    asked = {part: read_task(task, path) for part, path in together(parts=parts, gold=gold)}
    scores = {
        name: {part: answer(task, known, examples) for part, examples in asked.items()}
        for name, answer in (("majority", nlu.majority), ("bag-of-words", nlu.bag_of_words))
    }
    write_json(output, run.given() | {"task": task, "scores": scores} | _made())


def _made() -> dict:
    """By what scores were made."""
    from synmask.provenance import commit, versions

    return {"versions": versions(), "commit": commit()}
