"""What the verbs share: how one is added, and options that several have."""

import argparse
from collections.abc import Callable
from pathlib import Path

Arguments = argparse.Namespace
Verb = Callable[[Arguments], None]


def add(verbs: argparse._SubParsersAction, name: str, verb: Verb, text: str, epilog: str = "") -> Callable:
    """Add a verb and return a shorthand for its options: paths unless `type` says otherwise, required.

    A name in capitals is a positional argument.
    """
    short = text.split(";")[0].split(". ")[0].replace("%", "%%")  # argparse formats what it calls help
    parser = verbs.add_parser(name, help=short, description=text, epilog=epilog)
    parser.set_defaults(verb=verb, verb_name=name)

    def option(flag: str, text: str, **how) -> None:  # noqa: ANN003
        text = text.replace("%", "%%")
        if flag.isupper():
            parser.add_argument(flag.lower(), metavar=flag, help=text, **how)
            return
        if how.get("action") != "store_true":
            how.setdefault("type", Path)
            how.setdefault("required", "default" not in how)
        if how.get("default") is None and "default" in how:
            text += " (optional)"
        parser.add_argument(f"--{flag}", help=text, **how)

    return option


def languages(option: Callable) -> None:
    """The options --source and --target."""
    option("source", "source language", type=str)
    option("target", "target language", type=str)


def gpus(option: Callable) -> None:
    """The option --gpus."""
    text = "GPUs to have alone, waiting until they are free; 0: use what is there, together with others"
    option("gpus", text, type=int, default=0)


def restart(option: Callable) -> None:
    """The flag --restart of all trainings."""
    text = (
        "start again where settings, data, seed or code are not those of the checkpoints in the run's folder"
    )
    option("restart", f"{text}; these are moved aside until an epoch is done", action="store_true")
