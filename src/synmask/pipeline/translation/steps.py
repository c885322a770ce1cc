"""The decoder for beam search, one token at a time. Constants of a sentence are computed once."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor

from synmask.pipeline.search import continuations, extension
from synmask.pipeline.search.cached_attention import CachedSelfAttention, cached_attention
from synmask.pipeline.search.fused import FusedLayer, can_fuse
from synmask.pipeline.search.products import Products
from synmask.pipeline.search.slots import Paths
from synmask.pipeline.translation.layers import DecoderLayer


class CrossAttention:
    """Attention to the source; the hypotheses of a sentence share its keys and values."""

    def __init__(
        self, products: Products, attention: MultiheadAttention, states: Tensor, padding: Tensor
    ) -> None:
        """states (n, S, d); padding (S, n), True at pads."""
        self.products, self.attention = products, attention
        real = ~padding.all(0)
        states, padding = states[real].transpose(0, 1), padding[:, real]
        self.memory, self.padding = products(states, attention.k_proj, attention.v_proj), padding
        bias = torch.zeros_like(padding, dtype=states.dtype).masked_fill(padding, float("-inf"))
        self.bias = bias[:, None, None]

    def __call__(self, x: Tensor, rows: Tensor, plus: Tensor | None = None) -> Tensor:
        """x (S, W, d) of the sentences `rows` (S,) → same, with `plus` added."""
        attention, products = self.attention, self.products
        query, heads = products(x, attention.q_proj), attention.num_heads
        context = cached_attention(query, self.memory, heads, rows, bias=self.bias[rows])
        return products(context, attention.out_proj, plus=plus)


class LayerSteps:
    """A decoder layer."""

    def __init__(self, products: Products, layer: DecoderLayer, cross: Any) -> None:
        self.products, self.layer, self.cross = products, layer, cross
        attention = layer.self_attn
        project = attention.q_proj, attention.k_proj, attention.v_proj
        self.attention = CachedSelfAttention(lambda x: products(x, *project), attention.num_heads)

    def __call__(self, x: Tensor, paths: Paths, bias: Tensor | None) -> Tensor:
        """x (S, W, d) → same; paths, bias: as for `CachedSelfAttention`."""
        layer, products = self.layer, self.products
        context = self.attention(x, paths, bias)
        x = layer.self_attn_layer_norm(products(context, layer.self_attn.out_proj, plus=x))
        x = layer.encoder_attn_layer_norm(self.cross(x, paths.rows, plus=x))
        hidden = products(x, layer.fc1, relu=True)
        return layer.final_layer_norm(products(hidden, layer.fc2, plus=x))


class DecoderSteps:
    """A decoder, one token of each hypothesis at a time, up to `longest` tokens and `</s>`."""

    def __init__(self, decoder: Any, encoder_out: dict[str, Any], longest: int, products: Products) -> None:
        self.decoder, self.products = decoder, products
        self.layers = [self._layer(layer, encoder_out) for layer in decoder.layers]
        self.fused = all(isinstance(layer, FusedLayer) for layer in self.layers)
        shape, device = (1, longest + 1), encoder_out["encoder_padding_mask"][0].device
        ids = torch.full(shape, decoder.dictionary.eos(), device=device)  # any id except <pad>
        self.positions = decoder.embed_positions(ids)[0]
        self.gates = None if decoder.guide is None else decoder.guide.steps(CachedSelfAttention)

    def _layer(self, layer: DecoderLayer, encoder_out: dict[str, Any]) -> LayerSteps | FusedLayer:
        cross = self.decoder.cross_steps(partial(CrossAttention, self.products), layer, encoder_out)
        if isinstance(cross, CrossAttention) and can_fuse(self.products, layer, cross.memory):
            return FusedLayer(self.products, layer, cross.memory, cross.padding)
        return LayerSteps(self.products, layer, cross)

    def __call__(self, tokens: Tensor, paths: Paths) -> Tensor:
        """The states (S, W, d) after the last tokens, `tokens` (S, W)."""
        decoder = self.decoder
        x = decoder.embed_scale * decoder.embed_tokens(tokens) + self.positions[paths.slots.size(2) - 1]
        bias = None if self.gates is None else self.gates(x, paths)
        for layer in self.layers:
            x, bias = layer(x, paths, bias), None
        return x


def next_tokens(
    decoders: Sequence[DecoderSteps], tokens: Tensor, paths: Paths, score: Tensor, count: int, never: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """`continuations.best_continuations` after the last tokens, `tokens` (S, W)."""
    states = [decoder(tokens, paths) for decoder in decoders]
    outputs = [decoder.decoder.output_projection for decoder in decoders]
    products = decoders[0].products
    if len(decoders) == 1 and decoders[0].fused:
        panels = products.panels(*outputs)
        return torch.ops.synmask.best_after(*states, panels, score, count, never, extension.LANES)
    logits = [products(x, output, exact=True) for x, output in zip(states, outputs, strict=True)]
    return continuations.best_continuations(logits, score, count, never)
