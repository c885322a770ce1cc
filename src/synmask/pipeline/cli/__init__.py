"""`synmask VERB …`: verbs for people, and the steps of the workflow (`verbs.VERBS`)."""

import ast
import contextlib
import errno
import io
import os
import signal
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

from cyclopts import App, CycloptsError, Group, Parameter, UnknownCommandError, UnusedCliTokensError

from synmask.__main__ import TEMPORARY, TRAINING_VERBS, stop_at_signals
from synmask.pipeline.disk import PatientFile, naming_read_errors
from synmask.pipeline.errors import TryAgain, UserError, machine_fault
from synmask.pipeline.provenance import check_code
from synmask.pipeline.verbs import PEOPLE, STEPS, VERBS

FOR_PEOPLE = "For people"
STDOUT = "standard output"
PIPELINE = Path(__file__).parents[1]


def app(*listed: str) -> App:
    """The command line: all verbs, in groups. Its help lists the groups `listed`, by default all."""
    synmask = App(
        name="synmask",
        help="`synmask help VERB` explains a verb. `synmask steps` lists the verbs that the workflow calls; "
        "`snakemake -np TARGET` prints those calls that a target needs.",
        default_parameter=Parameter(
            negative=(),
            consume_multiple=True,
            json_list=False,
            json_dict=False,
            show_default=lambda value: str(value) if value else None,
        ),
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )
    numbers = count()
    for title, verbs in ({FOR_PEOPLE: PEOPLE} | STEPS).items():
        group = Group(title, sort_key=next(numbers))
        for verb, place in verbs.items():
            kwargs = {"name": verb, "group": group, "sort_key": next(numbers)}
            if listed:  # without arguments that would import the verb
                kwargs |= {"help": _summary_of(place) if title in listed else "", "show": title in listed}
            synmask.command(f"synmask.pipeline.{place}", **kwargs)
    rest = Group("Other", sort_key=next(numbers))
    synmask.command(steps, group=rest)
    synmask.register_install_completion_command(
        group=rest,
        help="Let your shell complete verbs and options: writes a script into your home and, for bash and "
        "zsh, a line into ~/.bashrc or ~/.zshrc; it says which.",
    )
    for flag in (*synmask.help_flags, *synmask.version_flags):
        synmask[flag].group = rest
    return synmask


def steps() -> None:
    """List the verbs that the workflow calls, one for each kind of step."""
    app(*STEPS).help_print([])


def _summary_of(place: str) -> str:
    """The beginning of the docstring of a verb's function."""
    module, _, name = place.partition(":")
    stem = PIPELINE.joinpath(*module.split("."))
    file = stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py")
    functions = (node for node in ast.parse(file.read_bytes()).body if isinstance(node, ast.FunctionDef))
    text = next(ast.get_docstring(function) for function in functions if function.name == name)
    return " ".join(text.partition("\n\n")[0].split())


def main(words: Sequence[str] | None = None) -> None:
    """Run one verb. An error that the user can fix is one line on stderr.

    The exit code is then 1, 75 if a later try may succeed, or 2 for a wrong command line.
    """
    words = sys.argv[1:] if words is None else [*words]
    if os.environ.get("COLUMNS") in ("0", "1", "2"):  # rich would wrap help for ever
        del os.environ["COLUMNS"]
    output = _prepare_streams()
    if "" in words:
        _exit_with(words, "an argument is empty; give each option its value, or leave it out", 2)
    if words and words[0] in TRAINING_VERBS:
        stop_at_signals(training=True)
    elif signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # since the start
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    synmask = app(FOR_PEOPLE) if not words or words[0] in ("--help", "-h") else app()
    try:
        if source := os.environ.get("SYNMASK_SOURCE"):  # a workflow runs this verb
            check_code(Path(source))
        with contextlib.redirect_stdout(_StandardOutput(output)):
            counts = synmask(words, print_error=False, exit_on_error=False)
            sys.stdout.flush()
        if isinstance(counts, dict):
            parts = (f"{name.replace('_', ' ')}: {count:,}" for name, count in counts.items())
            _print_error(", ".join(parts))
    except CycloptsError as error:
        _exit_with(words, _usage_error(error), 2)
    except UserError as error:
        _exit_with(words, error, TEMPORARY if isinstance(error, TryAgain) else 1)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # another one must not interrupt this line
        _exit_with(words, "interrupted", 128 + signal.SIGINT)
    except Exception as error:
        if isinstance(error, OSError) and error.filename == STDOUT:
            _discard_stream(sys.stdout)
            if isinstance(error, BrokenPipeError):  # the reader closed the pipe
                sys.exit(1)
        if (line := machine_fault(error)) is None:
            raise
        _exit_with(words, line, 1)


class _StandardOutput:
    """A stream whose errors name it: those of write(2) name no file. If it is None, each write fails."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        if self._stream is None:
            raise OSError(errno.EBADF, "it is closed; give a file, or a pipe", STDOUT)
        with naming_read_errors(STDOUT):
            return self._stream.write(text)

    def flush(self) -> None:
        with naming_read_errors(STDOUT):
            if self._stream is not None:
                self._stream.flush()


def _prepare_streams() -> Any:
    """Write UTF-8 in any locale, paths as given → standard output, which waits where it does not block."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:  # closed: else the next file to be opened gets this number
            os.open("/dev/full" if descriptor == 1 else os.devnull, os.O_RDWR)  # no /dev/stdout is lost
    output = sys.stdout
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
        if sys.stdout is sys.__stdout__ and not os.get_blocking(1):
            at_once = {"line_buffering": sys.stdout.line_buffering or sys.stdout.write_through}
            patient = io.BufferedWriter(PatientFile(1, "wb", STDOUT))
            output = io.TextIOWrapper(patient, "utf-8", "surrogateescape", **at_once)
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")
    return output


def _print_error(text: str) -> None:
    """Print a line on stderr, unless that is closed or full: what was made is whole without it."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        _discard_stream(sys.stderr)


def _discard_stream(stream: Any) -> None:
    """Drop what a stream could not write: Python would try again at its end, and exit with 120."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # it may be closed, or None
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _usage_error(error: CycloptsError) -> str:
    """The error in the command line, as one line."""
    from pydantic import ValidationError

    from synmask.pipeline.config.base import nearest
    from synmask.pipeline.config.faults import first_fault

    if isinstance(error, UnknownCommandError):  # its own text would import all verbs
        return f"no such verb{nearest(error.unused_tokens[0], VERBS)}"
    if isinstance(error, UnusedCliTokensError):
        words = ", ".join(map(repr, error.unused_tokens))
        advice = ", and put a text of several words in quotes"
        # a text in quotes, or a file
        if any(" " in word or os.path.exists(word) for word in error.unused_tokens):
            advice = " for the option that each file and text belongs to"
        return f"unexpected: {words}; see --help{advice}"
    if error.argument is None or not isinstance(error.__cause__, ValidationError):
        return str(error)
    values, name = [token.value for token in error.argument.tokens], error.argument.name
    fault = first_fault(error.__cause__, values)
    if name == "*":  # of a section whose fields are options
        name = f"--{error.__cause__.errors()[0]['loc'][0].replace('_', '-')}"
    return f"{name}: {fault}"


def _exit_with(words: Sequence[str], text: object, code: int) -> NoReturn:
    verb = [word for word in words[:1] if not word.startswith("-")]
    _print_error(" ".join(f"{' '.join(['synmask', *verb])}: {text}".splitlines()))
    sys.exit(code)
