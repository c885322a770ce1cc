"""Syntactic distances as binary trees: spans, sub-words and words, punctuation, trivial baselines.

A tree over n leaves is given by its n-1 distances, one per gap between neighbours: every constituent is split
at its largest distance (the paper's appendix). Spans are half-open, (start, end).
"""

import unicodedata
from collections.abc import Sequence

import numpy as np

from synmask.pipeline.syntax.treebank import FLAT, Tree, escape_brackets
from synmask.pipeline.text.escapes import unescape
from synmask.pipeline.text.notation import to_words, word_starts

# Tags of what does not count, punctuation and currency signs, and of what does, in the tag sets of Penn and
# OntoNotes, Penn Chinese, STTS and universal dependencies. "$" is also what is left of "$-LRB-", STTS' "$(".
SIGN_TAGS = frozenset(", . : `` '' -LRB- -RRB- HYPH NFP $ # PU $, $. $( $*LRB* $[ PUNCT".split())  # noqa: SIM905
WORD_TAGS = frozenset(
    """
    CC CD DT EX FW IN JJ JJR JJS LS MD NN NNS NNP NNPS PDT POS PRP PRP$ RB RBR RBS RP SYM TO UH VB VBD VBG VBN
    VBP VBZ WDT WP WP$ WRB ADD AFX GW
    AD AS BA CS DEC DEG DER DEV ETC IJ LB LC M MSP NR NT OD ON P PN SB SP URL VA VC VE VV
    ADJA ADJD ADV APPR APPRART APPO APZR ART CARD ITJ KOUI KOUS KON KOKOM NE NNE PDS PDAT PIS PIAT PIDAT PPER
    PPOSS PPOSAT PRELS PRELAT PRF PWS PWAT PWAV PAV PROAV PTKZU PTKNEG PTKVZ PTKANT PTKA TRUNC VVFIN VVIMP
    VVINF VVIZU VVPP VAFIN VAIMP VAINF VAPP VMFIN VMINF VMPP XY FM
    ADJ ADP AUX CCONJ CONJ DET INTJ NOUN NUM PART PRON PROPN SCONJ VERB
    """.split()  # noqa: SIM905
)
# punctuation, currency signs, and accents, which serve as quotes
SIGN_CATEGORIES = ("P", "Sc", "Sk")


def spans_of_distances(distances: Sequence[float]) -> np.ndarray:
    """The spans of the binary tree that splits every constituent at its largest distance.

    Of equal distances the first one splits first. Time and memory are O(n), whatever the tree's shape.

    Args:
        distances: (n-1), from left to right; infinite ones are allowed.
    Returns:
        (n-1, 2) int; row g is the constituent that gap g, between leaves g and g+1, splits.
    Raises:
        ValueError: distances are not one-dimensional, or not numbers (NaN).
    """
    values = np.asarray(distances, dtype=np.float64)
    if values.ndim != 1 or np.isnan(values).any():
        raise ValueError(f"distances must be one-dimensional, without NaN; got shape {values.shape}")
    return spans_of_forest(slots_of([values]))


def slots_of(distances: Sequence[Sequence[float]]) -> np.ndarray:
    """(L), one for each leaf of all sentences: the distance from it to the next one, +inf after the last.

    Infinite distances become the largest number.
    """
    slots = clip_infinite(
        np.array([value for line in distances for value in (*line, np.nan)], dtype=np.float64)
    )
    slots[np.isnan(slots)] = np.inf
    return slots


def clip_infinite(distances: np.ndarray) -> np.ndarray:
    """Distances without infinite ones, which become the largest number: +inf ends a sentence in slots."""
    largest = np.finfo(np.float64).max
    return np.clip(distances, -largest, largest)


def spans_of_forest(slots: np.ndarray) -> np.ndarray:
    """`spans_of_distances` for many concatenated sentences at once.

    Args:
        slots: (L), as `slots_of` gives them.
    Returns:
        (L - sentences, 2) int, one row per gap: the constituent that it splits, in leaves numbered across all
        sentences.
    """
    start, end = [], [0] * len(slots)
    values = slots.tolist()
    open_gaps: list[int] = []  # their distances never rise; each lies in the right part of the one before
    for gap, value in enumerate(values):
        while open_gaps and values[open_gaps[-1]] < value:
            end[open_gaps.pop()] = gap + 1
        start.append(open_gaps[-1] + 1 if open_gaps else 0)
        open_gaps.append(gap)
    return np.array((start, end), dtype=np.int64).T[np.isfinite(slots)]


def tree_distances(tree: Tree) -> list[int]:
    """The distance of each gap between the m words of a tree: (m-1), as in Distance-Transformer.

    The tree is binarised from the right, A (B (C D)); unary chains count as one node. The depth of a word is
    1, that of a constituent 1 more than its deeper part's; the distance between two parts is the larger of
    their depths.
    """
    done: list[tuple[int, list[int]]] = []  # depth and distances of the subtrees whose parent is still open
    for node, opens in tree.walk():
        if node.is_preterminal():
            done.append((1, []))
        elif not opens:
            parts = done[-len(node.children) :]
            del done[-len(node.children) :]
            depth, distances = parts.pop()
            while parts:
                left_depth, left = parts.pop()
                higher = max(left_depth, depth)
                depth, distances = higher + 1, [*left, higher, *distances]
            done.append((depth, distances))
    return done[0][1]


def count_ties(slots: np.ndarray) -> int:
    """How many splits of the trees of `slots_of` only the rule for equal distances decides."""
    above = spans_of_forest(slots)[:, 0] - 1  # the gap above the part to its right
    return int(((above >= 0) & (slots[above] == slots[np.isfinite(slots)])).sum())


def word_distances(tokens: Sequence[str], distances: Sequence[float]) -> tuple[list[float], list[str]]:
    """The distances between the m words of n sub-words, and the words, without Moses' escapes (&apos;).

    Distances inside words are dropped.

    Args:
        distances: (n-1).
    Returns:
        (m-1) distances, m words.
    """
    starts = word_starts(tokens)
    between = [distance for distance, start in zip(distances, starts[1:], strict=True) if start]
    return between, [*map(unescape, to_words(tokens))]


def word_heads(distribution: np.ndarray, tokens: Sequence[str]) -> list[int]:
    """The most probable head of each of the m words of a sentence, from 1, 0 = root.

    The probability of a word as head is the sum over its sub-words and over the sub-words of the dependent.
    No word is its own head; `</s>` represents the root.

    Args:
        distribution: (n+1, n+1) P_D over the sub-words and `</s>`; row i is token i's.
        tokens: the n sub-words, without `</s>`.
    """
    starts = [*np.flatnonzero(word_starts(tokens)).tolist(), len(tokens)]
    words = np.add.reduceat(np.add.reduceat(distribution, starts, axis=0), starts, axis=1)
    np.fill_diagonal(words, -1)
    return [0 if head == len(words) - 1 else head + 1 for head in words[:-1].argmax(1).tolist()]


def is_known_tag(tag: str) -> bool:
    """Whether a tag says if its leaf is a word: not "X", "_" or one of another tag set."""
    return tag in SIGN_TAGS or tag in WORD_TAGS


def counts_as_word(word: str, tag: str) -> bool:
    """Whether a leaf is a word, neither punctuation nor a currency sign: by its tag if that is known, else by
    Unicode's categories of its characters (`SIGN_CATEGORIES`), without Moses' escapes."""
    if is_known_tag(tag):
        return tag in WORD_TAGS
    return not all(unicodedata.category(sign).startswith(SIGN_CATEGORIES) for sign in unescape(word))


def counted_words(tree: Tree) -> list[bool]:
    """Which of the n leaves of a gold tree count as words when trees are compared (`counts_as_word`)."""
    return [counts_as_word(word, tag) for word, tag in zip(tree.leaves(), tree.tags(), strict=True)]


def right_branching(words: int, final: int = 0) -> list[float]:
    """(words-1) distances of (a (b (c d))); the last `final` leaves (punctuation) are attached at the top."""
    rest = words - final
    return [float(rest - gap) if gap < rest - 1 else float(gap + 2) for gap in range(words - 1)]


def left_branching(words: int) -> list[float]:
    """(words-1) distances of (((a b) c) d)."""
    return [float(gap) for gap in range(1, words)]


def balanced(words: int) -> list[float]:
    """(words-1) distances of the tree that halves every constituent (the right half is the larger)."""
    distances = [0.0] * (words - 1)
    todo = [(0, words)]
    while todo:
        start, end = todo.pop()
        if end - start > 1:
            middle = (start + end) // 2
            distances[middle - 1] = float(end - start)
            todo += [(start, middle), (middle, end)]
    return distances


def bracket_tree(distances: Sequence[float], words: Sequence[str]) -> str:
    """The binary tree in brackets on one line, all labels X: (X (X (X a) (X b)) (X c)); (FLAT) if empty."""
    if not words:
        return f"({FLAT})"
    spans = spans_of_distances(distances)
    opened = np.bincount(spans[:, 0], minlength=len(words))
    closed = np.bincount(spans[:, 1] - 1, minlength=len(words))
    parts = []
    for word, before, after in zip(words, opened.tolist(), closed.tolist(), strict=True):
        parts.append("(X " * before + f"(X {escape_brackets(word)})" + ")" * after)
    return " ".join(parts)
