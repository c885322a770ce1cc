"""Unlabelled constituency scores of induced trees, and of trivial trees under the same rules."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from synmask.pipeline.evaluation import attachment, protocols
from synmask.pipeline.evaluation.attachment import RANDOM_SEEDS, by_name
from synmask.pipeline.evaluation.protocols import ParsedCorpus, View, keys_of
from synmask.pipeline.files import UserError
from synmask.pipeline.syntax.parses import Parse, check_words, read_predictions
from synmask.pipeline.syntax.tree import (
    balanced,
    known,
    left_branching,
    right_branching,
    slots_of,
    spans_of_forest,
    ties,
)
from synmask.pipeline.syntax.treebank import UNPARSED, Tree, read_trees

WITH_PUNCTUATION = "-with-punctuation"  # suffix of row names
COUNTED = ("induced", "right-branching", "balanced")  # rows whose counts per sentence are kept, for tests
PROTOCOLS: dict[str, Callable[[ParsedCorpus], View]] = {
    "words": protocols.words,
    "paper": protocols.paper,
    "evalb": protocols.evalb,
}


def evaluate_files(gold: Path, predicted: Path, heads: Path | None = None) -> tuple[dict, dict]:
    """`evaluate` for a treebank (see `read_trees`) and predictions (see `read_predictions`).

    Args:
        heads: gold dependency heads, one sentence per line: for each word the number of its head, from 1,
            0 = root.
    Raises:
        UserError: the files do not fit together, or a line is damaged; the message names file and line.
    """
    trees = list(read_trees(gold))
    parses = read_predictions(predicted, trees)
    try:
        if heads is not None and any(parse.spans is not None for parse in parses):
            raise UserError("trees in brackets have no heads; leave --heads out")
        check_words(trees, parses)
        gold_there = [number for number, tree in enumerate(trees) if tree.label not in UNPARSED]
        if not gold_there:
            raise UserError("no sentence has a gold tree; parse them again")
        parsed = [number for number in gold_there if not parses[number].failed]
        if not parsed:
            raise UserError("every predicted parse failed, (()); there is nothing to score")
        corpus = ParsedCorpus([trees[number] for number in parsed], [parses[number] for number in parsed])
        result, counts = evaluate(corpus)
        result |= {"unparsed": len(trees) - len(gold_there), "failed": len(gold_there) - len(parsed)}
        result["dependencies"] = None
        if heads is not None:
            truth = attachment.read_heads(heads, [len(tree.leaves()) for tree in trees])
            pairs = [(truth[number], parses[number].heads) for number in parsed]
            result["dependencies"] = attachment.evaluate(*zip(*pairs, strict=True), corpus.counted)
    except UserError as error:
        raise UserError(f"{gold}, {predicted}: {error}") from None
    return result, counts


def evaluate(corpus: ParsedCorpus) -> tuple[dict, dict]:
    """Precision, recall and F1 of binary trees against n-ary gold trees, by each protocol of `protocols`.

    `precision`, `recall` and `f1` are computed from the corpus' span counts; `sentence_f1` is the mean of the
    sentences' F1. As in Compound PCFG's scorer, F1 is 1 if neither tree has a span that counts. All are
    percentages.

    Rows: "induced"; trivial trees over the protocol's leaves: "right-branching", "left-branching",
    "balanced", "random" (mean of 5 seeds); and "oracle", the binarised gold tree. If punctuation is among the
    leaves, names of trivial trees end in "-with-punctuation", and "right-branching-punctuation-high" has the
    final punctuation (and `</s>`) at the top.

    Args:
        corpus: N sentences.
    Returns:
        The result: {"protocols": {name: {"sentences", "skipped", "rows": {row: {"precision", "recall", "f1",
        "sentence_f1"}}, for "words" also "recall_by_label"}}, "cut_words": number of split words, and of
        those that sub-word trees cut, "ties": number of splits, and of those that only the rule for equal
        distances decides, "explained_by_labels_within_sentences": the share of the distances' variance within
        sentences that the BPE labels on both sides of a gap explain (1 if trees only say which words are
        split; None if each sentence's distances are equal), "punctuation": how it was recognised
        (`_punctuation`), "other_deletions": sentences that EVALB leaves out (`ParsedCorpus`)}. For bracketed
        trees the three before the last two are None, and the protocol "paper" is missing, as these concern
        sub-words. For `bootstrap`: {name: {"gold": (N,), row: {"matched", "predicted": (N,)}}}, for `COUNTED`
        rows.
    Raises:
        UserError: no sentence can be scored.
    """
    result, counts = {}, {}
    for name, protocol in PROTOCOLS.items():
        if corpus.predicted is None or name != "paper":
            result[name], counts[name] = _score(protocol(corpus))
    facts = {"punctuation": _punctuation(corpus), "other_deletions": corpus.other_deletions}
    return {"protocols": result} | facts | _sub_words(corpus), counts


@dataclass(frozen=True)
class SentenceScore:
    """How an induced tree agrees with the gold tree of one sentence, by the protocol `words`.

    Attributes:
        gold: constituents that count in the gold tree.
        predicted: the same in the induced one.
        matched: those in both.
        right: (m-1) of the gaps between the m words that count, whether the constituent that the induced tree
            splits there is one of the gold tree.
    """

    gold: int
    predicted: int
    matched: int
    right: list[bool]

    @property
    def f1(self) -> float:
        return _percent(2 * self.matched, self.predicted + self.gold)


def score_sentence(gold: Tree, parse: Parse) -> SentenceScore | None:
    """The counts of one sentence in `evaluate`; None where it leaves the sentence out."""
    if gold.label in UNPARSED or parse.failed:
        return None
    view = protocols.words(ParsedCorpus([gold], [parse]))
    if not view.scored.any():
        return None
    keys, times = view.distinct(view.spans)
    tree = _Matches("induced", view, view.induced, keys, times)
    right = np.isin(view.counted(view.induced), keys)
    return SentenceScore(len(keys), int(tree.predicted.sum()), int(tree.matched.sum()), right.tolist())


def _punctuation(corpus: ParsedCorpus) -> dict:
    """The number of gold leaves, of those whose tag is not known (`tree.counts`), and these tags."""
    unknown = [tag for tag in corpus.tags.tolist() if not known(tag)]
    return {"leaves": len(corpus.tags), "by_characters": len(unknown), "tags": sorted(set(unknown))}


def _score(view: View) -> tuple[dict, dict]:
    """One protocol's scores, and counts per sentence."""
    if not (view.kept >= 2).any():
        raise UserError("no sentence has two words or more; give gold trees and parses of real sentences")
    gold, times = view.distinct(view.spans)
    expected = view.per_sentence(gold, times)
    trees = [_Matches(name, view, spans, gold, times) for name, spans in _trees(view)]
    result = {
        "sentences": int(view.scored.sum()),
        "skipped": int((~view.scored).sum()),
        "rows": by_name([(tree.name, tree.scores(expected)) for tree in trees]),
    }
    # how the oracle splits what the gold tree leaves open says nothing
    trees = [tree for tree in trees if tree.name != "oracle"]
    if view.labels is not None:
        result["recall_by_label"] = _recall_by_label(view, gold, trees)
    counts = {"gold": expected.tolist()}
    for tree in trees:
        if (name := tree.name.removesuffix(WITH_PUNCTUATION)) in COUNTED:
            counts[name] = {"matched": tree.matched.tolist(), "predicted": tree.predicted.tolist()}
    return result, counts


class _Matches:
    """The gold spans that one kind of tree contains.

    Attributes:
        hits: (G,) how often it has each distinct gold span, at most as often as the gold tree.
        matched, predicted: (N,) spans of each sentence.
    """

    def __init__(self, name: str, view: View, spans: np.ndarray, gold: np.ndarray, times: np.ndarray) -> None:
        self.name = name
        keys, own_times = view.distinct(spans)
        _, expected, found = np.intersect1d(gold, keys, assume_unique=True, return_indices=True)
        self.hits = np.zeros_like(times)
        self.hits[expected] = np.minimum(times[expected], own_times[found])
        self.matched = view.per_sentence(gold, self.hits)
        self.predicted = view.per_sentence(keys, own_times) + view.extra * view.scored
        self.scored = view.scored

    def scores(self, expected: np.ndarray) -> dict[str, float]:
        """The scores of the sentences that count; `expected` (N,): the gold spans of all."""
        matched, predicted, expected = (
            counts[self.scored] for counts in (self.matched, self.predicted, expected)
        )
        both = zip((2 * matched).tolist(), (predicted + expected).tolist(), strict=True)
        return {
            "precision": _percent(matched.sum(), predicted.sum()),
            "recall": _percent(matched.sum(), expected.sum()),
            "f1": _percent(2 * matched.sum(), (predicted + expected).sum()),
            "sentence_f1": fmean(_percent(*pair) for pair in both),
        }


def _trees(view: View) -> Iterator[tuple[str, np.ndarray]]:
    """The rows' names and the spans (S, 2) of all their trees."""
    leaves = "" if view.high is None else WITH_PUNCTUATION
    yield "induced", view.induced
    yield f"right-branching{leaves}", _grown(right_branching, view.lengths)
    if view.high is not None:
        yield "right-branching-punctuation-high", _grown(right_branching, view.lengths, view.high)
    yield f"left-branching{leaves}", _grown(left_branching, view.lengths)
    yield f"balanced{leaves}", _grown(balanced, view.lengths)
    ends = np.cumsum(view.lengths[view.lengths > 0]) - 1
    for seed in RANDOM_SEEDS:
        slots = np.random.default_rng(seed).random(view.lengths.sum())
        slots[ends] = np.inf
        yield f"random{leaves}", spans_of_forest(slots)
    yield "oracle", view.oracle


def _grown(grow: Callable[..., Sequence[float]], *shapes: np.ndarray) -> np.ndarray:
    """The spans of trees that depend only on the number of leaves (and on a second number, if given)."""
    sizes = zip(*(shape.tolist() for shape in shapes), strict=True)
    return spans_of_forest(slots_of([grow(*size) for size in sizes if size[0]]))


def _percent(part: float, whole: float) -> float:
    """100 if `whole` is 0."""
    return float(100 * part / whole) if whole else 100.0


def _recall_by_label(view: View, gold: np.ndarray, trees: list[_Matches]) -> dict[str, dict[str, float]]:
    """The most frequent label first. A constituent with several labels (a unary chain) counts for each."""
    keys = view.counted(view.spans)
    names, label = np.unique(view.labels[keys >= 0].astype(str), return_inverse=True)
    pairs = np.unique(np.stack((np.searchsorted(gold, keys[keys >= 0]), label), axis=1), axis=0)
    total = np.bincount(pairs[:, 1], minlength=len(names)).tolist()
    hits = [(tree.name, np.bincount(pairs[:, 1], tree.hits[pairs[:, 0]], len(names))) for tree in trees]
    return {
        str(names[label]): {"gold": total[label]}
        | by_name([(name, _percent(hit[label], total[label])) for name, hit in hits])
        for label in sorted(range(len(names)), key=lambda label: (-total[label], names[label]))
    }


def _sub_words(corpus: ParsedCorpus) -> dict:
    """Words that trees over sub-words (without `</s>`) cut, and splits that are ties."""
    if corpus.predicted is not None:
        return {"cut_words": None, "ties": None, "explained_by_labels_within_sentences": None}
    spans = spans_of_forest(corpus.distances)
    split = corpus.piece_end - corpus.piece_start > 1
    words = keys_of(np.stack((corpus.piece_start, corpus.piece_end), axis=1)[split])
    whole = np.isin(words, keys_of(spans))
    return {
        "cut_words": {"cut": int((~whole).sum()), "split": int(split.sum())},
        "ties": {"tied": ties(corpus.distances), "splits": len(spans)},
        "explained_by_labels_within_sentences": _explained_by_labels(corpus),
    }


def _explained_by_labels(corpus: ParsedCorpus) -> float | None:
    """R² of the two labels beside a gap (four kinds of gaps) within sentences.

    Distances and indicators of the kinds are centred per sentence before the effects are fitted by least
    squares: neither a sentence's level, which trees do not depend on, nor its mix of kinds counts.
    """
    inside = np.isfinite(corpus.distances)
    if not inside.any():
        return None
    sizes = corpus.piece_end - corpus.piece_start
    piece = np.repeat(sizes > 1, sizes)
    kinds = (2 * piece + np.append(piece[1:], False))[inside]
    sentence = np.repeat(np.arange(len(corpus.pieces)), corpus.pieces)[inside]
    columns = np.column_stack((corpus.distances[inside], np.eye(4)[kinds]))
    _, first, gaps = np.unique(sentence, return_index=True, return_counts=True)
    with np.errstate(over="ignore", invalid="ignore"):  # infinite distances are the largest number here
        columns = columns - np.repeat(columns[first], gaps, axis=0)  # equal ones become exactly 0
        means = np.add.reduceat(columns, first) / gaps[:, None]
        columns -= np.repeat(means, gaps, axis=0)
        distances, kinds = columns[:, 0], columns[:, 1:]
        total = distances @ distances
    if not 0 < total < np.inf:
        return None
    rest = distances - kinds @ np.linalg.lstsq(kinds, distances)[0]
    return max(0.0, float(1 - rest @ rest / total))
