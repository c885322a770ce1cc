"""Language understanding tasks: those of GLUE in the paper (Wang et al. 2019), and similar demo tasks.

A task's files are TSV: a header, then sentence1, sentence2 if there are two, label; nothing is quoted. The
files of GLUE's test sets have no column for the label.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from synmask.pipeline.files import UserError, read_lines, write_lines

BINARY = ("0", "1")
INFERENCE = ("entailment", "neutral", "contradiction")


@dataclass(frozen=True)
class Task:
    """A task on one sentence or on a pair."""

    sentences: int
    labels: tuple[str, ...]  # empty: a score from 0 to 5

    @property
    def columns(self) -> list[str]:
        return [*(f"sentence{number + 1}" for number in range(self.sentences)), "label"]


GLUE = {
    "cola": Task(1, BINARY),
    "sst-2": Task(1, BINARY),
    "mnli": Task(2, INFERENCE),
    "qnli": Task(2, ("entailment", "not_entailment")),
    "rte": Task(2, ("entailment", "not_entailment")),
    "mrpc": Task(2, BINARY),
    "qqp": Task(2, BINARY),
    "sts-b": Task(2, ()),
}
GENERATED = {  # corpora/demo/nlu_tasks.py
    "acceptability": Task(1, BINARY),
    "paraphrase": Task(2, BINARY),
    "entailment": Task(2, INFERENCE),
    "predicate": Task(1, ()),
}
TASKS = GLUE | GENERATED
SUBMISSION = {  # files that GLUE's server wants besides WNLI.tsv → the task whose model answers, test set
    "CoLA.tsv": ("cola", "test"),
    "SST-2.tsv": ("sst-2", "test"),
    "MRPC.tsv": ("mrpc", "test"),
    "STS-B.tsv": ("sts-b", "test"),
    "QQP.tsv": ("qqp", "test"),
    "MNLI-m.tsv": ("mnli", "test_matched"),
    "MNLI-mm.tsv": ("mnli", "test_mismatched"),
    "QNLI.tsv": ("qnli", "test"),
    "RTE.tsv": ("rte", "test"),
    "AX.tsv": ("mnli", "ax"),  # the diagnostic set
}


@dataclass(frozen=True)
class Examples:
    """One part of a task: its N sentences or pairs, and their N labels as written; a test set has none."""

    texts: tuple[tuple[str, ...], ...]
    labels: tuple[str, ...]


def task_named(name: str) -> Task:
    """The task of this name.

    Raises:
        UserError: there is none.
    """
    if name not in TASKS:
        raise UserError(f"no task {name!r}; there are {', '.join(TASKS)}")
    return TASKS[name]


def check_label(task: Task, label: str, where: str) -> None:
    """Raise a UserError that begins with `where` unless `label` is one of the task's, or a score."""
    if not _known(task, label):
        allowed = ", ".join(task.labels) or "a number from 0 to 5"
        raise UserError(f"{where}: unknown label {label!r}; expected {allowed}")


def _known(task: Task, label: str) -> bool:
    if task.labels:
        return label in task.labels
    try:
        return 0 <= float(label) <= 5
    except ValueError:
        return False


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
        test: also take a test set, whose examples have no labels.

    Raises:
        UserError: no such task or file; other columns than the task's; no rows; an unknown label.
    """
    kind = task_named(task)
    lines = list(read_lines(path))
    if not lines:
        raise UserError(f"{path}: empty file; expected {task}'s header and rows")
    header = lines[0].split("\t")
    labelled = header == kind.columns
    if not labelled and not (test and header == kind.columns[:-1]):
        expected = ", ".join(kind.columns)
        raise UserError(f"{path}: columns {lines[0].replace(chr(9), ', ')!r:.80}; {task} has {expected}")
    rows = [line.split("\t") for line in lines[1:]]
    if not rows:
        raise UserError(f"{path}: no rows below the header; make it again")
    width = len(header)
    for number, row in enumerate(rows, start=2):
        if len(row) != width:
            raise UserError(f"{path}, line {number}: {len(row)} columns, not {width}; make it again")
        if labelled:
            check_label(kind, row[-1], f"{path}, line {number}")
    texts = tuple(tuple(row[: kind.sentences]) for row in rows)
    return Examples(texts, tuple(row[-1] for row in rows) if labelled else ())


def write_sentences(task: str, parts: Sequence[Path], output: Path, number: int, files: int) -> int:
    """Write file `number` (from 1) of `files` with the distinct sentences of a task; return their number.

    Sentences are in the order of their first occurrence; files have similar lengths.

    Args:
        parts: files of `write_task`.

    Raises:
        UserError: as for `read_task`.
    """
    examples = (read_task(task, part, test=True).texts for part in parts)
    sentences = list(dict.fromkeys(text for texts in examples for example in texts for text in example))
    size = -(-len(sentences) // files)
    return write_lines(output, sentences[(number - 1) * size : number * size])
