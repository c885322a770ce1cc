"""Unlabelled constituency scores of induced trees, and of trivial trees under the same rules."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, tee
from pathlib import Path
from statistics import fmean

import numpy as np

from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation import protocols
from synmask.pipeline.evaluation.attachment import RANDOM_SEEDS, Attachment, by_name, read_heads
from synmask.pipeline.evaluation.protocols import ParsedCorpus, View, keys_of
from synmask.pipeline.syntax.parses import Parse, read_pairs
from synmask.pipeline.syntax.tree import (
    balanced,
    known,
    left_branching,
    right_branching,
    slots_of,
    spans_of_forest,
    ties,
)
from synmask.pipeline.syntax.treebank import UNPARSED, Tree

SENTENCES = 1000  # that are held in memory at once
WITH_PUNCTUATION = "-with-punctuation"  # suffix of row names
COUNTED = ("induced", "right-branching", "balanced")  # rows whose counts per sentence are kept, for tests
PROTOCOLS: dict[str, Callable[[ParsedCorpus], View]] = {
    "words": protocols.words,
    "paper": protocols.paper,
    "evalb": protocols.evalb,
}


def evaluate_files(gold: Path, predicted: Path, heads: Path | None = None) -> tuple[dict, dict]:
    """`evaluate` for a treebank and predictions (see `read_pairs`), `SENTENCES` at a time.

    Args:
        heads: gold dependency heads, one sentence per line: for each word the number of its head, from 1,
            0 = root.
    Raises:
        UserError: the files do not fit together, or a line is damaged; the message names file and line.
    """
    pairs, same = tee(read_pairs(gold, predicted))
    lengths = (len(tree.leaves()) for tree, _ in same)
    truth = read_heads(heads, lengths) if heads else (None for _ in lengths)
    sentences = ((tree, parse, right) for right, (tree, parse) in zip(truth, pairs, strict=False))
    corpus_scores, attachment = CorpusScores(), Attachment() if heads else None
    unparsed = failed = 0
    while chunk := [*islice(sentences, SENTENCES)]:
        parsed = [row for row in chunk if row[0].label not in UNPARSED]
        scored = [row for row in parsed if not row[1].failed]
        unparsed += len(chunk) - len(parsed)
        failed += len(parsed) - len(scored)
        if not scored:
            continue
        trees, parses, right = zip(*scored, strict=True)
        if heads is not None and any(parse.spans is not None for parse in parses):
            raise UserError(f"{gold}, {predicted}: trees in brackets have no heads; leave --heads out")
        corpus = ParsedCorpus(trees, parses)
        corpus_scores.add(corpus)
        if any(parse.heads is None for parse in parses):
            attachment = None
        if attachment is not None:
            attachment.add(right, [parse.heads for parse in parses], corpus.counted)
    try:
        if not corpus_scores.sentences:
            reason = "every predicted parse failed, (()); there is nothing to score"
            raise UserError(reason if failed else "no sentence has a gold tree; parse them again")
        result, counts = corpus_scores.result()
    except UserError as error:
        raise UserError(f"{gold}, {predicted}: {error}") from None
    result |= {"unparsed": unparsed, "failed": failed}
    return result | {"dependencies": attachment and attachment.result()}, counts


def evaluate(corpus: ParsedCorpus) -> tuple[dict, dict]:
    """The `CorpusScores` of one corpus: result and counts."""
    scores = CorpusScores()
    scores.add(corpus)
    return scores.result()


class CorpusScores:
    """Precision, recall and F1 of binary trees against n-ary gold trees, by each protocol of `protocols`.

    `precision`, `recall` and `f1` are computed from the corpus' span counts; `sentence_f1` is the mean of the
    sentences' F1. As in Compound PCFG's scorer, F1 is 1 if neither tree has a span that counts. All are
    percentages. The corpus may be added in parts: of each, only counts are kept.

    Rows: "induced"; trivial trees over the protocol's leaves: "right-branching", "left-branching",
    "balanced", "random" (mean of 5 seeds); and "oracle", the binarised gold tree. If punctuation is among the
    leaves, names of trivial trees end in "-with-punctuation", and "right-branching-punctuation-high" has the
    final punctuation (and `</s>`) at the top.
    """

    def __init__(self) -> None:
        self.sentences = 0
        self._parts: dict[str, list[_Counts]] = {}
        self._random = {name: [np.random.default_rng(seed) for seed in RANDOM_SEEDS] for name in PROTOCOLS}
        self._leaves, self._unknown_tags = 0, Counter[str]()
        self._other_deletions: int | None = None
        self._sub_words: Counter[str] | None = Counter()
        self._gaps: list[np.ndarray] = []

    def add(self, corpus: ParsedCorpus) -> None:
        """Count the spans of further sentences."""
        self.sentences += len(corpus.lengths)
        for name, protocol in PROTOCOLS.items():
            if corpus.predicted is None or name != "paper":
                self._parts.setdefault(name, []).append(_counts(protocol(corpus), self._random[name]))
        self._leaves += len(corpus.tags)
        if (count := corpus.other_deletions) is not None:
            self._other_deletions = count + (self._other_deletions or 0)
        self._unknown_tags.update(tag for tag in corpus.tags.tolist() if not known(tag))
        if corpus.predicted is None:
            self._sub_words.update(_sub_words(corpus))
            self._gaps.append(_gaps(corpus))
        else:
            self._sub_words = None

    def result(self) -> tuple[dict, dict]:
        """The scores, and counts per sentence.

        Returns:
            The scores: {"protocols": {name: {"sentences", "skipped", "rows": {row: {"precision", "recall",
            "f1", "sentence_f1"}}, for "words" also "recall_by_label"}}, "cut_words": number of split words,
            and of those that sub-word trees cut, "ties": number of splits, and of those that only the rule
            for equal distances decides, "explained_by_labels_within_sentences": the share of the distances'
            variance within sentences that the BPE labels on both sides of a gap explain (1 if trees only say
            which words are split; None if each sentence's distances are equal), "punctuation": the number of
            gold leaves, of those whose tag is not known (`tree.counts`), and these tags, "other_deletions":
            sentences that EVALB leaves out (`ParsedCorpus`)}. For bracketed trees the three before the last
            two are None, and the protocol "paper" is missing, as these concern sub-words. For `bootstrap`:
            {name: {"gold": (N,), row: {"matched", "predicted": (N,)}}}, for `COUNTED` rows.
        Raises:
            UserError: no sentence can be scored.
        """
        scored = {name: _scores(parts) for name, parts in self._parts.items()}
        unknown = {"by_characters": self._unknown_tags.total(), "tags": sorted(self._unknown_tags)}
        result = {
            "protocols": {name: scores for name, (scores, _) in scored.items()},
            "punctuation": {"leaves": self._leaves} | unknown,
            "other_deletions": self._other_deletions,
            "cut_words": None,
            "ties": None,
            "explained_by_labels_within_sentences": None,
        }
        if (counts := self._sub_words) is not None:
            result["cut_words"] = {key: counts[key] for key in ("cut", "split")}
            result["ties"] = {key: counts[key] for key in ("tied", "splits")}
            result["explained_by_labels_within_sentences"] = _explained_by_labels(self._gaps)
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
    view = protocols.words(ParsedCorpus([gold], [parse]))
    if not view.scored.any():
        return None
    keys, times = view.distinct(view.spans)
    tree = _Matches(view, view.induced, keys, times)
    right = np.isin(view.counted(view.induced), keys)
    return SentenceScore(len(keys), int(tree.predicted.sum()), int(tree.matched.sum()), right.tolist())


@dataclass(frozen=True)
class _Counts:
    """The span counts of n sentences under one protocol, of R kinds of trees; several are random.

    Attributes:
        names: (R) of the kinds.
        scored: (n,) whether a sentence counts; `pairs`: whether any has two words or more.
        gold: (n,) spans of the gold trees; `matched`, `predicted`: (R, n).
        labels: label → its gold constituents, and how many of them each kind but the last, the oracle, has
            (1 + R - 1,); how the oracle splits what the gold tree leaves open says nothing. None: not wanted.
    """

    names: list[str]
    scored: np.ndarray
    pairs: bool
    gold: np.ndarray
    matched: np.ndarray
    predicted: np.ndarray
    labels: dict[str, np.ndarray] | None


def _counts(view: View, random: Sequence[np.random.Generator]) -> _Counts:
    gold, times = view.distinct(view.spans)
    trees = [(name, _Matches(view, spans, gold, times)) for name, spans in _trees(view, random)]
    return _Counts(
        names=[name for name, _ in trees],
        scored=view.scored,
        pairs=bool((view.kept >= 2).any()),
        gold=view.per_sentence(gold, times),
        matched=np.stack([tree.matched for _, tree in trees]),
        predicted=np.stack([tree.predicted for _, tree in trees]),
        labels=None if view.labels is None else _by_label(view, gold, [tree for _, tree in trees[:-1]]),
    )


def _scores(parts: Sequence[_Counts]) -> tuple[dict, dict]:
    """One protocol's scores, and counts per sentence."""
    if not any(part.pairs for part in parts):
        raise UserError("no sentence has two words or more; give gold trees and parses of real sentences")
    names = parts[0].names
    scored, gold, matched, predicted = (
        np.concatenate([getattr(part, key) for part in parts], axis=-1)
        for key in ("scored", "gold", "matched", "predicted")
    )
    of_scored = (counts[..., scored] for counts in (gold, matched, predicted))
    rows = [*zip(names, map(partial(_row, next(of_scored)), *of_scored), strict=True)]
    result = {"sentences": int(scored.sum()), "skipped": int((~scored).sum()), "rows": by_name(rows)}
    if parts[0].labels is not None:
        result["recall_by_label"] = _recall_by_label(names[:-1], [part.labels for part in parts])
    counts = {"gold": gold.tolist()}
    for place, name in enumerate(name.removesuffix(WITH_PUNCTUATION) for name in names):
        if name in COUNTED:
            counts[name] = {"matched": matched[place].tolist(), "predicted": predicted[place].tolist()}
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

    def __init__(self, view: View, spans: np.ndarray, gold: np.ndarray, times: np.ndarray) -> None:
        keys, own_times = view.distinct(spans)
        _, expected, found = np.intersect1d(gold, keys, assume_unique=True, return_indices=True)
        self.hits = np.zeros_like(times)
        self.hits[expected] = np.minimum(times[expected], own_times[found])
        self.matched = view.per_sentence(gold, self.hits)
        self.predicted = view.per_sentence(keys, own_times) + view.extra * view.scored


def _trees(view: View, random: Sequence[np.random.Generator]) -> Iterator[tuple[str, np.ndarray]]:
    """The rows' names and the spans (S, 2) of all their trees; those of `random` go on where they stopped."""
    leaves = "" if view.high is None else WITH_PUNCTUATION
    yield "induced", view.induced
    yield f"right-branching{leaves}", _grown(right_branching, view.lengths)
    if view.high is not None:
        yield "right-branching-punctuation-high", _grown(right_branching, view.lengths, view.high)
    yield f"left-branching{leaves}", _grown(left_branching, view.lengths)
    yield f"balanced{leaves}", _grown(balanced, view.lengths)
    ends = np.cumsum(view.lengths[view.lengths > 0]) - 1
    for rng in random:
        slots = rng.random(view.lengths.sum())
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


def _by_label(view: View, gold: np.ndarray, trees: Sequence[_Matches]) -> dict[str, np.ndarray]:
    """`_Counts.labels`. A constituent with several labels (a unary chain) counts for each."""
    keys = view.counted(view.spans)
    names, label = np.unique(view.labels[keys >= 0].astype(str), return_inverse=True)
    pairs = np.unique(np.stack((np.searchsorted(gold, keys[keys >= 0]), label), axis=1), axis=0)
    hits = [np.bincount(pairs[:, 1], tree.hits[pairs[:, 0]], len(names)) for tree in trees]
    counts = np.stack([np.bincount(pairs[:, 1], minlength=len(names)), *hits]).astype(np.int64)
    return dict(zip(names.tolist(), counts.T, strict=True))


def _recall_by_label(
    names: Sequence[str], parts: Sequence[dict[str, np.ndarray]]
) -> dict[str, dict[str, float]]:
    """The most frequent label first."""
    counts: dict[str, np.ndarray] = {}
    for part in parts:
        for label, row in part.items():
            counts[label] = counts.get(label, 0) + row
    return {
        label: {"gold": total}
        | by_name([(name, _percent(hit, total)) for name, hit in zip(names, hits, strict=True)])
        for label, (total, *hits) in sorted(
            ((label, row.tolist()) for label, row in counts.items()), key=lambda row: (-row[1][0], row[0])
        )
    }


def _sub_words(corpus: ParsedCorpus) -> dict[str, int]:
    """Split words, those of them that trees over sub-words (without `</s>`) cut; splits, and ties of them."""
    spans = spans_of_forest(corpus.distances)
    split = corpus.piece_end - corpus.piece_start > 1
    words = keys_of(np.stack((corpus.piece_start, corpus.piece_end), axis=1)[split])
    whole = np.isin(words, keys_of(spans))
    counts = {"cut": int((~whole).sum()), "split": int(split.sum())}
    return counts | {"tied": ties(corpus.distances), "splits": len(spans)}


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


def _explained_by_labels(parts: Sequence[np.ndarray]) -> float | None:
    """R² of the two labels beside a gap within sentences: effects of the kinds of `_gaps`, fitted by least
    squares. Neither a sentence's level, which trees do not depend on, nor its mix of kinds counts."""
    columns = np.concatenate(parts)
    distances, kinds = columns[:, 0], columns[:, 1:]
    with np.errstate(over="ignore", invalid="ignore"):
        total = distances @ distances
    if not 0 < total < np.inf:
        return None
    rest = distances - kinds @ np.linalg.lstsq(kinds, distances)[0]
    return max(0.0, float(1 - rest @ rest / total))
