"""Errors that a user can act on: one line that says what is wrong, where, and what to do."""

import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

# Messages of torch, the loader of shared libraries and the system
NO_MEMORY = re.compile(
    r"out of memory|can(no|')t allocate memory|std::bad_alloc|failed to map segment|can't start new thread",
    re.I,
)
# Module → what it was doing, for errors that name no file
ACTIONS = {
    "multiprocessing.synchronize": "making a lock between processes, in /dev/shm",
    "multiprocessing.shared_memory": "making memory that processes share, in /dev/shm",
    "multiprocessing": "starting a process, or speaking to it",
    "concurrent": "starting a process, or speaking to it",
    "subprocess": "starting another program",
    "tempfile": "making a temporary file (in TMPDIR, or else /tmp)",
    "socket": "opening a connection",
    "select": "waiting for another program",
}


class UserError(Exception):
    """A fault the user can fix. Its text is one line: what is wrong, where, and what to do.

    The command line prints it without a traceback and exits with 1. No URL in it has a password.
    """

    def __init__(self, text: object = "") -> None:
        super().__init__(without_passwords(str(text)))


def without_passwords(text: str) -> str:
    """The text with user names, passwords and queries masked in its URLs.

    >>> without_passwords("cannot fetch https://me:secret@example.org/a.tgz?key=1 (no answer)")
    'cannot fetch https://***@example.org/a.tgz?*** (no answer)'
    """
    text = re.sub(r"(\w://)([^\s/@]*:\S*|[^\s/@]*)@", r"\1***@", text)  # a password may have slashes
    return re.sub(r"(\w://[^\s?#]*\?)[^\s;,)']+", r"\1***", text)


class TryAgain(UserError):
    """A temporary fault, such as a training that was stopped; the same command works later.

    The command line exits with `__main__.TEMPORARY`.
    """


@contextmanager
def exit_on_user_error() -> Iterator[None]:
    """End with a UserError's one line, where Snakemake would print a traceback; also a decorator."""
    try:
        yield
    except UserError as error:
        sys.exit(str(error))


def machine_fault(error: BaseException) -> str | None:
    """One line for a fault of the machine (disk space, permission, memory); None for any other error."""
    if text := _out_of_memory(error):
        where = "on the GPU" if "CUDA" in text else "for this job"
        named = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
        return (
            f"{named}not enough memory {where}; give it more (resources.mem_mb, another machine), or make "
            "batches smaller (training.batch.tokens, decoding.max_tokens)"
        )
    if isinstance(error, IsADirectoryError) and error.filename:
        return f"{error.filename}: a folder; give the name of a file"
    if isinstance(error, OSError):
        return f"{error.filename or _operation_of(error)}: {error.strerror or error}"
    return None


def _operation_of(error: OSError) -> str:
    """The operation in which the system raised an error without a file name."""
    places = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    for module in reversed(places):
        for name, action in ACTIONS.items():
            if module == name or module.startswith(f"{name}."):
                return action
    ours = [module for module in places if module.startswith("synmask.")]
    return f"reading or writing in {ours[-1]}" if ours else "reading or writing"


def _out_of_memory(error: BaseException | None) -> str | None:
    """The text of the error, or of one of its causes, if it reports a lack of memory."""
    while error is not None:
        text = str(error)
        if isinstance(error, MemoryError) or NO_MEMORY.search(text):
            return text or "memory"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return None
