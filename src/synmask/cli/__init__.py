"""`synmask VERB …`: one verb a rule of the workflow; each also works by hand."""

import argparse
import os
import sys

from synmask.cli import corpora, evaluation, models, reporting, text, trees
from synmask.files import UserError


def main(words: list[str] | None = None) -> None:
    """Run one verb; a user's error is one line on stderr and exit code 1."""
    arguments = _parser().parse_args(words)
    try:
        arguments.verb(arguments)
    except UserError as error:
        sys.exit(f"synmask {arguments.verb_name}: {error}")
    except BrokenPipeError:  # the reader of a pipe went away: nothing to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:  # no space, no permission, a folder that is a file
        sys.exit(f"synmask {arguments.verb_name}: {error.filename or 'writing'}: {error.strerror}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="synmask",
        description="The steps of the workflow, one verb each. `snakemake -np TARGET` prints the commands "
        "that a target needs; `synmask VERB --help` explains one.",
    )
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for group in (corpora, text, models, evaluation, reporting, trees):
        group.add_verbs(verbs)
    return parser
