"""Answers to GLUE's test sets in the form that its server takes: a zip with a TSV file per test set.

The form, for gluebenchmark.com, is that of public scripts: the columns index (from 0) and prediction; labels
as in the data, of STS-B a number from 0 to 5. The server takes all eleven files or none.
"""

import io
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from synmask.pipeline.arguments import CountOption, OneOrMore
from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation.task_scores import read_predictions
from synmask.pipeline.files import json_text, read_object, write_all
from synmask.pipeline.record import check_owner, check_part, read_run, run_identity, versions_and_commit
from synmask.pipeline.tasks import MAX_SCORE, SUBMISSION, TASKS

HEADER = "index\tprediction"
WNLI, WNLI_ROWS = "WNLI.tsv", 146
WNLI_ANSWER = "0"  # the most frequent label of its training set: no system here is trained on it


def write_submission(
    *,
    benchmark: Path,
    system: str,
    seeds: OneOrMore[CountOption],
    rows: OneOrMore[CountOption],
    output: Path,
    summary: Path,
) -> None:
    """Pack the answers to GLUE's test sets as its server takes them.

    To each test set, the seed answers that is best on the task's development set (for MNLI, the matched one).
    It reads BENCHMARK/TASK/SYSTEM/seedN: scores.json and predictions.PART.txt.

    Args:
        benchmark: The folder of its tasks.
        system: The system that answers.
        seeds: Those of its runs.
        rows: Number of examples of each test set, in the order of `SUBMISSION`.
        output: NAME.zip.
        summary: Output: which seeds answered, as JSON.

    Raises:
        UserError: something is missing, malformed, out of range, or another run's.
    """
    if len(rows) != len(SUBMISSION):
        raise UserError(f"--rows: {len(rows)} given for {', '.join(SUBMISSION)}")
    columns, summaries = {}, {}
    for (name, (task, part)), count in zip(SUBMISSION.items(), rows, strict=True):
        run, choice = best_run([benchmark / task / system / f"seed{seed}" for seed in seeds])
        columns[name] = _column(task, run / f"predictions.{part}.txt", count)
        summaries[name] = choice | {"rows": count}
    columns[WNLI] = [WNLI_ANSWER] * WNLI_ROWS
    summaries[WNLI] = {"rows": WNLI_ROWS, "answer": WNLI_ANSWER, "seed": None}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, column in columns.items():
            lines = [HEADER, *(f"{index}\t{answer}" for index, answer in enumerate(column))]
            entry = zipfile.ZipInfo(name)  # without the time, so that equal answers are equal bytes
            archive.writestr(entry, "".join(f"{line}\n" for line in lines), zipfile.ZIP_DEFLATED)
    facts = {"corpus": benchmark.name, "system": system, "files": summaries} | versions_and_commit()
    write_all({output: packed.getvalue(), summary: json_text(facts)})


def best_run(folders: Iterable[Path]) -> tuple[Path, dict[str, Any]]:
    """The run with the best score on the first part of its task, the first of equal ones.

    Args:
        folders: the runs of one system on one task.

    Returns:
        its folder; {"task", "seed", "metric", "scores": seed → score in percent}.

    Raises:
        UserError: a run has no scores, or its scores are another run's.
    """
    scores: dict[int, float] = {}
    runs: dict[int, Path] = {}
    for folder in folders:
        run, path = read_run(folder, "task", "seed"), folder / "scores.json"
        scored = read_object(path)
        check_owner(path, {"run": scored}, run_identity(run))
        task, seed = run["task"], run["seed"]
        metric = TASKS[task].metrics[0]
        try:
            scores[seed] = float(scored["scores"][min(scored["scores"])][metric])
        except (KeyError, TypeError, ValueError):
            raise UserError(f"{path}: no {metric} in it; score this run again") from None
        runs[seed] = folder
    best = max(scores, key=scores.__getitem__)
    return runs[best], {"task": task, "seed": best, "metric": metric, "scores": scores}


def _column(task: str, path: Path, rows: int) -> list[str]:
    """The predictions of one file; numbers are moved into the range that the server takes."""
    check_part(path, read_run(path.parent))
    answers = read_predictions(task, path, rows)
    if TASKS[task].labels:
        return answers
    return [f"{min(max(float(value), 0.0), MAX_SCORE):z.4f}" for value in answers]
