"""Process the lines of a file with several processes, in order, in constant memory."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice

from synmask.pipeline.errors import UserError

CHUNK_LINES = 2000  # lines per task; sending them costs far less than processing them
_worker_function: Callable[[str], str]  # of a worker process


def map_lines(function: Callable[[str], str], lines: Iterable[str], threads: int) -> Iterator[str]:
    """Yield `function(line)` for every line, in order.

    With `threads` > 1, as many processes share the work. `function` must be picklable; each process receives
    it once, so its caches persist. At most a few chunks of lines are in memory.

    Raises:
        UserError: a process was killed.
    """
    if threads <= 1:
        yield from map(function, lines)
        return
    try:
        with ProcessPoolExecutor(threads, initializer=_start_worker, initargs=(function,)) as pool:
            yield from map_chunks(pool, _map_chunk, lines, CHUNK_LINES, most=2 * threads)
    except BrokenProcessPool:
        raise UserError(
            f"one of {threads} processes was killed, perhaps for lack of memory; give more, or fewer threads"
        ) from None


def map_chunks(
    pool: Executor, work: Callable[[list[str]], list[str]], lines: Iterable[str], size: int, most: int
) -> Iterator[str]:
    """Yield the results of `work` on chunks of lines, in order; at most `most` chunks wait for the reader."""
    lines, pending = iter(lines), deque()
    while chunk := list(islice(lines, size)):
        pending.append(pool.submit(work, chunk))
        if len(pending) > most:
            yield from pending.popleft().result()
    while pending:
        yield from pending.popleft().result()


def _start_worker(function: Callable[[str], str]) -> None:
    global _worker_function
    _worker_function = function


def _map_chunk(chunk: list[str]) -> list[str]:
    return [_worker_function(line) for line in chunk]
