"""The demo's tasks of language understanding, one of each kind that GLUE has, and text for pre-training.

- acceptability (as CoLA): is the sentence good English? Faults of agreement, verb forms and order.
- paraphrase (as MRPC): do two sentences of the same words mean the same? Two of three pairs do.
- entailment (as MNLI): does the second sentence follow from the first, contradict it, or neither? "every" and
  "the" presuppose that somebody exists; "the" denotes the same person in both sentences.
- predicate (a number, as in STS-B): where the main verb stands, from 0 (first word) to 5 (full stop).

The first three are rules of `grammar.txt`, which make each label with the same words, or nearly so.
"""

import random
from collections.abc import Iterator, Mapping
from pathlib import Path

from demo_grammar import distinct, parsed_files
from demo_grammar.derivation import Side, Use, sentence, side_of
from demo_grammar.inflection import ENGLISH
from demo_grammar.table import RULES, Node
from synmask.pipeline.corpora import tasks
from synmask.pipeline.files import write_lines

SIZES = {"train": 4000, "dev": 500}
DOCUMENTS = {"train": 16000, "valid": 300}  # for pre-training
# Of labels
WEIGHTS = {"acceptability": (1, 1), "paraphrase": (1, 2), "entailment": (1, 1, 1), "predicate": (1,)}
Row = tuple[tuple[Side, ...], str]  # sentences and label


def rows(task: str, sizes: Mapping[str, int], seed: int) -> Iterator[tuple[str, Row]]:
    """Yield (part, (sentences, label)), `sizes[part]` of each part.

    No sentence of a one-sentence task occurs twice, and no pair in either order. The same sizes and seed
    give the same rows.
    """
    rng = random.Random(f"{task} {seed}")
    labels = tasks.TASKS[task].labels or ("",)
    return distinct(
        sizes,
        draw=lambda: _row(rng, task, *rng.choices(labels, WEIGHTS[task])),
        key=lambda row: frozenset(side.text for side in row[0]),
    )


def _row(rng: random.Random, task: str, label: str) -> Row:
    """A row with this label; of predicate, with its score."""
    if task != "predicate":
        return _ruled(rng, task, label), label
    _, side = sentence(rng)
    return (side,), f"{5 * side.heads.index(0) / (len(side.heads) - 1):.3f}"


def _ruled(rng: random.Random, task: str, label: str) -> tuple[Side, ...]:
    """The sentence of a rule's side for this label; of a pair, before it that of the rule's first side."""
    first = tasks.TASKS[task].sentences - 1
    place = first + tasks.TASKS[task].labels.index(label)
    rules = [rule for rule in RULES[task] if rule.sides[place][0].label != "-"]
    [rule] = rng.choices(rules, [rule.weight for rule in rules])
    use, stop = Use(rng, {}), Node(".", False, ".", ())
    sides = (use.nodes(rule.sides[number], ENGLISH) for number in (*range(first), place))
    return tuple(side_of(Node("S", True, "", (*side, stop))) for side in sides)


def write_demo_task(
    folder: Path, task: str, sizes: Mapping[str, int] = SIZES, seed: int = 1, packed: str = ".gz"
) -> None:
    """Write PART.tsv (sentence1, sentence2 if there are two, label) for each part of a task.

    Also .text, .tokens, .trees and .heads of the part's sentences, as CoreNLP's step does for GLUE.
    """
    drawn = [*rows(task, sizes, seed)]
    for part in sizes:
        found = [row for name, row in drawn if name == part]
        table = ([*(side.text for side in sides), label] for sides, label in found)
        sentences = {side.text: side for sides, _ in found for side in sides}
        tokens = (" ".join(side.tree.leaves()) for side in sentences.values())
        files = {Path(f"{folder}/{part}.tsv{packed}"): tasks.task_lines(task, table)}
        files[Path(f"{folder}/{part}.tokens{packed}")] = tokens
        files |= parsed_files(folder / part, sentences.values(), packed, ".text")
        for path, lines in files.items():
            write_lines(path, lines)


def write_text(path: Path, count: int, seed: int = 1) -> None:
    """Write text for pre-training: one sentence per line, an empty line after each of `count` documents.

    One document in three is a sentence of the demo corpus' kind. The others are pairs of nearly the same
    words, so that a model learns to look for a word's counterpart.
    """
    rng = random.Random(f"text {path.name.partition('.')[0]} {seed}")
    kinds = (("predicate", ""), ("paraphrase", "0"), ("paraphrase", "1"))
    documents = (_row(rng, *rng.choice(kinds))[0] for _ in range(count))
    write_lines(path, (line for sides in documents for line in (*(side.text for side in sides), "")))
