"""P_D by Triton's kernels, on a GPU or in Triton's interpreter: test_triton.py runs these in a process of their own."""

import math
import os

import pytest
import torch

from synmask.induction import distribution
from synmask.induction.distribution import dependency_distribution
from synmask.induction.in_pytorch import FusedDistribution, distribution_in_pytorch, height_range
from synmask.induction.literal import literal_distribution

DEVICE = "cpu" if os.environ.get("TRITON_INTERPRET") == "1" else "cuda"
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of overflow to infinity


@pytest.fixture(autouse=True)
def implementation(monkeypatch):
    monkeypatch.setattr(distribution, "implementation", lambda device: "Triton")


def sentences(n, spread=3.0, ties=False, batch=3):
    """Distance, height, padding with pads on either side, both scales, and a gradient of P_D."""
    torch.manual_seed(n)
    distance, height = spread * torch.randn(batch, n - 1), spread * torch.randn(batch, n)
    padding = torch.zeros(batch, n, dtype=torch.bool)
    padding[1, : n // 3] = padding[2, n - n // 3 :] = True
    scales = torch.tensor(0.7), torch.tensor(1.3)
    upstream = torch.randn(batch, n, n)
    inputs = [distance.round() if ties else distance, height, padding, *scales]
    return [x.to(DEVICE) for x in inputs], upstream.to(DEVICE)


def results(function, inputs, upstream, dtype=torch.float32):
    """P_D, and the gradients of distance, height and both scales."""
    distance, height, padding, *scales = inputs
    leaves = [x.to(dtype, copy=True).requires_grad_() for x in (distance, height, *scales)]
    output = function(*leaves[:2], padding, distance_scale=leaves[2], height_scale=leaves[3])
    assert output.dtype == dtype
    return [output.detach(), *torch.autograd.grad(output, leaves, upstream.to(dtype))]


def fused(distance, height, padding, *, distance_scale, height_scale):
    return FusedDistribution.apply(distance, height, padding, distance_scale, height_scale)


def assert_close(ours, expected, inputs, share=2e-6):
    """Up to this share of the largest number; gradients of scales are sums of gradients times `inputs`."""
    largest = max(1, *(x.abs().max() for x in inputs[:2] if x.numel()))
    for factor, x, y in zip((1, 1, 1, largest, largest), ours, expected, strict=True):
        assert x.shape == y.shape
        assert x.numel() == 0 or (x - y).abs().max() <= share * factor * max(1, y.abs().max())


@pytest.mark.parametrize(
    ("n", "spread", "ties"),
    [(1, 3.0, False), (2, 3.0, False), (5, 1.0, True), (9, 3.0, True), (16, 30.0, False), (21, 3.0, True)],
)
def test_values_and_gradients(n, spread, ties):
    inputs, upstream = sentences(n, spread, ties)
    ours = results(dependency_distribution, inputs, upstream)
    assert_close(ours, results(fused, inputs, upstream, torch.float64), inputs)
    literal = results(literal_distribution, inputs, upstream, torch.float64)
    literal[3] = ours[3]  # autograd multiplies 0 by infinity for the scale of the distances
    assert_close(ours, literal, inputs)


def test_without_padding():
    (distance, height, _, *scales), upstream = sentences(7)
    inputs = distance, height, None, *scales
    expected = results(fused, inputs, upstream, torch.float64)
    assert_close(results(dependency_distribution, inputs, upstream), expected, inputs)


def test_heights_over_the_whole_range_and_beyond():
    reach = height_range(torch.float32)
    (distance, height, *_), upstream = sentences(16, batch=3)
    height = torch.linspace(-reach, 0, 16)[torch.randperm(16)][None].to(DEVICE) + 3
    distance = torch.rand(1, 15, device=DEVICE) * reach - reach
    scales = torch.tensor(0.05, device=DEVICE), torch.tensor(1.0, device=DEVICE)
    inputs = distance, height, None, *scales
    expected = results(fused, inputs, upstream[:1], torch.float64)
    assert_close(results(dependency_distribution, inputs, upstream[:1]), expected, inputs)
    for factor in (2.0, 1e6):
        inputs = distance, factor * height, None, *scales
        found = results(dependency_distribution, inputs, upstream[:1])
        assert_close(found, results(fused, inputs, upstream[:1]), inputs, 1e-5)  # they clamp alike
        assert (found[0].sum(-1) - 1).abs().max() < 1e-5


def test_values_at_pads_are_ignored():
    (distance, height, padding, *scales), upstream = sentences(6)
    expected = results(dependency_distribution, (distance, height, padding, *scales), upstream)
    distance.masked_fill_(padding[:, 1:] | padding[:, :-1], math.nan)
    height.masked_fill_(padding, math.inf)
    found = results(dependency_distribution, (distance, height, padding, *scales), upstream)
    assert all(torch.equal(x, y) for x, y in zip(found, expected, strict=True))
    assert found[0].masked_select(padding[:, None, :] | padding[:, :, None]).eq(0).all()


def test_nan_is_not_hidden():
    distance, height = torch.zeros(3, 5, device=DEVICE), torch.zeros(3, 6, device=DEVICE)
    distance[0, 2] = height[1, 3] = math.nan
    output = dependency_distribution(distance, height)
    assert output.isnan().flatten(1).any(1).tolist() == [True, True, False]


def test_second_derivatives():
    (distance, height, padding, *scales), upstream = sentences(4)

    def second(function, dtype):
        leaves = [x.to(dtype, copy=True).requires_grad_() for x in (distance, height)]
        output = function(*leaves, padding, *(scale.to(dtype) for scale in scales))
        first = torch.autograd.grad(output, leaves, upstream.to(dtype), create_graph=True)
        return torch.autograd.grad(sum(x.square().sum() for x in first), leaves)

    def ours(*arguments):
        return dependency_distribution(*arguments[:3], distance_scale=arguments[3], height_scale=arguments[4])

    pairs = zip(second(ours, torch.float32), second(distribution_in_pytorch, torch.float64), strict=True)
    assert all((x - y).abs().max() <= 1e-5 for x, y in pairs)


def test_what_the_kernels_do_not_support_is_left_to_pytorch():
    def used(n, dtype):
        height = torch.zeros(1, n, device=DEVICE, dtype=dtype, requires_grad=True)
        return type(dependency_distribution(height[:, 1:], height).grad_fn).__name__

    assert used(5, torch.float32) == used(5, torch.bfloat16) == "TritonDistributionBackward"
    assert used(5, torch.float64) == used(65, torch.float32) == "FusedDistributionBackward"
