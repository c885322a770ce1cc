"""Where the caches of beam search hold the tokens of hypotheses.

A cache has a row for each sentence that a search began with, and in the row slots, one per token. Hypotheses
with the same first tokens share the slots of these. So a cache is neither copied nor reordered when
hypotheses change places or sentences are finished; a slot that no hypothesis uses any more is used again.
"""

from typing import NamedTuple, Self

import torch
from torch import Tensor

from synmask.pipeline.search import extension

INITIAL_SLOTS = 32  # of a new cache; a full one grows to twice what it needs


def take_hypotheses(x: Tensor, sentences: Tensor, hypotheses: Tensor) -> Tensor:
    """x[sentences, hypotheses], x (S, W, t), faster."""
    places = sentences * x.size(1) + hypotheses
    return x.flatten(0, 1).index_select(0, places.flatten()).unflatten(0, places.shape)


class Paths(NamedTuple):
    """The paths of W hypotheses of t tokens for each of S unfinished sentences.

    Attributes:
        rows: (S,), the row of each sentence.
        slots: (S, W, t), those of each hypothesis, in the order of its tokens.
        size: the number of slots that a row needs.
    """

    rows: Tensor
    slots: Tensor
    size: int = 0

    @classmethod
    def start(cls, sentences: int, device: torch.device) -> Self:
        """One hypothesis without tokens for each sentence."""
        rows = torch.arange(sentences, device=device)
        return cls(rows, rows.new_empty((sentences, 1, 0)))

    def extend(self) -> Self:
        """The same hypotheses, each with one more token: in the first slots that none of them uses."""
        if extension.LOADED and self.slots.device.type == "cpu":
            return type(self)(self.rows, *torch.ops.synmask.longer(self.slots, self.size))
        sentences, width, _ = self.slots.shape
        used = torch.zeros((sentences, self.size + width), dtype=torch.uint8, device=self.slots.device)
        used.scatter_(1, self.slots.flatten(1), 1)
        free = used.argsort(dim=1, stable=True)[:, :width]
        slots = torch.cat([self.slots, free[..., None]], dim=2)
        return type(self)(self.rows, slots, max(self.size, int(free.max()) + 1))

    def take(self, sentences: Tensor, hypotheses: Tensor) -> Self:
        """These of the S sentences, (S', 1), each with these of its hypotheses, (S', W')."""
        slots = take_hypotheses(self.slots, sentences, hypotheses)
        return type(self)(self.rows[sentences[:, 0]], slots, self.size)

    def last(self) -> tuple[Tensor, Tensor]:
        """The index of the last tokens in a cache (rows, slots, ...): (S, 1) and (S, W)."""
        return self.rows[:, None], self.slots[..., -1]

    def with_room(self, cache: Tensor | None, like: Tensor) -> Tensor:
        """`cache` (rows, slots, width) with enough slots; None: a new one, as wide as `like` (..., width)."""
        if cache is not None and cache.size(1) >= self.size:
            return cache
        rows = len(self.rows) if cache is None else len(cache)
        grown = like.new_empty((rows, max(2 * self.size, INITIAL_SLOTS), like.size(-1)))
        if cache is not None:
            grown[:, : cache.size(1)] = cache
        return grown
