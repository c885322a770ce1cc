"""The C++ operators of kernel.cpp, where they were built."""

from pathlib import Path

import torch
from torch import Tensor

from synmask.kernels import load_kernel
from synmask.pipeline.cpu.processor import CPU

LOADED = load_kernel(__package__, Path(__file__).with_name("kernel.cpp")) is not None
# values that fused.py's operators add side by side; 0: they were not built
LANES = CPU.lanes if LOADED and hasattr(torch.ops.synmask, "layer") else 0


def is_supported(*tensors: Tensor) -> bool:
    """Whether the operators were built and support these tensors."""
    return LOADED and all(tensor.device.type == "cpu" and tensor.dtype == torch.float32 for tensor in tensors)


def _continuations(score: Tensor, count: int, never: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    places = score.size(0), min(count, score.size(1) * min(count, never.size(0) - 1))
    return score.new_empty(places), *(never.new_empty(places, dtype=torch.long) for _ in range(2))


# Shapes of results, for PyTorch's tracers; not of `longer`, which returns a number that depends on values.
SHAPES = {
    "attend": lambda query, *_: torch.empty_like(query),
    "attend_own": lambda qkv, memory, *_: qkv.new_empty(*qkv.shape[:2], memory.size(2) // 2),
    "best": lambda logits, score, count, never: _continuations(score, count, never),
    "layer": lambda x, *_: torch.empty_like(x),
    "best_after": lambda x, packed, score, count, never, lanes: _continuations(score, count, never),
}
if LOADED:
    for name, shape in SHAPES.items():
        if hasattr(torch.ops.synmask, name):
            torch.library.register_fake(f"synmask::{name}", shape)
