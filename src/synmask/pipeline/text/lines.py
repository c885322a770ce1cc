"""Answer text line by line: from a file, an open pipe or a terminal."""

import itertools
import os
import queue
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from threading import Thread

from tqdm import tqdm

from synmask.pipeline.disk import STDIN, STDIN_NAMES
from synmask.pipeline.files import read_lines, writing

Reply = Callable[[list[str], int], Iterator[str]]  # (lines, the number of the first) → an answer per line
Check = Callable[[list[str], int], object]  # likewise
CHECKED_LINES = 10_000  # lines checked at a time


def answer_lines(
    reply: Reply,
    *,
    input: Path | None,
    output: Path | None,
    most: int | None,
    prompt: str,
    check: Check | None = None,
) -> None:
    """Write the answer to each line as soon as it is available.

    At a terminal, `prompt` asks for each line. A file is read and checked once in advance, so that a bad line
    costs no answers to others; if it takes long, stderr shows the progress.

    Args:
        input: a file, .gz or plain; None: standard input.
        output: a file, written as a whole or not at all; None: standard output.
        most: maximum number of available lines answered together; None: all lines, after the last has
            arrived.
        check: raises a UserError for lines that have no answer.
    Raises:
        UserError: the input is missing, damaged or not UTF-8.
    """
    interactive = input is None and os.isatty(0)
    path = input or STDIN
    total = None
    if not interactive and path.is_file():
        position = os.lseek(0, 0, os.SEEK_CUR) if str(path) in STDIN_NAMES else None
        total = _check_file(path, check)
        if position is not None:
            os.lseek(0, position, os.SEEK_SET)
    groups = (
        ([line] for line in _prompt_lines(prompt)) if interactive else available_lines(read_lines(path), most)
    )
    seconds = 0.5 if sys.stderr.isatty() else 30  # a log needs no moving bar
    quiet = total is None or (output is None and os.isatty(1))
    bar = tqdm(total=total, unit="line", delay=seconds, mininterval=seconds, leave=False, disable=quiet)
    with bar, writing(output) if output else nullcontext(sys.stdout) as handle:
        first = 1
        for lines in groups:
            for text in reply(lines, first):
                print(text, file=handle)
                bar.update()
            handle.flush()
            first += len(lines)


def available_lines(lines: Iterable[str], most: int | None) -> Iterator[list[str]]:
    """Yield the available lines, at most `most` together; wait only if there are none.

    If `most` is None, yield all lines together. An exception of `lines` is raised after the lines before it.
    """
    if most is None:
        yield list(lines)
        return
    ready: queue.Queue[str | BaseException] = queue.Queue(4 * most)

    def read() -> None:
        try:
            for line in lines:
                ready.put(line)
            ready.put(StopIteration())
        except BaseException as error:
            ready.put(error)

    Thread(target=read, daemon=True).start()
    end = None
    while end is None:
        batch: list[str] = []
        while len(batch) < most and (not batch or not ready.empty()):
            if isinstance(line := ready.get(), BaseException):
                end = line
                break
            batch.append(line)
        if batch:
            yield batch
    if not isinstance(end, StopIteration):
        raise end


def _check_file(path: Path, check: Check | None) -> int:
    """Check all lines of a file → their number."""
    lines, count = read_lines(path), 0
    while batch := list(itertools.islice(lines, CHECKED_LINES)):
        if check:
            check(batch, count + 1)
        count += len(batch)
    return count


def _prompt_lines(prompt: str) -> Iterator[str]:
    """The lines typed at the terminal, until Ctrl-D."""
    lines = read_lines(STDIN)
    while True:
        print(prompt, end=" ", file=sys.stderr, flush=True)
        if (line := next(lines, None)) is None:
            print(file=sys.stderr)
            return
        yield line
