"""The C++ operators of kernel.cpp, where they were built."""

from pathlib import Path

import torch
from torch import Tensor

from synmask.kernels import load
from synmask.pipeline.cpu.processor import CPU

LOADED = CPU.continuations == "C++" and load(__package__, Path(__file__).with_name("kernel.cpp")) is not None
# values that fused.py's operators add side by side; 0: they were not built
LANES = CPU.lanes if LOADED and hasattr(torch.ops.synmask, "layer") else 0


def serve(*tensors: Tensor) -> bool:
    """Whether the operators were built and support these tensors."""
    return LOADED and all(one.device.type == "cpu" and one.dtype == torch.float32 for one in tensors)
