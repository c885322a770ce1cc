"""An update is that of fairseq's Trainer, batches are those of its tasks, rates those of its schedules."""

import copy
import math
from argparse import Namespace
from functools import partialmethod

import pytest
import torch
from fairseq.optim import FairseqOptimizer
from fairseq.optim.lr_scheduler.inverse_square_root_schedule import (
    InverseSquareRootLRScheduleConfig,
    InverseSquareRootSchedule,
)
from fairseq.optim.lr_scheduler.polynomial_decay_schedule import (
    PolynomialDecayLRSchedule,
    PolynomialDecayLRScheduleConfig,
)
from torch import nn

from fairseq_trainer import Task, fairseq_weights, groups_of, our_weights
from small_models import typed
from synmask.pipeline.config.base import Optimisation
from synmask.pipeline.training.batches import Batches, prefetch
from synmask.pipeline.training.losses import add_sums, mean_losses
from synmask.pipeline.training.schedules import inverse_sqrt, linear_decay
from synmask.pipeline.training.trainer import Trainer
from synmask.pipeline.translation.train import TranslationStage

UPDATES = 15  # the rate warms up for 10


def translation(corpus, settings, **training):
    """A stage in which some pairs are left out, since they are longer than a batch."""
    settings["training"] |= {"batch": {"gpus": 1, "updates": 2, "tokens": 8}, "clip_norm": 0.0} | training
    stage = TranslationStage(typed(settings), 1, corpus / "bin", "de", "en", 1, {})
    assert stage.check()["train"] > 0
    return stage


def inverse_sqrt_of_fairseq(training):
    scheduler = InverseSquareRootLRScheduleConfig(warmup_updates=training.warmup_updates, warmup_init_lr=1e-7)
    scheduler._name = "inverse_sqrt"
    return scheduler


@pytest.mark.parametrize("system", ["plain", "grammar"])
@pytest.mark.parametrize(
    "training",
    [
        {},
        {"clip_norm": 0.5},
        {"clip_norm": 100.0, "batch": {"gpus": 1, "updates": 1, "tokens": 8}},
        {"precision": "bf16"},  # with clipping, fairseq rounds in another order
        {"weight_decay": 0.1, "label_smoothing": 0.3, "batch": {"gpus": 2, "updates": 2, "tokens": 8}},
    ],
)
def test_the_weights_are_those_of_fairseqs_trainer(
    corpus, tmp_path, settings, grammar_settings, system, training
):
    """Bit by bit: with gradients of several batches, clipped and not, smoothed labels, masked words, decay."""
    stage = translation(corpus, grammar_settings if system == "grammar" else settings, **training)
    groups = groups_of(stage, UPDATES)
    scheduler = inverse_sqrt_of_fairseq(stage.settings.training)
    expected, rates = fairseq_weights(stage, groups, tmp_path, scheduler)
    found, ours = our_weights(stage, groups)
    assert ours == rates
    assert found.keys() == expected.keys()
    assert [name for name, value in found.items() if not torch.equal(value, expected[name])] == []


@pytest.mark.parametrize("workers", [1, 2])
def test_batches_are_those_of_fairseqs_tasks(corpus, grammar_settings, workers):
    """Over two epochs, the second begun in the middle; and those to validate on."""
    stage = translation(corpus, grammar_settings)
    limits = stage.batch_limits("train")
    for worker in range(workers):
        theirs, fresh = (
            Task(Namespace()).get_batch_iterator(
                stage.dataset("train"), limits.tokens, max_positions=limits.longest, seed=1,
                ignore_invalid_inputs=True, required_batch_size_multiple=8, num_shards=workers, shard_id=worker,
            )
            for _ in range(2)
        )  # fmt: skip
        ours = Batches(stage.dataset("train"), limits, 1, worker, workers)
        for epoch, done in ((1, 0), (2, 3)):
            expected = [*theirs.next_epoch_itr()][2 * done :]
            count, groups = ours.updates(epoch, 2, done)
            found = [batch for group in groups for batch in group]
            assert count == math.ceil(len(theirs) / 2)
            assert len(found) == len([batch for batch in expected if batch])
            for batch, other in zip(found, expected, strict=False):
                for name in ("src_tokens", "prev_output_tokens", "masked"):
                    assert torch.equal(batch["net_input"][name], other["net_input"][name])
        expected = fresh.next_epoch_itr(shuffle=False, set_dataset_epoch=False)
        assert [batch and batch["id"].tolist() for batch in ours.in_order()] == [
            batch and batch["id"].tolist() for batch in expected
        ]


def test_a_thread_prepares_the_next_batch_alone_and_ends_with_the_generator():
    made = []

    def items():
        for number in range(100):
            made.append(number)
            yield number

    generator = prefetch(items())
    assert next(generator) == 0
    generator.close()
    assert made == [0, 1]
    assert [*prefetch(iter("abc"))] == ["a", "b", "c"]

    def failing():
        yield 1
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        [*prefetch(failing())]


class Rate(FairseqOptimizer):
    """An optimiser that has a learning rate alone."""

    def __init__(self):
        pass

    def set_lr(self, rate):
        self.rate = rate

    def get_lr(self):
        return self.rate


@pytest.mark.parametrize("warmup", [1, 7, 60])
def test_learning_rates_are_fairseqs(warmup):
    for start in (-1, 1e-7):
        cfg = InverseSquareRootLRScheduleConfig(warmup_updates=warmup, warmup_init_lr=start, lr=[0.003])
        theirs, ours = InverseSquareRootSchedule(cfg, Rate()), inverse_sqrt(0.003, warmup, max(0, start))
        assert [ours(n) for n in range(100)] == [theirs.step_update(n) for n in range(100)]
    cfg = PolynomialDecayLRScheduleConfig(warmup_updates=warmup, total_num_update=80, lr=[0.003])
    theirs, ours = PolynomialDecayLRSchedule(cfg, Rate()), linear_decay(0.003, warmup, 80)
    assert [ours(n) for n in range(100)] == [theirs.step_update(n) for n in range(100)]


def regression(precision="fp32", **training):
    """A trainer of one weight, whose gradient is the sum of its batches' numbers; batches have no other data."""
    weight = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(weight.weight)

    def loss(model, batch):
        value = (model.weight * batch["number"]).sum().float()
        return value, batch["size"], {"loss": value.detach(), "ntokens": batch["size"]}

    rest = {"max_epochs": 1, "lr": 0.1, "warmup_updates": 1, "weight_decay": 0.0, "precision": precision}
    return Trainer(weight, loss, Optimisation(**rest | training), lambda updates: 0.1, seed=1)


def test_an_update_without_a_masked_word_divides_by_nothing():
    trainer = regression()
    sums = trainer.train_step([{"number": 0.0, "size": 0}])
    assert trainer.updates == 1
    assert trainer.model.weight.item() == 1.0
    assert mean_losses(sums)["loss"] == 0.0


def test_losses_are_means_over_batches_and_updates():
    trainer, totals = regression(), {}
    for group in ([{"number": 2.0, "size": 3}, {"number": 4.0, "size": 1}], [{"number": 5.0, "size": 4}]):
        before = trainer.model.weight.item()
        sums = trainer.train_step(group)
        assert float(sums["loss"]) == pytest.approx(before * sum(batch["number"] for batch in group))
        add_sums(totals, sums)
    assert totals["sample_size"] == 8
    assert mean_losses(totals)["loss"] == pytest.approx(float(totals["loss"]) / 8)
    weight = trainer.model.weight.item()
    assert trainer.validate([{"number": 2.0, "size": 3}, {"number": 4.0, "size": 1}])[
        "loss"
    ] == pytest.approx(weight * 6 / 4)


def test_a_gradient_that_is_not_finite_changes_nothing():
    trainer = regression()
    with pytest.raises(FloatingPointError):
        trainer.train_step([{"number": math.inf, "size": 1}])
    assert trainer.updates == 0
    assert trainer.model.weight.item() == 1.0


def test_in_fp16_an_overflow_lowers_the_scale_alone_until_there_is_no_lower():
    trainer = regression("fp16")
    assert trainer.train_step([{"number": 1.0, "size": 1}])["loss"] == 1.0
    before, scale = trainer.masters[0].item(), trainer.scaler.get_scale()
    assert scale == 128
    assert trainer.train_step([{"number": 3e4, "size": 1}]) == {"stop": False}  # times 128: over 65,504
    assert (trainer.masters[0].item(), trainer.updates, trainer.scaler.get_scale()) == (before, 1, 64)
    again = regression("fp16")
    again.load_state_dict(trainer.state_dict())
    assert again.scaler.get_scale() == 64
    while trainer.scaler.get_scale() > 2e-4:
        trainer.train_step([{"number": math.inf, "size": 1}])
    with pytest.raises(FloatingPointError):
        trainer.train_step([{"number": math.inf, "size": 1}])


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_state_continues_bit_by_bit(corpus, grammar_settings, precision):
    """In bf16 the copies in float32 are part of it."""
    stage = translation(corpus, grammar_settings, precision=precision)
    groups, trainers = groups_of(stage, 8), []
    for _ in range(2):
        torch.manual_seed(1)
        training = stage.settings.training
        trainers.append(Trainer(stage.model(), stage.loss(), training, stage.schedule(), 1))
    whole, parts = trainers
    for number, group in enumerate(groups):
        whole.train_step(group)
        if number == 3:
            parts.load_state_dict(copy.deepcopy(whole.state_dict()))
        elif number > 3:
            parts.train_step(group)
    assert whole.updates == parts.updates == 8
    for one, other in zip(whole.masters, parts.masters, strict=True):
        assert torch.equal(one, other)


def test_compiled_updates_are_the_same(monkeypatch):
    """By a graph of the whole objective; that of a Transformer takes half a minute to trace."""
    monkeypatch.setattr(nn.Module, "compile", partialmethod(nn.Module.compile, backend="eager"))
    weights = []
    for compiled in (False, True):
        trainer = regression(compile=compiled)
        for number in (1.0, 3.0, -2.0):
            trainer.train_step([{"number": number, "size": 2}])
        assert bool(trainer.objective._compiled_call_impl) == compiled
        weights.append(trainer.masters[0].detach().clone())
    assert torch.equal(*weights)


def test_a_setting_from_before_the_choice_of_a_compiler_has_the_same_record():
    training = Optimisation(max_epochs=1, lr=0.1, warmup_updates=1, weight_decay=0.0)
    assert "compile" not in training.plain()
    assert training.model_copy(update={"compile": True}).plain()["compile"] is True
