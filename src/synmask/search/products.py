"""Matrix products with the weights of a model."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Product = Callable[[Tensor, bool, Tensor | None], Tensor]


class Products:
    """Products with linear layers, whose weights must not change after the first product.

    On a CPU, oneDNN multiplies faster than PyTorch's `linear` if it may order the weights first.
    """

    def __init__(self) -> None:
        self.packed: dict[tuple[nn.Linear, ...], Product] = {}

    def __call__(
        self, x: Tensor, *layers: nn.Linear, relu: bool = False, plus: Tensor | None = None
    ) -> Tensor:
        """The outputs of all `layers` for x (..., d), side by side: (..., sum of their widths).

        Args:
            relu: cut it off at 0; plus: or add this to it.
        """
        if layers not in self.packed:
            self.packed[layers] = _packed(layers)
        return self.packed[layers](x, relu, plus)


def _packed(layers: tuple[nn.Linear, ...]) -> Product:
    weight = torch.cat([layer.weight.detach() for layer in layers])
    bias = None if layers[0].bias is None else torch.cat([layer.bias.detach() for layer in layers])
    single = weight.device.type == "cpu" and weight.dtype == torch.float32
    if not (single and torch.backends.mkldnn.is_available()):
        return lambda x, relu, plus: _plain(F.linear(x, weight, bias), relu, plus)
    ordered = torch.ops.mkldnn._reorder_linear_weight(weight)
    product = torch.ops.mkldnn._linear_pointwise

    def multiply(x: Tensor, relu: bool, plus: Tensor | None) -> Tensor:
        if plus is not None:
            return product.binary(x, plus, ordered, bias, "add")
        return product(x, ordered, bias, "relu" if relu else "none", [], "")

    return multiply


def _plain(made: Tensor, relu: bool, plus: Tensor | None) -> Tensor:
    if plus is not None:
        return made + plus
    return made.relu() if relu else made
