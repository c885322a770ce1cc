"""The decoder for beam search, one token at a time. Constants of a sentence are computed once."""

from typing import Any

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor

from synmask.guides.steps import SelfAttention, attended, on_path
from synmask.translation.layers import DecoderLayer, feed_forward


class CrossAttention:
    """Attention to the source; the hypotheses of a sentence share its keys and values."""

    def __init__(self, attention: MultiheadAttention, states: Tensor, padding: Tensor) -> None:
        """states (n, S, d); padding (S, n), True at pads."""
        self.attention = attention
        real = ~padding.all(0)
        states, padding = states[real].transpose(0, 1), padding[:, real]
        self.memory = torch.cat([attention.k_proj(states), attention.v_proj(states)], dim=-1)
        self.bias = torch.zeros_like(padding, dtype=states.dtype).masked_fill(padding, float("-inf"))

    def __call__(self, x: Tensor) -> Tensor:
        """x (S, W, d) → same."""
        own, bias = self.attention, self.bias[:, None, None]
        return own.out_proj(attended(own.q_proj(x), self.memory, own.num_heads, bias))

    def keep(self, sentences: Tensor) -> None:
        """Keep only these of the S sentences, (S', 1)."""
        self.memory, self.bias = self.memory[sentences[:, 0]], self.bias[sentences[:, 0]]


class LayerSteps:
    """A decoder layer."""

    def __init__(self, layer: DecoderLayer, cross: Any) -> None:
        self.layer, self.cross = layer, cross
        own = layer.self_attn
        made = (own.q_proj, own.k_proj, own.v_proj)
        weight, bias = (torch.cat([getattr(part, name) for part in made]) for name in ("weight", "bias"))
        self.own = SelfAttention(weight, bias, own.num_heads)

    def __call__(self, x: Tensor, bias: Tensor) -> Tensor:
        layer = self.layer
        x = layer.self_attn_layer_norm(x + layer.self_attn.out_proj(self.own(x, bias)))
        x = layer.encoder_attn_layer_norm(x + self.cross(x))
        return feed_forward(layer, x)

    def keep(self, sentences: Tensor, slots: Tensor) -> None:
        self.own.keep(sentences, slots)
        self.cross.keep(sentences)


class DecoderSteps:
    """A decoder, one token of each hypothesis at a time, up to `longest` tokens and `</s>`."""

    def __init__(self, decoder: Any, encoder_out: dict[str, Any], longest: int) -> None:
        self.decoder = decoder
        self.layers = [LayerSteps(layer, decoder.cross_steps(layer, encoder_out)) for layer in decoder.layers]
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
        bias = on_path(path, slots)
        first = bias if self.gates is None else self.gates(x, path, bias)
        for index, layer in enumerate(self.layers):
            x = layer(x, bias if index else first)
        return decoder.output_layer(x)

    def keep(self, sentences: Tensor, slots: Tensor) -> None:
        """Keep only these of the S sentences, (S', 1), and these slots of each, (S', m)."""
        for part in [*self.layers, *([] if self.gates is None else [self.gates])]:
            part.keep(sentences, slots)
