"""The demo's tasks of language understanding, one of each kind that GLUE has, and text for pre-training.

- acceptability (as CoLA): is the sentence good English? Faults of agreement, verb forms, order, arguments.
- paraphrase (as MRPC): do two sentences of the same words mean the same? Two of three pairs do.
- entailment (as MNLI): does the second sentence follow from the first, contradict it, or neither? "every" and
  "the" presuppose that somebody exists; "the" denotes the same person in both sentences.
- predicate (a number, as in STS-B): where the main verb stands, from 0 (first word) to 5 (full stop).

The first three are rules (`rules.TASKS`). Words alone hardly reveal the labels: each rule makes all of its labels with
the same words.
"""

import random
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from synmask.pipeline.corpora import tasks
from synmask.pipeline.corpora.demo.derivation import Side, Use, sentence, side_of
from synmask.pipeline.corpora.demo.inflection import ENGLISH
from synmask.pipeline.corpora.demo.table import RULES, Node
from synmask.pipeline.files import UserError, write_all_lines, write_lines

PARTS = ("train", "dev")
LONGEST = 30  # words of a sentence, as in the demo corpus
WEIGHTS = {"acceptability": (1, 1), "paraphrase": (1, 2), "entailment": (1, 1, 1), "predicate": (1,)}  # of labels
Row = tuple[tuple[Side, ...], str]  # sentences and label


def rows(task: str, sizes: Mapping[str, int], seed: int) -> Iterator[tuple[str, Row]]:
    """Yield (part, (sentences, label)), `sizes[part]` of train, then of dev.

    No sentence of a one-sentence task occurs twice, and no pair in either order. The same sizes and seed
    give the same rows.

    Raises:
        UserError: no such task, or `sizes` does not give a positive whole number for train and dev.
    """
    if task not in WEIGHTS:
        raise UserError(f"no demo task {task!r}; there are {', '.join(WEIGHTS)}")
    if set(sizes) != set(PARTS) or any(type(size) is not int or size < 1 for size in sizes.values()):
        raise UserError(f"demo task {task}: sizes {dict(sizes)}; give train and dev a positive whole number")
    rng = random.Random(f"{task} {seed}")
    labels = tasks.TASKS[task].labels or ("",)
    seen = set()
    for part in PARTS:
        done = 0
        while done < sizes[part]:
            row = _row(rng, task, rng.choices(labels, WEIGHTS[task])[0])
            texts = frozenset(side.text for side in row[0])
            if texts not in seen:
                seen.add(texts)
                done += 1
                yield part, row


def _row(rng: random.Random, task: str, label: str) -> Row:
    """A row with this label (of predicate: with its score), of sentences that are not too long."""
    while True:
        if task == "predicate":
            side = sentence(rng)[1]
            row = (side,), f"{5 * side.heads.index(0) / (len(side.heads) - 1):.3f}"
        else:
            row = _ruled(rng, task, label), label
        if all(len(side.text.split()) <= LONGEST for side in row[0]):
            return row


def _ruled(rng: random.Random, task: str, label: str) -> tuple[Side, ...]:
    """The sentence of the label's side of a rule; of a pair, that of the rule's first side before it."""
    *first, _ = range(tasks.TASKS[task].sentences)
    chosen = [*first, len(first) + tasks.TASKS[task].labels.index(label)]
    rules = [rule for rule in RULES[task] if rule.sides[chosen[-1]][0].label != "-"]
    [rule] = rng.choices(rules, [rule.weight for rule in rules])
    use, stop = Use(rng, {}), Node("./.", False, "", ())
    return tuple(
        side_of(*use.nodes([Node("S", True, "", (*rule.sides[number], stop))], ENGLISH)) for number in chosen
    )


def write_part(
    task: str, part: str, output: str | Path, sizes: Mapping[str, int], seed: int, parses: Path | None = None
) -> None:
    """Write train or dev of a demo task as TSV, in the format of `corpora.tasks`.

    Args:
        parses: also write the gold parses of its sentences as files with this prefix (`_parses`).

    Raises:
        UserError: as for `rows`; or no such part.
    """
    if part not in PARTS:
        raise UserError(f"demo task {task}: no part {part!r}; there are {', '.join(PARTS)}")
    found = [row for name, row in rows(task, sizes, seed) if name == part]
    table = tasks.task_lines(task, ([*(side.text for side in sides), label] for sides, label in found))
    distinct = {side.text: side for sides, _ in found for side in sides}.values()
    write_all_lines({Path(output): table} | (_parses(distinct, parses) if parses else {}))


def _parses(sides: Collection[Side], prefix: Path) -> dict[Path, Iterator[str]]:
    """The files that `corenlp.parse_file` writes for other tasks: .text, .tokens, .trees and .heads."""
    columns = {
        "text": (side.text for side in sides),
        "tokens": (" ".join(side.tree.leaves()) for side in sides),
        "trees": (str(side.tree) for side in sides),
        "heads": (" ".join(map(str, side.heads)) for side in sides),
    }
    return {Path(f"{prefix}.{ending}"): column for ending, column in columns.items()}


def write_text(output: Path, split: str, count: int, seed: int) -> None:
    """Write `count` documents, one sentence per line, with an empty line after each document.

    One document in three is a sentence of the demo corpus' kind, the others are pairs of nearly the same
    words, so that a model learns to look for a word's counterpart. Drawn from another seed than the tasks.
    """
    rng = random.Random(f"text {split} {seed}")
    kinds = (("predicate", ""), *(("paraphrase", label) for label in "01"))
    documents = (_row(rng, *rng.choice(kinds))[0] for _ in range(count))
    write_lines(output, (line for sides in documents for line in (*(side.text for side in sides), "")))
