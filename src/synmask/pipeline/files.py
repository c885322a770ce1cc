"""Lines, JSON and CSV in files: strict UTF-8 in, whole files or none out."""

import csv
import gzip
import io
import json
import reprlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, get_args

from synmask.pipeline.disk import PatientFile, naming_read_errors, open_to_read, open_unpacked, replacing
from synmask.pipeline.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

Split = Literal["train", "valid", "test"]  # of a corpus: the stems of its files
SPLITS = get_args(Split)
Pair = tuple[str, str]  # a sentence and its translation


@contextmanager
def writing(path: str | Path, mode: str = "w") -> Iterator[IO]:
    """Open a temporary file beside `path` for writing; it becomes `path` at the end; see `all_writing`."""
    with all_writing([path], mode) as (handle,):
        yield handle


@contextmanager
def all_writing(paths: Sequence[str | Path], mode: str = "w") -> Iterator[list[IO]]:
    """Open temporary files beside `paths`; at the end all of these are there or none, as `replacing` says.

    Text is UTF-8 with "\\n" line ends; a name ending in .gz is compressed (without a time stamp, so
    that the same text gives the same bytes); `mode` is "w" or "wb".
    """
    paths = [Path(path) for path in paths]
    with replacing(paths) as temporaries, ExitStack() as stack:
        handles: list[IO] = []
        for path, temporary in zip(paths, temporaries, strict=True):
            handle: IO = stack.enter_context(io.BufferedWriter(PatientFile(temporary, "wb")))
            if path.suffix == ".gz":
                handle = stack.enter_context(gzip.GzipFile("", "wb", fileobj=handle, mtime=0))
            if "b" not in mode:
                handle = stack.enter_context(io.TextIOWrapper(handle, encoding="utf-8", newline="\n"))
            handles.append(handle)
        yield handles


def existing_or_packed(path: str | Path) -> str:
    """`path`, or PATH.gz if only that exists."""
    packed = Path(f"{path}.gz")
    return str(packed if packed.exists() and not Path(path).exists() else path)


def read_lines(path: str | Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file (.gz or plain) without their line ends; only "\\n" ends a line.

    A byte order mark at the start and a carriage return before the line end are dropped. Standard input
    (`STDIN`) is read from its descriptor: a socket cannot be opened by name.

    Raises:
        UserError: the file is missing, is not UTF-8 (named with its line), or is a damaged .gz.
    """
    path = Path(path)
    try:
        with open_unpacked(path) as handle:
            for number, line in enumerate(handle, start=1):
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                yield text.removesuffix("\n").removesuffix("\r")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        fault = f"not UTF-8 ({error.reason}); convert the file first"
        raise UserError(f"{path}, line {number}: {fault}") from None


def count_words(path: str | Path) -> Counter[str]:
    """How often each word, between spaces, occurs in a text; raises as `read_lines` does."""
    counts: Counter[str] = Counter()
    for line in read_lines(path):
        counts.update(line.split(" "))
    del counts[""]  # of double spaces and empty lines
    return counts


def line_key(text: str) -> str:
    """A key for a text, the same before and after the text was a line of a file.

    `read_lines` drops a byte order mark at a file's start and a carriage return at a line's end.
    """
    return text.lstrip("\ufeff").rstrip("\r")


def read_pairs(source: str | Path, target: str | Path) -> Iterator[Pair]:
    """Yield the line pairs of two aligned files.

    Raises:
        UserError: a file is missing, damaged or not UTF-8, or, after the last pair, they differ in length.
    """
    counts = [0, 0]
    for pair in zip_longest(read_lines(source), read_lines(target)):
        for side, line in enumerate(pair):
            counts[side] += line is not None
        if counts[0] == counts[1]:
            yield pair
    if counts[0] != counts[1]:
        raise UserError(
            f"{source} has {counts[0]} lines, {target} has {counts[1]}: "
            "line n of one must translate line n of the other"
        )


def read_aligned(paths: Sequence[str | Path], advice: str) -> list[list[str]]:
    """The lines of files that must have equally many.

    Raises:
        UserError: a file is missing, damaged or not UTF-8; or they differ in length or are empty: then the
            message ends with `advice`.
    """
    sides = [list(read_lines(path)) for path in paths]
    count = len(sides[0])
    for path, side in zip(paths, sides, strict=True):
        if len(side) != count:
            counts = f"{count:,} {'line' if count == 1 else 'lines'} against {len(side):,}"
            raise UserError(f"{paths[0]}, {path}: {counts}; {advice}")
    if not count:
        raise UserError(f"{paths[0]}: empty; {advice}")
    return sides


def write_lines(path: str | Path, lines: Iterable[str]) -> None:
    """Write `lines`, each with a line end, as a whole or not at all."""
    with writing(path) as handle:
        handle.writelines(f"{line}\n" for line in lines)


def write_all(files: Mapping[Path, str | bytes]) -> None:
    """Write the contents of each file; in the end all the files are there, or none."""
    with all_writing([*files], "wb") as handles:
        for handle, content in zip(handles, files.values(), strict=True):
            handle.write(content.encode() if isinstance(content, str) else content)


def write_json(path: Path, value: Any) -> None:
    """Write `value` as `json_text` has it, as a whole or not at all."""
    write_all({path: json_text(value)})


def json_text(value: Any) -> str:
    """`value` as indented JSON with sorted keys and a line end."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """`rows` as the text of a CSV file with "\\n" line ends."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def read_json(path: str | Path) -> Any:
    """The value in a JSON file.

    Raises:
        UserError: no such file, or not JSON.
    """
    try:
        with open_to_read(path) as handle:
            return json.loads(handle.read().decode("utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except ValueError as error:
        raise UserError(f"{path}: not JSON ({error}); delete it and rerun") from None


def read_object(path: str | Path) -> dict[str, Any]:
    """The keys and values in a JSON file.

    Raises:
        UserError: no such file, or it holds something else.
    """
    values = read_json(path)
    if not isinstance(values, dict):
        raise UserError(
            f"{path}: expected keys and values, found {reprlib.repr(values)}; delete it and rerun"
        )
    return values


def read_csv(path: str | Path, columns: Iterable[str], advice: str, **kwargs: Any) -> "pd.DataFrame":
    """Read a CSV file that has these columns; `kwargs`: for pandas.

    Raises:
        UserError: no such file, or of another kind; the message ends with `advice`.
    """
    import pandas as pd  # imported here: it takes 0.4 s, and most steps read no table

    try:
        with naming_read_errors(path):
            rows = pd.read_csv(path, **kwargs)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; {advice}") from None
    except ValueError as error:
        raise UserError(f"{path}: not a table ({error}); {advice}") from None
    if missing := [column for column in columns if column not in rows]:
        raise UserError(f"{path}: no column {', '.join(missing)}; {advice}")
    return rows


def flatten(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as one mapping with dotted keys."""
    values: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            values |= flatten(value, f"{prefix}{name}.")
        else:
            values[prefix + name] = tuple(value) if isinstance(value, list) else value
    return values


def zip_equal(**lists: Sequence) -> list[tuple]:
    """Zip lists of files, and of what belongs to each: options that must have the same number of values.

    Raises:
        UserError: the numbers of values differ.
    """
    if len({*map(len, lists.values())}) > 1:
        counts = ", ".join(f"--{name.replace('_', '-')} {len(values)}" for name, values in lists.items())
        raise UserError(f"these options need equally many values: {counts}")
    return [*zip(*lists.values(), strict=True)]
