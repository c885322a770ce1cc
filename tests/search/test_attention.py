"""Attention along paths against loops; caches that are cleared."""

import math

import pytest
import torch

from synmask.search.attention import SelfAttention, attended, used


def by_loops(query, memory, heads, path, bias):
    """`attended`, one query and head at a time, in double precision."""
    query, memory = query.double(), memory.double()
    sentences, width, d = query.shape
    out = torch.zeros(sentences, width, d, dtype=torch.double)
    for s in range(sentences):
        for w in range(width):
            rows = range(memory.size(1)) if path is None else path[s, w].tolist()
            for h in range(heads):
                part = slice(h * d // heads, (h + 1) * d // heads)
                keys = torch.stack([memory[s, row, :d][part] for row in rows])
                values = torch.stack([memory[s, row, d:][part] for row in rows])
                scores = keys @ query[s, w, part] / math.sqrt(d // heads)
                if bias is not None:
                    more = bias.double().expand(sentences, heads, width, len(rows))
                    scores = scores + more[s, h, w]
                out[s, w, part] = scores.softmax(0) @ values
    return out


def paths(sentences, width, length, slots):
    return torch.stack(
        [
            torch.stack([torch.randperm(slots)[:length].sort().values for _ in range(width)])
            for _ in range(sentences)
        ]
    )


@pytest.mark.parametrize(("heads", "head"), [(1, 3), (2, 16), (4, 24), (2, 64)])
@pytest.mark.parametrize("length", [1, 7, 16, 37])
@pytest.mark.parametrize("biased", [False, True])
def test_along_paths_against_loops(implementation, heads, head, length, biased):
    torch.manual_seed(1)
    sentences, width, slots, d = 3, 5, 40, heads * head
    query = torch.randn(sentences, width, 3 * d)[..., :d]  # as a part of a larger tensor
    memory = torch.randn(sentences + 1, slots + 9, 2 * d)[:sentences, :slots]
    path = paths(sentences, width, length, slots)
    bias = torch.randn(sentences, heads, length, width).mT if biased else None
    expected = by_loops(query, memory, heads, path, bias)
    torch.testing.assert_close(
        attended(query, memory, heads, path, bias).double(), expected, rtol=0, atol=3e-6
    )


@pytest.mark.parametrize("length", [1, 5, 33])
def test_to_all_but_the_pads_against_loops(implementation, length):
    torch.manual_seed(1)
    query, memory = torch.randn(4, 3, 32) * 4, torch.randn(4, length, 64) * 4
    bias = torch.zeros(4, 1, 1, length)
    for sentence in range(4):  # pads on either side
        bias[sentence, :, :, length - min(sentence, length - 1) :] = -math.inf
    bias[3] = bias[3].flip(-1)
    found = attended(query, memory, 2, bias=bias)
    torch.testing.assert_close(found.double(), by_loops(query, memory, 2, None, bias), rtol=0, atol=3e-5)


def test_the_operator_hides_no_nan():
    query, memory = torch.randn(2, 3, 32), torch.randn(2, 4, 64)
    query[0, 1, 5] = math.nan
    found = torch.ops.synmask.attend(query, memory, 2, None, None)
    assert found.isnan().any(-1).tolist() == [[False, True, False], [False, False, False]]


def test_threads_change_no_byte(implementation):
    torch.manual_seed(1)
    query, memory, path = torch.randn(30, 5, 64), torch.randn(30, 40, 128), paths(30, 5, 20, 40)
    threads, found = torch.get_num_threads(), []
    try:
        for number in (1, 2):
            torch.set_num_threads(number)
            found.append(attended(query, memory, 4, path))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(*found)


def test_a_cache_that_is_cleared_is_as_one_of_the_rest(implementation):
    torch.manual_seed(1)
    weight = torch.randn(96, 32) / 6
    whole, cleared = (SelfAttention(lambda x: x @ weight.T, heads=2) for _ in range(2))
    tokens = [torch.randn(3, 2, 32) for _ in range(50)]  # more than a cache has room for at first
    path = torch.zeros(3, 2, 0, dtype=torch.long)
    for number, x in enumerate(tokens):
        slots = torch.arange(2) + 2 * number
        path = torch.cat([path, slots.expand(3, 2)[..., None]], dim=2)
        expected = whole(x, path, 2 * number + 2)
        cleared(x, path, 2 * number + 2)
    rows = torch.tensor([2, 0])
    needed, through = used(path[rows][:, :1], 100)
    cleared.keep(rows[:, None], needed)
    count, x = needed.size(1), torch.randn(2, 1, 32)
    ahead = torch.full((2, 1, 1), count)
    found = cleared(x, torch.cat([through, ahead], dim=2), count + 1)
    one = torch.cat([path[rows][:, :1], torch.full((2, 1, 1), 100)], dim=2)
    alone = SelfAttention(lambda x: x @ weight.T, heads=2)
    alone.memory = whole.memory[rows]
    torch.testing.assert_close(found, alone(x, one, 101), rtol=0, atol=1e-6)
    assert expected.shape == (3, 2, 32)


def test_used_slots_against_loops():
    torch.manual_seed(1)
    path = torch.stack([torch.randint(9, (3, 4)) for _ in range(5)])
    slots, through = used(path, slots=9)
    most = max(len({*sentence.flatten().tolist()}) for sentence in path)
    assert slots.shape == (5, most)
    assert torch.equal(slots.gather(1, through.flatten(1)).view_as(path), path)
    for sentence, kept in zip(path, slots.tolist(), strict=True):
        needed = sorted({*sentence.flatten().tolist()})
        assert kept[: len(needed)] == needed
        assert len({*kept}) == most
