"""Signals: stop all workers of a training after the same update; explain SIGBUS."""

import contextlib
import ctypes
import multiprocessing
import os
import signal
from collections.abc import Iterator
from types import FrameType

from synmask.__main__ import SIGNALS


class Stop:
    """A request to stop, in memory that all workers of this machine share.

    A signal may reach one worker or all, at different times, but all must stop after the same update:
    otherwise the others would wait forever to exchange gradients with a worker that has stopped. So each
    update sums the requests over all workers.
    """

    def __init__(self) -> None:
        self.parent = os.getpid()
        self.signal = multiprocessing.get_context("spawn").RawValue("i", 0)  # the signal that came; 0: none

    def requested(self) -> bool:
        """Whether a signal has come to a process of this machine."""
        return bool(self.signal.value)

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """While the block runs, a signal is a request to stop; a second Ctrl-C ends the process at once.

        A signal that is ignored stays so: SIGHUP under nohup.
        """
        heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, self._ask) for number in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self.parent and os.getppid() != self.parent:
            os._exit(1)  # the parent was killed, so the lock is gone
        if number == signal.SIGINT and self.signal.value:
            # No KeyboardInterrupt: raised in a callback, it would be printed as a traceback and get lost
            os.write(2, b"synmask: interrupted\n")
            os._exit(128 + number)
        self.signal.value = number


@contextlib.contextmanager
def explain_bus_errors(text: str) -> Iterator[None]:
    """While the block runs, SIGBUS ends the process with exit code 1 and `text` on stderr.

    SIGBUS comes when a memory-mapped file has been truncated. A Python handler would never run: it needs the
    interpreter, which is stuck at the failed access.
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
