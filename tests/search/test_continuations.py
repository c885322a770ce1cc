"""The best continuations against sorting all of them."""

import math

import pytest
import torch

from synmask.pipeline.search.continuations import best_continuations


def by_sorting(logits, score, count, never):
    """(score, token, parent) of the best continuations of each sentence."""
    each = torch.stack([one.double().softmax(-1) for one in logits])
    logs = each.mean(0).log()
    for s in range(len(score)):
        found = [
            (float(score[s, w] + logs[s, w, v]), v, w)
            for w in range(score.size(1))
            for v in range(logs.size(-1))
            if not never[v]
        ]
        yield sorted(found, reverse=True)[:count]


@pytest.mark.parametrize("width", [1, 5])
@pytest.mark.parametrize("vocabulary", [7, 64, 301])
@pytest.mark.parametrize("count", [1, 10])
@pytest.mark.parametrize("models", [1, 2])
def test_against_sorting(implementation, width, vocabulary, count, models):
    torch.manual_seed(1)
    logits = [torch.randn(6, width, vocabulary) * 4 for _ in range(models)]
    score = -torch.rand(6, width) * 9
    never = torch.zeros(vocabulary, dtype=torch.bool)
    never[[1, 5]] = True
    values, tokens, parents = best_continuations([one.clone() for one in logits], score, count, never)
    assert values.shape == (6, min(count, width * (vocabulary - 1)))
    for s, expected in enumerate(by_sorting(logits, score, count, never)):
        real = values[s] > -math.inf
        assert [*zip(tokens[s][real].tolist(), parents[s][real].tolist(), strict=True)] == [
            (token, parent) for _, token, parent in expected
        ]
        assert values[s][real].tolist() == pytest.approx([value for value, *_ in expected], abs=2e-6)


def test_one_token_alone(implementation):
    """At the longest length only `</s>` may come; the rest of the candidates is none."""
    logits, score = torch.randn(3, 2, 100), torch.tensor([[0.0, -1.0]] * 3)
    never = torch.ones(100, dtype=torch.bool)
    never[70] = False
    values, tokens, parents = best_continuations([logits.clone()], score, 4, never)
    expected, order = (score + logits.log_softmax(-1)[..., 70]).sort(descending=True)
    torch.testing.assert_close(values[:, :2], expected)
    assert torch.equal(parents[:, :2], order)
    assert (tokens[:, :2] == 70).all()
    assert (values[:, 2:] == -math.inf).all()


def test_logits_far_apart(implementation):
    logits = torch.full((1, 1, 50), -1e4)
    logits[..., 3], logits[..., 40] = 1e4, -math.inf
    values, tokens, _ = best_continuations([logits], torch.zeros(1, 1), 2, torch.zeros(50, dtype=torch.bool))
    assert tokens[0, 0] == 3
    assert values[0].tolist() == [0, -2e4]
