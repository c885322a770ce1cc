"""Convert the paper's eight GLUE tasks, as published, and the demo's to checked TSV."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from synmask.pipeline.arguments import CountOption, OneOrMore
from synmask.pipeline.corpora.archive import unpack
from synmask.pipeline.corpora.tasks import check_label, write_task
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import existing_or_packed, read_lines
from synmask.pipeline.tasks import DEMO_TASKS, TASKS


@dataclass(frozen=True)
class TaskFormat:
    """The format of a task's TSV files; all have a header, unless columns are given by number."""

    folder: str  # in its archive, and in the folder that GLUE's download scripts make
    texts: tuple[str | int, ...]  # columns of the sentence or sentences
    label: str | int
    columns: int = 0  # number of columns, if there is no header
    drop_odd_rows: bool = False  # rows with another number of columns; fairseq drops them, too


LAYOUTS = {
    "cola": TaskFormat("CoLA", (3,), 1, columns=4),
    "sst-2": TaskFormat("SST-2", ("sentence",), "label"),
    "mnli": TaskFormat("MNLI", ("sentence1", "sentence2"), "gold_label"),
    "qnli": TaskFormat("QNLI", ("question", "sentence"), "label"),
    "rte": TaskFormat("RTE", ("sentence1", "sentence2"), "label"),
    "mrpc": TaskFormat("MRPC", ("#1 String", "#2 String"), "Quality"),
    "qqp": TaskFormat("QQP", ("question1", "question2"), "is_duplicate", drop_odd_rows=True),
    "sts-b": TaskFormat("STS-B", ("sentence1", "sentence2"), "score"),
    **{name: TaskFormat(name, (*task.columns[:-1],), "label") for name, task in DEMO_TASKS.items()},
}
TEST_TEXTS = {"cola": ("sentence",)}  # where a test set's columns have other names
MRPC_PAIRS, MRPC_DEV, MRPC_TEST = "msr_paraphrase_train.txt", "mrpc_dev_ids.tsv", "msr_paraphrase_test.txt"
MRPC_IDS = ("#1 ID", "#2 ID")
AX_FILE, AX_UNPACKED = "AX.tsv", "diagnostic.tsv"


def write_part(
    *, task: str, part: str, sources: OneOrMore[Path], output: Path, rows: CountOption
) -> dict[str, int]:
    """Check one part of a GLUE task, or a test set, and write it as TSV.

    The text is as published (GLUE's files have no quoting). Test labels that MRPC's publisher prints are left
    out. A test set keeps malformed rows, since the server counts them.

    Args:
        task: cola, sst-2, mnli, qnli, rte, mrpc, qqp or sts-b; or one of the demo's.
        part: train, dev or test; for mnli train, dev_matched, dev_mismatched, test_matched,
            test_mismatched or ax.
        sources: Its archive (for ax, AX.tsv, too; for mrpc, which GLUE splits itself, its pairs and the ids
            of the dev set, for its test set also that file); or the folder of the unpacked task with PART.tsv
            or PART.tsv.gz (ax: the folder with diagnostic.tsv).
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
    layout, labelled = LAYOUTS[task], part.startswith(("train", "dev"))
    columns = [*layout.texts, layout.label] if labelled else [*TEST_TEXTS.get(task, layout.texts)]
    with TemporaryDirectory() as temporary:
        path = _part_file(task, part, sources, Path(temporary))
        shared = path.name == MRPC_PAIRS  # by train and dev, whose rows have these ids
        by_line, dropped = _read_rows(path, layout, [*columns, *MRPC_IDS] if shared else columns, labelled)
    for number, row in by_line.items() if labelled else ():
        check_label(TASKS[task], row[len(layout.texts)], f"{path.name}, line {number}")
    table = [*by_line.values()]
    if shared:
        ids = {tuple(line.split("\t")[:2]) for line in read_lines(_find_source(task, sources, MRPC_DEV))}
        table = [row[:-2] for row in table if (tuple(row[-2:]) in ids) == (part == "dev")]
    if len(table) != rows:
        raise UserError(
            f"glue: {task} {part} has {len(table):,} rows, not {rows:,}; fetch it again, or fix "
            f"benchmarks.glue.tasks.{task}.{'' if labelled else 'test_'}rows in config.yaml"
        )
    write_task(task, table, output, labelled=labelled)
    return {"rows": rows, "malformed_rows_dropped": dropped}


def _part_file(task: str, part: str, sources: Sequence[Path], folder: Path) -> Path:
    first = sources[0]
    if first.is_dir():
        return Path(existing_or_packed(first / (AX_UNPACKED if part == "ax" else f"{part}.tsv")))
    if part == "ax":
        return _find_source(task, sources, AX_FILE)
    if task == "mrpc":
        return _find_source(task, sources, MRPC_TEST if part == "test" else MRPC_PAIRS)
    return unpack(first, [f"{LAYOUTS[task].folder}/{part}.tsv"], folder)[0]


def _find_source(task: str, sources: Sequence[Path], name: str) -> Path:
    for path in sources:
        if path.name == name:
            return path
    key = f"{'test_' if name in (MRPC_TEST, AX_FILE) else ''}urls"
    raise UserError(f"glue: {task} needs {name}; name it in benchmarks.glue.tasks.{task}.{key}")


def _read_rows(
    path: Path, layout: TaskFormat, columns: Sequence[str | int], labelled: bool
) -> tuple[dict[int, list[str]], int]:
    """These columns of each row by its line number, and the number of malformed rows that were dropped."""
    lines = enumerate(read_lines(path), start=1)
    names: Sequence[str | int] = range(layout.columns)
    if not labelled or not names:
        names = next(lines, (1, ""))[1].split("\t")
    if missing := [name for name in columns if name not in names]:
        fault = f"no column {missing[0]!r}; its header must be that of GLUE's {layout.folder}"
        raise UserError(f"{path.name}: {fault}")
    places, by_line, dropped = [names.index(name) for name in columns], {}, 0
    for number, line in lines:
        fields = line.split("\t")
        if len(fields) == len(names):
            by_line[number] = [fields[place] for place in places]
        elif labelled and layout.drop_odd_rows:
            dropped += 1
        else:
            fault = f"{len(fields)} columns, not {len(names)}; fetch it again"
            raise UserError(f"{path.name}, line {number}: {fault}")
    return by_line, dropped
