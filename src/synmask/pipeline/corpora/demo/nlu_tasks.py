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
from typing import Literal

from synmask.pipeline.arguments import Json
from synmask.pipeline.config.benchmarks import GenerateTask, GenerateText
from synmask.pipeline.corpora import tasks
from synmask.pipeline.corpora.demo import distinct, parsed_files
from synmask.pipeline.corpora.demo.derivation import Side, Use, sentence, side_of
from synmask.pipeline.corpora.demo.inflection import ENGLISH
from synmask.pipeline.corpora.demo.table import RULES, Node
from synmask.pipeline.files import write_all_lines, write_lines

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


def write_part(
    *,
    task: Literal["acceptability", "paraphrase", "entailment", "predicate"],
    part: Literal["train", "dev"],
    settings: Json[GenerateTask],
    output: Path,
    parses: Path | None = None,
) -> None:
    """Generate a task of language understanding from the demo's grammar.

    Args:
        task: Its kind.
        part: Which part.
        settings: Sizes and seed: '{"seed": 1, "train": 3000, "dev": 500}'.
        output: TSV: sentence1, sentence2 if there are two, label.
        parses: Prefix; if given, also writes PREFIX.text, .tokens, .trees and .heads of its sentences, as
            CoreNLP's step does for other tasks.
    """
    drawn = rows(task, settings.model_dump(exclude={"seed"}), settings.seed)
    examples = [row for name, row in drawn if name == part]
    table = ([*(side.text for side in sides), label] for sides, label in examples)
    files = {output: tasks.task_lines(task, table)}
    if parses:
        sentences = {side.text: side for sides, _ in examples for side in sides}
        tokens = (" ".join(side.tree.leaves()) for side in sentences.values())
        files |= {Path(f"{parses}.tokens"): tokens} | parsed_files(parses, sentences.values(), ".text")
    write_all_lines(files)


def write_text(*, split: Literal["train", "valid"], settings: Json[GenerateText], output: Path) -> None:
    """Generate text for pre-training from the demo's grammar.

    One document in three is a sentence of the demo corpus' kind. The others are pairs of nearly the same
    words, so that a model learns to look for a word's counterpart.

    Args:
        split: train or valid.
        settings: Numbers of documents and seed: '{"seed": 1, "train": 16000, "valid": 300}'.
        output: One sentence per line, an empty line after each document.
    """
    count, rng = getattr(settings, split), random.Random(f"text {split} {settings.seed}")
    kinds = (("predicate", ""), ("paraphrase", "0"), ("paraphrase", "1"))
    documents = (_row(rng, *rng.choice(kinds))[0] for _ in range(count))
    write_lines(output, (line for sides in documents for line in (*(side.text for side in sides), "")))
