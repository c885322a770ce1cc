"""PASCAL against loops over its formula."""

import math

import pytest
import torch


def literal(scores, padding, heads, guided, sigma):
    """A_ij = softmax_j(s_ij w_ij), w_ij the density at j of N(p_i, sigma²); p_i the mean of the parent's sub-words."""
    size, total, n, _ = scores.shape
    found = torch.zeros_like(scores)
    for b in range(size):
        real = [j for j in range(n) if not padding[b, j]]
        for h in range(total):
            for i in range(n):
                first, last = heads[b, i].tolist()
                raised = {}
                for j in real:
                    weight = 1.0
                    if h < guided and first >= 0:
                        parent = sum(range(first, last + 1)) / (last + 1 - first)
                        weight = math.exp(-((j - parent) ** 2) / (2 * sigma**2)) / math.sqrt(
                            2 * math.pi * sigma**2
                        )
                    raised[j] = math.exp(scores[b, h, i, j].item() * weight)
                for j in real:
                    found[b, h, i, j] = raised[j] / sum(raised.values())
    return found


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize(("options", "guided"), [({}, 2), ({"heads": 1, "sigma": 0.7}, 1), ({"heads": 2}, 2)])
def test_agrees_with_loops(batch, guide, options, guided, left):
    these = batch(6, 4, 1, left=left)
    expected = literal(
        these.scores, these.padding, these.annotations["heads"], guided, options.get("sigma", 1.0)
    )
    found = these.attention(guide("pascal", **options))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)  # the weights are float32


def test_without_heads_it_is_softmax(batch, guide):
    these = batch(6, 4)
    these.annotations["heads"].fill_(-1)
    plain = these.scores.masked_fill(these.padding[:, None, None, :], float("-inf")).softmax(-1)
    torch.testing.assert_close(these.attention(guide("pascal")), plain, rtol=0, atol=1e-12)


def test_ignored_rows_are_softmax_and_as_many_as_said(batch, guide):
    these = batch(*[12] * 40)
    plain = these.scores.softmax(-1)
    half = guide("pascal", heads=1, ignore=0.4).train()
    torch.manual_seed(3)
    found = these.attention(half)
    left_alone = (found - plain).abs().amax(-1) < 1e-9
    assert left_alone[:, 1].all()
    assert abs(left_alone[:, 0].double().mean() - 0.4) < 0.06
    weighted = these.attention(guide("pascal", heads=1))
    guided = ~left_alone[:, 0]
    assert torch.equal(found[:, 0][guided], weighted[:, 0][guided])
    assert torch.equal(these.attention(half.eval()), weighted)  # never when decoding
