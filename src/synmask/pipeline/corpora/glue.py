"""Convert the paper's eight GLUE tasks, as published, to checked TSV."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from synmask.pipeline.corpora.archive import unpack
from synmask.pipeline.corpora.tasks import check_label, write_task
from synmask.pipeline.files import UserError, read_lines
from synmask.pipeline.options import CountOption, Some
from synmask.pipeline.tasks import SUBMISSION, TASKS


@dataclass(frozen=True)
class TaskFormat:
    """The format of a task's TSV files; all have a header, unless columns are given by number."""

    folder: str  # in its archive, and in the folder that GLUE's download scripts make
    texts: tuple[str | int, ...]  # columns of the sentence or sentences
    label: str | int
    columns: int = 0  # number of columns, if there is no header
    drop_odd_rows: bool = False  # rows with another number of columns; fairseq drops them, too
    test_text: str = ""  # the column of the test set's sentence, if it has another name


LAYOUTS = {
    "cola": TaskFormat("CoLA", (3,), 1, columns=4, test_text="sentence"),
    "sst-2": TaskFormat("SST-2", ("sentence",), "label"),
    "mnli": TaskFormat("MNLI", ("sentence1", "sentence2"), "gold_label"),
    "qnli": TaskFormat("QNLI", ("question", "sentence"), "label"),
    "rte": TaskFormat("RTE", ("sentence1", "sentence2"), "label"),
    "mrpc": TaskFormat("MRPC", ("#1 String", "#2 String"), "Quality"),
    "qqp": TaskFormat("QQP", ("question1", "question2"), "is_duplicate", drop_odd_rows=True),
    "sts-b": TaskFormat("STS-B", ("sentence1", "sentence2"), "score"),
}
MRPC_PAIRS, MRPC_DEV = "msr_paraphrase_train.txt", "mrpc_dev_ids.tsv"
MRPC_IDS = ("#1 ID", "#2 ID")
MRPC_TEST = "msr_paraphrase_test.txt"
AX_FILE, AX_UNPACKED = "AX.tsv", "diagnostic/diagnostic.tsv"


def write_part(
    *, task: str, part: str, sources: Some[Path], output: Path, rows: CountOption
) -> dict[str, int]:
    """Check one part of a GLUE task, or a test set, and write it as TSV.

    The text is as published (GLUE's files have no quoting). Test labels that MRPC's publisher prints are left
    out. A test set keeps malformed rows, since the server counts them.

    Args:
        task: cola, sst-2, mnli, qnli, rte, mrpc, qqp or sts-b.
        part: train, dev or test; for mnli train, dev_matched, dev_mismatched, test_matched,
            test_mismatched or ax.
        sources: Its archive (for ax, AX.tsv, too; for mrpc, which GLUE splits itself, its pairs and the ids
            of the dev set, for its test set also that file); or the folder of the unpacked task with PART.tsv
            or PART.tsv.gz (ax: beside it, diagnostic/diagnostic.tsv).
        output: TSV: sentence1, sentence2 if there are two, label unless it is a test set.
        rows: Required number of rows.

    Returns:
        The numbers of rows, and of malformed ones that were dropped.

    Raises:
        UserError: a file is missing or damaged, a column is missing, a row has too few or too many columns
            or an unknown label, or the number of rows is not `rows`.
    """
    if task not in LAYOUTS:
        raise UserError(f"glue: no task {task!r}; there are {', '.join(LAYOUTS)}")
    labelled = ("train", "dev_matched", "dev_mismatched") if task == "mnli" else ("train", "dev")
    parts = (*labelled, *(part for name, part in SUBMISSION.values() if name == task))
    if part not in parts:
        raise UserError(f"glue: {task} has no part {part!r}; take {', '.join(parts)}")
    with TemporaryDirectory() as temporary:
        path = _part_file(task, part, sources, Path(temporary))
        if part in labelled:
            found, dropped = _labelled_rows(task, part, path, sources)
        else:
            layout = LAYOUTS[task]
            columns = (layout.test_text,) if layout.test_text else layout.texts
            found, dropped = [row for _, row in _rows(path, layout, columns)], 0
    if len(found) != rows:
        key = f"{'' if part in labelled else 'test_'}rows"
        raise UserError(
            f"glue: {task} {part} has {len(found):,} rows, not {rows:,}; fetch it again, or fix "
            f"benchmarks.glue.tasks.{task}.{key} in config.yaml"
        )
    write_task(task, found, output, labelled=part in labelled)
    return {"rows": rows, "malformed_rows_dropped": dropped}


def _part_file(task: str, part: str, sources: Sequence[Path], folder: Path) -> Path:
    first = sources[0]
    if first.is_dir():
        name = first.parent / AX_UNPACKED if part == "ax" else first / f"{part}.tsv"
        found = [name.with_name(f"{name.name}{ending}") for ending in ("", ".gz")]
        return next((path for path in found if path.is_file()), found[0])
    if part == "ax":
        return _named(task, sources, AX_FILE)
    if task == "mrpc":
        return _named(task, sources, MRPC_TEST if part == "test" else MRPC_PAIRS)
    return unpack(first, [f"{LAYOUTS[task].folder}/{part}.tsv"], folder)[0]


def _named(task: str, sources: Sequence[Path], name: str) -> Path:
    for path in sources:
        if path.name == name:
            return path
    key = f"{'test_' if name in (MRPC_TEST, AX_FILE) else ''}urls"
    raise UserError(f"glue: {task} needs {name}; name it in benchmarks.glue.tasks.{task}.{key}")


def _labelled_rows(task: str, part: str, path: Path, sources: Sequence[Path]) -> tuple[list[list[str]], int]:
    """Sentences and label of each row, and the number of rows dropped; of MRPC's pairs those of the part."""
    layout, ids = LAYOUTS[task], None
    columns, width = [*layout.texts, layout.label], len(layout.texts) + 1
    if task == "mrpc" and path.name == MRPC_PAIRS:
        ids = {tuple(line.split("\t")[:2]) for line in read_lines(_named(task, sources, MRPC_DEV))}
        columns += MRPC_IDS
    rows, count = [], 0
    for number, row in _rows(path, layout, columns, layout.columns, drop_odd=layout.drop_odd_rows):
        count += row is None
        if row is not None:
            check_label(TASKS[task], row[width - 1], f"{path.name}, line {number}")
            if ids is None or (tuple(row[width:]) in ids) == (part == "dev"):
                rows.append(row[:width])
    return rows, count


def _rows(
    path: Path, layout: TaskFormat, columns: Sequence[str | int], width: int = 0, *, drop_odd: bool = False
) -> Iterator[tuple[int, list[str] | None]]:
    """The line number and the `columns` of each row; None for a row of another width, if it may be dropped.

    Args:
        width: number of columns of a file without a header; 0: it has one.
    """
    lines = enumerate(read_lines(path), start=1)
    places = columns
    if not width:
        header = next(lines, (1, ""))[1].split("\t")
        if missing := [name for name in columns if name not in header]:
            what = f"no column {missing[0]!r}; its header must be that of GLUE's {layout.folder}"
            raise UserError(f"{path.name}: {what}")
        width, places = len(header), [header.index(name) for name in columns]
    for number, line in lines:
        fields = line.split("\t")
        if len(fields) == width:
            yield number, [fields[place] for place in places]
        elif drop_odd:
            yield number, None
        else:
            what = f"{len(fields)} columns, not {width}; fetch it again"
            raise UserError(f"{path.name}, line {number}: {what}")
