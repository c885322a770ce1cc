"""Products in bf16, also under autocast, on CPUs that have no instructions for it."""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

has_instructions = functools.cache(torch.ops.mkldnn._is_mkldnn_bf16_supported)


def lacks_bf16(x: Tensor) -> bool:
    """Whether products of `x`, in autocast's type, are in bf16 on a CPU without instructions for it.

    Products take torch 5 to 25 times as long there as in float32. They are then computed in float32 and
    rounded. The instructions, too, add in float32 and round once, so only the order of the sums differs.
    """
    if x.device.type != "cpu":
        return False
    dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype
    return dtype == torch.bfloat16 and not has_instructions()


def bf16_product(function: Callable[..., Tensor], x: Tensor, *others: Tensor | None) -> Tensor:
    """function(x, *others), a product: in autocast's type, or in float32 where the CPU `lacks_bf16`."""
    device = x.device.type
    if device != "meta" and torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        with torch.autocast(device, enabled=False):  # autocast would undo the choice of float32
            return bf16_product(function, *(_cast(value, dtype) for value in (x, *others)))
    if lacks_bf16(x):
        return function(*(_cast(value, torch.float32) for value in (x, *others))).to(x.dtype)
    return function(x, *others)


def float32_products() -> AbstractContextManager:
    """Compute products of all modules in a block in float32, and round them, where the CPU `lacks_bf16`."""
    return nullcontext() if has_instructions() else _Float32Products()


def recompute_contexts() -> tuple[AbstractContextManager, AbstractContextManager]:
    """For `torch.utils.checkpoint`, whose backward pass leaves the block of the forward pass."""
    return nullcontext(), float32_products()


class _Float32Products(TorchFunctionMode):
    PRODUCTS = (
        torch.matmul, torch.bmm, torch.einsum, Tensor.matmul, Tensor.__matmul__, Tensor.__rmatmul__, F.linear,
        F.scaled_dot_product_attention, F.multi_head_attention_forward,
    )  # fmt: skip

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        x = next((value for value in args if isinstance(value, Tensor)), None)
        if function not in self.PRODUCTS or x is None or not lacks_bf16(x):
            return function(*args, **kwargs)
        with torch.autocast("cpu", enabled=False):
            wide = {name: _to_float32(value) for name, value in kwargs.items()}
            result = function(*map(_to_float32, args), **wide)
        if isinstance(result, tuple):  # attention, and its weights
            return result[0].bfloat16(), *result[1:]
        return result.bfloat16()


def _to_float32(value: Any) -> Any:
    """A tensor's numbers in float32, as bf16 rounds them; what is no such tensor, as it is."""
    return _cast(_cast(value, torch.bfloat16), torch.float32)


def _cast(value: Any, dtype: torch.dtype) -> Any:
    return value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value
