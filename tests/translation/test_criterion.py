import math
from argparse import Namespace

import pytest
import torch

from synmask.pipeline.translation.criterion import MixedLoss


class Model(torch.nn.Module):
    """Answers with given logits."""

    def __init__(self, logits, extra):
        super().__init__()
        self.answer = logits, extra
        self.encoder = Namespace(guide=None)

    def forward(self, **inputs):
        return self.answer

    def get_normalized_probs(self, output, log_probs):
        return output[0].log_softmax(-1)

    def get_targets(self, sample, output):
        return sample["target"]


def losses_by_loops(logits, target, smoothing):
    """Label-smoothed cross-entropy as fairseq's: 1 − ε on the right word, ε spread over the others."""
    words, total, plain = logits.size(-1), 0.0, 0.0
    for row, words_of_row in zip(logits, target, strict=True):
        for scores, right in zip(row, words_of_row, strict=True):
            if right == 1:
                continue
            normaliser = math.log(sum(math.exp(score) for score in scores))
            plain += normaliser - float(scores[right])
            for word in range(words):
                weight = 1 - smoothing if word == right else smoothing / (words - 1)
                total += weight * (normaliser - float(scores[word]))
    return total, plain


@pytest.mark.parametrize("mlm_weight", [0.0, 0.3])
def test_mixed_loss_against_loops(mlm_weight):
    torch.manual_seed(0)
    logits, target = torch.randn(2, 4, 7), torch.tensor([[3, 4, 5, 2], [6, 2, 1, 1]])
    mlm_logits, masked_target = torch.randn(3, 9), torch.tensor([2, 8, 5])
    extra = {"mlm_logits": mlm_logits} if mlm_weight else {}
    sample = {
        "net_input": {},
        "target": target,
        "ntokens": 6,
        "nsentences": 2,
        "masked_target": masked_target,
    }
    loss, size, log = MixedLoss(1, 0.1, mlm_weight)(Model(logits, extra), sample)
    translation, plain = losses_by_loops(logits, target, 0.1)
    mlm = sum(
        math.log(sum(math.exp(s) for s in row)) - float(row[right])
        for row, right in zip(mlm_logits, masked_target, strict=True)
    )
    expected = (1 - mlm_weight) * translation + mlm_weight * mlm
    assert float(loss) == pytest.approx(expected, rel=1e-5)
    assert size == 6
    assert float(log["nll_loss"]) == pytest.approx(plain, rel=1e-5)
    if mlm_weight:
        assert float(log["mlm_loss"]) == pytest.approx(mlm, rel=1e-5)


@pytest.mark.parametrize("masked", [True, False])
def test_the_translation_loss_has_its_share_also_in_a_batch_without_a_masked_word(masked):
    logits, target = torch.randn(1, 2, 7), torch.tensor([[3, 2]])
    sample = {"net_input": {}, "target": target, "ntokens": 2, "nsentences": 1}
    if masked:
        sample["masked_target"] = torch.tensor([]).long()
    loss, _, _ = MixedLoss(1, 0.1, 0.3)(Model(logits, {}), sample)
    translation, _ = losses_by_loops(logits, target, 0.1)
    assert float(loss) == pytest.approx((0.7 if masked else 1) * translation, rel=1e-5)


def test_a_batch_without_a_masked_token_has_a_gradient():
    bias = torch.zeros(9, requires_grad=True)
    logits = torch.zeros(1, 2, 7, requires_grad=True)
    model = Model(logits, {"mlm_logits": torch.zeros(0, 9) + bias})
    sample = {
        "net_input": {},
        "target": torch.tensor([[3, 2]]),
        "ntokens": 2,
        "nsentences": 1,
        "masked_target": torch.tensor([]).long(),
    }
    loss, _, _ = MixedLoss(1, 0.1, 0.3)(model, sample)
    loss.backward()
    assert loss.isfinite()
    assert bias.grad.abs().sum() == 0
