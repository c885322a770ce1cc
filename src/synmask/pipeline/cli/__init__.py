"""`synmask VERB …`: the steps of the workflow, one verb per rule, and verbs for people.

A verb is a function: its signature and docstring are its command line.
"""

import contextlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

from cyclopts import App, CycloptsError, Group, Parameter, UnusedCliTokensError
from pydantic import ValidationError

from synmask.pipeline.files import TryAgain, UserError, endless, machine_fault
from synmask.pipeline.provenance import check_code

TRAIN = ("train", "finetune", "pretrain", "continue-pretraining")
# Module and function of each verb, which is imported when it runs.
VERBS = {
    "For people": (
        "planning:plan",
        "planning:doctor",
        "models:translate",
        "trees:tree",
        "evaluation:parse",
        "evaluation:parseval",
        "evaluation:score",
        "models:export",
        "reporting:report",
        "reporting:tensorboard",
        "planning:settings",
    ),
    "Corpora": (
        "corpora:demo_corpus",
        "corpora:download",
        "corpora:prepare",
        "corpora:text",
        "corpora:jar",
        "constituency:constituency",
    ),
    "Text": (
        "text:tokenise",
        "text:clean",
        "text:learn_bpe",
        "text:apply_bpe",
        "text:binarise",
        "text:annotate",
        "text:templates",
    ),
    "Training and translation": (
        "models:train",
        "models:average",
        "models:predict_templates",
        "models:decode",
    ),
    "Language understanding": (
        "corpora:glue",
        "corpora:demo_task",
        "corpora:demo_text",
        "nlu:roberta_weights",
        "nlu:convert_roberta",
        "nlu:learn_gpt2_bpe",
        "nlu:encode_text",
        "nlu:pretrain",
        "nlu:encode_parses",
        "nlu:continue_pretraining",
        "nlu:encode_task",
        "nlu:task_sentences",
        "nlu:annotate_task",
        "nlu:finetune",
        "nlu:predict",
        "nlu:predict_test",
        "evaluation:nlu_score",
        "evaluation:nlu_baselines",
        "evaluation:glue_submission",
    ),
    "Tests and tables": (
        "evaluation:score_run",
        "evaluation:score_templates",
        "reporting:table",
        "reporting:parse_table",
    ),
    "Figures": (
        "reporting:curves",
        "reporting:distribution_figure",
        "trees:tree_page",
    ),
}


def app() -> App:
    """The command line: all verbs, in groups."""
    synmask = App(
        name="synmask",
        help="The steps of the workflow, one verb per step. `snakemake -np TARGET` prints the commands that "
        "a target needs; `synmask VERB --help` explains a verb.",
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
    for title, verbs in VERBS.items():
        group = Group(title, sort_key=next(numbers))
        for verb in verbs:
            synmask.command(f"synmask.pipeline.cli.{verb}", group=group, sort_key=next(numbers))
    rest = Group("Other", sort_key=next(numbers))
    synmask.register_install_completion_command(
        group=rest,
        help="Let your shell complete verbs and options: writes a script into your home and, for bash and "
        "zsh, a line into ~/.bashrc or ~/.zshrc; it says which.",
    )
    for flag in (*synmask.help_flags, *synmask.version_flags):
        synmask[flag].group = rest
    return synmask


def _ends(_: Any, value: Any) -> None:
    """Refuse what would be read until the memory is full."""
    for path in value if isinstance(value, tuple) else (value,):
        if isinstance(path, Path) and endless(path):
            raise UserError(f"{path}: a device that never ends; give a file")


def main(words: Sequence[str] | None = None) -> None:
    """Run one verb. An error that the user can fix is one line on stderr.

    The exit code is then 1, 75 if a later try may succeed, or 2 for a wrong command line.
    """
    words = sys.argv[1:] if words is None else words
    for stream in (sys.stdout, sys.stderr):  # whatever the locale; paths come out as they came in
        if isinstance(stream, io.TextIOWrapper):
            how = "surrogateescape" if stream is sys.stdout else "backslashreplace"
            stream.reconfigure(encoding="utf-8", errors=how)
    if "" in words:
        _leave(words, "an argument is empty; give each option its value, or leave it out", 2)
    if words and words[0] in TRAIN:
        signal.signal(signal.SIGTERM, _too_early)
    synmask = app()
    if not words or words[0] in synmask.help_flags:
        synmask.resolved_commands()  # their docstrings are the help
    try:
        if source := os.environ.get("SYNMASK_SOURCE"):  # a workflow runs this verb
            check_code(Path(source))
        synmask(words, print_error=False, exit_on_error=False)
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


def _too_early(*_: object) -> NoReturn:
    """SIGTERM before a training listens to it (`training.stopping.Stop`): nothing has been written."""
    line = (
        f"synmask {sys.argv[1]}: stopped by a signal before its first update; the same command begins again\n"
    )
    os.write(2, line.encode())
    os._exit(TryAgain.EXIT_CODE)


def _usage(error: CycloptsError) -> str:
    """The error in the command line, as one line."""
    if isinstance(error, UnusedCliTokensError):
        words = ", ".join(map(repr, error.unused_tokens))
        return f"unexpected: {words}; see --help, and put a text of several words in quotes"
    if error.argument is None or not isinstance(error.__cause__, ValidationError):
        return str(error)
    from synmask.pipeline.config.faults import first_fault

    return f"{error.argument.name}: {first_fault(error.__cause__, None, None)}"


def _leave(words: Sequence[str], text: object, code: int) -> NoReturn:
    verb = [word for word in words[:1] if not word.startswith("-")]
    with contextlib.suppress(OSError):  # stderr may be closed or full
        line = " ".join(f"{' '.join(['synmask', *verb])}: {text}".splitlines())
        print(line, file=sys.stderr, flush=True)
    sys.exit(code)
