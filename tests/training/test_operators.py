"""Dropout, cross-entropy and Adam against those that fairseq and torch bring."""

import subprocess
import sys
from argparse import Namespace

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from fairseq.modules import FairseqDropout, MultiheadAttention
from fairseq.optim.adam import FairseqAdam
from torch.utils._python_dispatch import TorchDispatchMode

from synmask import bf16
from synmask.encoder import attention, by_head
from synmask.induction.parser import as_product
from synmask.pipeline.training import operators
from synmask.pipeline.training.operators import (
    Attention,
    DecoderDropout,
    Dropout,
    FusedAdam,
    Linear,
    dropout,
    linear,
    smoothed_cross_entropy,
    use_faster_modules,
)

PAD = 1


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


def test_all_dropout_modules_are_replaced():
    model = torch.nn.Sequential(FairseqDropout(0.2), torch.nn.Sequential(torch.nn.Dropout(0.4)))
    use_faster_modules(model)
    assert [module.p for module in model.modules() if hasattr(module, "p")] == [0.2, 0.4]
    assert [type(module) for module in (model[0], model[1][0])] == [DecoderDropout, Dropout]
    x = torch.ones(100)
    assert (model(x) == 0).any()
    assert torch.equal(model.eval()(x), x)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(7,), (5, 7), (3, 4, 7), (0, 7), (128, 7), (2, 65, 7)])
@pytest.mark.parametrize("width", [3, 40])  # the gradient of a tall weight is another product
def test_linear_and_its_gradients_are_torchs(shape, width, bias):
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


def test_linear_in_another_precision_is_torchs_itself():
    x, weight = torch.randn(5, 7, dtype=torch.float64), torch.randn(3, 7, dtype=torch.float64)
    assert torch.equal(linear(x, weight, None), torch.nn.functional.linear(x, weight))


def test_without_instructions_for_bf16_each_result_is_rounded_once(monkeypatch):
    monkeypatch.setattr(bf16, "has_instructions", lambda: False)
    torch.manual_seed(5)

    def convolved(x, *parameters):
        layer = Namespace(**dict(zip(("weight", "bias"), parameters, strict=True)))
        return as_product(layer, x)

    functions = {
        "linear": (linear, (40, 64), (32, 64), (32,)),
        "product": (bf16.product, (3, 4, 16, 64), (3, 4, 64, 8)),
        "convolution": (convolved, (2, 20, 64), (32, 64, 9), (32,)),
    }
    for function, *shapes in functions.values():
        inputs = [torch.randn(shape).bfloat16() for shape in shapes]
        found = []
        for kind in (torch.bfloat16, torch.float64):
            leaves = [value.to(kind, copy=True).requires_grad_() for value in inputs]
            result = function(*leaves)
            result.backward(torch.ones_like(result))
            found.append([result.detach(), *(leaf.grad for leaf in leaves)])
        for ours, exact in zip(*found, strict=True):
            assert ours.dtype == torch.bfloat16
            # half a unit in the last of 8 bits, and the sums' own rounding where they cancel
            torch.testing.assert_close(ours.double(), exact, rtol=2**-8, atol=1e-4)


def test_linear_may_be_changed_in_place_and_skips_gradients_that_nobody_needs():
    layer = torch.nn.Linear(4, 3).requires_grad_(False)
    use_faster_modules(layer)
    assert type(layer) is Linear
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


def attentions(p):
    torch.manual_seed(3)
    stock = MultiheadAttention(8, 2, dropout=p, self_attention=True)
    ours = MultiheadAttention(8, 2, dropout=p, self_attention=True)
    ours.load_state_dict(stock.state_dict())
    use_faster_modules(ours)
    assert [type(ours), type(ours.q_proj), type(ours.dropout_module)] == [Attention, Linear, DecoderDropout]
    return ours, stock


PADS = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
FUTURE = torch.full((5, 5), float("-inf")).triu(1)


@pytest.mark.parametrize(("kind", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 3e-2)])
@pytest.mark.parametrize("pads", [None, PADS])
@pytest.mark.parametrize("future", [None, FUTURE])
def test_attention_and_its_gradients_are_fairseqs(kind, tolerance, pads, future):
    states, found = torch.randn(5, 2, 8), []
    for model in attentions(0.0):
        x = states.to(kind).requires_grad_()
        mask = None if future is None else future.to(kind)
        result, weights = model.to(kind)(x, x, x, key_padding_mask=pads, attn_mask=mask, need_weights=False)
        assert weights is None
        result.square().sum().backward()
        found.append([result, x.grad, *(p.grad for p in model.parameters())])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=10 * tolerance)


@pytest.mark.parametrize(
    "bias", [None, FUTURE, torch.zeros(PADS.shape).masked_fill(PADS, -9e9)[:, None, None]]
)
def test_attention_on_a_gpu_is_that_on_a_cpu(bias):
    class OnGpu(torch.Tensor):
        device = Namespace(type="cuda")

    query, key, value = torch.randn(3, 2, 4, 5, 8)
    drop = torch.nn.Dropout(0.5).eval()
    found = attention(query.as_subclass(OnGpu), key, value, bias, drop)
    assert type(found) is OnGpu
    torch.testing.assert_close(found.as_subclass(torch.Tensor), attention(query, key, value, bias, drop))


def test_attention_to_other_states_and_its_weights_are_fairseqs():
    ours, stock = attentions(0.0)
    query, states = torch.randn(3, 2, 8), torch.randn(5, 2, 8)
    kwargs = {"key_padding_mask": PADS, "static_kv": True}
    for model in (ours, stock):
        model.self_attention, model.encoder_decoder_attention = False, True
    for wanted in (False, True):
        results = [model(query, states, states, need_weights=wanted, **kwargs) for model in (ours, stock)]
        torch.testing.assert_close(*(result for result, _ in results))
        if wanted:
            torch.testing.assert_close(*(weights for _, weights in results))


def test_attention_drops_its_weights_with_our_masks():
    ours, _ = attentions(0.5)
    x = torch.randn(5, 2, 8)
    torch.manual_seed(4)
    q, k, v = (by_head(project(x), 2) for project in (ours.q_proj, ours.k_proj, ours.v_proj))
    weights = dropout((q * ours.scaling @ k.mT).softmax(-1), 0.5)
    expected = ours.out_proj((weights @ v).permute(2, 0, 1, 3).reshape(x.shape))
    torch.manual_seed(4)
    assert torch.equal(ours(x, x, x, need_weights=False)[0], expected)
    plain = ours.eval()(x, x, x, need_weights=False)[0]
    assert not torch.allclose(plain, expected)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
def test_cross_entropy_and_its_gradient_are_fairseqs(smoothing):
    torch.manual_seed(2)
    logits = (5 * torch.randn(40, 11, dtype=torch.float64)).requires_grad_()
    target = torch.randint(11, (40,))
    assert target.eq(PAD).any()
    # the right one is computed in float32, as in a training under mixed precision
    theirs = label_smoothed_nll_loss(logits.log_softmax(-1), target, smoothing, ignore_index=PAD)
    ours = smoothed_cross_entropy(logits, target, smoothing, PAD)
    assert [x.item() for x in ours] == pytest.approx([x.item() for x in theirs], rel=1e-6)
    expected = torch.autograd.grad(0.7 * theirs[0], logits)[0]
    result = torch.autograd.grad(0.7 * ours[0], logits)[0]
    assert torch.allclose(result, expected, atol=1e-6)
    assert not result[target.eq(PAD)].any()


def test_cross_entropy_of_no_tokens_has_a_gradient():
    logits = torch.zeros(0, 5, requires_grad=True)
    loss, _ = smoothed_cross_entropy(logits, torch.zeros(0, dtype=torch.int64), 0.1, PAD)
    loss.backward()
    assert float(loss) == 0
    assert logits.grad.shape == (0, 5)


def test_cross_entropy_of_half_precision_is_summed_in_float32():
    logits = torch.randn(4000, 50).bfloat16().requires_grad_()
    loss, _ = smoothed_cross_entropy(logits, torch.randint(2, 50, (4000,)), 0.1, PAD)
    loss.backward()
    assert loss.dtype == torch.float32
    assert logits.grad.dtype == torch.bfloat16


@pytest.mark.parametrize("decay", [0.0, 0.01])
def test_fused_adam_makes_fairseqs_updates(decay):
    options = {"lr": [0.01], "adam_betas": "(0.9, 0.98)", "adam_eps": 1e-8, "weight_decay": decay}
    config = Namespace(**options, use_old_adam=False, fp16_adam_stats=False, tpu=False)
    torch.manual_seed(3)
    start = torch.randn(20, 30)
    ends = []
    for kind in (FairseqAdam, FusedAdam):
        weight = torch.nn.Parameter(start.clone())
        optimizer = kind(config, [weight])
        generator = torch.Generator().manual_seed(4)
        for step in range(50):
            optimizer.set_lr(0.01 / (1 + step))
            weight.grad = torch.randn(20, 30, generator=generator)
            optimizer.step()
        ends.append(weight.detach())
    assert not torch.allclose(ends[0], start, atol=1e-2)
    assert torch.allclose(*ends, atol=1e-6)


def test_fused_adam_does_not_load_torch_compile():
    code = (
        "import sys, torch; from synmask.pipeline.training.trainer import FairseqAdamConfig, operators; "
        "weight = torch.nn.Parameter(torch.ones(3)); weight.grad = weight.data; "
        "adam = operators.FusedAdam(FairseqAdamConfig(lr=[0.1], adam_betas='(0.9, 0.98)'), [weight]); "
        "adam.step(); adam.zero_grad(); adam.load_state_dict(adam.state_dict()); "
        "assert float(weight.sum()) < 3; assert 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("most", [0.0, 0.5, 100.0])
def test_gradients_are_scaled_and_clipped_as_fairseq_does(most):
    config = Namespace(lr=[0.01], adam_betas="(0.9, 0.98)", adam_eps=1e-8, weight_decay=0.0, tpu=False)
    config.use_old_adam = config.fp16_adam_stats = False
    ends = []
    for kind in (FairseqAdam, FusedAdam):
        weights = [torch.nn.Parameter(torch.zeros(size)) for size in (3, 5, 2)]
        optimizer = kind(config, weights)
        for weight in weights[:2]:  # the third has no gradient
            weight.grad = torch.arange(1.0, len(weight) + 1)
        optimizer.multiply_grads(0.25)
        norm = optimizer.clip_grad_norm(most)
        ends.append(torch.cat([weight.grad for weight in weights[:2]] + [norm.view(1)]))
        assert weights[2].grad is None
    assert torch.allclose(*ends, rtol=1e-6)
    assert ends[0][-1] == pytest.approx(0.25 * (14 + 55) ** 0.5)


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
    bf16.lacking(torch.empty(0, dtype=torch.bfloat16)), reason="a processor without AVX-512 for bf16"
)
@pytest.mark.parametrize("count", [1, 127, 128, 200, 300])
@pytest.mark.parametrize(("wide", "narrow"), [(96, 160), (160, 96), (32, 160)])
def test_in_bf16_onednn_gets_few_sizes_and_results_stay(count, wide, narrow):
    x = torch.randn(count, wide).bfloat16().requires_grad_()
    weight = torch.randn(narrow, wide).bfloat16().requires_grad_()
    with Products() as products:
        found = operators.linear(x, weight, None)
        grad = torch.randn_like(found)
        made = torch.autograd.grad(found, (x, weight), grad)
    assert products.names == {"mkldnn._linear_pointwise.default"}
    assert products.sizes - {wide, narrow} <= {128, 256, 384}
    wanted = torch.nn.functional.linear(x.double(), weight.double())
    exact = torch.autograd.grad(wanted, (x, weight), grad.double())
    for ours, theirs in zip((found, *made), (wanted, *exact), strict=True):
        torch.testing.assert_close(ours.double(), theirs.double(), rtol=2**-7, atol=1e-3)  # a last bit
