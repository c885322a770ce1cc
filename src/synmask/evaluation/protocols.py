"""What is counted when an induced tree is held against a gold tree: the protocols `words`, `paper`, `evalb`.

All sentences of a corpus lie end to end in flat arrays, and a span is one number (`keys_of`), so that almost
nothing here or in `parseval` loops over spans. Half-open spans are counted in leaves of the whole corpus.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synmask.syntax.parses import Parse
from synmask.syntax.tree import not_punctuation, word_starts
from synmask.syntax.treebank import Tree

# COLLINS.prm of EVALB: brackets and preterminals with these labels are deleted (-NONE- is gone when read).
COLLINS_DELETES = ["TOP", ",", ":", "``", "''", "."]


def keys_of(spans: np.ndarray) -> np.ndarray:
    """(S, 2) spans → (S,) int64, a number a span, in the order of their starts."""
    return (spans[:, 0] << 32) | spans[:, 1]


def spans_of_keys(keys: np.ndarray) -> np.ndarray:
    """The inverse of `keys_of`."""
    return np.stack((keys >> 32, keys & 0xFFFFFFFF), axis=1)


@dataclass
class View:
    """A corpus of N sentences as one protocol sees it.

    Attributes:
        lengths: (N,) the leaves of each sentence, over which trees are built.
        slots: (L,) the induced distances (`syntax.tree.spans_of_forest`).
        keep: (L,) bool; the other leaves are taken out of the trees before spans are compared.
        spans: (S, 2) all gold constituents.
        oracle: (L-N, 2) the spans of the gold tree as a binary tree.
        trivial: whether spans of one leaf and of the whole sentence count.
        doubled: whether equal spans of one tree count as often as they come.
        extra: gold spans a sentence that nothing can match.
        high: (N,) leaves at the end of each sentence that a careful right-branching tree attaches at the top;
            None where that makes no difference.
        labels: (S,) of the gold constituents; None where they are not asked for.
    """

    lengths: np.ndarray
    slots: np.ndarray
    keep: np.ndarray
    spans: np.ndarray
    oracle: np.ndarray
    trivial: bool
    doubled: bool = False
    extra: int = 0
    high: np.ndarray | None = None
    labels: np.ndarray | None = None

    def __post_init__(self) -> None:
        self._sentence = np.repeat(np.arange(len(self.lengths)), self.lengths)
        self._position = np.concatenate(([0], np.cumsum(self.keep)))  # of a leaf, among those that are kept
        self.kept = np.bincount(self._sentence[self.keep], minlength=len(self.lengths))
        self.scored = self.kept >= (1 if self.trivial else 2)

    def counted(self, spans: np.ndarray) -> np.ndarray:
        """(S, 2) spans of a tree → (S,) keys, in leaves that are kept; -1 for spans that do not count."""
        kept = self._position[spans]
        size = kept[:, 1] - kept[:, 0]
        largest = self.kept[self._sentence[spans[:, 0]]] - (0 if self.trivial else 1)
        return np.where((size >= (1 if self.trivial else 2)) & (size <= largest), keys_of(kept), -1)

    def distinct(self, spans: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(S, 2) spans of a tree → the keys that count, sorted, and how often each does."""
        keys = self.counted(spans)
        keys, times = np.unique(keys[keys >= 0], return_counts=True)
        return keys, times if self.doubled else np.ones_like(times)

    def per_sentence(self, keys: np.ndarray, times: np.ndarray) -> np.ndarray:
        """(N,) how many spans, each counted `times`, lie in each sentence."""
        sentence = np.searchsorted(np.cumsum(self.kept), spans_of_keys(keys)[:, 0], side="right")
        return np.bincount(sentence, times, minlength=len(self.lengths)).astype(np.int64)


class Corpus:
    """Gold trees and parses of the same sentences, as flat arrays.

    Words are numbered through all sentences, and so are sub-words. Equal words are taken for granted
    (`syntax.parses.check_words`).
    """

    def __init__(self, trees: Sequence[Tree], parses: Sequence[Parse]) -> None:
        tags = [tree.tags() for tree in trees]
        self.lengths = np.array([len(line) for line in tags])
        self.tags = np.array([tag for line in tags for tag in line], dtype=object)
        self.not_punctuation = np.array(
            [word for tree in trees for word in not_punctuation(tree)], dtype=bool
        )
        constituents = [tree.spans() for tree in trees]
        counts = [len(line) for line in constituents]
        flat = np.array([span[:2] for line in constituents for span in line], np.int64).reshape(-1, 2)
        self.spans = (
            flat + np.repeat(np.cumsum(self.lengths) - self.lengths, counts)[:, None]
        )  # from the root down
        self.labels = np.array([label for line in constituents for *_, label in line], dtype=object)
        self.binary = right_factored(self.spans, self.lengths)
        self.pieces = np.array([len(parse.tokens) for parse in parses])
        first = np.array([start for parse in parses for start in word_starts(parse.tokens)], dtype=bool)
        self.piece_start = np.flatnonzero(first)  # of each word
        self.piece_end = np.append(self.piece_start[1:], len(first))
        self.distances = _joined([parse.distances for parse in parses])
        self.eos_distances = np.array([parse.eos_distance for parse in parses], dtype=np.float64)

    @property
    def word_slots(self) -> np.ndarray:
        """The induced distances between words: those inside words are dropped."""
        return self.distances[self.piece_end - 1]


def words(corpus: Corpus) -> View:
    """The convention of PRPN, ON-LSTM, StructFormer and Compound PCFG.

    Trees over words: the distances inside words are dropped. Punctuation (as the gold tags say) is taken out
    of both trees; spans of one word and of the whole sentence do not count; equal spans count once. Sentences
    of fewer than two words without punctuation are not scored.
    """
    keep = corpus.not_punctuation
    return View(
        corpus.lengths,
        corpus.word_slots,
        keep,
        corpus.spans,
        corpus.binary,
        trivial=False,
        labels=corpus.labels,
    )


def evalb(corpus: Corpus) -> View:
    """What EVALB computes with COLLINS.prm on unlabelled brackets (LABELED 0).

    The tree over words, with its punctuation, has one bracket a constituent, none around single words. Then
    words and brackets whose labels COLLINS.prm deletes are taken out. Every other bracket counts that still
    holds a word, however long and however often its span comes (unary chains, single words, the whole
    sentence, and a root called ROOT, too). Sentences without a word left are not scored.
    """
    keep = ~np.isin(corpus.tags, COLLINS_DELETES)
    spans = corpus.spans[~np.isin(corpus.labels, COLLINS_DELETES)]
    high = _final_punctuation(corpus.not_punctuation, corpus.lengths)
    binary = corpus.binary
    return View(corpus.lengths, corpus.word_slots, keep, spans, binary, trivial=True, doubled=True, high=high)


def paper(corpus: Corpus) -> View:
    """The protocol of Kai et al. 2024: binary trees over sub-words and `</s>`, all spans of two leaves or
    more.

    The gold tree is factored to the right: A (B (C D)); the pieces of a word, too, form a right-branching
    constituent; `</s>` is attached at the top. It has one span more than the binary tree, which nothing can
    match: in the published scores precision and recall differ by just that.
    """
    pieces = corpus.pieces
    lengths = pieces + 1
    shift = np.repeat(np.arange(len(pieces)), corpus.lengths)  # how many </s> stand before each word
    start, end = corpus.piece_start + shift, corpus.piece_end + shift
    slots = np.insert(corpus.distances, np.cumsum(pieces), np.inf)
    top = np.cumsum(lengths)
    slots[top - 2] = corpus.eos_distances
    more = np.setdiff1d(
        np.arange(pieces.sum()), corpus.piece_end - 1
    )  # pieces that another of the word follows
    word = np.searchsorted(corpus.piece_end, more, side="right")
    spans = np.concatenate(
        (
            np.stack((start[corpus.binary[:, 0]], end[corpus.binary[:, 1] - 1]), axis=1),
            np.stack((more + shift[word], end[word]), axis=1),
            np.stack((top - lengths, top), axis=1),
        )
    )
    counts = np.repeat(corpus.not_punctuation, corpus.piece_end - corpus.piece_start)
    high = 1 + _final_punctuation(counts, pieces)
    return View(lengths, slots, np.ones(top[-1], bool), spans, spans, trivial=True, extra=1, high=high)


def right_factored(spans: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """n-ary trees → binary ones, A B C D → A (B (C D)); unary chains become one constituent.

    Args:
        spans: (S, 2) constituents of all sentences, those of a sentence from the root down.
        lengths: (N,) leaves of the sentences.
    Returns:
        (sum of n-1 over the sentences, 2): the binary trees' spans of two leaves or more.
    """
    owner = np.zeros(
        lengths.sum(), dtype=np.int64
    )  # of each gap: the lowest constituent with both its leaves
    for number, (start, end) in enumerate(spans.tolist()):
        owner[start : end - 1] = number
    gaps = np.setdiff1d(np.arange(len(owner)), np.cumsum(lengths) - 1)
    gaps = gaps[np.argsort(owner[gaps], kind="stable")]
    owners = owner[gaps]
    begin = np.append(0, gaps[:-1] + 1)  # after the split before, or
    first = np.append(True, owners[1:] != owners[:-1])[: len(owners)]
    begin = np.where(first, spans[owners, 0], begin[: len(owners)])  # where the constituent begins
    return np.stack((begin, spans[owners, 1]), axis=1)


def _joined(distances: Sequence[Sequence[float]]) -> np.ndarray:
    """Slots: each sentence's distances, closed by +inf; infinite ones become the largest number."""
    largest = np.finfo(np.float64).max
    closed = [value for line in distances for value in (*line, np.nan)]
    slots = np.clip(np.array(closed, dtype=np.float64), -largest, largest)
    slots[np.isnan(slots)] = np.inf
    return slots


def _final_punctuation(counts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """(N,) how many leaves of punctuation each sentence ends in; its first leaf is never one of them."""
    leaf = np.arange(len(counts))
    end = np.cumsum(lengths)
    last = np.maximum.accumulate(np.where(counts, leaf, -1))[
        end - 1
    ]  # word that is none, in the whole corpus
    return end - 1 - np.maximum(last, end - lengths)
