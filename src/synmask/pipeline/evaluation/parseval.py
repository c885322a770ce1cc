"""Unlabelled constituency scores of induced trees, and of trivial trees under the same rules."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation import protocols
from synmask.pipeline.evaluation.attachment import RANDOM_SEEDS, attachment, mean_by_name, read_heads
from synmask.pipeline.evaluation.protocols import CorpusSpans, ParsedCorpus, keys_of
from synmask.pipeline.syntax.parses import Parse, read_tree_pairs
from synmask.pipeline.syntax.tree import (
    balanced,
    count_ties,
    is_known_tag,
    left_branching,
    right_branching,
    slots_of,
    spans_of_forest,
)
from synmask.pipeline.syntax.treebank import UNPARSED, Tree

WITH_PUNCTUATION = "-with-punctuation"  # suffix of row names
COUNTED = ("induced", "right-branching", "balanced")  # rows whose counts per sentence are kept, for tests
OF_SUB_WORDS = ("cut_words", "ties", "explained_by_labels_within_sentences")
PROTOCOLS: dict[str, Callable[[ParsedCorpus], CorpusSpans]] = {
    "words": protocols.words,
    "paper": protocols.paper,
    "evalb": protocols.evalb,
}


def evaluate_files(gold: Path, predicted: Path, heads: Path | None = None) -> tuple[dict, dict]:
    """`evaluate` for a treebank and predictions (see `read_tree_pairs`).

    Args:
        heads: gold dependency heads, one sentence per line: for each word the number of its head, from 1,
            0 = root.
    Raises:
        UserError: the files do not fit together, or a line is damaged; the message names file and line.
    """
    pairs = [*read_tree_pairs(gold, predicted)]
    right = [*read_heads(heads, (len(tree.leaves()) for tree, _ in pairs))] if heads else [None] * len(pairs)
    parsed = [row for row in zip(pairs, right, strict=True) if row[0][0].label not in UNPARSED]
    scored = [(*pair, truth) for pair, truth in parsed if not pair[1].failed]
    try:
        if not scored:
            reason = "every predicted parse failed, (()); there is nothing to score"
            raise UserError(reason if parsed else "no sentence has a gold tree; parse them again")
        trees, parses, right = zip(*scored, strict=True)
        if heads is not None and any(parse.spans is not None for parse in parses):
            raise UserError("trees in brackets have no heads; leave --heads out")
        corpus = ParsedCorpus(trees, parses)
        result, counts = evaluate(corpus)
    except UserError as error:
        raise UserError(f"{gold}, {predicted}: {error}") from None
    induced = [parse.heads for parse in parses]
    dependencies = attachment(right, induced, corpus.is_counted) if heads and None not in induced else None
    result |= {"unparsed": len(pairs) - len(parsed), "failed": len(parsed) - len(scored)}
    return result | {"dependencies": dependencies}, counts


def evaluate(corpus: ParsedCorpus) -> tuple[dict, dict]:
    """Precision, recall and F1 of binary trees against n-ary gold trees, by each protocol of `protocols`.

    `precision`, `recall` and `f1` are computed from the corpus' span counts; `sentence_f1` is the mean of the
    sentences' F1. As in Compound PCFG's scorer, F1 is 1 if neither tree has a span that counts. All are
    percentages.

    Rows: "induced"; trivial trees over the protocol's leaves: "right-branching", "left-branching",
    "balanced", "random" (mean of 5 seeds); and "oracle", the binarised gold tree. If punctuation is among the
    leaves, names of trivial trees end in "-with-punctuation", and "right-branching-punctuation-high" has the
    final punctuation (and `</s>`) at the top.

    Returns:
        The scores: {"protocols": {name: {"sentences", "skipped", "rows": {row: {"precision", "recall", "f1",
        "sentence_f1"}}, for "words" also "recall_by_label"}}, "cut_words": number of split words, and of
        those that sub-word trees cut, "ties": number of splits, and of those that only the rule for equal
        distances decides, "explained_by_labels_within_sentences": the share of the distances' variance within
        sentences that the BPE labels on both sides of a gap explain (1 if trees only say which words are
        split; None if each sentence's distances are equal), "punctuation": the number of gold leaves, of
        those whose tag is not known (`tree.counts_as_word`), and these tags, "other_deletions": sentences
        that EVALB leaves out (`ParsedCorpus`)}. For bracketed trees the three before the last two are None,
        and the protocol "paper" is missing, as these concern sub-words. The counts per sentence, for
        `bootstrap`: {name: {"gold": (N,), row: {"matched", "predicted": (N,)}}}, for `COUNTED` rows.
    Raises:
        UserError: no sentence can be scored.
    """
    of_sub_words = corpus.predicted is None
    names = [name for name in PROTOCOLS if of_sub_words or name != "paper"]
    scored = {name: _scores(PROTOCOLS[name](corpus)) for name in names}
    unknown = [tag for tag in corpus.tags.tolist() if not is_known_tag(tag)]
    result = {
        "protocols": {name: scores for name, (scores, _) in scored.items()},
        "punctuation": {
            "leaves": len(corpus.tags),
            "by_characters": len(unknown),
            "tags": sorted({*unknown}),
        },
        "other_deletions": corpus.other_deletions,
        **(_sub_words(corpus) if of_sub_words else dict.fromkeys(OF_SUB_WORDS)),
    }
    return result, {name: counts for name, (_, counts) in scored.items()}


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
    corpus = protocols.words(ParsedCorpus([gold], [parse]))
    if not corpus.scored.any():
        return None
    keys, times = corpus.distinct(corpus.spans)
    tree = _Matches(corpus, corpus.induced, keys, times)
    right = np.isin(corpus.keys(corpus.induced), keys)
    return SentenceScore(len(keys), int(tree.predicted.sum()), int(tree.matched.sum()), right.tolist())


def _scores(corpus: CorpusSpans) -> tuple[dict, dict]:
    """One protocol's scores, and counts per sentence."""
    if not (corpus.kept >= 2).any():
        raise UserError("no sentence has two words or more; give gold trees and parses of real sentences")
    keys, times = corpus.distinct(corpus.spans)
    trees = [(name, _Matches(corpus, spans, keys, times)) for name, spans in _trees(corpus)]
    gold, scored = corpus.per_sentence(keys, times), corpus.scored
    rows = [(name, _row(gold[scored], tree.matched[scored], tree.predicted[scored])) for name, tree in trees]
    result = {"sentences": int(scored.sum()), "skipped": int((~scored).sum()), "rows": mean_by_name(rows)}
    if corpus.labels is not None:
        # without the oracle: how it splits what the gold tree leaves open says nothing
        result["recall_by_label"] = _recall_by_label(corpus, keys, trees[:-1])
    counts = {"gold": gold.tolist()}
    for name, tree in trees:
        if (short := name.removesuffix(WITH_PUNCTUATION)) in COUNTED:
            counts[short] = {"matched": tree.matched.tolist(), "predicted": tree.predicted.tolist()}
    return result, counts


def _row(gold: np.ndarray, matched: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """The scores of one kind of trees, from the spans of each sentence that counts, (n,) each."""
    both = zip((2 * matched).tolist(), (predicted + gold).tolist(), strict=True)
    return {
        "precision": _percent(matched.sum(), predicted.sum()),
        "recall": _percent(matched.sum(), gold.sum()),
        "f1": _percent(2 * matched.sum(), (predicted + gold).sum()),
        "sentence_f1": fmean(_percent(*pair) for pair in both),
    }


class _Matches:
    """The gold spans that one kind of tree contains.

    Attributes:
        hits: (G,) how often it has each distinct gold span, at most as often as the gold tree.
        matched, predicted: (n,) spans of each sentence.
    """

    def __init__(self, corpus: CorpusSpans, spans: np.ndarray, gold: np.ndarray, times: np.ndarray) -> None:
        keys, own_times = corpus.distinct(spans)
        _, in_gold, in_tree = np.intersect1d(gold, keys, assume_unique=True, return_indices=True)
        self.hits = np.zeros_like(times)
        self.hits[in_gold] = np.minimum(times[in_gold], own_times[in_tree])
        self.matched = corpus.per_sentence(gold, self.hits)
        self.predicted = corpus.per_sentence(keys, own_times) + corpus.unmatched * corpus.scored


def _trees(corpus: CorpusSpans) -> Iterator[tuple[str, np.ndarray]]:
    """The rows' names and the spans (S, 2) of all their trees."""
    leaves = "" if corpus.final is None else WITH_PUNCTUATION
    yield "induced", corpus.induced
    yield f"right-branching{leaves}", _trivial_spans(right_branching, corpus.lengths)
    if corpus.final is not None:
        yield (
            "right-branching-punctuation-high",
            _trivial_spans(right_branching, corpus.lengths, corpus.final),
        )
    yield f"left-branching{leaves}", _trivial_spans(left_branching, corpus.lengths)
    yield f"balanced{leaves}", _trivial_spans(balanced, corpus.lengths)
    ends = np.cumsum(corpus.lengths[corpus.lengths > 0]) - 1
    for seed in RANDOM_SEEDS:
        slots = np.random.default_rng(seed).random(corpus.lengths.sum())
        slots[ends] = np.inf
        yield f"random{leaves}", spans_of_forest(slots)
    yield "oracle", corpus.oracle


def _trivial_spans(grow: Callable[..., Sequence[float]], *shapes: np.ndarray) -> np.ndarray:
    """The spans of trees that depend only on the number of leaves (and on a second number, if given)."""
    sizes = zip(*(shape.tolist() for shape in shapes), strict=True)
    return spans_of_forest(slots_of([grow(*size) for size in sizes if size[0]]))


def _percent(part: float, whole: float) -> float:
    """100 if `whole` is 0."""
    return float(100 * part / whole) if whole else 100.0


def _recall_by_label(
    corpus: CorpusSpans, gold: np.ndarray, trees: Sequence[tuple[str, _Matches]]
) -> dict[str, dict[str, float]]:
    """Label → its gold constituents, and which share of them each kind of tree has; most frequent first.

    A constituent with several labels (a unary chain) counts for each.
    """
    keys = corpus.keys(corpus.spans)
    labels, place = np.unique(corpus.labels[keys >= 0].astype(str), return_inverse=True)
    pairs = np.unique(np.stack((np.searchsorted(gold, keys[keys >= 0]), place), axis=1), axis=0)
    totals = np.bincount(pairs[:, 1], minlength=len(labels)).tolist()
    hits = [(name, np.bincount(pairs[:, 1], tree.hits[pairs[:, 0]], len(labels))) for name, tree in trees]
    rows = {
        label: {"gold": total} | mean_by_name([(name, _percent(hit[number], total)) for name, hit in hits])
        for number, (label, total) in enumerate(zip(labels.tolist(), totals, strict=True))
    }
    return dict(sorted(rows.items(), key=lambda row: (-row[1]["gold"], row[0])))


def _sub_words(corpus: ParsedCorpus) -> dict[str, Any]:
    """Split words, those of them that trees over sub-words (without `</s>`) cut; splits, and ties of them."""
    spans = spans_of_forest(corpus.distances)
    split = corpus.piece_end - corpus.piece_start > 1
    words = keys_of(np.stack((corpus.piece_start, corpus.piece_end), axis=1)[split])
    whole = np.isin(words, keys_of(spans))
    cut = {"cut": int((~whole).sum()), "split": int(split.sum())}
    tied = {"tied": count_ties(corpus.distances), "splits": len(spans)}
    return dict(zip(OF_SUB_WORDS, (cut, tied, _explained_by_labels(_gaps(corpus))), strict=True))


def _gaps(corpus: ParsedCorpus) -> np.ndarray:
    """(gaps, 5): the distance of each gap between sub-words, and indicators of its kind, by the two labels
    beside it (four kinds), all without their mean in the sentence."""
    inside = np.isfinite(corpus.distances)
    sizes = corpus.piece_end - corpus.piece_start
    piece = np.repeat(sizes > 1, sizes)
    kinds = (2 * piece + np.append(piece[1:], False))[inside]
    sentence = np.repeat(np.arange(len(corpus.pieces)), corpus.pieces)[inside]
    columns = np.column_stack((corpus.distances[inside], np.eye(4)[kinds]))
    _, first, gaps = np.unique(sentence, return_index=True, return_counts=True)
    if not len(first):
        return columns
    with np.errstate(over="ignore", invalid="ignore"):  # infinite distances are the largest number here
        columns = columns - np.repeat(columns[first], gaps, axis=0)  # equal ones become exactly 0
        means = np.add.reduceat(columns, first) / gaps[:, None]
        return columns - np.repeat(means, gaps, axis=0)


def _explained_by_labels(columns: np.ndarray) -> float | None:
    """R² of the two labels beside a gap within sentences: effects of the kinds of `_gaps`, fitted by least
    squares. Neither a sentence's level, which trees do not depend on, nor its mix of kinds counts."""
    distances, kinds = columns[:, 0], columns[:, 1:]
    with np.errstate(over="ignore", invalid="ignore"):
        total = distances @ distances
    if not 0 < total < np.inf:
        return None
    rest = distances - kinds @ np.linalg.lstsq(kinds, distances)[0]
    return max(0.0, float(1 - rest @ rest / total))
