"""P_D on a CPU, by kernel.cpp, as an operator of PyTorch.

It exists where the kernel was built. in_pytorch.py is the same in PyTorch: it computes second derivatives,
and takes the operator's place in exported models and under torch.func.
"""

import ctypes
import os
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from synmask.induction.in_pytorch import gradients_by_autograd, height_range
from synmask.kernels import load_kernel

LIBRARY = load_kernel(__package__, Path(__file__).with_name("kernel.cpp"))
GRAIN = 1 << 14  # entries of P_D that are worth a thread
ARGUMENTS = "Tensor distance, Tensor height, Tensor? padding, Tensor distance_scale, Tensor height_scale"


def implementation(device: torch.device | str = "cpu") -> Literal["C++", "PyTorch", "Triton"]:
    """Which implementation of P_D is used on a device. They agree but for the last bits.

    The C++ operator is built where a compiler is at installation. Triton's kernels, which have not run on a
    GPU yet, are used where the environment has SYNMASK_TRITON=1, for what in_triton.py `supports`.
    """
    place = torch.device(device).type
    if place == "cpu" and LIBRARY:
        return "C++"
    return "Triton" if place == "cuda" and os.environ.get("SYNMASK_TRITON") == "1" else "PyTorch"


def _call(direction: str, arguments: tuple[Any, ...], *rest: Tensor) -> None:
    """Call the kernel "forward" or "backward"; `rest` is what it takes after the memory of its threads."""
    *tensors, distance_scale, height_scale = arguments
    distance, height, padding = (x if x is None else x.contiguous() for x in tensors)
    batch, n = height.shape
    threads = max(1, min(torch.get_num_threads(), -(-batch // max(1, GRAIN // n**2))))
    memory = height.new_empty(threads * LIBRARY.memory(n))
    kernel = getattr(LIBRARY, f"{direction}_{'float' if height.dtype == torch.float32 else 'double'}")
    kernel(
        distance.data_ptr(), height.data_ptr(), None if padding is None else padding.data_ptr(), batch, n,
        distance_scale.item(), height_scale.item(), height_range(height.dtype), threads, memory.data_ptr(),
        *(x.data_ptr() for x in rest),
    )  # fmt: skip


def _forward(distance: Tensor, height: Tensor, padding: Tensor | None, *scales: Tensor) -> Tensor:
    """Distance (B, n-1), height (B, n), padding (B, n), two 0-d scales → P_D (B, n, n)."""
    new = height.new_empty if padding is None else height.new_zeros
    _call("forward", (distance, height, padding, *scales), out := new(*height.shape, height.size(1)))
    return out


def _backward(
    grad: Tensor, distance: Tensor, height: Tensor, *rest: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradient of P_D (B, n, n), and the arguments of `_forward` → their gradients, but for padding."""
    grads = [x.new_zeros(x.shape) for x in (distance, height)]
    each, *totals = (height.new_empty(shape) for shape in ((2, len(height)), (), ()))
    _call("backward", (distance, height, *rest), grad.contiguous(), *grads, each, *totals)
    return *grads, *totals


def _new(distance: Tensor, height: Tensor, *_: Any) -> Tensor:
    return height.new_empty(*height.shape, height.size(1))


def _new_gradients(
    grad: Tensor, distance: Tensor, height: Tensor, *_: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return (*(x.new_empty(x.shape) for x in (distance, height)), height.new_empty(()), height.new_empty(()))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs)  # the matrices of a sentence are computed again, in the cache


def _gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    if torch.is_grad_enabled():
        return gradients_by_autograd(ctx.saved_tensors, ctx.needs_input_grad, grad)
    distance, height, *scales = parent_distribution_backward(grad, *ctx.saved_tensors)
    return distance, height, None, *scales


def _declare(library: ctypes.CDLL) -> None:
    """Tell Python the types of the kernel's functions."""
    pointer, whole, number = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
    arguments = [pointer] * 3 + [whole] * 2 + [number] * 3 + [whole, pointer]
    library.memory.argtypes, library.memory.restype = [whole], whole
    for form in ("float", "double"):
        for direction, rest in (("forward", 1), ("backward", 6)):
            kernel = getattr(library, f"{direction}_{form}")
            kernel.argtypes, kernel.restype = arguments + [pointer] * rest, None


def _register(name: str, schema: str, kernel: Any, new: Any) -> Any:
    """Register an operator of `synmask`.

    Not by `torch.library.custom_op`, whose wrappers take longer than the kernel of a short sentence.
    """
    whole = f"synmask::{name}"
    torch.library.define(whole, schema)
    torch.library.impl(whole, "CPU", kernel)
    torch.library.register_fake(whole, new)
    return getattr(torch.ops.synmask, name).default


parent_distribution = parent_distribution_backward = None
if LIBRARY:
    _declare(LIBRARY)
    parent_distribution = _register("parent_distribution", f"({ARGUMENTS}) -> Tensor", _forward, _new)
    schema = f"(Tensor grad, {ARGUMENTS}) -> (Tensor, Tensor, Tensor, Tensor)"
    parent_distribution_backward = _register(
        "parent_distribution_backward", schema, _backward, _new_gradients
    )
    torch.library.register_autograd(parent_distribution, _gradients, setup_context=_keep)
