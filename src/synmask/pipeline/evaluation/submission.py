"""Answers to GLUE's test sets in the form that its server takes: a zip with a TSV file per test set.

The form, for gluebenchmark.com, is that of public scripts: the columns index (from 0) and prediction; labels
as in the data, of STS-B a number from 0 to 5. The server takes all eleven files or none.
"""

import io
import zipfile
from pathlib import Path

from synmask.pipeline.arguments import CountOption, OneOrMore
from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation.task_scores import read_predictions
from synmask.pipeline.files import all_writing, json_text, together
from synmask.pipeline.record import made, read_record
from synmask.pipeline.tasks import HIGHEST, SUBMISSION, TASKS

HEADER = "index\tprediction"
WNLI, WNLI_ROWS = "WNLI.tsv", 146
WNLI_ANSWER = "0"  # the most frequent label of its training set: no system here is trained on it


def write_submission(
    *,
    rows: OneOrMore[CountOption],
    predicted: OneOrMore[Path],
    chosen: OneOrMore[Path],
    corpus: str,
    system: str,
    output: Path,
    summary: Path,
) -> None:
    """Pack the answers to GLUE's test sets as its server takes them.

    Args:
        rows: Number of examples of each test set, in the order of `SUBMISSION`.
        predicted: Predictions for each: outputs of `predict`.
        chosen: The seed that predicted each: the .json that `predict` writes beside them.
        corpus: The benchmark.
        system: The system that answered.
        output: NAME.zip.
        summary: Output: which seeds answered, as JSON.

    Raises:
        UserError: a test set is not given, or something is missing, malformed or out of range.
    """
    given = together(rows=rows, predicted=predicted, chosen=chosen)
    if len(given) != len(SUBMISSION):
        raise UserError(f"GLUE's server wants {', '.join(SUBMISSION)}; give predictions for all of these")
    columns, summaries, run = {}, {}, {"corpus": corpus, "system": system}
    for name, (count, answers, seed) in zip(SUBMISSION, given, strict=True):
        columns[name] = _column(name, answers, count)
        summaries[name] = read_record(seed, [answers], run) | {"rows": count}
    columns[WNLI] = [WNLI_ANSWER] * WNLI_ROWS
    summaries[WNLI] = {"rows": WNLI_ROWS, "answer": WNLI_ANSWER, "seed": None}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, column in columns.items():
            lines = [HEADER, *(f"{index}\t{answer}" for index, answer in enumerate(column))]
            entry = zipfile.ZipInfo(name)  # without the time, so that equal answers are equal bytes
            archive.writestr(entry, "".join(f"{line}\n" for line in lines), zipfile.ZIP_DEFLATED)
    with all_writing([output, summary], "wb") as (archive, text):
        archive.write(packed.getbuffer())
        text.write(json_text({**run, "files": summaries} | made()).encode())


def _column(name: str, path: Path, rows: int) -> list[str]:
    """The predictions of one file; numbers are moved into the range that the server takes."""
    task, _ = SUBMISSION[name]
    found = read_predictions(task, path, rows)
    if TASKS[task].labels:
        return found
    return [f"{min(max(float(value), 0.0), HIGHEST):z.4f}" for value in found]
