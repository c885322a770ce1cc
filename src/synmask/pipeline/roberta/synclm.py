"""SynCLM (Zhang et al., Findings of ACL 2022): contrastive losses by dependency trees, for pre-training.

The phrase loss makes a head's attention similar to that of a token in its own phrase, and unlike that of
tokens around it. The tree loss makes a head's state similar to its subtree, and unlike other spans of about
that length around it. Both follow the authors' published code, with its constants; docs/systems.md lists the
differences.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from synmask.options import NO_TOKEN

TEMPERATURE = 0.1
PHRASE_SHARE = 0.15  # share of the heads that the phrase loss samples
INSIDE, OUTSIDE = 3, 10  # maximum distance from the head, and from its phrase
PHRASE_NEGATIVES = 10  # negatives of the phrase loss
MAX_SUBTREE = 10  # maximum number of tokens of a subtree
TREE_NEGATIVES = 30  # negatives of the tree loss
COUNTED_NEGATIVES = 3  # negatives that count
EPSILON = 1e-6
# Samples of a loss, tokens by position, spans by their first and last token, padded with NO_TOKEN: "anchors"
# (P,), tokens; "positives", of the phrase loss tokens (P,), of the tree loss spans (P, 2); "negatives",
# tokens (P, PHRASE_NEGATIVES) or spans (P, TREE_NEGATIVES, 2).
Samples = dict[str, np.ndarray]


def token_heads(words: np.ndarray) -> np.ndarray:
    """(n,) the head of each token; its own position for a root, NO_TOKEN for a token outside of trees.

    The head of a word's first token is the first token of the head word; the head of the word's other tokens
    is its first token.

    Args:
        words: (n, 4), annotations of an example (roberta/examples.py).
    """
    places, word = np.arange(len(words)), words[:, 0].astype(np.int64)
    return np.where(word == NO_TOKEN, NO_TOKEN, np.where(word == places, words[:, 1], word))


def subtree_spans(heads: np.ndarray) -> np.ndarray:
    """(n, 2) the first and the last descendant of each token, itself included."""
    reach = np.repeat(np.arange(len(heads))[:, None], 2, axis=1)
    for token in np.flatnonzero(heads != NO_TOKEN):
        above, seen = heads[token], {token}
        while above not in seen:  # ends at a root; words that share a sub-word can form a cycle
            reach[above] = min(reach[above, 0], token), max(reach[above, 1], token)
            seen.add(above)
            above = heads[above]
    return reach


def draw_phrases(heads: np.ndarray, random: np.random.Generator) -> Samples:
    """Sample heads, for each a nearby token of its phrase (positive) and nearby tokens outside (negatives).

    If outside tokens lie beyond the positive, seen from the head, the positive is an anchor, too: it should
    be closer to the head than to them. A head's own head is never a negative.
    """
    reach, inner = subtree_spans(heads), np.flatnonzero(heads != NO_TOKEN)
    chosen: list[tuple[int, int, np.ndarray]] = []
    for head in _heads(heads):
        (first, last), near = reach[head], np.abs(inner - head) <= INSIDE
        near &= (inner >= first) & (inner <= last) & (inner != head)
        if random.random() >= PHRASE_SHARE or not near.any():
            continue
        inside = random.choice(inner[near])
        outside = inner[
            ((inner < first) & (inner >= first - OUTSIDE)) | ((inner > last) & (inner <= last + OUTSIDE))
        ]
        outside = random.permutation(outside)[:PHRASE_NEGATIVES]
        outside = outside[outside != heads[head]]
        beyond = outside[(outside - inside) * (inside - head) > 0]
        chosen += [(head, inside, outside)] * bool(len(outside))
        chosen += [(inside, head, beyond)] * bool(len(beyond))
    return _samples(chosen, np.full((len(chosen), PHRASE_NEGATIVES), NO_TOKEN))


def draw_subtrees(heads: np.ndarray, random: np.random.Generator) -> Samples:
    """Each head except roots with its subtree (positive) and shifted spans that contain it (negatives).

    Shifted spans are as long as the subtree, one token longer or (for subtrees of at least 4) one shorter.
    """
    reach, inner = subtree_spans(heads), np.flatnonzero(heads != NO_TOKEN)
    chosen = []
    for head in _heads(heads):
        first, last = reach[head]
        if heads[head] == head or last - first >= MAX_SUBTREE:
            continue
        ends = [last, last + 1, last - 1] if last - first > 2 else [last, last + 1]
        moved = [span for end in ends for span in _shifts(head, first, end, inner[0], inner[-1])]
        if moved:
            picked = random.permutation(len(moved))[:TREE_NEGATIVES]
            chosen.append((head, (first, last), [moved[place] for place in picked]))
    return _samples(chosen, np.full((len(chosen), TREE_NEGATIVES, 2), NO_TOKEN))


def _samples(chosen: Sequence[tuple[int, Any, Sequence]], negatives: np.ndarray) -> Samples:
    """The anchor, positive and negatives of each sample as arrays; `negatives` has room for theirs."""
    for row, (_, _, others) in zip(negatives, chosen, strict=True):
        row[: len(others)] = others
    anchors = np.array([anchor for anchor, _, _ in chosen], dtype=np.int64)
    positives = np.array([positive for _, positive, _ in chosen], dtype=np.int64)
    positives = positives.reshape(-1, *negatives.shape[2:])
    return {"anchors": anchors, "positives": positives, "negatives": negatives}


def _heads(heads: np.ndarray) -> np.ndarray:
    """The tokens that have dependents."""
    places = np.arange(len(heads))
    return np.unique(heads[(heads != NO_TOKEN) & (heads != places)])


def _shifts(head: int, first: int, last: int, least: int, most: int) -> list[tuple[int, int]]:
    """All shifts of the span that contain the head and lie between `least` and `most`."""
    left = range(1, min(first - least, last - head) + 1)
    right = range(1, min(head - first, most - last) + 1)
    return [(first - by, last - by) for by in left] + [(first + by, last + by) for by in right]


def flatten_samples(parts: Sequence[Samples], length: int) -> dict[str, Tensor]:
    """The samples of all sentences of a batch (B, `length`), as positions in the flattened batch."""
    moved = [
        {name: np.where(values == NO_TOKEN, NO_TOKEN, values + row * length) for name, values in part.items()}
        for row, part in enumerate(parts)
    ]
    return {name: torch.from_numpy(np.concatenate([part[name] for part in moved])) for name in moved[0]}


def phrase_loss(attention: Tensor, anchors: Tensor, positives: Tensor, negatives: Tensor) -> Tensor:
    """Mean of log(e^(J+/t) / (e^(J+/t) + Σ e^(J-/t))), J the Jensen–Shannon divergence of two tokens'
    attention.

    As published, the logarithm itself is minimised, not its negative: it decreases with J+.

    Args:
        attention: (B, n, n), mean over the heads of the last layer, 0 at pads.
        anchors, positives, negatives: of `flatten_samples`.
    """
    rows = attention.flatten(0, 1)
    anchor = rows[anchors]
    near = _divergence(anchor, rows[positives]) / TEMPERATURE
    far = _divergence(anchor[:, None], rows[negatives.clamp(min=0)]) / TEMPERATURE
    far = far.masked_fill(negatives == NO_TOKEN, float("-inf"))
    return (near - torch.cat([near[:, None], far], dim=1).logsumexp(1)).mean()


def _divergence(first: Tensor, second: Tensor) -> Tensor:
    middle = (first + second) / 2

    def towards_middle(row: Tensor) -> Tensor:
        return (row * ((row + EPSILON) / (middle + EPSILON)).log()).sum(-1)

    return (towards_middle(first) + towards_middle(second)) / 2


def tree_loss(features: Tensor, anchors: Tensor, positives: Tensor, negatives: Tensor) -> Tensor:
    """Mean of −log(e^(c+/t) / (e^(c+/t) + Σ e^(c-/t))), c the cosine between a head and a span.

    A span's vector is a weighted mean, by the head's attention to its tokens (a softmax of dot products). The
    sum is over the COUNTED_NEGATIVES hardest negatives.

    Args:
        features: (B, n, d).
        anchors, positives, negatives: of `flatten_samples`.
    """
    tokens = features.flatten(0, 1)
    anchor = tokens[anchors]  # (T, d)
    # All spans contain the anchor and have at most MAX_SUBTREE + 1 tokens: a window around it covers them.
    around = torch.arange(-MAX_SUBTREE, MAX_SUBTREE + 1, device=tokens.device) + anchors[:, None]
    window = tokens[around.clamp(0, len(tokens) - 1)]  # (T, W, d)
    products = torch.einsum("td,twd->tw", anchor, window)

    def cosines(spans: Tensor) -> Tensor:  # (T, K, 2) → (T, K)
        inside = (around[:, None] >= spans[..., :1]) & (around[:, None] <= spans[..., 1:])
        inside |= (spans == NO_TOKEN).any(-1, keepdim=True)  # no span: any finite value, masked later
        weights = products[:, None].masked_fill(~inside, float("-inf")).softmax(-1)
        return torch.cosine_similarity(anchor[:, None], weights @ window, dim=-1)

    near = cosines(positives[:, None]) / TEMPERATURE
    far = (cosines(negatives) / TEMPERATURE).masked_fill((negatives == NO_TOKEN).any(-1), float("-inf"))
    hardest = far.topk(COUNTED_NEGATIVES, dim=1).values
    return -(near[:, 0] - torch.cat([near, hardest], dim=1).logsumexp(1)).mean()
