"""A decoder layer in beam search as one operator in C++; another makes the best continuations (steps.py)."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from synmask.pipeline.cpu.processor import CPU
from synmask.pipeline.search import extension
from synmask.pipeline.search.products import PANEL, Products
from synmask.pipeline.search.slots import Paths

MULTIPLE = 16  # a head's size and a memory's slots are multiples of it


def can_fuse(products: Products, layer: Any, memory: Tensor) -> bool:
    """Whether the operators were built and support a layer; memory: as for `FusedLayer`."""
    d, heads = memory.size(-1) // 2, {layer.self_attn.num_heads, layer.encoder_attn.num_heads}
    fits = d % PANEL == 0 and len(heads) == 1 and d // heads.pop() % MULTIPLE == 0
    multiplied = products.rounded is None or (CPU.bf16_pairs and extension.LANES == 16)
    return extension.LANES > 0 and extension.is_supported(memory) and multiplied and fits


class FusedLayer:
    """A decoder layer of fairseq (post-norm, relu).

    Args:
        memory: (rows, n, 2d), the keys and values of the sources.
        padding: (rows, n), True at pads.
    """

    def __init__(self, products: Products, layer: Any, memory: Tensor, padding: Tensor) -> None:
        self_attn, cross_attn, pack = layer.self_attn, layer.encoder_attn, products.panels
        tail = (cross_attn.out_proj, layer.fc1, layer.fc2)
        norms = (layer.encoder_attn_layer_norm, layer.final_layer_norm, layer.self_attn_layer_norm)
        self.layers = [*map(pack, tail), pack(self_attn.q_proj, self_attn.k_proj, self_attn.v_proj)]
        self.layers += [pack(self_attn.out_proj), pack(cross_attn.q_proj)]
        self.norms = [part for norm in norms for part in (norm.weight, norm.bias)]
        self.eps, self.heads = norms[0].eps, self_attn.num_heads
        missing = -memory.size(1) % MULTIPLE
        keys, values = F.pad(memory, (0, 0, 0, missing)).chunk(2, dim=-1)
        self.keys, self.values = keys.mT.contiguous(), values.contiguous()
        self.bias = torch.zeros_like(F.pad(padding, (0, missing)), dtype=memory.dtype)
        self.bias.masked_fill_(F.pad(padding, (0, missing), value=True), float("-inf"))
        self.like = memory.new_empty(0, memory.size(-1))
        self.memory: Tensor | None = None

    def __call__(self, x: Tensor, paths: Paths, bias: Tensor | None) -> Tensor:
        """x (S, W, d) → same; paths, bias: as for `CachedSelfAttention`."""
        self.memory = paths.with_room(self.memory, self.like)
        source = self.keys, self.values, self.bias
        where = self.heads, paths.rows, paths.slots, bias
        parts = self.layers, self.norms, self.eps
        return torch.ops.synmask.layer(x, *parts, self.memory, *source, *where, extension.LANES)
