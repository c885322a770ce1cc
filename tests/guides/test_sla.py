import torch

from synmask.guides.attention import masked_softmax


def literal(words, far, scores, values, gate, most):
    """Attention of one sentence as the paper has it: scores (H, n, n), values (H, n, c), gate (n)."""
    n = len(words)
    free = [word < 0 for word, *_ in words]

    def near(i, j):
        if free[i] or free[j] or words[j][3]:
            return True
        rows = [i]
        rows += [k for k in range(n) if words[k][0] >= 0 and abs(position(k) - position(i)) == 1]
        return any(far[k][j] is not None and far[k][j] <= most for k in rows)

    def position(k):
        """The number of a token's word among all words and marks."""
        return len({(word, place if word < 0 else -1) for place, (word, *_) in enumerate(words[: k + 1])})

    out = torch.zeros_like(values)
    for h in range(len(scores)):
        for i in range(n):
            share = scores[h, i].softmax(0)
            local = [j for j in range(n) if near(i, j)]
            inner = scores[h, i, local].softmax(0)
            everything = sum(share[j] * values[h, j] for j in range(n))
            nearby = sum(p * values[h, j] for p, j in zip(inner, local, strict=True))
            out[h, i] = gate[i] * nearby + (1 - gate[i]) * everything
    return out


def test_it_is_the_papers_mixture(batch, guide, edges):
    these, made = batch(24, 15, 9), guide("sla")
    for gate in made.gates:
        torch.nn.init.normal_(gate.weight)
        torch.nn.init.normal_(gate.bias)
    scores, values, states = these.inputs
    prepared = made.prepare(these.x, these.padding, these.annotations)
    found = made.context(scores, values, states, lambda weights: weights, prepared, 1)
    gate = (states @ made.gates[1].weight[0] + made.gates[1].bias).sigmoid()
    for b, n in enumerate(these.lengths):
        words = these.annotations["words"][b, :n].tolist()
        expected = literal(words, edges(words), scores[b, :, :n, :n], values[b, :, :n], gate[b], most=3)
        torch.testing.assert_close(found[b, :, :n], expected)


def test_a_closed_gate_is_global_attention_and_so_is_a_sentence_without_a_parse(batch, guide):
    these, made = batch(17, 9), guide("sla", start=0.5)
    scores, values, states = these.inputs
    plain = masked_softmax(scores, these.padding) @ values

    def found():
        prepared = made.prepare(these.x, these.padding, these.annotations)
        return made.context(scores, values, states, lambda weights: weights, prepared, 0)

    assert (found() - plain).abs().max() > 0.1
    bias = made.gates[0].bias.data.clone()
    made.gates[0].bias.data.fill_(-40.0)
    torch.testing.assert_close(found(), plain, rtol=0, atol=1e-12)
    made.gates[0].bias.data = bias
    these.annotations["words"][..., :2] = -1
    torch.testing.assert_close(found(), plain, rtol=0, atol=1e-12)


def test_it_starts_where_its_option_says_and_the_gates_learn(batch, guide):
    these, made = batch(17, 9), guide("sla", start=0.02)
    scores, values, states = these.inputs
    assert torch.allclose(made.gates[0](states).sigmoid(), torch.tensor(0.02, dtype=torch.float64))
    prepared = made.prepare(these.x, these.padding, these.annotations)
    made.context(scores, values, states, lambda weights: weights, prepared, 1).square().sum().backward()
    assert made.gates[1].weight.grad.abs().max() > 0
