"""The protocols `words`, `paper` and `evalb`: which spans count when induced and gold trees are compared.

All sentences of a corpus are concatenated in flat arrays, and a span is one number (`keys_of`), so that
hardly anything here or in `parseval` loops over spans. Half-open spans are counted in leaves of the whole
corpus.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from synmask.pipeline.syntax.parses import Parse
from synmask.pipeline.syntax.tree import (
    clip_infinite,
    counted_words,
    slots_of,
    spans_of_forest,
    tree_distances,
)
from synmask.pipeline.syntax.treebank import Tree
from synmask.pipeline.text.notation import to_words, word_starts

# COLLINS.prm of EVALB: brackets and preterminals with these labels are deleted (-NONE- is gone when read).
COLLINS_DELETES = ["TOP", ",", ":", "``", "''", "."]
# Gold distances of the protocol `paper`, below and above those of trees (`tree_distances`)
INSIDE_WORD, BETWEEN_PARTS, BEFORE_END = 0.0, 1e17, 1e18
SENTENCE_ENDS = frozenset(".!?。！？")  # words after which a line is cut into parts


def keys_of(spans: np.ndarray) -> np.ndarray:
    """(S, 2) spans → (S,) int64, one number per span, in the order of their starts."""
    return (spans[:, 0] << 32) | spans[:, 1]


@dataclass
class CorpusSpans:
    """A corpus of N sentences under one protocol.

    Attributes:
        lengths: (N,) the leaves of each sentence, over which trees are built.
        keep: (L,) bool; other leaves are removed from the trees before spans are compared.
        spans: (S, 2) all gold constituents.
        induced: (P, 2) all induced constituents.
        oracle: (O, 2) the spans of the gold tree as a binary tree.
        trivial: whether spans of one leaf and of the whole sentence count.
        repeated: whether equal spans of one tree count each time.
        unmatched: further spans per sentence of every predicted tree that match nothing.
        final: (N,) leaves at the end of each sentence that a careful right-branching tree attaches at the
            top; None if punctuation is not among the leaves.
        labels: (S,) of the gold constituents; None if not needed.
    """

    lengths: np.ndarray
    keep: np.ndarray
    spans: np.ndarray
    induced: np.ndarray
    oracle: np.ndarray
    trivial: bool
    repeated: bool = False
    unmatched: int = 0
    final: np.ndarray | None = None
    labels: np.ndarray | None = None

    def __post_init__(self) -> None:
        self._sentence = np.repeat(np.arange(len(self.lengths)), self.lengths)
        self._position = np.concatenate(([0], np.cumsum(self.keep)))  # of a leaf, among kept leaves
        self.kept = np.bincount(self._sentence[self.keep], minlength=len(self.lengths))
        self.scored = self.kept >= (1 if self.trivial else 2)

    def keys(self, spans: np.ndarray) -> np.ndarray:
        """(S, 2) spans of a tree → (S,) keys, in kept leaves; -1 for spans that do not count."""
        kept = self._position[spans]
        size = kept[:, 1] - kept[:, 0]
        largest = self.kept[self._sentence[spans[:, 0]]] - (0 if self.trivial else 1)
        return np.where((size >= (1 if self.trivial else 2)) & (size <= largest), keys_of(kept), -1)

    def distinct(self, spans: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(S, 2) spans of a tree → the keys that count, sorted, and how often each does."""
        keys = self.keys(spans)
        keys, times = np.unique(keys[keys >= 0], return_counts=True)
        return keys, times if self.repeated else np.ones_like(times)

    def per_sentence(self, keys: np.ndarray, times: np.ndarray) -> np.ndarray:
        """(N,) number of spans, each counted `times`, in each sentence."""
        sentence = np.searchsorted(np.cumsum(self.kept), keys >> 32, side="right")
        return np.bincount(sentence, times, minlength=len(self.lengths)).astype(np.int64)


class ParsedCorpus:
    """Gold trees and parses of the same sentences, as flat arrays.

    Words are numbered across all sentences, and so are sub-words. Trees and parses must have equal words
    (`syntax.parses.check_words`).
    """

    def __init__(self, trees: Sequence[Tree], parses: Sequence[Parse]) -> None:
        tags = [tree.tags() for tree in trees]
        self.lengths = np.array([len(line) for line in tags])
        self.tags = np.array([tag for line in tags for tag in line], dtype=object)
        self.words = [to_words(parse.tokens) for parse in parses]
        self.is_counted = np.array([counts for tree in trees for counts in counted_words(tree)], dtype=bool)
        self.spans, self.labels = self._flat([tree.spans() for tree in trees])  # from the root down
        self.predicted_tags = np.array([tag for parse in parses for tag in parse.tags], dtype=object)
        self.predicted = None
        if not any(parse.spans is None for parse in parses):
            self.predicted, self.predicted_labels = self._flat([parse.spans for parse in parses])
        self.gold_distances = slots_of([tree_distances(tree) for tree in trees])
        self.binary = spans_of_forest(self.gold_distances)
        self.pieces = np.array([len(parse.tokens) for parse in parses])
        first = np.array([start for parse in parses for start in word_starts(parse.tokens)], dtype=bool)
        self.piece_start = np.flatnonzero(first)  # of each word
        self.piece_end = np.append(self.piece_start[1:], len(first))
        self.distances = slots_of([parse.distances for parse in parses])
        self.eos_distances = clip_infinite(
            np.array([parse.eos_distance for parse in parses], dtype=np.float64)
        )

    def _flat(self, trees: Sequence[Sequence[tuple[int, int, str]]]) -> tuple[np.ndarray, np.ndarray]:
        """The trees' spans (S, 2), in words of the whole corpus, and their labels (S,)."""
        spans = np.array([span[:2] for tree in trees for span in tree], np.int64).reshape(-1, 2)
        first = np.repeat(np.cumsum(self.lengths) - self.lengths, [len(tree) for tree in trees])
        return spans + first[:, None], np.array([label for tree in trees for *_, label in tree], dtype=object)

    @property
    def other_deletions(self) -> int | None:
        """Sentences in which the predicted tags delete other words than the gold tags; None without tags."""
        if not len(self.predicted_tags):
            return None
        gold, predicted = (np.isin(tags, COLLINS_DELETES) for tags in (self.tags, self.predicted_tags))
        return len(np.unique(np.repeat(np.arange(len(self.lengths)), self.lengths)[gold != predicted]))

    @property
    def word_slots(self) -> np.ndarray:
        """The induced distances between words, without those inside words."""
        return self.distances[self.piece_end - 1]


def words(corpus: ParsedCorpus) -> CorpusSpans:
    """The convention of PRPN, ON-LSTM and StructFormer: trees over words (`counted_words`).

    The distance between two words is the largest of the gaps between them; gaps inside words are dropped. So
    an induced tree is split with punctuation, which the model reads, and then loses it; trivial trees never
    have any. Spans of one word and of the whole sentence do not count; equal spans count once. Sentences of
    fewer than two words are not scored.
    """
    sentence = np.repeat(np.arange(len(corpus.lengths)), corpus.lengths)
    lengths = np.bincount(sentence[corpus.is_counted], minlength=len(corpus.lengths))
    counted = np.flatnonzero(corpus.is_counted)
    position = np.concatenate(([0], np.cumsum(corpus.is_counted)))

    def among_counted(spans: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The spans in words that count, and which of `spans` have such a word."""
        spans = position[spans]
        nonempty = spans[:, 0] < spans[:, 1]
        return spans[nonempty], nonempty

    spans, nonempty = among_counted(corpus.spans)
    if corpus.predicted is not None:
        induced, _ = among_counted(corpus.predicted)
    else:
        slots = np.maximum.reduceat(corpus.word_slots, counted) if len(counted) else np.empty(0)
        induced = spans_of_forest(slots)
    keep, (oracle, _) = np.ones(len(counted), dtype=bool), among_counted(corpus.binary)
    return CorpusSpans(lengths, keep, spans, induced, oracle, trivial=False, labels=corpus.labels[nonempty])


def evalb(corpus: ParsedCorpus) -> CorpusSpans:
    """EVALB's scores with COLLINS.prm on unlabelled brackets (LABELED 0).

    The tree over words, with its punctuation, has one bracket per constituent, none around single words. Then
    words and brackets whose labels COLLINS.prm deletes are removed. Every other bracket that still contains a
    word counts, of any length and each time its span occurs (unary chains, single words, the whole sentence,
    and a root called ROOT or "", too). Sentences without a word left are not scored.

    The gold tags decide which words are deleted. EVALB takes each tree's own and leaves a sentence out whose
    trees then have other words; `ParsedCorpus.other_deletions` counts these.
    """
    keep = ~np.isin(corpus.tags, COLLINS_DELETES)
    spans = corpus.spans[~np.isin(corpus.labels, COLLINS_DELETES)]
    final = _final_punctuation(corpus.is_counted, corpus.lengths)
    if corpus.predicted is None:
        induced = spans_of_forest(corpus.word_slots)
    else:
        induced = corpus.predicted[~np.isin(corpus.predicted_labels, COLLINS_DELETES)]
    kwargs = {"trivial": True, "repeated": True, "final": final}
    return CorpusSpans(corpus.lengths, keep, spans, induced, corpus.binary, **kwargs)


def paper(corpus: ParsedCorpus) -> CorpusSpans:
    """The protocol of the scripts of Kai et al. 2024: binary trees over sub-words and `</s>`, all spans of at
    least two leaves.

    The gold tree follows from distances, too (`_published_slots`). Every predicted tree gets one more node at
    the top, which matches nothing. (The scripts pass the prediction to EVALB as gold, so the paper prints our
    recall as precision and our precision as recall.)
    """
    pieces = corpus.pieces
    lengths = pieces + 1
    top = np.cumsum(lengths)
    slots = np.insert(corpus.distances, np.cumsum(pieces), np.inf)
    slots[top - 2] = corpus.eos_distances
    shift = np.repeat(np.arange(len(pieces)), corpus.lengths)  # number of </s> before each word
    gold = np.full(top[-1], INSIDE_WORD)
    gold[corpus.piece_end - 1 + shift] = np.concatenate([*_published_slots(corpus)])
    gold[top - 1] = np.inf
    spans = spans_of_forest(gold)
    counts = np.repeat(corpus.is_counted, corpus.piece_end - corpus.piece_start)
    final = 1 + _final_punctuation(counts, pieces)
    keep, induced = np.ones(top[-1], dtype=bool), spans_of_forest(slots)
    return CorpusSpans(lengths, keep, spans, induced, spans, trivial=True, unmatched=1, final=final)


def _published_slots(corpus: ParsedCorpus) -> Iterator[list[float]]:
    """For each sentence the gold distances after each of its m words, the last of them before `</s>`.

    As in the published script, except that the tree is the gold one, not a parse of each part. The line is
    cut after words in `SENTENCE_ENDS`; a part's tree is over its words without "&" (Moses' escapes), and
    after a word with "&" the distance is as low as inside words. A part with fewer than two words without "&"
    gives no distances, so that later ones move to the front.
    """
    begin = 0
    for words in corpus.words:
        distances = corpus.gold_distances[begin : begin + len(words)].tolist()
        begin += len(words)
        ends = [place for place, word in enumerate(words, start=1) if word in SENTENCE_ENDS]
        slots: list[float] = []
        for start, end in pairwise(sorted({0, *ends, len(words)})):
            kept = [place for place in range(start, end) if "&" not in words[place]]
            if len(kept) > 1:
                splits = {place: max(distances[place:following]) for place, following in pairwise(kept)}
                slots += [splits.get(place, INSIDE_WORD) for place in range(start, end - 1)]
            slots.append(BETWEEN_PARTS)
        slots[-1:] = [BEFORE_END]
        yield slots + [INSIDE_WORD] * (len(words) - len(slots))


def _final_punctuation(counts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """(N,) number of punctuation leaves at the end of each sentence, its first leaf never included."""
    leaf = np.arange(len(counts))
    end = np.cumsum(lengths)
    last = np.maximum.accumulate(np.where(counts, leaf, -1))[end - 1]  # last word that is not punctuation
    return end - 1 - np.maximum(last, end - lengths)
