"""Products under autocast, and in bf16 on CPUs that have no instructions for it."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

has_instructions = functools.cache(torch.ops.mkldnn._is_mkldnn_bf16_supported)


def lacking(x: Tensor) -> bool:
    """Whether products of `x`, in autocast's type, are in bf16 on a CPU without instructions for it.

    Products take torch 5 to 25 times as long there as in float32. They are then computed in float32 and
    rounded. The instructions, too, add in float32 and round once, so only the order of the sums differs.
    """
    device = x.device.type
    kind = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
    return kind == torch.bfloat16 and device == "cpu" and not has_instructions()


def computed(function: Callable[..., Tensor], x: Tensor, *others: Tensor | None) -> Tensor:
    """function(x, *others), a product: in autocast's type, and where that is `lacking`, in float32."""
    device = x.device.type
    if torch.is_autocast_enabled(device):
        kind = torch.get_autocast_dtype(device)
        with torch.autocast(device, enabled=False):  # autocast would undo the choice of float32
            return computed(function, *_cast(kind, x, *others))
    if lacking(x):
        return function(*_cast(torch.float32, x, *others)).to(x.dtype)
    return function(x, *others)


def product(x: Tensor, y: Tensor) -> Tensor:
    """x @ y."""
    return computed(torch.matmul, x, y)


def in_float32(module: nn.Module, *inputs: Tensor, **others: Any) -> Any:
    """module(*inputs, **others) with its parameters and inputs in float32: for torch's own modules, whose
    products cannot be computed one by one, where bf16 is `lacking`."""
    wide = {name: parameter.float() for name, parameter in module.named_parameters()}
    with torch.autocast(inputs[0].device.type, enabled=False):
        return torch.func.functional_call(module, wide, (*_cast(torch.float32, *inputs),), others)


def _cast(kind: torch.dtype, *tensors: Tensor | None) -> list[Tensor | None]:
    return [None if one is None else one.to(kind) for one in tensors]
