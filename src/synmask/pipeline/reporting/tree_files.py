"""The trees of the same sentences from several files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from synmask.pipeline.config.base import Line
from synmask.pipeline.files import UserError
from synmask.pipeline.options import Some
from synmask.pipeline.syntax.parses import Parse, check_words, read_parses
from synmask.pipeline.syntax.treebank import Tree, read_trees

Gold = Annotated[Path, Parameter(help="Bracketed gold trees, one per line.")]
Parses = Annotated[Some[Path], Parameter(help="Output of `parse`, one file per system.")]
Names = Annotated[Some[Line], Parameter(help="A different name for each system.")]


def by_label(labels: Sequence[str], trees: Sequence[Path]) -> dict[str, Path]:
    """Label → parses. With equal labels, or the label "gold", trees would hide each other."""
    if len({"gold", *labels}) != len(labels) + 1 or len(labels) != len(trees):
        raise UserError(f"--labels {' '.join(labels)}: give each of --trees a different label, and not gold")
    return dict(zip(labels, trees, strict=True))


def read_sentences(
    gold: Path | None, parses: dict[str, Path]
) -> tuple[list[Tree] | None, dict[str, list[Parse]]]:
    """Gold trees, if there are any, and parses of the same sentences."""
    trees = list(read_trees(gold)) if gold else None
    induced = {label: list(read_parses(path)) for label, path in parses.items()}
    for label, path in parses.items():
        try:
            if trees is not None:
                check_words(trees, induced[label])
        except UserError as error:
            raise UserError(f"{gold}, {path}: {error}") from None
    return trees, induced


def numbered(number: int, gold: Path | None, parses: dict[str, Path]) -> tuple[Tree | None, dict[str, Parse]]:
    """The gold tree, if there are gold trees, and the parses of the sentence with this number."""
    trees, induced = read_sentences(gold, parses)
    return (
        None if trees is None else _nth(number, trees, gold),
        {label: _nth(number, rows, parses[label]) for label, rows in induced.items()},
    )


def _nth(number: int, values: list, path: Path) -> object:
    if not 1 <= number <= len(values):
        raise UserError(f"{path}: no sentence {number}, only {len(values)}")
    return values[number - 1]
