"""Unlabelled constituency scores of induced trees, beside those of trivial trees under the same rules."""

import html
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np

from synmask.files import UserError, read_lines
from synmask.syntax.tree import (
    balanced,
    check_fit,
    left_branching,
    not_punctuation,
    random_distances,
    restrict,
    restricted_spans,
    right_branching,
    spans_of_distances,
    word_distances,
    word_starts,
)
from synmask.syntax.treebank import Tree, read_trees

RANDOM_SEEDS = range(5)

Span = tuple[int, int]


def evaluate(gold: Iterable[Tree], predicted: Iterable[tuple[Sequence[str], Sequence[float]]]) -> dict:
    """Precision, recall and F1 of binary trees against n-ary gold trees, by the protocol "words".

    The convention of PRPN, ON-LSTM, StructFormer and Compound PCFG: punctuation (as the gold tags say) is
    taken out of both trees, spans of one word and of the whole sentence do not count, labels do not
    matter, and equal spans count once. Sentences of fewer than two words without punctuation are skipped.
    `precision`, `recall` and `f1` are of the corpus' span counts; `sentence_f1` is the mean of the sentences'
    F1, which is, as in Compound PCFG's scorer, 1 where neither tree has a span that counts, and 0 where only
    the prediction has one. All are percentages.

    Rows beside "induced", all built over the same words with punctuation: "right-branching",
    "left-branching", "balanced", "random" (mean of 5 seeds), and "oracle", the best that any binary tree can
    get: it holds all gold spans, but m-2 spans in all for m words. A right-branching tree with punctuation
    attached high has no row: without its punctuation it is the right-branching tree.

    Args:
        gold: the gold trees of N sentences.
        predicted: for each, its words and the distances between them (`syntax.tree.word_distances`).
    Returns:
        {"protocol": "words", "sentences": how many were scored, "skipped": how many were not,
        "rows": {name: {"precision", "recall", "f1", "sentence_f1"}},
        "recall_by_label": {label: {"gold": count, name: recall}}, the most frequent label first}.
        A constituent with several labels (a unary chain) counts for each of them.
    Raises:
        UserError: the words of a sentence are not its gold tree's leaves (case aside), or the numbers of
            sentences differ; it names the line.
    """
    trees = _trees()
    counts = [_Counts() for _ in trees]
    oracle = _Counts()
    labels: Counter[str] = Counter()
    sentences = skipped = 0
    for line, (tree, parse) in enumerate(itertools.zip_longest(gold, predicted), start=1):
        words, distances = _checked(tree, parse, line)
        keep = not_punctuation(tree)
        length = sum(keep)
        if length < 2:
            skipped += 1
            continue
        sentences += 1
        spans = restricted_spans(tree, keep)
        labels.update(label for names in spans.values() for label in names)
        oracle.add(spans, spans, length - 2)
        for (_, grow), count in zip(trees, counts, strict=True):
            guess = spans_of_distances(restrict(grow(len(words)) if grow else distances, keep))
            found = {(start, end) for start, end in guess.tolist() if end - start < length}
            count.add(spans, found & spans.keys(), len(found))
    if not sentences:
        raise UserError("no sentence has two words or more; give gold trees and parses of real sentences")
    names = [name for name, _ in trees]
    recalls = _mean_by_name(names, [count.recall_by_label(labels) for count in counts])
    return {
        "protocol": "words",
        "sentences": sentences,
        "skipped": skipped,
        "rows": _mean_by_name([*names, "oracle"], [count.scores() for count in [*counts, oracle]]),
        "recall_by_label": {
            label: {"gold": total} | {name: recall[label] for name, recall in recalls.items()}
            for label, total in sorted(labels.items(), key=lambda item: (-item[1], item[0]))
        },
    }


def evaluate_files(gold: Path, predicted: Path) -> dict:
    """`evaluate` for a file of bracketed trees and one of induced distances over sub-words.

    Args:
        predicted: a JSON object a line with `tokens` (sub-words, without `</s>`) and `distances`.
    Returns:
        As `evaluate`, and "cut_words": how many of the split words the trees cut, and how many there are.
    Raises:
        UserError: as `evaluate`, or a line of `predicted` is no such object.
    """
    rows = []
    for line, text in enumerate(read_lines(predicted), start=1):
        try:
            row = json.loads(text)
            rows.append((row["tokens"], row["distances"]))
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{predicted}, line {line}: no tokens and distances in it; parse again") from None
    try:
        result = evaluate(read_trees(gold), (word_distances(distances, tokens) for tokens, distances in rows))
    except UserError as error:
        raise UserError(f"{gold}, {predicted}: {error}") from None
    return result | {
        "cut_words": {
            "cut": sum(cut_words(distances, tokens) for tokens, distances in rows),
            "split": sum(map(split_words, (tokens for tokens, _ in rows))),
        }
    }


def cut_words(distances: Sequence[float], tokens: Sequence[str]) -> int:
    """How many words the tree over sub-words cuts: their pieces do not form a constituent of their own.

    Args:
        distances: (n-1), one per gap between sub-words.
        tokens: the n sub-words, without `</s>`.
    """
    check_fit(distances, tokens, "tokens")
    constituents = set(map(tuple, spans_of_distances(distances).tolist()))
    starts = [index for index, first in enumerate(word_starts(tokens)) if first]
    words = itertools.pairwise([*starts, len(tokens)])
    return sum(end - start > 1 and (start, end) not in constituents for start, end in words)


def split_words(tokens: Sequence[str]) -> int:
    """How many words of a sentence are split into several sub-words."""
    continued = [token.endswith("@@") for token in tokens]
    return sum(more and not before for before, more in zip([False, *continued], continued, strict=False))


@dataclass
class _Counts:
    """What one kind of tree got right so far."""

    matched: int = 0
    predicted: int = 0
    gold: int = 0
    f1: list[float] = field(default_factory=list)
    labels: Counter[str] = field(default_factory=Counter)

    def add(self, gold: dict[Span, set[str]], matched: Iterable[Span], predicted: int) -> None:
        """Count a sentence: its gold spans, those that were found, and how many were predicted."""
        matched = list(matched)
        self.matched += len(matched)
        self.predicted += predicted
        self.gold += len(gold)
        self.labels.update(label for span in matched for label in gold[span])
        if gold:
            self.f1.append(2 * len(matched) / (predicted + len(gold)))
        else:
            self.f1.append(0.0 if predicted else 1.0)

    def scores(self) -> dict[str, float]:
        return {
            "precision": _percent(self.matched, self.predicted),
            "recall": _percent(self.matched, self.gold),
            "f1": _percent(2 * self.matched, self.predicted + self.gold),
            "sentence_f1": _percent(sum(self.f1), len(self.f1)),
        }

    def recall_by_label(self, gold: Counter[str]) -> dict[str, float]:
        return {label: _percent(self.labels[label], total) for label, total in gold.items()}


def _percent(part: float, whole: float) -> float:
    """As for a sentence, nothing out of nothing is all of it."""
    return 100 * part / whole if whole else 100.0


def _trees() -> list[tuple[str, Callable[[int], Sequence[float]] | None]]:
    """For each row, what gives the distances of a sentence of so many words; None for the induced ones."""
    generators = [np.random.default_rng(seed) for seed in RANDOM_SEEDS]
    return [
        ("induced", None),
        ("right-branching", right_branching),
        ("left-branching", left_branching),
        ("balanced", balanced),
        *(("random", partial(random_distances, rng=rng)) for rng in generators),
    ]


def _mean_by_name(names: list[str], rows: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    """The rows by name; of rows with one name (the random ones) their mean."""
    return {
        name: {key: fmean(row[key] for row in group) for key in group[0]}
        for name in dict.fromkeys(names)
        for group in [[row for other, row in zip(names, rows, strict=True) if other == name]]
    }


def _checked(tree: Tree | None, parse: tuple | None, line: int) -> tuple[Sequence[str], Sequence[float]]:
    """The parse, if it is one of the gold tree's words."""
    if tree is None or parse is None:
        more, fewer = ("parses", "gold trees") if tree is None else ("gold trees", "parses")
        raise UserError(f"line {line}: more {more} than {fewer} ({line - 1}); give one parse a gold tree")
    words, distances = parse
    leaves = tree.leaves()
    if len(words) != len(leaves):
        raise UserError(
            f"line {line}: the parse has {len(words)} words, the gold tree {len(leaves)}; "
            "give both the same sentences, tokenised alike"
        )
    for position, (word, leaf) in enumerate(zip(words, leaves, strict=True), start=1):
        if _plain(word) != _plain(leaf):
            raise UserError(
                f'line {line}, word {position}: "{word}" in the parse, "{leaf}" in the gold tree; '
                "give both the same sentences, tokenised alike"
            )
    if len(distances) != len(words) - 1:
        raise UserError(
            f"line {line}: {len(distances)} distances for {len(words)} words; one per gap is needed"
        )
    return words, distances


def _plain(word: str) -> str:
    """Without Moses' escapes (&apos;), in lower case."""
    return html.unescape(word).lower()
