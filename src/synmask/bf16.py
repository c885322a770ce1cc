"""Products in bf16 on CPUs that have no instructions for it."""

import functools

import torch
from torch import Tensor

has_instructions = functools.cache(torch.ops.mkldnn._is_mkldnn_bf16_supported)


def lacking(x: Tensor) -> bool:
    """Whether `x` is in bf16 on a CPU without instructions for it.

    Products take torch 5 to 25 times as long there as in float32. They are then computed in float32 and
    rounded. The instructions, too, add in float32 and round once, so only the order of the sums differs.
    """
    return x.dtype == torch.bfloat16 and x.device.type == "cpu" and not has_instructions()


def product(x: Tensor, y: Tensor) -> Tensor:
    """x @ y."""
    return (x.float() @ y.float()).to(x.dtype) if lacking(x) else x @ y
