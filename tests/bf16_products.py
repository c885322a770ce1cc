"""Which products in bf16 torch is asked for."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

NAMES = ("mm", "linear", "convolution", "attention", "dot", "mv")  # parts of its operators' names


class ProductsInBf16(TorchDispatchMode):
    """Keeps the names of all products in bf16 in a block."""

    def __init__(self):
        super().__init__()
        self.found = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        tensors = [one for one in args if isinstance(one, torch.Tensor)]
        if any(word in name for word in NAMES) and any(one.dtype == torch.bfloat16 for one in tensors):
            self.found.add(name)
        return function(*args, **(kwargs or {}))
