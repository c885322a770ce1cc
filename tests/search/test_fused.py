"""A decoder's step in one operator for each layer against the same by PyTorch."""

import math
from argparse import Namespace
from dataclasses import replace

import pytest
import torch
from torch import nn

from synmask.pipeline.cpu.processor import CPU
from synmask.pipeline.search import continuations, extension, fused
from synmask.pipeline.search.products import Products
from synmask.pipeline.search.slots import Paths
from synmask.pipeline.translation.steps import CrossAttention, LayerSteps

pytestmark = pytest.mark.skipif(not extension.LANES, reason="a processor without AVX2")
# also where they are slower than float32 (Intel's)
PAIRS = CPU.lanes == 16 and torch.cpu.get_capabilities()["avx512_bf16"]


@pytest.fixture(params=[16, 8], autouse=True)
def lanes(request, monkeypatch):
    if request.param > CPU.lanes:
        pytest.skip("a processor without AVX-512")
    monkeypatch.setattr(extension, "LANES", request.param)
    monkeypatch.setattr(fused, "CPU", replace(CPU, bf16_pairs=PAIRS))
    return request.param


def attention(d, heads):
    parts = {f"{name}_proj": nn.Linear(d, d) for name in ("q", "k", "v", "out")}
    return Namespace(num_heads=heads, **parts)


def layer_of(d, heads, ffn):
    norms = [nn.LayerNorm(d) for _ in range(3)]
    for norm in norms:
        nn.init.normal_(norm.weight), nn.init.normal_(norm.bias)
    names = ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm")
    self_attn, other = attention(d, heads), attention(d, heads)
    fc = {"fc1": nn.Linear(d, ffn), "fc2": nn.Linear(ffn, d)}
    return Namespace(self_attn=self_attn, encoder_attn=other, **dict(zip(names, norms, strict=True)), **fc)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(("d", "heads", "ffn"), [(32, 2, 40), (96, 3, 99)])
@pytest.mark.parametrize(("sentences", "width"), [(1, 1), (7, 1), (45, 5), (3, 12)])
@pytest.mark.parametrize("n", [1, 21])
@torch.inference_mode()
def test_layer(lanes, precision, d, heads, ffn, sentences, width, n):
    if precision == "bf16" and (not PAIRS or lanes == 8):
        pytest.skip("without AVX-512's bf16")
    torch.manual_seed(1)
    layer, products = layer_of(d, heads, ffn), Products(precision)
    states, padding = torch.randn(n, sentences + 2, d) * 3, torch.zeros(sentences + 2, n, dtype=torch.bool)
    padding[1::2, n // 2 + 1 :] = True
    cross = CrossAttention(products, layer.encoder_attn, states, padding)
    assert fused.can_fuse(products, layer, cross.memory)
    both = LayerSteps(products, layer, cross), fused.FusedLayer(products, layer, cross.memory, cross.padding)
    paths = Paths.start(sentences + 2, states.device)
    for step in range(5):
        paths = paths.extend()
        x = torch.randn(*paths.slots.shape[:2], d)
        bias = torch.randn(len(x), heads, 1, step + 1) if step % 2 else None
        expected, found = (one(x, paths, bias) for one in both)
        near = 1e-4 if precision == "fp32" else 2**-4  # PyTorch's outputs are rounded, too
        torch.testing.assert_close(found, expected, rtol=near, atol=near)
        parents = torch.randint(paths.slots.size(1), (sentences, width))
        on = torch.arange(len(x) - sentences, len(x)).flip(0)[:, None]  # the first two end
        paths = paths.take(on, parents)


@pytest.mark.skipif(not PAIRS, reason="a processor without AVX-512's bf16")
@torch.inference_mode()
def test_bf16_rounds_inputs_and_weights_alone():
    torch.manual_seed(1)
    linear = nn.Linear(64, 50)
    linear.weight.copy_(linear.weight.bfloat16())
    for rows in (1, 8, 13):
        x = torch.randn(rows, 1, 64).bfloat16().float()
        never = torch.zeros(50, dtype=torch.bool)
        expected = continuations.best_continuations([linear(x)], torch.zeros(rows, 1), 10, never)
        found = torch.ops.synmask.best_after(
            x, Products("bf16").panels(linear), torch.zeros(rows, 1), 10, never, 16
        )
        torch.testing.assert_close(found[0], expected[0])
        assert torch.equal(found[1], expected[1])


@pytest.mark.parametrize(("sentences", "width", "vocabulary"), [(1, 1, 33), (30, 5, 64), (4, 7, 301)])
@pytest.mark.parametrize("bias", [True, False])
@torch.inference_mode()
def test_best(sentences, width, vocabulary, bias):
    torch.manual_seed(1)
    output, products = nn.Linear(32, vocabulary, bias=bias), Products()
    x, score = torch.randn(sentences, width, 32) * 4, -torch.rand(sentences, width) * 9
    score[:, 1:2] = -math.inf
    never = torch.zeros(vocabulary, dtype=torch.bool)
    never[[1, 5]] = True
    expected = continuations.best_continuations([output(x)], score, 10, never)
    found = torch.ops.synmask.best_after(x, products.panels(output), score, 10, never, extension.LANES)
    torch.testing.assert_close(found[0], expected[0])
    real = expected[0] > -math.inf
    assert all(
        torch.equal(one[real], other[real]) for one, other in zip(found[1:], expected[1:], strict=True)
    )


def test_what_is_not_fused(monkeypatch, lanes):
    layer, memory = layer_of(32, 2, 40), torch.randn(3, 2, 64)
    assert fused.can_fuse(Products(), layer, memory)
    assert fused.can_fuse(Products("bf16"), layer, memory) == (PAIRS and lanes == 16)
    monkeypatch.setattr(fused, "CPU", replace(CPU, bf16_pairs=False))
    assert not fused.can_fuse(Products("bf16"), layer, memory)
    assert not fused.can_fuse(Products(), layer, memory.double())
    assert not fused.can_fuse(Products(), layer_of(32, 4, 40), memory)  # 8 numbers of a head
    assert not fused.can_fuse(Products(), layer_of(16, 1, 40), memory[..., :32])  # half of a panel
    monkeypatch.setattr(extension, "LANES", 0)
    assert not fused.can_fuse(Products(), layer, memory)
