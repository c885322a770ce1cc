"""Convert the paper's eight GLUE tasks, as published, to checked TSV."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from synmask.corpora.archive import unpack
from synmask.corpora.tasks import TASKS, check_label, write_task
from synmask.files import UserError, read_lines


@dataclass(frozen=True)
class Layout:
    """The format of a task's TSV files; all have a header, unless columns are given by number."""

    folder: str  # in its archive, and in the folder that GLUE's download scripts make
    texts: tuple[str | int, ...]  # columns of the sentence or sentences
    label: str | int
    columns: int = 0  # number of columns, if there is no header
    drop_odd_rows: bool = False  # rows with another number of columns; fairseq drops them, too


LAYOUTS = {
    "cola": Layout("CoLA", (3,), 1, columns=4),
    "sst-2": Layout("SST-2", ("sentence",), "label"),
    "mnli": Layout("MNLI", ("sentence1", "sentence2"), "gold_label"),
    "qnli": Layout("QNLI", ("question", "sentence"), "label"),
    "rte": Layout("RTE", ("sentence1", "sentence2"), "label"),
    "mrpc": Layout("MRPC", ("#1 String", "#2 String"), "Quality"),
    "qqp": Layout("QQP", ("question1", "question2"), "is_duplicate", drop_odd_rows=True),
    "sts-b": Layout("STS-B", ("sentence1", "sentence2"), "score"),
}
MRPC_PAIRS, MRPC_DEV = "msr_paraphrase_train.txt", "mrpc_dev_ids.tsv"
MRPC_IDS = ("#1 ID", "#2 ID")


def write_part(task: str, part: str, sources: Sequence[Path], output: str | Path, rows: int) -> int:
    """Write one part of a task as TSV: a header, then sentence1, sentence2 if there are two, label.

    The text is as published (GLUE's files have no quoting). Returns the number of malformed rows dropped.

    Args:
        task: a key of `LAYOUTS`.
        part: train or dev; for MNLI train, dev_matched or dev_mismatched.
        sources: the task's archive; for MRPC, which GLUE splits itself, its pairs and the ids of the dev
            set; or the folder of the unpacked task, with PART.tsv or PART.tsv.gz.
        rows: the required number of rows.
    Raises:
        UserError: a file is missing or damaged, a column is missing, a row has too few or too many columns
            or an unknown label, the number of rows is not `rows`, or the part has no labels (a test set).
    """
    if task not in LAYOUTS:
        raise UserError(f"glue: no task {task!r}; there are {', '.join(LAYOUTS)}")
    parts = ("train", "dev_matched", "dev_mismatched") if task == "mnli" else ("train", "dev")
    if part not in parts:
        raise UserError(
            f"glue: {task} has no part {part!r} with labels (a test set has none); take {', '.join(parts)}"
        )
    odd: list[int] = []
    with TemporaryDirectory() as temporary:
        path = _part_file(task, part, sources, Path(temporary))
        ids = None
        if task == "mrpc" and path.name == MRPC_PAIRS:
            ids = {tuple(line.split("\t")[:2]) for line in read_lines(_named(sources, MRPC_DEV))}
        found = list(_rows(task, path, odd, ids, part == "dev"))
    if len(found) != rows:
        raise UserError(
            f"glue: {task} {part} has {len(found):,} rows, not {rows:,}; fetch it again, or fix "
            f"benchmarks.glue.tasks.{task}.rows in config.yaml"
        )
    write_task(task, found, output)
    return len(odd)


def _part_file(task: str, part: str, sources: Sequence[Path], folder: Path) -> Path:
    first = sources[0]
    if first.is_dir():
        found = [first / f"{part}.tsv{ending}" for ending in ("", ".gz")]
        return next((path for path in found if path.is_file()), found[0])
    if task == "mrpc":
        return _named(sources, MRPC_PAIRS)
    return unpack(first, [f"{LAYOUTS[task].folder}/{part}.tsv"], folder)[0]


def _named(sources: Sequence[Path], name: str) -> Path:
    for path in sources:
        if path.name == name:
            return path
    raise UserError(f"glue: mrpc needs {name}; name it in benchmarks.glue.tasks.mrpc.urls")


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
        if missing := [name for name in wanted if name not in header]:
            raise UserError(
                f"{path.name}: no column {missing[0]!r}; its header must be that of GLUE's {layout.folder}"
            )
        width = len(header)
        columns = [header.index(name) for name in columns]
        ids = [header.index(name) for name in wanted[len(columns) :]]
    for number, line in lines:
        fields = line.split("\t")
        if len(fields) != width:
            if layout.drop_odd_rows:
                odd.append(number)
                continue
            raise UserError(f"{path.name}, line {number}: {len(fields)} columns, not {width}; fetch it again")
        check_label(TASKS[task], fields[columns[-1]], f"{path.name}, line {number}")
        if dev_ids is None or (tuple(fields[column] for column in ids) in dev_ids) == dev:
            yield [fields[column] for column in columns]
