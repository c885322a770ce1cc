"""Guides: how syntax guides self-attention. One file a system, all behind the small interface `Guide`."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn


class Guide(nn.Module, ABC):
    """What the encoder asks of a guide: `prepare` once a batch, `attend` in each guided layer.

    A guide's parameters train with the model's. `n` is the source length, B the batch, H the heads.

    Attributes:
        needs: the annotations it reads, each (B, n): "bpe_labels" (0, 2; 1 at pads), "heads" (position of the
            dependency head), "distances" (constituency distance of the gap after each token).
        layers: how many encoder layers it guides, from the first.
    """

    needs: frozenset[str] = frozenset()
    layers: int = 1

    @abstractmethod
    def prepare(self, x: Tensor, padding: Tensor, annotations: Mapping[str, Tensor]) -> Any:
        """What all guided layers share.

        Args:
            x: (B, n, d), what the first encoder layer gets, zero at pads.
            padding: (B, n) bool, True at pads, on either side.
            annotations: the tensors named in `needs`.
        """

    @abstractmethod
    def attend(self, scores: Tensor, prepared: Any, layer: int) -> Tensor:
        """Scaled scores (B, H, n, n), before any masking -> attention weights, 0 in the columns of pads."""

    def loss(self, prepared: Any, annotations: Mapping[str, Tensor]) -> Tensor | None:
        """A training loss of its own, summed over the batch's tokens, or None."""
        return None


def build_guide(name: str, options: Mapping[str, Any], embed_dim: int, heads: int) -> Guide:
    """The guide `name` for an encoder of width `embed_dim` with `heads` heads.

    Raises:
        ValueError: no such guide, or an option has a wrong value.
        TypeError: no such option.
    """
    from synmask.guides.grammar import GrammarGuide  # it imports Guide from here

    guides = {"grammar": GrammarGuide}
    if name not in guides:
        raise ValueError(f"guide {name!r} is not known; there are: {', '.join(guides)}")
    return guides[name](embed_dim, heads, **options)
