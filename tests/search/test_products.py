"""Products with packed weights against plain ones."""

import copy
from functools import partial

import pytest
import torch
from torch import nn

from synmask.pipeline.cpu import bf16
from synmask.pipeline.search.products import Products


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(1, 24), (7, 5, 24), (3, 1, 24)])
def test_products(monkeypatch, packed, bias, shape):
    if not packed:
        monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    torch.manual_seed(1)
    one, two = nn.Linear(24, 40, bias=bias), nn.Linear(24, 8, bias=bias)
    products = Products()
    with torch.inference_mode():
        for x in (torch.randn(shape), torch.randn(2, *shape)):  # other sizes with the same weights
            plus = torch.randn(*x.shape[:-1], 40)
            close = torch.testing.assert_close
            close(products(x, one), one(x))
            close(products(x, one, relu=True), one(x).relu())
            close(products(x, one, plus=plus), one(x) + plus)
            close(products(x, one, two), torch.cat([one(x), two(x)], dim=-1))
            close(products(x.transpose(0, -2), one), one(x.transpose(0, -2)))
    assert len(products.packed) == 2


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("instructions", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_products_in_bf16(monkeypatch, packed, instructions, bias):
    if not packed:
        monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    if not instructions:
        monkeypatch.setattr(bf16, "has_instructions", lambda: False)
    torch.manual_seed(1)
    one, last = nn.Linear(24, 40, bias=bias), nn.Linear(24, 8, bias=bias)
    rounded = [copy.deepcopy(one).to(torch.bfloat16), torch.randn(5, 24), torch.randn(5, 40)]
    products = Products("bf16")
    with torch.inference_mode():
        layer, x, plus = rounded
        expected = layer(x.to(torch.bfloat16)).float()
        close = partial(torch.testing.assert_close, rtol=2**-7, atol=2**-7)
        close(products(x, one), expected)
        close(products(x, one, relu=True), expected.relu())
        close(products(x, one, plus=plus), expected + plus)
        assert not torch.allclose(products(x, one), one(x), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(products(x, last, exact=True), last(x))


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_model_in_bf16_on_a_processor_without_it(monkeypatch, precision, exact):
    """A training in bf16 has such a model; oneDNN refuses to order its weights there."""
    order = torch.ops.mkldnn._reorder_linear_weight

    def refusing(weight, *args):
        assert weight.dtype != torch.bfloat16
        return order(weight, *args)

    monkeypatch.setattr(bf16, "has_instructions", lambda: False)
    monkeypatch.setattr(torch.ops.mkldnn, "_reorder_linear_weight", refusing)
    layer, x = nn.Linear(8, 5).bfloat16(), torch.randn(3, 8).bfloat16()
    plus = torch.randn(3, 5).bfloat16()
    products = Products(precision)
    expected = nn.functional.linear(x.float(), layer.weight.float(), layer.bias.float()).bfloat16()
    torch.testing.assert_close(products(x, layer, exact=exact), expected)
    torch.testing.assert_close(products(x, layer, relu=True, exact=exact), expected.relu())
    torch.testing.assert_close(products(x, layer, plus=plus, exact=exact), expected + plus)
