"""Scores of translations, of induced trees and of language understanding."""

import argparse
import json
import sys
from collections.abc import Callable

from synmask.cli.options import Arguments, add, gpus
from synmask.files import UserError
from synmask.gpus import lease


def add_verbs(verbs: argparse._SubParsersAction) -> None:
    option = add(verbs, "score", _score, "Score translations, a split each: sacreBLEU, BLEU on tokens, chrF.")
    option("splits", "names of what is scored, such as valid and test", nargs="+", type=str)
    option("hypotheses", "prefix of `decode`'s output for each", nargs="+")
    option("references", "plain reference text of each", nargs="+")
    option("reference-tokens", "tokenised reference of each", nargs="+")
    option("lowercase", "compare without case", action="store_true")
    option("run", "what was run, as JSON: corpus, direction, system, seed, settings", type=json.loads)
    option("train", "train.json of the run")
    option("output", "scores.json")

    option = add(
        verbs,
        "significance",
        _significance,
        "Test a translation against the baseline's of the same seed; paired approximate randomisation.",
    )
    option("hypothesis", "prefix of `decode`'s output")
    option("baseline", "the same of the baseline")
    option("reference", "plain reference text")
    option("reference-tokens", "tokenised reference")
    option("lowercase", "compare without case", action="store_true")
    option("run", "what was run and the baseline's name, as JSON", type=json.loads)
    option("output", "significance-BASELINE.json")

    option = add(
        verbs,
        "sentences",
        _sentences,
        "Count what BLEU counts in each test sentence, beside its source's length and split words; "
        "for confidence intervals and groups of sentences.",
    )
    option("hypothesis", "detokenised hypotheses")
    option("reference", "plain reference text")
    option("source", "source sentences in BPE")
    option("language", "the target's code", type=str)
    option("lowercase", "compare without case", action="store_true")
    option("output", "CSV, a row a sentence")

    option = add(verbs, "parse", _parse, "Induce distances, heights and heads of source sentences.")
    option("model", "a model file of `average` with a guide that induces syntax")
    option("input", "source sentences in BPE")
    option("output", "a JSON object a line")
    option("distribution", "output: P_D of one sentence, JSON")
    option(
        "sentence",
        "its number, from 1; default: the first of 8 to 14 words with a split one",
        type=int,
        default=None,
    )
    option("threads", "CPU threads", type=int, default=1)
    gpus(option)

    option = add(
        verbs,
        "parseval",
        _parseval,
        "Score induced trees against gold trees, beside right-branching, random and other trivial trees.",
    )
    option("gold", "bracketed gold trees, one a line")
    option("predicted", "output of `parse`")
    option("heads", "gold dependency heads, a line a sentence", default=None)
    option("run", "what was run, as JSON", type=json.loads, default={})
    option("output", "parse.json; default: print tables", default=None)
    option("counts", "output: the sentences' counts, for tests of significance", default=None)

    option = add(
        verbs,
        "nlu-score",
        _nlu_score,
        "Score predictions of a task of language understanding: Matthews, accuracy, F1, correlations.",
    )
    _task(option)
    option("parts", "names of the parts, such as dev", nargs="+", type=str)
    option("gold", "TSV of each part", nargs="+")
    option("predicted", "of each part a label, or a number, a line", nargs="+")
    option("run", "what was run, as JSON: task, system, seed, settings", type=json.loads)
    option("train", "train.json of the run")
    option("output", "scores.json")

    option = add(
        verbs,
        "nlu-baselines",
        _nlu_baselines,
        "Score two trivial answers to a task of language understanding: the most frequent label, and a "
        "linear model of the words without their order.",
    )
    _task(option)
    option("train", "TSV to learn from")
    option("parts", "names of the parts, such as dev", nargs="+", type=str)
    option("gold", "TSV of each part, to answer", nargs="+")
    option("run", "what was run, as JSON: the benchmark", type=json.loads)
    option("output", "baselines.json")


def _task(option: Callable) -> None:
    from synmask.corpora.tasks import TASKS

    option("task", ", ".join(TASKS), type=str)


def _score(a: Arguments) -> None:
    from synmask.evaluation.bleu import score
    from synmask.files import read_json, write_json
    from synmask.provenance import commit, versions

    language, found = a.run["direction"].split("-")[1], {}
    for split, hypothesis, *references in _parts(a.splits, a.hypotheses, a.references, a.reference_tokens):
        sides = (f"{hypothesis}.txt", references[0], f"{hypothesis}.tok", references[1])
        scores = score(*sides, lowercase=a.lowercase, language=language)
        found[split] = scores | read_json(f"{hypothesis}.json")
    result = {key: {split: values[key] for split, values in found.items()} for key in found[a.splits[0]]}
    signatures = {"signatures": result["signatures"][a.splits[0]]}  # those of all: no text decides them
    made = {"versions": versions(), "commit": commit(), "command": " ".join(sys.argv)}
    write_json(a.output, a.run | read_json(a.train) | result | signatures | made)


def _significance(a: Arguments) -> None:
    from synmask.evaluation.bleu import bleu
    from synmask.evaluation.significance import compare
    from synmask.files import write_json

    language = a.run["direction"].split("-")[1]
    sides = {"sacrebleu": ("txt", a.reference), "bleu_tokenised": ("tok", a.reference_tokens)}
    metrics = {
        metric: compare(
            f"{a.hypothesis}.{kind}",
            f"{a.baseline}.{kind}",
            reference,
            bleu(metric, language, lowercase=a.lowercase),
        )
        for metric, (kind, reference) in sides.items()
    }
    write_json(a.output, a.run | {"metrics": metrics})


def _sentences(a: Arguments) -> None:
    from synmask.evaluation.sentences import write_sentences

    sides = (a.hypothesis, a.reference, a.source, a.output)
    write_sentences(*sides, language=a.language, lowercase=a.lowercase)


def _parse(a: Arguments) -> None:
    from synmask.engine.decode import parse_file

    with lease(a.gpus):
        parse_file(a.model, a.input, a.output, a.distribution, a.sentence, a.threads)


def _parseval(a: Arguments) -> None:
    from synmask.evaluation.parseval import evaluate_files
    from synmask.files import write_json, writing
    from synmask.provenance import commit, versions
    from synmask.reporting.parse_tables import as_text

    result, counts = evaluate_files(a.gold, a.predicted, a.heads)
    if a.output is None:
        print(as_text(result))
    else:
        write_json(a.output, a.run | result | {"versions": versions(), "commit": commit()})
    if a.counts is not None:
        with writing(a.counts) as handle:
            json.dump(a.run | {"counts": counts}, handle, sort_keys=True, separators=(",", ":"))


def _parts(*lists: list) -> list[tuple]:
    """What belongs to each part of a task, or to each split of a corpus."""
    if len({*map(len, lists)}) > 1:
        raise UserError("give a file of each kind for every one of them")
    return [*zip(*lists, strict=True)]


def _nlu_score(a: Arguments) -> None:
    from synmask.corpora.tasks import read_task
    from synmask.evaluation.nlu import read_predictions, score
    from synmask.files import read_json, write_json
    from synmask.provenance import commit, versions

    scores = {}
    for part, path, predicted in _parts(a.parts, a.gold, a.predicted):
        gold = read_task(a.task, path)
        scores[part] = score(a.task, gold.labels, read_predictions(a.task, predicted, gold))
    made = {"versions": versions(), "commit": commit(), "command": " ".join(sys.argv)}
    write_json(a.output, a.run | read_json(a.train) | {"task": a.task, "scores": scores} | made)


def _nlu_baselines(a: Arguments) -> None:
    from synmask.corpora.tasks import read_task
    from synmask.evaluation import nlu
    from synmask.files import write_json
    from synmask.provenance import commit, versions

    train = read_task(a.task, a.train)
    gold = {part: read_task(a.task, path) for part, path in _parts(a.parts, a.gold)}
    answers = {"majority": nlu.majority, "bag-of-words": nlu.bag_of_words}
    scores = {
        name: {part: answer(a.task, train, examples) for part, examples in gold.items()}
        for name, answer in answers.items()
    }
    write_json(
        a.output, a.run | {"task": a.task, "scores": scores, "versions": versions(), "commit": commit()}
    )
