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
    odd: list[int] = []
    with TemporaryDirectory() as temporary:
        path = _part_file(task, part, sources, Path(temporary))
        if part not in labelled:
            found = list(_test_rows(LAYOUTS[task], path))
        else:
            ids = None
            if task == "mrpc" and path.name == MRPC_PAIRS:
                ids = {tuple(line.split("\t")[:2]) for line in read_lines(_named(task, sources, MRPC_DEV))}
            found = list(_rows(task, path, odd, ids, part == "dev"))
    if len(found) != rows:
        key = f"{'' if part in labelled else 'test_'}rows"
        raise UserError(
            f"glue: {task} {part} has {len(found):,} rows, not {rows:,}; fetch it again, or fix "
            f"benchmarks.glue.tasks.{task}.{key} in config.yaml"
        )
    write_task(task, found, output, labelled=part in labelled)
    return {"rows": rows, "malformed_rows_dropped": len(odd)}


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


def _test_rows(layout: TaskFormat, path: Path) -> Iterator[list[str]]:
    """The sentences of each row of a test set, all of whose files have a header."""
    lines = enumerate(read_lines(path), start=1)
    header = next(lines, (1, ""))[1].split("\t")
    places = _places(path, header, (layout.test_text,) if layout.test_text else layout.texts, layout)
    for number, line in lines:
        fields = _fields(path, number, line, len(header))
        yield [fields[place] for place in places]


def _places(path: Path, header: list[str], wanted: Sequence[str | int], layout: TaskFormat) -> list[int]:
    """Where the wanted columns stand in the header."""
    if missing := [name for name in wanted if name not in header]:
        raise UserError(
            f"{path.name}: no column {missing[0]!r}; its header must be that of GLUE's {layout.folder}"
        )
    return [header.index(name) for name in wanted]


def _fields(path: Path, number: int, line: str, width: int) -> list[str]:
    """The fields of a row."""
    fields = line.split("\t")
    if len(fields) != width:
        raise UserError(f"{path.name}, line {number}: {len(fields)} columns, not {width}; fetch it again")
    return fields


def _rows(
    task: str, path: Path, odd: list[int], dev_ids: set[tuple[str, ...]] | None, dev: bool
) -> Iterator[list[str]]:
    """Sentences and label of each row of a file; for MRPC, only the pairs of the dev set or the others."""
    layout = LAYOUTS[task]
    lines = enumerate(read_lines(path), start=1)
    width, columns = layout.columns, [*layout.texts, layout.label]
    ids: list[int] = []
    if not width:
        header = next(lines, (1, ""))[1].split("\t")
        wanted = [*columns, *(MRPC_IDS if dev_ids is not None else ())]
        places = _places(path, header, wanted, layout)
        width, columns, ids = len(header), places[: len(columns)], places[len(columns) :]
    for number, line in lines:
        if layout.drop_odd_rows and line.count("\t") + 1 != width:
            odd.append(number)
            continue
        fields = _fields(path, number, line, width)
        check_label(TASKS[task], fields[columns[-1]], f"{path.name}, line {number}")
        if dev_ids is None or (tuple(fields[column] for column in ids) in dev_ids) == dev:
            yield [fields[column] for column in columns]
