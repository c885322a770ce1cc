"""P_D, in each of its implementations, and the calibration against loops over spans, in float64."""

import math
from hashlib import sha256

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from synmask.induction import operators
from synmask.induction.distribution import calibrate, dependency_distribution
from synmask.induction.in_pytorch import height_range
from synmask.induction.literal import literal_distribution

FEW = settings(max_examples=40, deadline=None)
IMPLEMENTATIONS = ["C++", "PyTorch"]
LIBRARY = operators.LIBRARY


@pytest.fixture(params=IMPLEMENTATIONS, scope="module")
def implementation(request):
    """Run a test with each implementation of `dependency_distribution`."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "PyTorch":
            patch.setattr(operators, "LIBRARY", None)
        assert operators.implementation(torch.device("cpu")) == request.param, "not built: run `make`"
        yield request.param


def looped_distribution(distance, height, padding, distance_scale=1.0, height_scale=1.0):
    """docs/method.md word by word: a sum over all spans of every token."""
    batch, n = height.shape
    height, distance = height.double(), distance.double()
    result = torch.zeros(batch, n, n, dtype=torch.float64)
    for b in range(batch):
        real = [i for i in range(n) if not padding[b, i]]
        first, last = real[0], real[-1]

        def holds(i, j, b=b, first=first, last=last):  # p(j in C(i))
            if j < first or j > last:
                return 0.0
            if i == j:
                return 1.0
            highest = distance[b, min(i, j) : max(i, j)].max()
            return torch.sigmoid(distance_scale * (height[b, i] - highest)).item()

        for i in real:
            for l in range(first, i + 1):  # noqa: E741
                for r in range(i, last + 1):
                    span = (holds(i, l) - holds(i, l - 1)) * (holds(i, r) - holds(i, r + 1))
                    result[b, i, l : r + 1] += span * (height_scale * height[b, l : r + 1]).softmax(0)
    return result


def looped_calibration(distance, height, padding):
    """docs/method.md, "From embeddings to distances and heights", step 5, word by word."""
    result = distance.clone()
    for b in range(len(height)):
        real = [i for i in range(height.size(1)) if not padding[b, i]]
        first, last = real[0], real[-1]
        margin = 0.0
        for l in real:  # noqa: E741
            for r in range(l, last + 1):
                left = distance[b, l - 1].item() if l > first else math.inf
                right = distance[b, r].item() if r < last else math.inf
                if (l, r) != (first, last):
                    margin = max(margin, min(left, right) - height[b, l : r + 1].max().item())
        result[b] -= margin
    return result


@st.composite
def batches(draw, longest=24, spread=(1.0, 10.0, 60.0)):
    """distance, height (float64) and padding of 1 to 3 sentences, pads on either side."""
    n = draw(st.integers(1, longest))
    batch = draw(st.integers(1, 3))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    padding = torch.ones(batch, n, dtype=torch.bool)
    for row in padding:
        first = draw(st.integers(0, n - 1))
        row[first : draw(st.integers(first + 1, n))] = False
    distance, height = (
        torch.rand(batch, length, generator=generator, dtype=torch.float64)
        .mul(2 * draw(st.sampled_from(spread)))
        .sub(draw(st.floats(-5, 5)))
        for length in (n - 1, n)
    )
    return distance, height, padding


scales = st.floats(0.2, 1.5)


@FEW
@given(batches(), scales, scales)
def test_agrees_with_the_sum_over_spans(implementation, batch, distance_scale, height_scale):
    factors = {"distance_scale": distance_scale, "height_scale": height_scale}
    expected = looped_distribution(*batch, **factors)
    for function in (dependency_distribution, literal_distribution):
        assert (function(*batch, **factors) - expected).abs().max() <= 1e-12


@FEW
@given(batches(), st.sampled_from([0.5, 1.0]))
def test_agrees_in_single_precision(implementation, batch, scale):
    distance, height, padding = batch[0].float(), batch[1].float(), batch[2]
    found = dependency_distribution(distance, height, padding, distance_scale=scale, height_scale=scale)
    assert found.dtype == torch.float32
    assert (found - looped_distribution(distance, height, padding, scale, scale)).abs().max() <= 2e-6


@FEW
@given(batches(spread=(1.0, 100.0, 1e5)), scales)
def test_rows_are_distributions_over_real_tokens(implementation, batch, scale):
    padding = batch[2]
    found = dependency_distribution(*batch, distance_scale=scale)
    assert found.min() >= -1e-12
    assert torch.allclose(found.sum(-1), (~padding).double(), atol=1e-12)
    assert found.masked_select(padding[:, None, :] | padding[:, :, None]).eq(0).all()


@FEW
@given(batches())
def test_padding_changes_nothing(implementation, batch):
    distance, height, padding = batch
    together = dependency_distribution(*batch)
    shifted = calibrate(*batch)
    for b, row in enumerate(padding):
        real = (~row).nonzero().squeeze(1)
        alone_distance, alone_height = distance[b, real[:-1]][None], height[b, real][None]
        alone = dependency_distribution(alone_distance, alone_height)
        assert (together[b][real][:, real] - alone[0]).abs().max() <= 1e-7
        assert torch.equal(shifted[b, real[:-1]], calibrate(alone_distance, alone_height)[0])


def test_values_at_pads_are_ignored(implementation):
    torch.manual_seed(0)
    distance, height = torch.randn(1, 4), torch.randn(1, 5)
    padding = torch.tensor([[True, False, False, False, True]])
    scales = torch.ones((), requires_grad=True), torch.ones((), requires_grad=True)
    expected = dependency_distribution(distance, height, padding)
    expected_shift = calibrate(distance, height, padding)[:, 1:3]
    for junk in (math.nan, math.inf, -math.inf, 1e30):
        distance[:, [0, 3]], height[:, [0, 4]] = junk, junk
        distance.requires_grad_(), height.requires_grad_()
        found = dependency_distribution(
            distance, height, padding, distance_scale=scales[0], height_scale=scales[1]
        )
        assert torch.equal(found, expected)
        assert torch.equal(calibrate(distance, height, padding)[:, 1:3], expected_shift)
        gradients = torch.autograd.grad(found[0, 2, 1] + found[0, 1, 1], (distance, height, *scales))
        assert all(g.isfinite().all() for g in gradients)
        distance, height = distance.detach(), height.detach()


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_gradients(implementation, n):
    torch.manual_seed(n)
    distance, height = torch.randn(2, n - 1, dtype=torch.float64), torch.randn(2, n, dtype=torch.float64) * 3
    factors = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (0.7, 1.3)]
    padding = torch.zeros(2, n, dtype=torch.bool)
    padding[0, n - n // 3 :] = True

    def distribution(distance, height, distance_scale, height_scale):
        return dependency_distribution(
            distance, height, padding, distance_scale=distance_scale, height_scale=height_scale
        )

    def calibrated(distance, height):
        return calibrate(distance, height, padding)

    assert torch.autograd.gradcheck(
        distribution, (distance.requires_grad_(), height.requires_grad_(), *factors)
    )
    if n > 1:
        assert torch.autograd.gradcheck(calibrated, (distance, height))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_exact_up_to_the_stated_range_and_sensible_beyond(implementation, dtype):
    """Heights spread over the whole range: values and gradients agree with wider arithmetic; n = 16."""
    torch.manual_seed(0)
    reach = height_range(dtype)
    assert reach == pytest.approx({torch.float32: 142, torch.float64: 1135}[dtype], abs=1)
    height = torch.linspace(-reach, 0, 16, dtype=dtype)[torch.randperm(16)][None] + 3
    distance = torch.rand(1, 15, dtype=dtype) * reach - reach
    none = torch.zeros(1, 16, dtype=torch.bool)
    found = dependency_distribution(distance, height, distance_scale=0.05)
    tolerance = 2e-6 if dtype == torch.float32 else 1e-12
    assert (found - looped_distribution(distance, height, none, 0.05)).abs().max() <= tolerance

    upstream = torch.randn(1, 16, 16, dtype=torch.float64)
    gradients = []
    for kind in (dtype, torch.float64):
        inputs = distance.to(kind).requires_grad_(), height.to(kind).requires_grad_()
        found = dependency_distribution(*inputs, distance_scale=0.05)
        gradients.append(torch.autograd.grad((found * upstream.to(kind)).sum(), inputs))
    for single, double in zip(*gradients, strict=True):
        assert single.isfinite().all()
        assert (single - double).abs().max() <= 1e-5

    for factor in (2.0, 1e3, 1e6):
        inputs = distance.requires_grad_(), (height * factor).requires_grad_()
        beyond = dependency_distribution(*inputs)
        assert (beyond.sum(-1) - 1).abs().max() < 1e-5
        assert all(g.isfinite().all() for g in torch.autograd.grad((beyond * upstream).sum(), inputs))
        distance = distance.detach()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_types_are_computed_in_single_precision(implementation, dtype):
    torch.manual_seed(0)
    distance, height = torch.randn(2, 11).to(dtype) * 50, torch.randn(2, 12).to(dtype) * 50
    inputs = distance.requires_grad_(), height.requires_grad_()

    def results(distance, height):
        found = dependency_distribution(distance, height)
        gradients = torch.autograd.grad(found[0, 0, 1] + found[1, 3, 5], inputs)
        return calibrate(distance, height), found, *gradients

    expected = results(distance.float(), height.float())
    with torch.autocast("cpu", dtype=dtype):
        found = results(*inputs)
    assert found[0].dtype == found[1].dtype == torch.float32
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert all(value.isfinite().all() for value in found)


@FEW
@given(batches())
def test_calibration_agrees_and_leaves_no_proper_span_cut_off(batch):
    _, height, padding = batch
    found = calibrate(*batch)
    assert torch.allclose(found, looped_calibration(*batch), atol=1e-12)
    again = calibrate(found, height, padding)
    assert torch.allclose(again, found, atol=1e-12)


def test_calibration_is_per_sentence():
    distance, height = torch.tensor([[9.0, 8.0], [0.0, 0.0]]), torch.zeros(2, 3)
    # Of sentence 0 the span [1, 1] has borders 9 and 8, [2, 2] has 8 and infinity, [1, 2] and [0, 0] have 9.
    assert calibrate(distance, height).tolist() == [[0.0, -1.0], [0.0, 0.0]]


def test_one_and_two_tokens(implementation):
    assert dependency_distribution(torch.zeros(3, 0), torch.randn(3, 1)).tolist() == [[[1.0]]] * 3
    assert calibrate(torch.zeros(3, 0), torch.randn(3, 1)).shape == (3, 0)
    found = dependency_distribution(torch.tensor([[0.5]]), torch.tensor([[1.0, 2.0]]))
    expected = looped_distribution(
        torch.tensor([[0.5]]), torch.tensor([[1.0, 2.0]]), torch.zeros(1, 2, dtype=torch.bool)
    )
    assert torch.allclose(found.double(), expected, atol=1e-6)


def test_equal_heights_and_flat_distances_give_the_known_answer(implementation):
    """Distances far below the heights: the constituent is the sentence, the parent uniform over it."""
    found = dependency_distribution(torch.full((1, 3), -100.0), torch.zeros(1, 4))
    assert torch.allclose(found, torch.full((1, 4, 4), 0.25))
    alone = dependency_distribution(torch.full((1, 3), 100.0), torch.zeros(1, 4))
    assert torch.allclose(alone[0], torch.eye(4))


PADS = torch.zeros(2, 4, dtype=torch.bool)


@pytest.mark.parametrize("function", [dependency_distribution, calibrate])
@pytest.mark.parametrize(
    ("distance", "height", "padding", "name"),
    [
        (torch.zeros(2, 4), torch.zeros(2, 4), None, r"distance .*\(2, 3\).*\(2, 4\)"),
        (torch.zeros(3), torch.zeros(4), None, r"height .*\(4,\)"),
        (torch.zeros(2, 0), torch.zeros(2, 0), None, r"height .*n >= 1.*\(2, 0\)"),
        (torch.zeros(2, 3, dtype=torch.long), torch.zeros(2, 4), None, r"distance \(2, 3\).*int64"),
        (torch.zeros(2, 3), torch.zeros(2, 4, dtype=torch.long), None, r"height \(2, 4\).*int64"),
        (torch.zeros(2, 3), torch.zeros(2, 4), PADS[:, :3], r"padding .*\(2, 3\)"),
        (torch.zeros(2, 3), torch.zeros(2, 4), PADS.float(), r"padding .*float32"),
    ],
)
def test_wrong_arguments(function, distance, height, padding, name):
    with pytest.raises(ValueError, match=name):
        function(distance, height, padding)


def test_a_sentence_without_tokens():
    with pytest.raises(ValueError, match="padding has a row without a real token, row 0"):
        dependency_distribution(torch.zeros(2, 3), torch.zeros(2, 4), ~PADS)


@FEW
@given(batches(spread=(1.0, 10.0, 60.0, 1e5)), scales, scales, st.booleans())
def test_gradients_agree(batch, distance_scale, height_scale, ties):
    """C++ and PyTorch on the same heights and distances; of equal distances the same one gets the gradient."""
    distance, height, padding = batch
    inputs = [distance.round() if ties else distance, height]
    inputs += [torch.tensor(value, dtype=torch.float64) for value in (distance_scale, height_scale)]
    upstream = torch.randn(*height.shape, height.size(1), dtype=torch.float64)
    gradients = []
    for kernel in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(operators, "LIBRARY", LIBRARY if kernel else None)
            leaves = [value.clone().requires_grad_() for value in inputs]
            found = dependency_distribution(
                *leaves[:2], padding, distance_scale=leaves[2], height_scale=leaves[3]
            )
            gradients.append(torch.autograd.grad((found * upstream).sum(), leaves))
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def results(n, dtype=torch.float32, batch=5):
    """P_D and its gradients of random sentences of up to n tokens, pads on either side."""
    generator = torch.Generator().manual_seed(n)
    distance, height, upstream = (
        torch.randn(*shape, generator=generator).to(dtype)
        for shape in ((batch, n - 1), (batch, n), (batch, n, n))
    )
    padding = torch.zeros(batch, n, dtype=torch.bool)
    padding[0, n // 2 + 1 :] = padding[1, : n // 3] = True
    inputs = distance.requires_grad_(), height.requires_grad_()
    found = dependency_distribution(3 * distance, 3 * height, padding)
    return found.detach(), *torch.autograd.grad((found * upstream).sum(), inputs)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 33, 200])
def test_the_same_bytes_for_any_number_of_threads(implementation, n):
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(results(n, batch=16))
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


@pytest.mark.parametrize(
    ("dtype", "digest"), [(torch.float32, "e05be543a7e0a40f"), (torch.float64, "a82401e31a0cad7f")]
)
def test_the_operator_gives_the_same_bytes_on_any_x86_64_processor(monkeypatch, dtype, digest):
    """The digests were made on one; the arguments are exact, since torch's own random numbers are not."""

    def exact(*shape):
        numbers = torch.arange(math.prod(shape), dtype=torch.int64) * 40503 % 2**16
        return (numbers.to(dtype) / 2**13 - 4).view(shape)

    distance, height, upstream = exact(6, 40), exact(6, 41).flip(1), exact(6, 41, 41)
    padding = torch.arange(41) >= torch.tensor([[41], [41], [40], [17], [2], [1]])
    monkeypatch.setattr(operators, "LIBRARY", LIBRARY)  # `implementation` may have chosen the other one
    inputs = distance.requires_grad_(), height.requires_grad_()
    found = dependency_distribution(*inputs, padding, distance_scale=1.5, height_scale=0.75)
    gradients = torch.autograd.grad(found, inputs, upstream)
    made = b"".join(one.detach().numpy().tobytes() for one in (found, *gradients))
    assert sha256(made).hexdigest()[:16] == digest


def test_long_sentences(implementation):
    """1,024 tokens: P_D and its gradients in single precision agree with double."""
    for single, double in zip(results(1024, batch=2), results(1024, torch.float64, batch=2), strict=True):
        assert single.isfinite().all()
        assert (single - double).abs().max() <= 1e-5 * max(1.0, double.abs().max())


def test_nan_is_not_hidden(implementation):
    distance, height = torch.zeros(3, 5), torch.zeros(3, 6)
    distance[0, 2] = height[1, 3] = math.nan
    found = dependency_distribution(distance, height)
    assert found.isnan().flatten(1).any(1).tolist() == [True, True, False]
