"""`synmask VERB …`: one verb a rule of the workflow; each also works by hand."""

import argparse
import contextlib
import os
import signal
import sys
from typing import NoReturn

from synmask.cli import corpora, evaluation, models, nlu, planning, reporting, syntax, text, trees
from synmask.files import TryAgain, UserError, machine_fault


def main(words: list[str] | None = None) -> None:
    """Run one verb; what a user can mend is one line on stderr and exit code 1, or 75 if it will pass."""
    arguments = _parser().parse_args(words)
    try:
        arguments.verb(arguments)
    except UserError as error:
        _leave(arguments, error, TryAgain.EXIT_CODE if isinstance(error, TryAgain) else 1)
    except BrokenPipeError:  # the reader of a pipe went away: nothing to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        _leave(arguments, "interrupted", 128 + signal.SIGINT)
    except Exception as error:
        if (line := machine_fault(error)) is None:
            raise
        _leave(arguments, line, 1)


def _leave(arguments: argparse.Namespace, text: object, code: int) -> NoReturn:
    with contextlib.suppress(OSError):  # there may be no place left to say it
        print(f"synmask {arguments.verb_name}: {text}", file=sys.stderr, flush=True)
    sys.exit(code)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="synmask",
        description="The steps of the workflow, one verb each. `snakemake -np TARGET` prints the commands "
        "that a target needs; `synmask VERB --help` explains one.",
    )
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for group in (planning, corpora, text, syntax, models, nlu, evaluation, reporting, trees):
        group.add_verbs(verbs)
    return parser
