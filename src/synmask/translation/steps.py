"""The decoder for beam search, one token at a time. Constants of a sentence are computed once."""

from functools import partial
from typing import Any

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor

from synmask.search.attention import SelfAttention, attended
from synmask.search.products import Products
from synmask.translation.layers import DecoderLayer


class CrossAttention:
    """Attention to the source; the hypotheses of a sentence share its keys and values."""

    def __init__(
        self, products: Products, attention: MultiheadAttention, states: Tensor, padding: Tensor
    ) -> None:
        """states (n, S, d); padding (S, n), True at pads."""
        self.products, self.attention = products, attention
        real = ~padding.all(0)
        states, padding = states[real].transpose(0, 1), padding[:, real]
        self.memory = products(states, attention.k_proj, attention.v_proj)
        bias = torch.zeros_like(padding, dtype=states.dtype).masked_fill(padding, float("-inf"))
        self.bias = bias[:, None, None]

    def __call__(self, x: Tensor, plus: Tensor | None = None) -> Tensor:
        """x (S, W, d) → same, with `plus` added."""
        own, products = self.attention, self.products
        context = attended(products(x, own.q_proj), self.memory, own.num_heads, bias=self.bias)
        return products(context, own.out_proj, plus=plus)

    def keep(self, sentences: Tensor) -> None:
        """Keep only these of the S sentences, (S', 1)."""
        self.memory, self.bias = self.memory[sentences[:, 0]], self.bias[sentences[:, 0]]


class GatedSteps:
    """`translation.templates.GatedAttention`: attention to source and template."""

    def __init__(self, attention: Any, source: CrossAttention, template: CrossAttention) -> None:
        self.attention, self.source, self.template = attention, source, template

    def __call__(self, x: Tensor, plus: Tensor) -> Tensor:
        """x (S, W, d) → same, with `plus` added."""
        empty = self.template.bias.isfinite().sum(-1) == 1
        return plus + self.attention.mixed(self.source(x), self.template(x), empty)

    def keep(self, sentences: Tensor) -> None:
        """Go on with these of the S sentences, (S', 1)."""
        self.source.keep(sentences)
        self.template.keep(sentences)


class LayerSteps:
    """A decoder layer."""

    def __init__(self, products: Products, layer: DecoderLayer, cross: CrossAttention | GatedSteps) -> None:
        self.products, self.layer, self.cross = products, layer, cross
        own = layer.self_attn
        project = partial(self._project, layers=(own.q_proj, own.k_proj, own.v_proj))
        self.own = SelfAttention(project, own.num_heads)

    def __call__(self, x: Tensor, path: Tensor, slots: int, bias: Tensor | None) -> Tensor:
        """x (S, W, d) → same; path, slots, bias: as for `SelfAttention`."""
        layer, products = self.layer, self.products
        context = self.own(x, path, slots, bias)
        x = layer.self_attn_layer_norm(products(context, layer.self_attn.out_proj, plus=x))
        x = layer.encoder_attn_layer_norm(self.cross(x, plus=x))
        hidden = products(x, layer.fc1, relu=True)
        return layer.final_layer_norm(products(hidden, layer.fc2, plus=x))

    def _project(self, x: Tensor, layers: tuple) -> Tensor:
        return self.products(x, *layers)

    def keep(self, sentences: Tensor, slots: Tensor) -> None:
        self.own.keep(sentences, slots)
        self.cross.keep(sentences)


class DecoderSteps:
    """A decoder, one token of each hypothesis at a time, up to `longest` tokens and `</s>`."""

    def __init__(self, decoder: Any, encoder_out: dict[str, Any], longest: int, products: Products) -> None:
        self.decoder, self.products = decoder, products
        self.layers = [
            LayerSteps(products, layer, decoder.cross_steps(products, layer, encoder_out))
            for layer in decoder.layers
        ]
        ids = encoder_out["encoder_padding_mask"][0].new_full(
            (1, longest + 1), decoder.dictionary.eos(), dtype=torch.long
        )  # any id except <pad>
        self.positions = decoder.embed_positions(ids)[0]
        self.gates = None if decoder.guide is None else decoder.guide.steps()

    def __call__(self, tokens: Tensor, path: Tensor, slots: int) -> Tensor:
        """The logits (S, W, V) of the next tokens.

        Args:
            tokens: (S, W) the last tokens of the hypotheses; they are in the last W of the `slots`.
            path: (S, W, t) the slots of all tokens of each hypothesis.
        """
        decoder = self.decoder
        x = decoder.embed_scale * decoder.embed_tokens(tokens) + self.positions[path.size(2) - 1]
        bias = None if self.gates is None else self.gates(x, path, slots)
        for layer in self.layers:
            x, bias = layer(x, path, slots, bias), None
        return self.products(x, decoder.output_projection)

    def keep(self, sentences: Tensor, slots: Tensor) -> None:
        """Keep only these of the S sentences, (S', 1), and these slots of each, (S', m)."""
        for part in [*self.layers, *([] if self.gates is None else [self.gates])]:
            part.keep(sentences, slots)
