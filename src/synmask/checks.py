"""Checks of arguments: errors where the mistake is, in one line, before PyTorch's own."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from synmask.options import GuideOptions

ANNOTATIONS = {"bpe_labels": (), "heads": (2,), "distances": (), "words": (4,)}  # a token's shape


def has_values(x: Tensor) -> bool:
    """Whether the values of `x` can be looked at.

    Not on a GPU, where the host would have to wait, and not where there are none: while torch.compile or
    torch.export traces the model, or torch.func transforms it.
    """
    if torch.compiler.is_compiling() or type(x) is not Tensor:
        return False
    return x.device.type == "cpu" and not is_functorch(x)


def is_functorch(*tensors: Tensor) -> bool:
    """Whether torch.func transforms (grad, vmap, …) run with one of the tensors."""
    if torch.compiler.is_compiling():
        return False
    return any(map(torch._C._functorch.is_functorch_wrapped_tensor, tensors))


def check_states(x: Tensor, width: int) -> None:
    """Raise ValueError unless x is (B, n, width), n >= 1, of a floating type."""
    advice = "" if x.is_floating_point() else "; embed token ids first"
    if x.dim() != 3 or x.size(2) != width or x.size(1) < 1 or advice:
        raise ValueError(f"x must be (B, n, {width}) with n >= 1, embeddings, not {_describe(x)}{advice}")


def check_padding(padding: Tensor, tokens: torch.Size) -> None:
    """Raise ValueError unless padding is (B, n) = tokens, bool, with a real token in each row."""
    if padding.shape != tokens or padding.dtype != torch.bool:
        raise ValueError(
            f"padding must be (B, n) = {(*tokens,)} bool, True at pads, not {_describe(padding)}"
        )
    if has_values(padding) and (empty := padding.all(1)).any():
        row = int(empty.int().argmax())
        advice = "True marks pads, so give ~mask for a mask of tokens"
        raise ValueError(f"padding has a row without a real token, row {row}: {advice}")


def check_annotations(annotations: Any, options: GuideOptions, tokens: torch.Size) -> None:
    """Raise ValueError unless the annotations that a guide reads are there, and fit (B, n) = tokens."""
    names = () if options.parses_itself else sorted(options.needs)
    if annotations is not None and not isinstance(annotations, Mapping):
        example = f'{{"{(*names, "bpe_labels")[0]}": …}}'
        raise ValueError(f"annotations must be a dict, such as {example}, not {type(annotations).__name__}")
    for name in names:
        if annotations is None or name not in annotations:
            advice = ', or build the guide with bpe="none"' if name == "bpe_labels" else ""
            raise ValueError(f'the guide reads {name}: give annotations={{"{name}": …}}{advice}')
        check_annotation(name, annotations[name], tokens)


def check_annotation(name: str, value: Any, tokens: torch.Size) -> None:
    """Raise ValueError unless the annotation is of integers and fits (B, n) = tokens."""
    expected = (*tokens, *ANNOTATIONS.get(name, ()))
    if not isinstance(value, Tensor):
        raise ValueError(f"{name} must be a tensor {expected}, not {type(value).__name__}")
    if name in ANNOTATIONS and (value.shape != expected or value.is_floating_point()):
        raise ValueError(f"{name} must be {expected}, of integers, not {_describe(value)}")
    if name == "bpe_labels" and has_values(value) and len(wrong := value[(value < 0) | (value > 2)]):
        raise ValueError(f"bpe_labels must be 0 (whole word), 2 (piece) or 1 (pad), not {int(wrong[0])}")


def _describe(x: Tensor) -> str:
    return f"{(*x.shape,)} {str(x.dtype).removeprefix('torch.')}"
