"""The scores of a run, and of baselines, on a task of language understanding."""

import csv
from pathlib import Path

from synmask.pipeline.config.run_info import RunInfo
from synmask.pipeline.corpora.tasks import read_task
from synmask.pipeline.evaluation.records import made, of_run
from synmask.pipeline.evaluation.task_scores import (
    EXAMPLES,
    bag_of_words,
    majority,
    read_predictions,
    score,
)
from synmask.pipeline.files import all_writing, json_text, sha256, write_json
from synmask.pipeline.options import Json, Parts, RunJson, Some, TaskName, TrainJson, together


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
    scores, checksums, rows = {}, {}, [EXAMPLES]
    for part, path, answers in together(parts=parts, gold=gold, predicted=predicted):
        labels = read_task(task, path).labels
        given = read_predictions(task, answers, len(labels))
        scores[part], checksums[part] = score(task, labels, given), sha256(answers)[:16]
        rows += [[part, *pair] for pair in zip(given, labels, strict=True)]
    found = {"task": task, "scores": scores, "answers": checksums}
    with all_writing([output, examples]) as (scored, answered):
        scored.write(json_text(of_run(run, train, found)))
        csv.writer(answered, lineterminator="\n").writerows(rows)


def nlu_baselines(
    *, task: TaskName, train: Path, parts: Parts, gold: Some[Path], run: RunJson, output: Path
) -> None:
    """Score two baselines: the most frequent label, and a linear model of the words alone.

    Args:
        train: TSV to learn from.
        gold: TSV of each part to predict.
        run: The run: the benchmark, as corpus.
        output: baselines.json.
    """
    known = read_task(task, train)
    asked = {part: read_task(task, path) for part, path in together(parts=parts, gold=gold)}
    scores = {
        name: {part: answer(task, known, examples) for part, examples in asked.items()}
        for name, answer in (("majority", majority), ("bag-of-words", bag_of_words))
    }
    write_json(output, {**run, "task": task, "scores": scores} | made())
