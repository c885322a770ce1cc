"""Guides: how syntax guides self-attention. One file per guide; all implement the interface `Guide`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any

from torch import Tensor, nn

from synmask.options import GuideOptions, guide_names, options_of

Drop = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Shape:
    """Sizes of the guided model: width d, attention heads H, feed-forward width, encoder layers.

    Raises:
        ValueError: a size is no whole number above 0, or the heads do not divide the width.
    """

    embed_dim: int
    heads: int
    ffn_dim: int
    layers: int

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a whole number above 0, not {value!r}")
        if self.embed_dim % self.heads:
            raise ValueError(f"embed_dim {self.embed_dim} is not a multiple of heads {self.heads}")


@dataclass(frozen=True)
class LossInputs:
    """The inputs of a guide's own loss after a forward pass.

    Attributes:
        source: the prepared state of the encoder's guide; None: no guide.
        target: that of the decoder's guide.
        annotations: those of the batch.
        cross_attention: (B, m, n), of the m target tokens to the n source tokens: in a guided decoder, the
            mean over the heads of its second-last layer; else None.
    """

    source: Any
    target: Any
    annotations: Mapping[str, Tensor]
    cross_attention: Tensor | None


@dataclass(frozen=True)
class Syntax:
    """Induced syntax: `distance` (B, n-1) of the gaps between tokens, `height` (B, n) and `distribution`
    (B, n, n) of the tokens' heads; None for what the guide does not induce."""

    distance: Tensor
    height: Tensor | None = None
    distribution: Tensor | None = None


class Guide(nn.Module, ABC):
    """The interface of guides: the model calls `prepare` once per batch and `attend` in each guided layer.

    A guide's parameters are trained with the model's. B: batch size, n: length, H: heads.

    A guide may read these annotations (`options.needs`), of integers; positions count in the padded batch:
        "bpe_labels" (B, n): 0 or 2; 1 at pads.
        "heads" (B, n, 2): first and last sub-word of the head word; for the root, of the root itself; for
            `</s>`, its own position; -1 at pads and in sentences without a parse.
        "distances" (B, n): constituency distance of the gap after each token; -1 at pads, after `</s>` and in
            sentences without a parse.
        "words" (B, n, 4), only for RoBERTa's tasks: the first sub-word of the token's word; the first
            sub-word of this word's head (a root is its own head); the sentence of the example, 1 or 2; 1 for
            punctuation. Both positions are -1 without a word or a parse, as at `<s>`, `</s>` and pads.

    Attributes:
        options: its options in the configuration; shape: the model's sizes.
        layers: the number of guided layers, counted from the first.

    Raises:
        ValueError: no `GuideOptions`, or they guide more heads or layers than there are.
    """

    layers: int = 1

    def __init__(self, options: GuideOptions, shape: Shape) -> None:
        super().__init__()
        require_options(self, options)
        for key, size in (("heads", shape.heads), ("layers", shape.layers)):
            if (guided := getattr(options, key, None) or 0) > size:
                raise ValueError(f"{key} must be at most {size}, which the encoder has, not {guided}")
        self.options = options
        self.shape = shape

    @abstractmethod
    def prepare(self, x: Tensor, padding: Tensor, annotations: Mapping[str, Tensor]) -> Any:
        """The state that all guided layers share.

        Args:
            x: (B, n, d), the input of the first layer, 0 at pads.
            padding: (B, n) bool, True at pads, on either side.
            annotations: the tensors that the guide needs.
        """

    @abstractmethod
    def attend(self, scores: Tensor, prepared: Any, layer: int) -> Tensor:
        """Scaled, unmasked scores → attention weights.

        Args:
            scores: (B, H, n, n).

        Returns:
            (B, H, n, n); 0 in the columns of pads and, in a decoder, of later tokens.
        """

    def context(
        self, scores: Tensor, values: Tensor, states: Tensor, drop: Drop, prepared: Any, layer: int
    ) -> Tensor:
        """The context of each token: by default the values weighted by `attend`.

        Args:
            scores: as for `attend`; values: (B, H, n, d_head); states: (B, n, d), the layer's input.
            drop: attention dropout, applied to the weights.

        Returns:
            (B, H, n, d_head).
        """
        return drop(self.attend(scores, prepared, layer)) @ values

    def start_plain(self) -> None:
        """For a pre-trained model: start close to unguided attention. By default, do nothing."""

    def decoder(self) -> "Guide | None":
        """A guide for the decoder's first self-attention; None leaves the decoder unguided."""
        return None

    def steps(
        self, cached: Callable[[Callable[[Tensor], Tensor], int], Any]
    ) -> Callable[[Tensor, Any], Tensor] | None:
        """This guide in beam search, one token at a time; None unless `decoder` returns such a guide.

        Args:
            cached: makes a self-attention with a cache, of the function that computes query, key and value
                and the number of heads (pipeline/search/cached_attention.py).

        Returns:
            the input of the first layer at the last tokens (S, W, d), and their hypotheses' paths
            (pipeline/search/slots.py) → the bias to add to the scores of the tokens on these paths
            (S, H, W, t).
        """
        return None

    def loss(self, inputs: LossInputs) -> Tensor | None:
        """The guide's own training loss, summed over the batch's tokens, or None."""
        return None

    def syntax(self, prepared: Any) -> Syntax | None:
        """The syntax induced for a batch; None unless the guide's options declare that it induces it."""
        return None


def require_options(guide: Guide, options: Any) -> None:
    """Raise ValueError unless these are options of a guide, and not a dict of them."""
    if not isinstance(options, GuideOptions):
        name = type(guide).__name__.removesuffix("Guide")
        advice = f'give {name}Options(…), or call build_guide("{name.lower()}", {{…}}, shape)'
        raise ValueError(f"options must not be {options!r}: {advice}")


def build_guide(name: str, options: Mapping[str, Any], shape: Shape) -> Guide:
    """The guide `name` for a model of this shape.

    Raises:
        ValueError: an unknown guide or option, or a wrong value.
    """
    if name not in (names := guide_names()):
        raise ValueError(f"guide {name!r} is not known; there are: {', '.join(names)}")
    options_class = options_of(name)
    known = [option.name for option in fields(options_class)]
    if unknown := [option for option in options if option not in known]:
        raise ValueError(f"{name} has no option {unknown[0]!r}; there are: {', '.join(known) or 'none'}")
    guide = getattr(import_module(f"synmask.guides.{name}"), f"{name.capitalize()}Guide")
    return guide(options_class(**options), shape)
