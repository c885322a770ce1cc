#!/usr/bin/env python3
"""Whether induced dependencies say more than the order of words: simple rules, and linear probes.

    python studies/probe.py GOLD.trees GOLD.heads results/CORPUS/DIRECTION/SYSTEM/seedN/trees.jsonl

writes heads.json beside the induced trees, for studies/verdict.py. Half of the sentences choose the rule and
train the probes, the other half scores them.
"""

import itertools
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation import attachment
from synmask.pipeline.files import write_json
from synmask.pipeline.syntax.parses import Parse, read_tree_pairs
from synmask.pipeline.syntax.tree import counted_words
from synmask.pipeline.syntax.treebank import UNPARSED
from synmask.pipeline.text.notation import word_starts

REACH = 8  # words; probes do not tell greater distances apart
MAX_LETTERS = 10  # letters, likewise
PENALTY = 1.0  # L2
RULES = (
    "left neighbour", "right neighbour", "second to the left", "second to the right", "first word",
    "second word", "middle word", "last word", "next longer word", "previous longer word",
)  # fmt: skip
PROBES = {  # name → the features that it reads
    "position": ("position",),
    "position and parser": ("position", "parser"),
    "position and length": ("position", "length"),
    "position, length and parser": ("position", "length", "parser"),
}


@dataclass
class SentenceWords:
    """The m words of a sentence that count, without punctuation.

    Attributes:
        letters: (m,) the words' lengths.
        gold: (m,) their heads: from 1 among these words, 0 for the root, below 0 for another token.
        induced: (m,) likewise, those that the parser induced.
        parser: (m, m, F) what the parser says of word i and a head k.
    """

    letters: np.ndarray
    gold: np.ndarray
    induced: np.ndarray
    parser: np.ndarray


def evaluate_files(gold: Path, heads: Path, predicted: Path) -> dict:
    """Compare induced heads with simple rules, and probes that read the parser with probes that do not.

    "attachment": the percentage of words whose undirected head is right (as in `attachment.evaluate`), of the
    induced heads and of the best of `RULES`. "probe": of the words whose head is a word, the percentage for
    which a conditional logit model finds it. Its features:

    - position: distance and direction from the word to the head; whether the head is the first or last word;
    - length: the head's number of letters, and whether it is the longer word;
    - parser: P_D(head | word) and P_D(word | head) where `synmask parse` lists them, the head's height, the
      largest distance between the two, and whether that is below the height of each.

    Odd sentences choose the rule and train the probes; the scores are those of even sentences.

    Args:
        gold: a treebank (`treebank.read_trees`); `heads`: its heads (`attachment.read_heads`).
        predicted: the output of `synmask parse` for these sentences.
    Returns:
        {"words", "rule": the chosen rule, "rules": {rule: percentage of odd sentences}, "attachment":
        {"induced", "best rule"}, "probe": {name: percentage}, "counts": {"attachment" or "probe": {"words":
        (N,) of each even sentence, "right": {row: (N,)}}}}.
    Raises:
        UserError: the files do not fit together, or the system induces no heads.
    """
    pairs = [*read_tree_pairs(gold, predicted)]
    trees, parses = zip(*pairs, strict=True) if pairs else ((), ())
    message = [parse for parse in parses if parse.tokens]
    if any(parse.heads is None or not parse.heights or not parse.parents for parse in message):
        raise UserError(f"{predicted}: no heights, heads and parents; this system induces constituents alone")
    if not all(map(math.isfinite, itertools.chain.from_iterable(parse.distances for parse in message))):
        raise UserError(f"{predicted}: an infinite distance; a probe reads numbers alone")
    truth = [*attachment.read_heads(heads, [len(tree.leaves()) for tree in trees])]
    sentences = [
        sentence_of(tree.leaves(), np.array(counted_words(tree)), right, parse)
        for tree, right, parse in zip(trees, truth, parses, strict=True)
        if tree.label not in UNPARSED
    ]
    return evaluate([sentence for sentence in sentences if len(sentence.gold) > 1])


def sentence_of(
    words: Sequence[str], counted: np.ndarray, gold: Sequence[int], parse: Parse
) -> SentenceWords:
    """The words that count, of all n words of a tree: (n,) `counted`, and n heads from 1 or 0."""
    others = -np.arange(1, len(counted) + 1)  # each sign is a head of its own
    renumbered = np.concatenate(([0], np.where(counted, np.cumsum(counted), others)))
    keep = np.flatnonzero(counted)
    return SentenceWords(
        np.array([len(words[place]) for place in keep]),
        renumbered[np.asarray(gold, dtype=int)][keep],
        renumbered[np.asarray(parse.heads, dtype=int)][keep],
        _features_of(parse)[np.ix_(keep, keep)],
    )


def _features_of(parse: Parse) -> np.ndarray:
    """(n, n, 6) what the parser says of each pair of words i, k."""
    starts = np.flatnonzero(word_starts(parse.tokens))
    pieces = len(parse.tokens)
    listed = np.zeros((pieces, pieces + 1))
    for piece, parents in enumerate(parse.parents):
        for parent, probability in parents:
            listed[piece, parent] = probability
    sizes = np.diff([*starts, pieces])
    p = np.add.reduceat(np.add.reduceat(listed[:, :pieces], starts, 0), starts, 1) / sizes[:, None]
    height = np.maximum.reduceat(np.asarray(parse.heights, dtype=float), starts)
    gaps = np.asarray(parse.distances, dtype=float)[starts[1:] - 1]
    between = np.full((len(starts), len(starts)), -np.inf)
    for first in range(len(gaps)):
        between[first, first + 1 :] = np.maximum.accumulate(gaps[first:])
    between = np.maximum(between, between.T)
    np.fill_diagonal(between, 0.0)
    high = np.broadcast_to(height, p.shape)
    return np.stack([p, p.T, high, between, between < high, between < high.T], axis=2)


def evaluate(sentences: Sequence[SentenceWords]) -> dict:
    """`evaluate_files` for sentences of two words or more."""
    train, test = sentences[::2], sentences[1::2]
    if not test:
        raise UserError("fewer than two sentences of two words or more; give more gold trees")
    if not all(any((sentence.gold > 0).any() for sentence in half) for half in (train, test)):
        raise UserError(
            "odd or even sentences without a word that has a word as its head; give more gold trees"
        )
    rules = {rule: _percent([_right(s, _heads(rule, s)) for s in train]) for rule in RULES}
    chosen = max(RULES, key=rules.__getitem__)
    attached = {
        "induced": [_right(s, s.induced) for s in test],
        "best rule": [_right(s, _heads(chosen, s)) for s in test],
    }
    probed = {name: _probe(features, train, test) for name, features in PROBES.items()}
    metrics = {"attachment": attached, "probe": probed}
    return {
        "words": sum(len(s.gold) for s in test),
        "rule": chosen,
        "rules": rules,
        "counts": {metric: _counts(rows) for metric, rows in metrics.items()},
    } | {metric: {name: _percent(right) for name, right in rows.items()} for metric, rows in metrics.items()}


def _heads(rule: str, sentence: SentenceWords) -> np.ndarray:
    """(m,) the words' heads by a rule; 0, the root, if it finds none."""
    count = len(sentence.gold)
    place = np.arange(1, count + 1)
    steps = {"left neighbour": -1, "right neighbour": 1, "second to the left": -2, "second to the right": 2}
    fixed = {"first word": 1, "second word": 2, "middle word": (count + 1) // 2, "last word": count}
    if rule in steps:
        head = place + steps[rule]
        return np.where((head < 1) | (head > count), 0, head)
    if rule in fixed:
        return np.where(place == fixed[rule], 0, fixed[rule])
    longer = sentence.letters[None] > sentence.letters[:, None]  # [i, k]: k is the longer word
    if rule == "next longer word":
        longer = np.triu(longer)
        return np.where(longer.any(1), longer.argmax(1) + 1, 0)
    longer = np.tril(longer)[:, ::-1]
    return np.where(longer.any(1), count - longer.argmax(1), 0)


def _right(sentence: SentenceWords, heads: np.ndarray) -> np.ndarray:
    """(m,) whether a word's head is right, or the word is its head's gold head."""
    place = np.arange(1, len(heads) + 1)
    back = (heads > 0) & (sentence.gold[np.maximum(heads, 1) - 1] == place)
    return (heads == sentence.gold) | back


def _probe(
    features: Sequence[str], train: Sequence[SentenceWords], test: Sequence[SentenceWords]
) -> list[np.ndarray]:
    """Train on some sentences; of each of the others: which of its words' heads are found."""
    from scipy.optimize import minimize

    blocks = [_block(features, sentences) for sentences in (train, test)]
    mean, scale = _moments(*blocks[0][:2])
    blocks = [((x - mean) / scale, open_, gold, size) for x, open_, gold, size in blocks]
    fitted = minimize(_loss, np.zeros(len(mean)), blocks[0][:3], jac=True, method="L-BFGS-B").x
    x, open_, gold, sizes = blocks[1]
    right = np.where(open_, x @ fitted, -np.inf).argmax(1) == gold
    return np.split(right, np.cumsum(sizes)[:-1])


def _loss(
    weights: np.ndarray, x: np.ndarray, open_: np.ndarray, gold: np.ndarray
) -> tuple[float, np.ndarray]:
    """The penalised negative log-likelihood of the gold heads, and its gradient."""
    scores = np.where(open_, x @ weights, -np.inf)
    scores -= scores.max(1, keepdims=True)
    p = np.exp(scores)
    total = p.sum(1, keepdims=True)
    rows = np.arange(len(gold))
    loss = (np.log(total[:, 0]) - scores[rows, gold]).sum() + PENALTY / 2 * weights @ weights
    p /= total
    p[rows, gold] -= 1
    return float(loss), np.tensordot(p, x, 2) + PENALTY * weights


def _block(
    features: Sequence[str], sentences: Sequence[SentenceWords]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[int]]:
    """(W, M, F) features of each word whose head is a word and each candidate; (W, M) which candidates there
    are; (W,) the right one; and the number of such words of each sentence."""
    widest = max(len(sentence.gold) for sentence in sentences)
    columns, rights, sizes = [], [], []
    for sentence in sentences:
        words = np.flatnonzero(sentence.gold > 0)
        sizes.append(len(words))
        rights.append(sentence.gold[words] - 1)
        x = np.concatenate([FEATURES[name](sentence) for name in features], axis=2)[words]
        there = np.ones((len(words), len(sentence.gold), 1))
        there[np.arange(len(words)), words] = 0
        x = np.concatenate([x, there], axis=2)
        columns.append(np.pad(x, ((0, 0), (0, widest - x.shape[1]), (0, 0))))
    x = np.concatenate(columns)
    return x[..., :-1], x[..., -1] > 0, np.concatenate(rights), sizes


def _moments(x: np.ndarray, open_: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(F,) mean and standard deviation of the features over all candidates; 1 for constants."""
    there = x[open_]
    scale = there.std(0)
    return there.mean(0), np.where(scale > 0, scale, 1.0)


def _position(sentence: SentenceWords) -> np.ndarray:
    count = len(sentence.gold)
    offset = np.clip(np.arange(count)[None] - np.arange(count)[:, None], -REACH, REACH)
    edges = np.zeros((count, count, 2))
    edges[:, 0, 0] = edges[:, -1, 1] = 1
    return np.concatenate([np.eye(2 * REACH + 1)[offset + REACH], edges], axis=2)


def _length(sentence: SentenceWords) -> np.ndarray:
    letters = np.minimum(sentence.letters, MAX_LETTERS)
    longer = sentence.letters[None] > sentence.letters[:, None]
    sizes = np.broadcast_to(np.eye(MAX_LETTERS + 1)[letters], (len(letters), len(letters), MAX_LETTERS + 1))
    return np.concatenate([sizes, longer[..., None]], axis=2)


FEATURES = {"position": _position, "length": _length, "parser": lambda sentence: sentence.parser}


def _percent(right: Sequence[np.ndarray]) -> float:
    return 100 * float(np.concatenate(right).mean())


def _counts(rows: dict[str, list[np.ndarray]]) -> dict[str, object]:
    words = [len(right) for right in next(iter(rows.values()))]
    return {
        "words": words,
        "right": {name: [int(words_right.sum()) for words_right in right] for name, right in rows.items()},
    }


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(f"usage: {sys.argv[0]} GOLD.trees GOLD.heads trees.jsonl")
    try:
        write_json(Path(sys.argv[3]).with_name("heads.json"), evaluate_files(*map(Path, sys.argv[1:])))
    except UserError as error:
        sys.exit(str(error))
