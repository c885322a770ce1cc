"""Signals: SIGTERM and Ctrl-C as a wish to stop, on which the workers of a training agree; and SIGBUS."""

import contextlib
import ctypes
import multiprocessing
import os
import signal
from collections.abc import Iterator
from types import FrameType


class Stop:
    """A wish to stop after the current update, in memory that all workers of this machine share.

    A signal may reach one worker or all, at different moments, and all have to leave at the same update: the
    others would wait for ever to exchange gradients with one that has left. When the first worker notices the
    wish after update s, it names update s + 1. No worker gets past the exchange of gradients of s + 1 before
    the first has entered it, so all of them read the name in time, and no message is needed.
    """

    SIGNALS = (signal.SIGTERM, signal.SIGINT)

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.parent = os.getpid()
        context = multiprocessing.get_context("spawn")
        self.signal = context.RawValue("i", 0)  # which signal asked; 0: none
        self.update = context.RawValue("q", 0)  # after which update to leave; 0: not yet named

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """While the block runs, a signal is a wish; a second Ctrl-C interrupts at once."""
        before = {number: signal.signal(number, self._ask) for number in self.SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def due(self, update: int, first: bool) -> bool:
        """Whether to leave after `update`, a count from 1 that all workers share; `first` is one of them."""
        if first and self.signal.value and not self.update.value:
            self.update.value = update + (self.workers > 1)
        return 0 < self.update.value <= update

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self.parent and os.getppid() != self.parent:
            os._exit(1)  # the parent was killed, and its lock on the run is gone
        if number == signal.SIGINT and self.signal.value:
            raise KeyboardInterrupt
        self.signal.value = number


@contextlib.contextmanager
def bus_error_says(text: str) -> Iterator[None]:
    """While the block runs, SIGBUS ends the process with exit code 1 and `text` on stderr.

    It comes when a file that is mapped into memory has been cut. A handler of Python's own would never run:
    it waits for the interpreter to go on, which is stopped at the very access.
    """

    def say(number: int) -> None:
        os.write(2, f"synmask: {text}\n".encode())
        os._exit(1)

    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(say)
    library = ctypes.CDLL(None)
    library.signal(signal.SIGBUS, handler)
    try:
        yield
    finally:
        library.signal(signal.SIGBUS, None)  # SIG_DFL
