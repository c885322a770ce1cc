"""`synmask VERB …`: verbs for people, and the steps of the workflow (`verbs.VERBS`)."""

import ast
import contextlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

from cyclopts import App, CycloptsError, Group, Parameter, UnknownCommandError, UnusedCliTokensError

from synmask.pipeline.files import TryAgain, UserError, endless, machine_fault, named_reads
from synmask.pipeline.provenance import check_code
from synmask.pipeline.verbs import PEOPLE, STEPS, VERBS

FOR_PEOPLE = "For people"
HERE = Path(__file__).parents[1]


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
            validator=_ends,
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
                kwargs |= {"help": _sentence(place) if title in listed else "", "show": title in listed}
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


def _sentence(place: str) -> str:
    """The beginning of the docstring of a verb's function."""
    module, _, name = place.partition(":")
    stem = HERE.joinpath(*module.split("."))
    file = stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py")
    functions = (node for node in ast.parse(file.read_bytes()).body if isinstance(node, ast.FunctionDef))
    text = next(ast.get_docstring(function) for function in functions if function.name == name)
    return " ".join(text.partition("\n\n")[0].split())


def _ends(_: Any, value: Any) -> None:
    """Refuse endless devices: reading them would fill the memory."""
    for path in value if isinstance(value, tuple) else (value,):
        if isinstance(path, Path) and endless(path):
            raise UserError(f"{path}: a device that never ends; give a file")


def main(words: Sequence[str] | None = None) -> None:
    """Run one verb. An error that the user can fix is one line on stderr.

    The exit code is then 1, 75 if a later try may succeed, or 2 for a wrong command line.
    """
    words = sys.argv[1:] if words is None else [*words]
    _write_utf8()
    if "" in words:
        _leave(words, "an argument is empty; give each option its value, or leave it out", 2)
    if words and words[0] in STEPS["Training"]:
        _stop_at_signals()
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    synmask = app(FOR_PEOPLE) if not words or words[0] in ("--help", "-h") else app()
    try:
        if source := os.environ.get("SYNMASK_SOURCE"):  # a workflow runs this verb
            check_code(Path(source))
        with contextlib.redirect_stdout(_StandardOutput(sys.stdout)):
            counts = synmask(words, print_error=False, exit_on_error=False)
            sys.stdout.flush()
        if isinstance(counts, dict):
            parts = (f"{what.replace('_', ' ')}: {count:,}" for what, count in counts.items())
            print(", ".join(parts), file=sys.stderr)
    except CycloptsError as error:
        _leave(words, _usage(error), 2)
    except UserError as error:
        _leave(words, error, TryAgain.EXIT_CODE if isinstance(error, TryAgain) else 1)
    except BrokenPipeError:  # the reader closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # another one must not interrupt this line
        _leave(words, "interrupted", 128 + signal.SIGINT)
    except Exception as error:
        if (line := machine_fault(error)) is None:
            raise
        _leave(words, line, 1)


class _StandardOutput:
    """A stream whose errors name it: those of write(2) name no file."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with named_reads("standard output"):
            return self._stream.write(text)

    def flush(self) -> None:
        with named_reads("standard output"):
            self._stream.flush()


def _write_utf8() -> None:
    """Write UTF-8 in any locale; paths are printed as given."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            errors = "surrogateescape" if stream is sys.stdout else "backslashreplace"
            stream.reconfigure(encoding="utf-8", errors=errors)


def _stop_at_signals() -> None:
    """Let signals end a training until it listens to them (`training.stopping.Stop`)."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGXCPU):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _too_early)


def _too_early(*_: object) -> NoReturn:
    """End a training that does not listen to signals yet, or no longer: nothing is lost."""
    when = "before its first update or after its last"
    os.write(2, f"synmask {sys.argv[1]}: stopped by a signal {when}; the same command goes on\n".encode())
    os._exit(TryAgain.EXIT_CODE)


def _usage(error: CycloptsError) -> str:
    """The error in the command line, as one line."""
    from pydantic import ValidationError

    from synmask.pipeline.config.base import nearest
    from synmask.pipeline.config.faults import first_fault

    if isinstance(error, UnknownCommandError):  # its own text would import all verbs
        return f"no such verb{nearest(error.unused_tokens[0], VERBS)}"
    if isinstance(error, UnusedCliTokensError):
        words = ", ".join(map(repr, error.unused_tokens))
        advice = ", and put a text of several words in quotes"
        if any(
            " " in word or os.path.exists(word) for word in error.unused_tokens
        ):  # a text in quotes, or a file
            advice = " for the option that each file and text belongs to"
        return f"unexpected: {words}; see --help{advice}"
    if error.argument is None or not isinstance(error.__cause__, ValidationError):
        return str(error)
    fault, name = first_fault(error.__cause__, None), error.argument.name
    if name == "*":  # of a section whose fields are options
        name = f"--{error.__cause__.errors()[0]['loc'][0].replace('_', '-')}"
    return f"{name}: {fault}"


def _leave(words: Sequence[str], text: object, code: int) -> NoReturn:
    verb = [word for word in words[:1] if not word.startswith("-")]
    with contextlib.suppress(OSError):  # stderr may be closed or full
        line = " ".join(f"{' '.join(['synmask', *verb])}: {text}".splitlines())
        print(line, file=sys.stderr, flush=True)
    sys.exit(code)
