"""Dropout, cross-entropy and Adam against those that fairseq and torch bring."""

from argparse import Namespace

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from fairseq.modules import FairseqDropout
from fairseq.optim.adam import FairseqAdam

from synmask.training.operators import Dropout, FusedAdam, dropout, replace_dropout, smoothed_cross_entropy

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


def test_all_of_fairseqs_dropout_modules_are_replaced():
    model = torch.nn.Sequential(FairseqDropout(0.2), torch.nn.Sequential(FairseqDropout(0.4)))
    replace_dropout(model)
    assert [module.p for module in model.modules() if hasattr(module, "p")] == [0.2, 0.4]
    assert [type(module) for module in (model[0], model[1][0])] == [Dropout, Dropout]
    x = torch.ones(100)
    assert (model(x) == 0).any()
    assert torch.equal(model.eval()(x), x)


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
