"""LPSI's gates, attention and synchronisation loss against loops over their formulas."""

import math

import pytest
import torch

from synmask.guides import LossInputs
from synmask.guides.lpsi import TowerGates


def sigmoid(value):
    return 1 / (1 + math.exp(-value))


def literal(scores, padding, distance, temperature, causal):
    """softmax(s) * g, normalised again; g over the tokens k from j to i, i left out."""
    size, total, n, _ = scores.shape
    found = torch.zeros_like(scores)
    for b in range(size):
        real = [j for j in range(n) if not padding[b, j]]
        for h in range(total):
            d = distance[b, h].tolist() if h < distance.size(1) else None
            for i in real:
                seen = [j for j in real if j <= i or not causal]
                weights = {}
                for j in seen:
                    gate = 1.0
                    between = range(j, i) if j < i else range(i + 1, j + 1)
                    for k in between if d else ():
                        gate *= sigmoid(temperature * (d[i] - d[k]))
                    weights[j] = (
                        gate * math.exp(scores[b, h, i, j]) / sum(math.exp(scores[b, h, i, k]) for k in seen)
                    )
                for j in seen:
                    found[b, h, i, j] = weights[j] / sum(weights.values())
    return found


@pytest.mark.parametrize(("causal", "left"), [(False, False), (False, True), (True, False)])
@pytest.mark.parametrize("options", [{}, {"heads": 1, "temperature": 2.0}])
def test_agrees_with_loops(batch, guide, options, causal, left):
    these, lpsi = batch(6, 4, 1, left=left), guide("lpsi", **options)
    lpsi = lpsi.decoder().double().eval() if causal else lpsi
    prepared = lpsi.prepare(these.x, these.padding, {})
    assert prepared.distance.shape == (3, options.get("heads", 2), 6)
    expected = literal(
        these.scores, these.padding, prepared.distance, options.get("temperature", 10.0), causal
    )
    found = lpsi.attend(these.scores, prepared, 0)
    real = ~these.padding[:, None, :, None].expand_as(found)
    torch.testing.assert_close(found[real], expected[real], rtol=0, atol=1e-5)


def test_the_tower_is_a_transformer_layer_of_what_may_be_seen(batch, guide):
    """Against torch's own functions, sentence by sentence and prefix by prefix."""
    these = batch(5, 3)
    for lpsi in (guide("lpsi"), guide("lpsi").decoder().double().eval()):
        prepared = lpsi.prepare(these.x, these.padding, {})
        tower = lpsi.tower
        for b, n in enumerate(these.lengths):
            for i in range(n):
                seen = these.x[b, : i + 1 if lpsi.causal else n]
                attended, _ = tower.self_attn(these.x[b, i : i + 1], seen, seen)
                state = tower.norm1(these.x[b, i : i + 1] + attended)
                state = tower.norm2(state + tower.linear2(torch.relu(tower.linear1(state))))
                expected = lpsi.output(state)[0]
                torch.testing.assert_close(prepared.distance[b, :, i], expected, rtol=0, atol=1e-6)


def test_equal_distances_halve_and_open_gates_change_nothing(batch, guide):
    these, lpsi = batch(6, 4), guide("lpsi")
    with torch.no_grad():
        lpsi.output.weight.zero_()
    halves = lpsi.prepare(these.x, these.padding, {}).log_gate
    steps = (torch.arange(6)[:, None] - torch.arange(6)).abs()
    torch.testing.assert_close(halves[0, 0], -math.log(2) * steps.double())
    plain = these.scores.masked_fill(these.padding[:, None, None, :], float("-inf")).softmax(-1)
    found = lpsi.attend(these.scores, _walls(halves * 0, these.padding), 0)
    torch.testing.assert_close(found, plain, rtol=0, atol=1e-12)


def _walls(log_gate, padding, distance=None):
    return TowerGates(distance, log_gate, padding, padding[:, None, None, :])


def test_synchronisation_agrees_with_loops(guide):
    torch.manual_seed(2)
    lpsi = guide("lpsi", sync="rank", sync_weight=0.3, sync_margin=0.2)
    source, target = torch.randn(2, 2, 5), torch.randn(2, 2, 4)
    cross = torch.rand(2, 4, 5).softmax(-1)
    padding = torch.tensor([[False] * 4, [False, False, False, True]])
    done = LossInputs(
        _walls(None, torch.zeros(2, 5, dtype=torch.bool), source), _walls(None, padding, target), {}, cross
    )
    expected = 0.0
    for b in range(2):
        m = int((~padding[b]).sum())
        carried = [
            sum(cross[b, t, j] * (source[b, 0, j] + source[b, 1, j]) / 2 for j in range(5)) for t in range(m)
        ]
        centres = [(target[b, 0, t] + target[b, 1, t]) / 2 for t in range(m)]
        for a in range(m):
            for c in range(a):
                sign = 1 if centres[a] > centres[c] else -1
                expected += max(0.0, 0.2 - sign * (carried[a] - carried[c]))
    assert float(lpsi.loss(done)) == pytest.approx(0.3 * float(expected), rel=1e-5)
    assert guide("lpsi").loss(done) is None


def test_syntax_is_the_mean_distance_before_each_gaps_right_token(batch, guide):
    these, lpsi = batch(5), guide("lpsi")
    with torch.no_grad():
        prepared = lpsi.prepare(these.x, these.padding, {})
    found = lpsi.syntax(prepared)
    for gap in range(4):
        assert float(found.distance[0, gap]) == pytest.approx(float(prepared.distance[0, :, gap + 1].mean()))
    assert found.height is None
    assert found.distribution is None


def test_gradients_reach_tower_and_output(batch, guide):
    these, lpsi = batch(4, 3), guide("lpsi", temperature=1.0).float().train()
    weights = lpsi.attend(these.scores.float(), lpsi.prepare(these.x.float(), these.padding, {}), 0)
    (weights * torch.randn_like(weights)).sum().backward()
    for name, parameter in lpsi.named_parameters():
        # a constant added to all distances changes nothing, neither does one added to the keys' scores
        if name not in ("output.bias", "tower.self_attn.in_proj_bias"):
            assert parameter.grad.abs().max() > 1e-9, name
