"""Relations between tokens in the dependency trees of their words."""

from torch import Tensor

from synmask.guides.attention import masked_softmax
from synmask.options import NO_TOKEN


def ancestors(words: Tensor, depth: int) -> list[Tensor]:
    """Each token's own word, its head, the head of this, ... as positions of their first sub-words.

    Args:
        words: (B, n, 4), the annotation "words" (guides/__init__.py).

    Returns:
        depth + 1 tensors (B, n); -1 above a root and for tokens without a word.
    """
    word, head = words[..., 0], words[..., 1]
    parent = head.masked_fill(head == word, NO_TOKEN)
    line = [word]
    for _ in range(depth):
        below = line[-1]
        line.append(parent.gather(1, below.clamp(min=0)).masked_fill(below == NO_TOKEN, NO_TOKEN))
    return line


def same_position(first: Tensor, second: Tensor) -> Tensor:
    """Whether token i in `first` equals token j in `second`, both of `ancestors` → (B, n, n) bool."""
    return (first[:, :, None] == second[:, None, :]) & (first[:, :, None] != NO_TOKEN)


def within_edges(words: Tensor, edges: int) -> Tensor:
    """Whether the words of two tokens are at most `edges` edges apart: (B, n, 4) → (B, n, n) bool."""
    line = ancestors(words, edges)
    near = same_position(line[0], line[0])
    for up in range(edges + 1):
        for down in range(edges + 1 - up):
            near |= same_position(line[up], line[down])
    return near


def restricted_softmax(scores: Tensor, allowed: Tensor, padding: Tensor) -> Tensor:
    """Softmax over the allowed tokens; over all tokens in rows that allow none.

    Args:
        scores: (B, H, n, n); allowed: (B, n, n) bool; padding: (B, n) bool, True at pads.
    """
    pads = padding[:, None, :]
    free = ~(allowed & ~pads).any(-1, keepdim=True)
    return masked_softmax(scores, (pads | ~(allowed | free))[:, None])
