import pytest
import torch

from synmask.guides.attention import masked_softmax


def above(words, i):
    """The words above token i, its head first."""
    line, place = [], words[i][0]
    while words[place][1] != place:
        place = words[place][1]
        line.append(place)
    return line


def masks(words, far, most):
    """Every mask (n, n) of a sentence: all tokens, parents, children, siblings, the other sentence's words."""
    n = len(words)
    pairs = [(i, j) for i in range(n) for j in range(n) if words[i][0] >= 0]
    found = torch.zeros(3 * most + 2, n, n, dtype=torch.bool)
    found[0] = True
    for i, j in pairs:
        word, other = words[i][0], words[j][0]
        if words[j][2] > 0 and words[j][2] != words[i][2]:
            found[-1, i, j] = True
        if other < 0 or word == other or far[i][j] is None:
            continue
        d = far[i][j]
        if other in above(words, i):
            number = d if d <= most else 0
        elif word in above(words, j):
            number = most + d if d <= most else 0
        else:
            number = 2 * most + d - 1 if d - 1 <= most else 0
        if number:
            found[number, i, j] = True
    return found


def literal(words, all_masks, scores, values, together):
    """Attention of one sentence, mask by mask and row by row; `together` joins the outputs of a row (k, d)."""
    out = torch.zeros_like(values)
    heads, n, _ = values.shape
    for i in range(n):
        outputs, numbers = [], []
        for number, mask in enumerate(all_masks):
            if not mask[i].any() or (words[i][0] < 0 and number > 0):
                continue
            seen = mask[i].nonzero()[:, 0]
            shares = [scores[h, i, seen].softmax(0) for h in range(heads)]
            outputs.append(torch.cat([shares[h] @ values[h, seen] for h in range(heads)]))
            numbers.append(number)
        out[:, i] = together(torch.stack(outputs), numbers).view(heads, -1)
    return out


@pytest.mark.parametrize("most", [1, 3])
def test_it_is_what_the_masks_give_one_by_one(batch, guide, edges, most):
    these, made = batch(24, 15, 9), guide("syntax", distance=most)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter)
    scores, values, states = these.inputs
    prepared = made.prepare(these.x, these.padding, these.annotations)
    found = made.context(scores, values, states, lambda weights: weights, prepared, 1)

    def together(outputs, numbers):
        share = (outputs @ made.topic[1] + made.bias[1][numbers]).softmax(0)
        return share @ outputs

    for b, n in enumerate(these.lengths):
        words = these.annotations["words"][b, :n].tolist()
        every = masks(words, edges(words), most)
        expected = literal(words, every, scores[b, :, :n, :n], values[b, :, :n], together)
        torch.testing.assert_close(found[b, :, :n], expected)


def test_every_mask_is_used_somewhere(batch, edges):
    these = batch(40, 40, 40)
    found = sum(masks(words, edges(words), 3).sum((1, 2)) for words in these.annotations["words"].tolist())
    assert found.min() > 0


def test_a_sentence_without_a_parse_is_attended_to_plainly(batch, guide):
    these, made = batch(17, 9), guide("syntax", start=0.5)
    scores, values, states = these.inputs
    plain = masked_softmax(scores, these.padding) @ values

    def found():
        prepared = made.prepare(these.x, these.padding, these.annotations)
        return made.context(scores, values, states, lambda weights: weights, prepared, 0)

    assert (found() - plain).abs().max() > 0.1
    these.annotations["words"][..., :2] = -1
    torch.testing.assert_close(found(), plain, rtol=0, atol=1e-12)


def test_topical_starts_where_its_option_says_and_learns(batch, guide):
    these, made = batch(17, 9), guide("syntax", start=0.02)
    scores, values, states = these.inputs
    prepared = made.prepare(these.x, these.padding, these.annotations)
    assert made.bias[0].softmax(0)[0].item() == pytest.approx(0.98)
    made.context(scores, values, states, lambda weights: weights, prepared, 1).square().sum().backward()
    assert made.topic.grad[1].abs().max() > 0
    assert made.bias.grad[1][prepared.used.any(0).any(0)].abs().min() > 0
    with torch.no_grad():
        made.bias[:, 0] += 40
        plain = masked_softmax(scores, these.padding) @ values
        found = made.context(scores, values, states, lambda weights: weights, prepared, 0)
    torch.testing.assert_close(found, plain, rtol=0, atol=1e-12)


def test_dropout_is_drawn_the_same_when_outputs_are_made_again(batch, guide):
    """The backward pass computes them a second time; its masks of dropout must be those of the first."""
    these, made = batch(9, 6), guide("syntax", distance=1)
    scores, values, states = these.inputs
    prepared = made.prepare(these.x, these.padding, these.annotations)
    drawn = []

    def drop(weights):
        kept = torch.rand_like(weights) > 0.5
        drawn.append(kept)
        return weights * kept

    values.requires_grad_()
    made.context(scores, values, states, drop, prepared, 0).sum().backward()
    assert len(drawn) == 2 * made.masks
    assert all(torch.equal(*pair) for pair in zip(drawn[: made.masks], drawn[made.masks :], strict=True))
