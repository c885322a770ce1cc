"""Attention, cross-entropy and Adam against those that fairseq and torch bring."""

import copy
import subprocess
from argparse import Namespace

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from fairseq.modules import MultiheadAttention
from fairseq.optim.adam import FairseqAdam

from fairseq_trainer import FusedAdam
from synmask.encoder import by_head
from synmask.pipeline.cpu.modules import accelerate, attention, dropout
from synmask.pipeline.training.operators import FAIRSEQ_MODULES, smoothed_cross_entropy

PAD = 1


def attentions(p):
    torch.manual_seed(3)
    stock = MultiheadAttention(8, 2, dropout=p, self_attention=True)
    return accelerate(copy.deepcopy(stock), FAIRSEQ_MODULES), stock


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


def test_fused_adam_does_not_load_torch_compile(warm):
    code = (
        "import sys, torch; from synmask.pipeline.training.operators import AdamW; "
        "weight = torch.nn.Parameter(torch.ones(3)); weight.grad = weight.data; "
        "adam = AdamW([weight], lr=0.1, fused=True); "
        "adam.step(); adam.zero_grad(); adam.load_state_dict(adam.state_dict()); "
        "assert float(weight.sum()) < 3; assert 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([warm.python, "-c", code], check=True)


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
