"""LISA's parsing head and loss against loops over their formulas."""

import math

import pytest
import torch

from synmask.guides import LossInputs


def literal_logits(guide, x):
    """[q_i; 1] U k_j with q, k = leaky_relu(W x + b)."""
    size, n, _ = x.shape
    width = guide.bilinear.size(1)
    found = torch.zeros(size, n, n, dtype=x.dtype)
    for b in range(size):
        hidden = [guide.inputs.weight @ x[b, i] + guide.inputs.bias for i in range(n)]
        hidden = [torch.stack([v if v > 0 else 0.01 * v for v in row]) for row in hidden]
        for i in range(n):
            for j in range(n):
                query = [*hidden[i][:width], torch.ones(())]
                found[b, i, j] = sum(
                    query[a] * guide.bilinear[a, c] * hidden[j][width + c]
                    for a in range(width + 1)
                    for c in range(width)
                )
    return found


@pytest.mark.parametrize("left", [False, True])
def test_head_and_loss_agree_with_loops(batch, guide, left):
    these, lisa = batch(5, 3, left=left), guide("lisa", parse_weight=0.7)
    with torch.no_grad():
        lisa.inputs.bias.normal_()
    prepared = lisa.prepare(these.x, these.padding, these.annotations)
    logits = literal_logits(lisa, these.x).detach()
    torch.testing.assert_close(prepared[0], logits, rtol=0, atol=1e-12)
    found = lisa.attend(these.scores, prepared, 0)
    loss = 0.0
    for b in range(2):
        real = [j for j in range(5) if not these.padding[b, j]]
        for i in range(5):
            for head, scores in ((0, logits[b, i]), (1, these.scores[b, 1, i])):
                total = sum(math.exp(scores[j]) for j in real)
                for j in range(5):
                    expected = math.exp(scores[j]) / total if j in real else 0.0
                    assert found[b, head, i, j].item() == pytest.approx(expected, abs=1e-12)
            if i in real:
                parent = these.annotations["heads"][b, i, 0]  # the first sub-word of the parent's word
                loss -= math.log(
                    math.exp(logits[b, i, parent]) / sum(math.exp(logits[b, i, j]) for j in real)
                )
    done = LossInputs(prepared, None, these.annotations, None)
    assert lisa.loss(done).item() == pytest.approx(0.7 * loss, rel=1e-5)


def test_sentences_without_heads_add_no_loss(batch, guide):
    these, lisa = batch(5, 3), guide("lisa")
    these.annotations["heads"][1] = -1
    alone = these.part(0)
    losses = [
        lisa.loss(LossInputs(lisa.prepare(one.x, one.padding, one.annotations), None, one.annotations, None))
        for one in (these, alone)
    ]
    torch.testing.assert_close(*losses)
    these.annotations["heads"][0] = -1
    none = lisa.loss(
        LossInputs(lisa.prepare(these.x, these.padding, these.annotations), None, these.annotations, None)
    )
    assert none == 0
    none.backward()
    assert all(p.grad.isfinite().all() for p in lisa.parameters())


def test_gradients(batch, guide):
    these, lisa = batch(4, 3), guide("lisa")
    torch.nn.init.normal_(lisa.inputs.bias)  # at 0, where pads would be, leaky_relu has no gradient

    def function(x, weight, bias, bilinear):
        values = {"inputs.weight": weight, "inputs.bias": bias, "bilinear": bilinear}
        return torch.func.functional_call(
            _Attention(lisa, these), {f"guide.{k}": v for k, v in values.items()}, x
        )

    inputs = [these.x, *(p.detach() for p in (lisa.inputs.weight, lisa.inputs.bias, lisa.bilinear))]
    assert torch.autograd.gradcheck(function, [value.clone().requires_grad_() for value in inputs])


class _Attention(torch.nn.Module):
    def __init__(self, guide, these):
        super().__init__()
        self.guide, self.these = guide, these

    def forward(self, x):
        prepared = self.guide.prepare(x, self.these.padding, self.these.annotations)
        return self.guide.attend(self.these.scores, prepared, 0)
