"""The files of language understanding tasks.

They are TSV: a header, then sentence1, sentence2 if there are two, label; nothing is quoted. The files of
GLUE's test sets have no column for the label.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_lines, write_lines
from synmask.pipeline.tasks import MAX_SCORE, TASKS, Task, task_of


@dataclass(frozen=True)
class Examples:
    """One part of a task: its N sentences or pairs, and their N labels as written; a test set has none."""

    texts: tuple[tuple[str, ...], ...]
    labels: tuple[str, ...]


def check_label(task: Task, label: str, where: str) -> None:
    """Raise a UserError that begins with `where` unless `label` is one of the task's, or a score."""
    try:
        known = 0 <= task.number(label) <= MAX_SCORE  # like the place of a label
    except ValueError:
        known = False
    if not known:
        allowed = ", ".join(task.labels) or f"a number from 0 to {MAX_SCORE:g}"
        raise UserError(f"{where}: unknown label {label!r}; expected {allowed}")


def write_task(
    task: str, rows: Iterable[Sequence[str]], output: str | Path, *, labelled: bool = True
) -> None:
    """Write a part of a task; a row has the task's sentences and, if `labelled`, the label."""
    write_lines(output, task_lines(task, rows, labelled=labelled))


def task_lines(task: str, rows: Iterable[Sequence[str]], *, labelled: bool = True) -> list[str]:
    """The lines of a part of a task, its header first."""
    columns = TASKS[task].columns if labelled else TASKS[task].columns[:-1]
    return ["\t".join(columns), *("\t".join(row) for row in rows)]


def read_task(task: str, path: str | Path, *, test: bool = False) -> Examples:
    """Read a file of `write_task`.

    Args:
        test: also accept a test set, which has no labels.

    Raises:
        UserError: no such task or file; other columns than the task's; no rows; an unknown label.
    """
    layout = task_of(task)
    lines = list(read_lines(path))
    if len(lines) < 2:
        raise UserError(f"{path}: no rows; expected {task}'s header and rows")
    header = lines[0].split("\t")
    labelled = header == layout.columns
    if not labelled and not (test and header == layout.columns[:-1]):
        expected = ", ".join(layout.columns)
        raise UserError(f"{path}: columns {lines[0].replace(chr(9), ', ')!r:.80}; {task} has {expected}")
    rows = [line.split("\t") for line in lines[1:]]
    width = len(header)
    for number, row in enumerate(rows, start=2):
        if len(row) != width:
            raise UserError(f"{path}, line {number}: {len(row)} columns, not {width}; make it again")
        if labelled:
            check_label(layout, row[-1], f"{path}, line {number}")
    texts = tuple(tuple(row[: layout.sentences]) for row in rows)
    return Examples(texts, tuple(row[-1] for row in rows) if labelled else ())
