"""The demo's tasks of language understanding, one of each kind that GLUE has, made from the demo's grammar.

- acceptability (as CoLA): is the sentence good English? Faults of agreement, verb forms, order, arguments.
- paraphrase (as MRPC): do two sentences of the same words mean the same? Changed voice, adverbials and order
  of clauses against exchanged roles, modifiers and clauses; two of three pairs mean the same.
- entailment (as MNLI): does the second sentence follow from the first, contradict it, or neither?
- predicate (a number, as in STS-B): where the main verb stands, from 0 (first word) to 5 (full stop).

Words alone do not reveal the first three labels: they are drawn in the same way for all.
"""

import random
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from synmask.pipeline.config.benchmarks import GenerateTask
from synmask.pipeline.corpora import tasks
from synmask.pipeline.corpora.demo.english import sentence
from synmask.pipeline.corpora.demo.entailment import entailment
from synmask.pipeline.corpora.demo.meaning import Definite, paraphrase
from synmask.pipeline.corpora.demo.phrases import Row, Side, side_of
from synmask.pipeline.corpora.demo.sampling import Grammar
from synmask.pipeline.corpora.demo.unacceptable import acceptability
from synmask.pipeline.files import UserError, write_all_lines
from synmask.pipeline.options import Json

PARTS = ("train", "dev")
LONGEST = 30  # words of a sentence, as in the demo corpus


def predicate(grammar: Grammar) -> Row:
    """A sentence, and the place of its dependency root: from 0 (first word) to 5 (full stop)."""
    side = side_of(sentence(grammar.sentence()))
    return (side,), f"{5 * side.heads.index(0) / (len(side.heads) - 1):.3f}"


class Kind(NamedTuple):
    """How a task's rows are drawn: sentences and label, or None if the draw gives no row."""

    grammar: type[Grammar]
    draw: Callable[[Grammar, str], Row | None]
    weights: tuple[int, ...]  # of the labels


KINDS = {
    "acceptability": Kind(Grammar, acceptability, (1, 1)),
    "paraphrase": Kind(Definite, paraphrase, (1, 2)),
    "entailment": Kind(Definite, entailment, (1, 1, 1)),
    "predicate": Kind(Grammar, lambda grammar, _: predicate(grammar), (1,)),
}


def rows(task: str, sizes: Mapping[str, int], seed: int) -> Iterator[tuple[str, Row]]:
    """Yield (part, (sentences, label)), `sizes[part]` of train, then of dev.

    No sentence of a one-sentence task occurs twice, and no pair in either order. The same sizes and seed
    give the same rows.

    Raises:
        UserError: no such task, or `sizes` does not give a positive whole number for train and dev.
    """
    if task not in KINDS:
        raise UserError(f"no demo task {task!r}; there are {', '.join(KINDS)}")
    if set(sizes) != set(PARTS) or any(type(size) is not int or size < 1 for size in sizes.values()):
        raise UserError(f"demo task {task}: sizes {dict(sizes)}; give train and dev a positive whole number")
    kind = KINDS[task]
    grammar = kind.grammar(random.Random(f"{task} {seed}"))
    labels = tasks.TASKS[task].labels or ("",)
    seen = set()
    for part in PARTS:
        done = 0
        while done < sizes[part]:
            label = grammar.rng.choices(labels, kind.weights)[0]
            row = _drawn(kind, grammar, label)
            texts = frozenset(side.text for side in row[0])
            if texts not in seen:
                seen.add(texts)
                done += 1
                yield part, row


def _drawn(kind: Kind, grammar: Grammar, label: str) -> Row:
    while True:
        row = kind.draw(grammar, label)
        if row and all(len(side.text.split()) <= LONGEST for side in row[0]):
            return row


def write_part(
    *, task: str, part: str, settings: Json[GenerateTask], output: Path, parses: Path | None = None
) -> None:
    """Generate a task of language understanding from the demo's grammar.

    Args:
        task: acceptability, paraphrase, entailment or predicate.
        part: train or dev.
        settings: Sizes and seed: '{"seed": 1, "train": 3000, "dev": 500}'.
        output: TSV: sentence1, sentence2 if there are two, label.
        parses: Prefix; if given, also writes PREFIX.text, .tokens, .trees and .heads of its sentences.

    Raises:
        UserError: as for `rows`; or no such part.
    """
    if part not in PARTS:
        raise UserError(f"demo task {task}: no part {part!r}; there are {', '.join(PARTS)}")
    sizes = settings.model_dump(exclude={"seed"})
    drawn = [row for found, row in rows(task, sizes, settings.seed) if found == part]
    table = tasks.task_lines(task, ([*(side.text for side in sides), label] for sides, label in drawn))
    distinct = {side.text: side for sides, _ in drawn for side in sides}.values()
    write_all_lines({output: table} | (_parses(distinct, parses) if parses else {}))


def _parses(sides: Collection[Side], prefix: Path) -> dict[Path, Iterator[str]]:
    """The files that `corenlp.parse_file` writes for other tasks: .text, .tokens, .trees and .heads."""
    columns = {
        "text": (side.text for side in sides),
        "tokens": (" ".join(side.tree.leaves()) for side in sides),
        "trees": (str(side.tree) for side in sides),
        "heads": (" ".join(map(str, side.heads)) for side in sides),
    }
    return {Path(f"{prefix}.{ending}"): column for ending, column in columns.items()}
