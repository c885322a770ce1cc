"""Products under autocast, and in bf16 on CPUs that have no instructions for it."""

import functools
from collections.abc import Callable

import torch
from torch import Tensor

has_instructions = functools.cache(torch.ops.mkldnn._is_mkldnn_bf16_supported)


def lacking(x: Tensor) -> bool:
    """Whether `x` is in bf16 on a CPU without instructions for it.

    Products take torch 5 to 25 times as long there as in float32. They are then computed in float32 and
    rounded. The instructions, too, add in float32 and round once, so only the order of the sums differs.
    """
    return x.dtype == torch.bfloat16 and x.device.type == "cpu" and not has_instructions()


def computed(function: Callable[..., Tensor], x: Tensor, *others: Tensor | None) -> Tensor:
    """function(x, *others), a product: in autocast's type, and where that is `lacking`, in float32."""
    device = x.device.type
    if torch.is_autocast_enabled(device):
        kind = torch.get_autocast_dtype(device)
        with torch.autocast(device, enabled=False):  # it would undo what `lacking` asks for
            return computed(function, *_cast(kind, x, *others))
    if lacking(x):
        return function(*_cast(torch.float32, x, *others)).to(x.dtype)
    return function(x, *others)


def product(x: Tensor, y: Tensor) -> Tensor:
    """x @ y."""
    return computed(torch.matmul, x, y)


def _cast(kind: torch.dtype, *tensors: Tensor | None) -> list[Tensor | None]:
    return [None if one is None else one.to(kind) for one in tensors]
