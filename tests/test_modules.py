"""Dropout and linear layers against torch's."""

import copy
from argparse import Namespace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from synmask import GuidedEncoder, Shape, build_guide
from synmask.pipeline.cpu import bf16, modules
from synmask.pipeline.cpu.modules import FastLinear, accelerate, convolve_as_product, dropout, linear
from synmask.pipeline.cpu.processor import CHOICES


def test_dropout_keeps_the_share_it_should_and_scales_it():
    torch.manual_seed(1)
    result = dropout(torch.full((1001, 999), 2.0), 0.3)
    kept = result.ne(0)
    assert result[kept].unique().tolist() == pytest.approx([2 / 0.7], rel=1e-5)
    assert float(kept.float().mean()) == pytest.approx(0.7, abs=2e-3)
    # neighbours that share a draw are independent: all pairs of positions in it, and of draws
    for lag in range(1, 9):
        both = kept.view(-1)[lag:] & kept.view(-1)[:-lag]
        assert float(both.float().mean()) == pytest.approx(0.49, abs=3e-3)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (5, 7), (2, 0), (64, 33)])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16])
def test_its_gradient_has_the_same_mask(shape, kind):
    x = torch.ones(shape, dtype=kind, requires_grad=True)
    result = dropout(x, 0.5)
    (grad,) = torch.autograd.grad(result, x, torch.full_like(result, 3))
    assert result.dtype == kind
    assert torch.equal(grad, 3 * result)


def test_it_is_the_same_for_any_number_of_threads_and_any_layout():
    x = torch.randn(300, 200)
    results, before = [], torch.get_num_threads()
    for threads in (1, 2):
        torch.set_num_threads(threads)
        torch.manual_seed(7)
        results.append(dropout(x, 0.1))
    torch.set_num_threads(before)
    torch.manual_seed(7)
    results.append(dropout(x.t().contiguous().t(), 0.1))
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


def test_dropout_of_everything_and_of_next_to_nothing():
    assert not dropout(torch.ones(9), 1.0).any()
    assert dropout(torch.ones(9), 1e-9).eq(1).all()
    assert dropout(torch.ones(9), 1 - 1e-9).isfinite().all()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(7,), (5, 7), (3, 4, 7), (0, 7), (128, 7), (2, 65, 7)])
@pytest.mark.parametrize("width", [3, 40])  # the gradient of a tall weight is another product
def test_linear_and_its_gradients_are_torchs(by_onednn, shape, width, bias, monkeypatch):
    monkeypatch.setattr(modules, "ONEDNN_WEIGHT", 0)
    torch.manual_seed(2)
    inputs = [torch.randn(shape), torch.randn(width, 7), *([torch.randn(width)] if bias else [])]
    found = []
    for function in (linear, torch.nn.functional.linear):
        leaves = [value.clone().requires_grad_() for value in inputs]
        result = function(*leaves, *([] if bias else [None]))
        result.square().sum().backward()
        found.append([result.detach(), *(leaf.grad for leaf in leaves)])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-4)


@pytest.fixture
def by_onednn(monkeypatch):
    """The choice for a processor on which oneDNN computes linear layers."""
    monkeypatch.setattr(modules, "CPU", CHOICES["AVX-512 with bf16"])


@pytest.mark.parametrize(
    ("width", "name"), [(255, "aten.addmm.default"), (256, "mkldnn._linear_pointwise.default")]
)
def test_small_weights_are_multiplied_by_torch_itself(by_onednn, width, name):
    with Products() as products:
        linear(torch.randn(128, 256), torch.randn(width, 256), torch.randn(width))
    assert products.names == {name}


def test_linear_in_another_precision_is_torchs_itself():
    x, weight = torch.randn(5, 7, dtype=torch.float64), torch.randn(3, 7, dtype=torch.float64)
    assert torch.equal(linear(x, weight, None), torch.nn.functional.linear(x, weight))


def test_without_instructions_for_bf16_each_result_is_rounded_once(monkeypatch):
    monkeypatch.setattr(bf16, "has_instructions", lambda: False)
    torch.manual_seed(5)

    def convolved(x, *parameters):
        layer = Namespace(**dict(zip(("weight", "bias"), parameters, strict=True)))
        return convolve_as_product(layer, x)

    functions = {
        "linear": (linear, (40, 64), (32, 64), (32,)),
        "product": (torch.matmul, (3, 4, 16, 64), (3, 4, 64, 8)),
        "convolution": (convolved, (2, 20, 64), (32, 64, 9), (32,)),
    }
    for function, *shapes in functions.values():
        inputs = [torch.randn(shape).bfloat16() for shape in shapes]
        found = []
        for kind in (torch.bfloat16, torch.float64):
            leaves = [value.to(kind, copy=True).requires_grad_() for value in inputs]
            with bf16.float32_products():
                result = function(*leaves)
            result.backward(torch.ones_like(result))
            found.append([result.detach(), *(leaf.grad for leaf in leaves)])
        for ours, exact in zip(*found, strict=True):
            assert ours.dtype == torch.bfloat16
            # half a unit in the last of 8 bits, and the sums' own rounding where they cancel
            torch.testing.assert_close(ours.double(), exact, rtol=2**-8, atol=1e-4)


def test_linear_may_be_changed_in_place_and_skips_gradients_that_nobody_needs():
    layer = FastLinear(4, 3).requires_grad_(False)
    x = torch.ones(2, 5, 4, requires_grad=True)
    made = layer(x)
    made *= 2  # fairseq does so with queries
    made.sum().backward()
    torch.testing.assert_close(x.grad[0, 0], 2 * layer.weight.sum(0))
    assert layer.weight.grad is None


@pytest.mark.parametrize("lacking", [False, True])
def test_linear_under_autocast_is_torchs(monkeypatch, lacking):
    if lacking:
        monkeypatch.setattr(bf16, "has_instructions", lambda: False)
    torch.manual_seed(2)
    layer, x = torch.nn.Linear(24, 40), torch.randn(5, 3, 24)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        found, expected = linear(x, layer.weight, layer.bias), layer(x)
    assert found.dtype == expected.dtype == torch.bfloat16
    torch.testing.assert_close(found, expected)


class Products(TorchDispatchMode):
    """Notes the name of each operator that multiplies, and the sizes of what it multiplies."""

    def __init__(self):
        super().__init__()
        self.names, self.sizes = set(), set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if "linear" in str(func) or "mm" in str(func):
            self.names.add(str(func))
            self.sizes.update(size for one in args[:2] for size in one.shape)
        return func(*args, **(kwargs or {}))


@pytest.mark.skipif(
    bf16.lacks_bf16(torch.empty(0, dtype=torch.bfloat16)), reason="a processor without AVX-512 for bf16"
)
@pytest.mark.parametrize("count", [1, 127, 128, 200, 300])
@pytest.mark.parametrize(("wide", "narrow"), [(96, 160), (160, 96), (32, 160)])
def test_in_bf16_onednn_gets_few_sizes_and_results_stay(by_onednn, count, wide, narrow):
    x = torch.randn(count, wide).bfloat16().requires_grad_()
    weight = torch.randn(narrow, wide).bfloat16().requires_grad_()
    with Products() as products:
        found = linear(x, weight, None)
        grad = torch.randn_like(found)
        made = torch.autograd.grad(found, (x, weight), grad)
    assert products.names == {"mkldnn._linear_pointwise.default"}
    assert products.sizes - {wide, narrow} <= {128, 256, 384}
    wanted = torch.nn.functional.linear(x.double(), weight.double())
    exact = torch.autograd.grad(wanted, (x, weight), grad.double())
    for ours, theirs in zip((found, *made), (wanted, *exact), strict=True):
        torch.testing.assert_close(ours.double(), theirs.double(), rtol=2**-7, atol=1e-3)  # a last bit


@pytest.mark.parametrize("name", ["plain", "grammar", "lpsi", "lisa"])
def test_an_accelerated_encoder_has_the_same_states_and_gradients(name, monkeypatch):
    monkeypatch.setattr(modules, "ONEDNN_WEIGHT", 0)
    torch.manual_seed(3)
    shape, options = Shape(embed_dim=8, heads=2, ffn_dim=16, layers=2), {}
    if name == "grammar":
        options = {"bpe": "none", "conv_layers": 1, "conv_kernel": 3}
    encoder = GuidedEncoder(shape, None if name == "plain" else build_guide(name, options, shape))
    x, padding = torch.randn(3, 7, 8), torch.arange(7) >= torch.tensor([[7], [4], [5]])
    found = []
    for model in (encoder, accelerate(copy.deepcopy(encoder))):
        states, _ = model(x, padding)
        states[~padding].square().mean().backward()
        found.append([states[~padding], *(parameter.grad for parameter in model.parameters())])
    assert {type(module) for module in model.modules()} & set(modules.FAST_MODULES) == set()
    for ours, plain in zip(*found, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-5)
