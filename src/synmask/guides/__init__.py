"""Guides: how syntax guides self-attention. One file a system, all behind the small interface `Guide`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from torch import Tensor, nn

from synmask.config.guides import GUIDES, GuideOptions

Drop = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Shape:
    """Size of the model that is guided: width d, attention heads H, feed-forward width, encoder layers."""

    embed_dim: int
    heads: int
    ffn_dim: int
    layers: int


@dataclass(frozen=True)
class Done:
    """What a training pass leaves for a guide's own loss.

    source, target: what the encoder's guide and the decoder's (None, if there is none) prepared;
    annotations: the batch's; cross_attention (B, m, n): of the m target tokens to the n source tokens, mean
    over the heads of one decoder layer (the last but one in a guided decoder).
    """

    source: Any
    target: Any
    annotations: Mapping[str, Tensor]
    cross_attention: Tensor


@dataclass(frozen=True)
class Syntax:
    """What a guide induced: `distance` (B, n-1), of the gaps between tokens, `height` (B, n) and
    `distribution` (B, n, n), of tokens' heads; None where it induces no such thing."""

    distance: Tensor
    height: Tensor | None = None
    distribution: Tensor | None = None


class Steps(Protocol):
    """A decoder's guide in beam search: S sentences have W hypotheses each (see search/attention.py)."""

    def __call__(self, x: Tensor, path: Tensor, slots: int) -> Tensor:
        """What is added to the scores of the last tokens.

        Args:
            x: (S, W, d), what the first layer gets of them.
            path: (S, W, t), the slots of all tokens of their hypotheses.
            slots: how many slots there are, the last W of which are the last tokens'.

        Returns:
            (S, H, W, t), for the tokens on the path.
        """

    def keep(self, sentences: Tensor, slots: Tensor) -> None:
        """Go on with these of the S sentences, (S', 1), and these slots of each, (S', m), in this order."""


class Guide(nn.Module, ABC):
    """What the model asks of a guide: `prepare` once a batch, `attend` in each guided layer.

    A guide's parameters train with the model's. `n` is the length, B the batch, H the heads.

    Annotations it may read (`options.needs`), positions counted in the padded batch:
        "bpe_labels" (B, n): 0 or 2, 1 at pads.
        "heads" (B, n, 2): first and last sub-word of the head's word; of the own word for the root's, the own
            position for `</s>`; -1 where the sentence has no annotation and at pads.
        "distances" (B, n): constituency distance of the gap after each token; -1 where the sentence has no
            annotation, at pads and after `</s>`.
        "words" (B, n, 4), of RoBERTa's tasks alone: first sub-word of the token's own word, and of the head
            of that word (a root is its own); which sentence of the example it is, 1 or 2; 1 for punctuation.
            The two positions are -1 where no word or no parse is, as at `<s>`, `</s>` and pads.

    Attributes:
        options: its section of the configuration; shape: the model's.
        layers: how many layers it guides, from the first.
    """

    layers: int = 1

    def __init__(self, options: GuideOptions, shape: Shape) -> None:
        super().__init__()
        self.options = options
        self.shape = shape

    @abstractmethod
    def prepare(self, x: Tensor, padding: Tensor, annotations: Mapping[str, Tensor]) -> Any:
        """What all guided layers share.

        Args:
            x: (B, n, d), what the first layer gets, zero at pads.
            padding: (B, n) bool, True at pads, on either side.
            annotations: the tensors that it needs.
        """

    @abstractmethod
    def attend(self, scores: Tensor, prepared: Any, layer: int) -> Tensor:
        """Scaled scores, before any masking -> attention weights.

        Args:
            scores: (B, H, n, n).

        Returns:
            as `scores`; 0 in the columns of pads and, in a decoder, of tokens after the row's.
        """

    def context(
        self, scores: Tensor, values: Tensor, states: Tensor, drop: Drop, prepared: Any, layer: int
    ) -> Tensor:
        """What each token gets from the others: by default the values weighted by `attend`.

        Args:
            scores: as for `attend`; values: (B, H, n, d_head); states: (B, n, d), what the layer gets.
            drop: attention dropout, for the weights.

        Returns:
            (B, H, n, d_head).
        """
        return drop(self.attend(scores, prepared, layer)) @ values

    def start_plain(self) -> None:
        """For a pre-trained model: start as near to unguided attention as it can. By default it does so."""

    def decoder(self) -> "Guide | None":
        """A guide for the decoder's first self-attention, or None: the decoder stays as it is."""
        return None

    def steps(self) -> "Steps":
        """This guide in beam search, one token at a time; only guides that `decoder` returns need it."""
        raise NotImplementedError(f"{type(self).__name__} guides no beam search")

    def loss(self, done: Done) -> Tensor | None:
        """A training loss of its own, summed over the batch's tokens, or None."""
        return None

    def syntax(self, prepared: Any) -> Syntax:
        """What it found out about a batch; only for guides whose options say that they induce something."""
        raise NotImplementedError(f"{type(self).__name__} induces no syntax")


def build_guide(name: str, options: Mapping[str, Any], shape: Shape) -> Guide:
    """The guide `name` for a model of that shape.

    Raises:
        ValueError: no such guide, no such option, or an option has a wrong value.
    """
    if name not in GUIDES:
        raise ValueError(f"guide {name!r} is not known; there are: {', '.join(GUIDES)}")
    guide = getattr(import_module(f"synmask.guides.{name}"), f"{name.capitalize()}Guide")
    return guide(GUIDES[name].model_validate(options), shape)
