"""P_D as an operator of PyTorch: what torch.library checks, second derivatives, and torch.func."""

import pytest
import torch

from synmask.induction import operators
from synmask.induction.distribution import calibrate, dependency_distribution

LIBRARY = operators.LIBRARY


@pytest.fixture(params=["C++", "PyTorch"])
def implementation(request, monkeypatch):
    """Run a test with each implementation of `dependency_distribution`."""
    assert LIBRARY, "not built: run `make`"
    monkeypatch.setattr(operators, "LIBRARY", LIBRARY if request.param == "C++" else None)


def arguments(batch=2, n=5, grad=True):
    """Distance, height, padding and both scales, in float64."""
    draw = torch.Generator().manual_seed(n)
    distance, height = (torch.randn(batch, size, dtype=torch.float64, generator=draw) for size in (n - 1, n))
    padding = torch.zeros(batch, n, dtype=torch.bool)
    padding[0, n // 2 + 1 :] = True
    scales = (torch.tensor(value, dtype=torch.float64, requires_grad=grad) for value in (0.7, 1.3))
    return distance.requires_grad_(grad), height.requires_grad_(grad), padding, *scales


def test_the_operators_pass_the_checks_of_torch_library():
    distance, height, padding, *scales = arguments()
    torch.library.opcheck(operators.parent_distribution, (distance, height, padding, *scales))
    distance, height, _, *scales = arguments(grad=False)
    inputs = torch.randn(2, 5, 5, dtype=torch.float64), distance, height, None, *scales
    torch.library.opcheck(operators.parent_distribution_backward, inputs)


def test_second_derivatives(implementation):
    distance, height, padding, *scales = arguments(n=4)

    def distribution(distance, height, distance_scale, height_scale):
        scales = {"distance_scale": distance_scale, "height_scale": height_scale}
        return dependency_distribution(calibrate(distance, height, padding), height, padding, **scales)

    assert torch.autograd.gradgradcheck(distribution, (distance, height, *scales))


def test_gradients_per_sentence_by_vmap_and_grad(implementation):
    distance, height, padding, *_ = arguments(batch=3, grad=False)

    def loss(distance, height, padding):
        distance, height, padding = distance[None], height[None], padding[None]
        distance = calibrate(distance, height, padding)
        return dependency_distribution(distance, height, padding).square().sum()

    found = torch.func.vmap(torch.func.grad(loss, argnums=(0, 1)))(distance, height, padding)
    for b in range(3):
        expected = torch.func.grad(loss, argnums=(0, 1))(distance[b], height[b], padding[b])
        for ours, alone in zip(found, expected, strict=True):
            torch.testing.assert_close(ours[b], alone)


def test_vmap_over_scales(implementation):
    distance, height, padding, *_ = arguments(grad=False)
    scales = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)

    def scaled(scale):
        return dependency_distribution(distance, height, padding, distance_scale=scale, height_scale=scale)

    torch.testing.assert_close(torch.func.vmap(scaled)(scales), torch.stack([*map(scaled, scales)]))
