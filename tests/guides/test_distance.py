"""Distance-Transformer's gates and attention against loops over their formulas."""

import math

import pytest
import torch


def literal_gate(d, i, j, temperature):
    """d[k] is the distance of the gap between k and k+1."""

    def factor(position, k):
        return (1 + math.tanh((d[position] - d[k]) / temperature)) / 2

    gate = 1.0
    for k in range(j, i - 1):  # to the left: gaps j..i-2, against the gap before i
        gate *= factor(i - 1, k)
    for k in range(i + 1, j):  # to the right: gaps i+1..j-1, against the gap after i
        gate *= factor(i, k)
    return gate


def literal(scores, padding, distances, guided, temperature):
    size, total, n, _ = scores.shape
    found = torch.zeros_like(scores)
    for b in range(size):
        real = [j for j in range(n) if not padding[b, j]]
        d = distances[b].tolist()
        for h in range(total):
            for i in real:
                raised = {
                    j: math.exp(scores[b, h, i, j])
                    * (literal_gate(d, i, j, temperature) if h < guided else 1)
                    for j in real
                }
                for j in real:
                    found[b, h, i, j] = raised[j] / sum(raised.values())
    return found


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize(("options", "guided"), [({}, 2), ({"heads": 1, "temperature": 3.0}, 1)])
def test_agrees_with_loops(batch, guide, options, guided, left):
    these = batch(7, 4, 2, 1, left=left)
    these.annotations["distances"][0, -2] = 2000 if not left else 7  # as before </s>
    expected = literal(
        these.scores, these.padding, these.annotations["distances"], guided, options.get("temperature", 10.0)
    )
    found = these.attention(guide("distance", **options))
    real = ~these.padding[:, None, :, None].expand_as(found)
    torch.testing.assert_close(found[real], expected[real], rtol=0, atol=1e-6)  # the gates are float32


def test_a_boundary_hides_what_lies_behind_it(batch, guide):
    these = batch(6)
    these.annotations["distances"][0] = torch.tensor([1, 1, 999, 1, 1, -1])
    found = these.attention(guide("distance"))[0]
    assert found[:, 1, 3:].max() < 1e-12  # the gap after token 2 is high, that after token 1 is not
    assert found[:, 2, 3:].min() > 1e-3  # to token 2 it is the adjacent gap


def test_without_distances_it_is_softmax(batch, guide):
    these = batch(6, 4)
    these.annotations["distances"].fill_(-1)
    plain = these.scores.masked_fill(these.padding[:, None, None, :], float("-inf")).softmax(-1)
    torch.testing.assert_close(these.attention(guide("distance")), plain, rtol=0, atol=1e-12)
    mixed = batch(6, 4)
    mixed.annotations["distances"][1] = -1
    found = mixed.attention(guide("distance"))
    torch.testing.assert_close(found[1], plain[1], rtol=0, atol=1e-12)
    assert (found[0] - plain[0]).abs().max() > 1e-3
