"""Matrix products with the weights of a model."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmask.pipeline.cpu import bf16

Product = Callable[[Tensor, bool, Tensor | None], Tensor]
PANEL = 32  # outputs that kernel.cpp computes together


class Products:
    """Products with linear layers, whose weights must not change after the first product.

    On a CPU, oneDNN multiplies faster than PyTorch's `linear` if it may order the weights first.

    Args:
        precision: "fp32", or "bf16": inputs, weights and outputs are rounded to bfloat16 (by fused.py's
            operators inputs and weights alone). A CPU without instructions for bf16 multiplies in float32,
            which differs in the order of the sums alone.
    """

    def __init__(self, precision: str = "fp32") -> None:
        self.rounded = torch.bfloat16 if precision == "bf16" else None
        self.packed: dict[tuple[nn.Linear, ...], Product] = {}
        self.ordered: dict[tuple[nn.Linear, ...], Tensor] = {}

    def __call__(
        self,
        x: Tensor,
        *layers: nn.Linear,
        relu: bool = False,
        plus: Tensor | None = None,
        exact: bool = False,
    ) -> Tensor:
        """The outputs of all `layers` for x (..., d), side by side: (..., sum of their widths).

        Args:
            relu: apply ReLU; plus: or add this.
            exact: never in bf16.
        """
        if layers not in self.packed:
            self.packed[layers] = _product_of_layers(layers, None if exact else self.rounded)
        return self.packed[layers](x, relu, plus)

    def panels(self, *layers: nn.Linear) -> Tensor:
        """The layers' weights for fused.py: for 32 outputs at a time those of the inputs, then the bias.

        Returns:
            (panels, d + 1, 32); in bf16 (panels, d / 2 + 1, 64) with d rounded up to a multiple of 32, the
            weights of two inputs side by side, and the bits of the bias in float32.
        """
        if layers not in self.ordered:
            panels = _pack_panels(*_concatenate(layers))
            self.ordered[layers] = panels if self.rounded is None else _pack_bf16_pairs(panels)
        return self.ordered[layers]


def _concatenate(layers: tuple[nn.Linear, ...]) -> tuple[Tensor, Tensor | None]:
    weight = torch.cat([layer.weight.detach() for layer in layers])
    return weight, None if layers[0].bias is None else torch.cat([layer.bias.detach() for layer in layers])


def _pack_panels(weight: Tensor, bias: Tensor | None) -> Tensor:
    bias = weight.new_zeros(len(weight)) if bias is None else bias
    columns = F.pad(torch.cat([weight.T, bias[None]]), (0, -len(weight) % PANEL))
    return columns.unflatten(1, (-1, PANEL)).transpose(0, 1).contiguous()


def _pack_bf16_pairs(panels: Tensor) -> Tensor:
    weight, bias = panels[:, :-1], panels[:, -1:].contiguous()
    weight = F.pad(weight, (0, 0, 0, -weight.size(1) % PANEL)).to(torch.bfloat16)
    return torch.cat([weight.unflatten(1, (-1, 2)).mT.flatten(2), bias.view(torch.bfloat16)], dim=1)


def _product_of_layers(layers: tuple[nn.Linear, ...], rounded: torch.dtype | None) -> Product:
    weight, bias = _concatenate(layers)
    rounded = rounded or weight.dtype  # a model may be in bf16 itself, as a training in bf16 has it
    dtype = torch.float32 if bf16.lacks_bf16(weight.to(rounded)) else rounded
    if weight.dtype == rounded == dtype:
        return _product_of_weights(weight, bias)
    product = _product_of_weights(
        weight.to(rounded).to(dtype), None if bias is None else bias.to(rounded).to(dtype)
    )

    def multiply(x: Tensor, relu: bool, plus: Tensor | None) -> Tensor:
        output = product(x.to(rounded).to(dtype), relu, None).to(rounded).to(x.dtype)
        return output if plus is None else output + plus

    return multiply


def _product_of_weights(weight: Tensor, bias: Tensor | None) -> Product:
    if weight.device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return lambda x, relu, plus: _add_or_relu(F.linear(x, weight, bias), relu, plus)
    ordered = torch.ops.mkldnn._reorder_linear_weight(weight)
    product = torch.ops.mkldnn._linear_pointwise

    def multiply(x: Tensor, relu: bool, plus: Tensor | None) -> Tensor:
        if plus is not None:
            return product.binary(x, plus, ordered, bias, "add")
        return product(x, ordered, bias, "relu" if relu else "none", [], "")

    return multiply


def _add_or_relu(output: Tensor, relu: bool, plus: Tensor | None) -> Tensor:
    if plus is not None:
        return output + plus
    return output.relu() if relu else output
