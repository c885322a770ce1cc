"""GLUE's eight tasks of the paper (Wang et al. 2019), as they are published, to checked TSV."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from synmask.corpora.archive import unpack
from synmask.files import UserError, read_lines, write_lines


@dataclass(frozen=True)
class Task:
    """How a task's TSV files look; all have a header, unless columns are given by their numbers."""

    folder: str  # in its archive, and in the folder that GLUE's download scripts make
    texts: tuple[str | int, ...]  # columns of the sentence, or of the two
    label: str | int
    labels: tuple[str, ...] = ("0", "1")  # none: a score from 0 to 5
    columns: int = 0  # how many, where there is no header
    drop_odd_rows: bool = False  # rows with another number of columns, which fairseq drops, too


TASKS = {
    "cola": Task("CoLA", (3,), 1, columns=4),
    "sst-2": Task("SST-2", ("sentence",), "label"),
    "mnli": Task(
        "MNLI", ("sentence1", "sentence2"), "gold_label", ("entailment", "neutral", "contradiction")
    ),
    "qnli": Task("QNLI", ("question", "sentence"), "label", ("entailment", "not_entailment")),
    "rte": Task("RTE", ("sentence1", "sentence2"), "label", ("entailment", "not_entailment")),
    "mrpc": Task("MRPC", ("#1 String", "#2 String"), "Quality"),
    "qqp": Task("QQP", ("question1", "question2"), "is_duplicate", drop_odd_rows=True),
    "sts-b": Task("STS-B", ("sentence1", "sentence2"), "score", ()),
}
MRPC_PAIRS, MRPC_DEV = "msr_paraphrase_train.txt", "mrpc_dev_ids.tsv"
MRPC_IDS = ("#1 ID", "#2 ID")


def write_part(task: str, part: str, sources: Sequence[Path], output: str | Path, rows: int) -> int:
    """Write one part of a task as TSV: a header, then sentence1, sentence2 if there are two, label.

    The text is as published (GLUE's files quote nothing). Returns the number of odd rows that were dropped.

    Args:
        task: a key of `TASKS`.
        part: train or dev; for MNLI train, dev_matched or dev_mismatched.
        sources: the task's archive; for MRPC, which GLUE splits itself, its pairs and the ids of the dev
            set; or the folder of the unpacked task, with PART.tsv or PART.tsv.gz.
        rows: how many there must be.
    Raises:
        UserError: a file is missing or damaged, a column is missing, a row has too few or too many columns
            or an unknown label, or the number of rows is not `rows`.
    """
    odd: list[int] = []
    with TemporaryDirectory() as temporary:
        path = _part_file(task, part, sources, Path(temporary))
        ids = None
        if task == "mrpc" and path.name == MRPC_PAIRS:
            ids = {tuple(line.split("\t")[:2]) for line in read_lines(_named(sources, MRPC_DEV))}
        lines = list(_examples(TASKS[task], path, odd, ids, part == "dev"))
    if len(lines) != rows:
        raise UserError(
            f"glue: {task} {part} has {len(lines):,} rows, not {rows:,}; fetch it again, or mend "
            f"glue.tasks.{task}.rows in config.yaml"
        )
    names = ["sentence1", "sentence2"] if len(TASKS[task].texts) == 2 else ["sentence1"]
    write_lines(output, ["\t".join([*names, "label"]), *lines])
    return len(odd)


def _part_file(task: str, part: str, sources: Sequence[Path], folder: Path) -> Path:
    first = sources[0]
    if first.is_dir():
        found = [first / f"{part}.tsv{ending}" for ending in ("", ".gz")]
        return next((path for path in found if path.is_file()), found[0])
    if task == "mrpc":
        return _named(sources, MRPC_PAIRS)
    return unpack(first, [f"{TASKS[task].folder}/{part}.tsv"], folder)[0]


def _named(sources: Sequence[Path], name: str) -> Path:
    for path in sources:
        if path.name == name:
            return path
    raise UserError(f"glue: mrpc needs {name}; name it in glue.tasks.mrpc.urls")


def _examples(
    task: Task, path: Path, odd: list[int], dev_ids: set[tuple[str, ...]] | None, dev: bool
) -> Iterator[str]:
    """The rows of a file as TSV lines; of MRPC's pairs, those of the dev set or the others."""
    lines = enumerate(read_lines(path), start=1)
    width, columns = task.columns, [*task.texts, task.label]
    ids: list[int] = []
    if not width:
        header = next(lines, (1, ""))[1].split("\t")
        wanted = [*columns, *(MRPC_IDS if dev_ids is not None else ())]
        if missing := [name for name in wanted if name not in header]:
            raise UserError(
                f"{path.name}: no column {missing[0]!r}; its header must be that of GLUE's {task.folder}"
            )
        width = len(header)
        columns = [header.index(name) for name in columns]
        ids = [header.index(name) for name in wanted[len(columns) :]]
    for number, line in lines:
        fields = line.split("\t")
        if len(fields) != width:
            if task.drop_odd_rows:
                odd.append(number)
                continue
            raise UserError(f"{path.name}, line {number}: {len(fields)} columns, not {width}; fetch it again")
        label = fields[columns[-1]]
        if not _known(task, label):
            allowed = ", ".join(task.labels) or "a number from 0 to 5"
            raise UserError(f"{path.name}, line {number}: unknown label {label!r}; expected {allowed}")
        if dev_ids is None or (tuple(fields[column] for column in ids) in dev_ids) == dev:
            yield "\t".join(fields[column] for column in columns)


def _known(task: Task, label: str) -> bool:
    if task.labels:
        return label in task.labels
    try:
        return 0 <= float(label) <= 5
    except ValueError:
        return False
