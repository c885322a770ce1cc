"""Training in bf16 on a CPU without instructions for it."""

import copy

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from small_models import fit, typed
from synmask import bf16
from synmask.options import guide_names

PRODUCTS = ("mm", "linear", "convolution", "attention")  # in the names of torch's operators


class Products(TorchDispatchMode):
    """Keeps the names of all products in bf16."""

    def __init__(self):
        super().__init__()
        self.found = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        tensors = [one for one in args if isinstance(one, torch.Tensor)]
        if any(word in name for word in PRODUCTS) and any(one.dtype == torch.bfloat16 for one in tensors):
            self.found.add(name)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", ["none", *(name for name in guide_names() if name not in ("sla", "syntax"))])
def test_no_product_is_left_to_torch(corpus, tmp_path, settings, settings_of, monkeypatch, name):
    """Torch takes 5 to 25 times as long for it there as in float32."""
    monkeypatch.setattr(bf16, "has_instructions", lambda: False)
    chosen = settings if name == "none" else settings_of(name)
    chosen["training"] = copy.deepcopy(chosen["training"]) | {"precision": "bf16", "max_epochs": 1}
    with Products() as products:
        fit(corpus / "bin", tmp_path / "run", typed(chosen), keep=1)
    assert products.found == set()
