"""Attention along paths against loops."""

import math

import pytest
import torch

from synmask.pipeline.search.cached_attention import CachedSelfAttention, cached_attention
from synmask.pipeline.search.slots import Paths


def by_loops(query, memory, heads, rows, path, bias):
    """`cached_attention`, one query and head at a time, in double precision."""
    query, memory = query.double(), memory[rows].double()
    sentences, width, d = query.shape
    out = torch.zeros(sentences, width, d, dtype=torch.double)
    for s in range(sentences):
        for w in range(width):
            slots = range(memory.size(1)) if path is None else path[s, w].tolist()
            for h in range(heads):
                part = slice(h * d // heads, (h + 1) * d // heads)
                keys = torch.stack([memory[s, slot, :d][part] for slot in slots])
                values = torch.stack([memory[s, slot, d:][part] for slot in slots])
                scores = keys @ query[s, w, part] / math.sqrt(d // heads)
                if bias is not None:
                    additions = bias.double().expand(sentences, heads, width, len(slots))
                    scores = scores + additions[s, h, w]
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
    memory = torch.randn(sentences + 1, slots + 9, 2 * d)[:, :slots]
    rows = torch.tensor([3, 0, 2])
    memory[1] = math.nan  # a finished sentence
    path = paths(sentences, width, length, slots)
    bias = torch.randn(sentences, heads, length, width).mT if biased else None
    found = cached_attention(query, memory, heads, rows, path, bias).double()
    torch.testing.assert_close(found, by_loops(query, memory, heads, rows, path, bias), rtol=0, atol=3e-6)


@pytest.mark.parametrize("length", [1, 5, 33])
def test_to_all_but_the_pads_against_loops(implementation, length):
    torch.manual_seed(1)
    query, memory = torch.randn(4, 3, 32) * 4, torch.randn(4, length, 64) * 4
    bias = torch.zeros(4, 1, 1, length)
    for sentence in range(4):  # pads on either side
        bias[sentence, :, :, length - min(sentence, length - 1) :] = -math.inf
    bias[3] = bias[3].flip(-1)
    rows = torch.tensor([1, 0, 3, 2])
    found = cached_attention(query, memory, 2, rows, bias=bias[rows])
    expected = by_loops(query, memory, 2, rows, None, bias[rows])
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=3e-5)


def test_the_operator_hides_no_nan():
    query, memory = torch.randn(2, 3, 32), torch.randn(2, 4, 64)
    query[0, 1, 5] = math.nan
    found = torch.ops.synmask.attend(query, memory, 2, torch.arange(2), None, None)
    assert found.isnan().any(-1).tolist() == [[False, True, False], [False, False, False]]


def test_threads_change_no_byte(implementation):
    torch.manual_seed(1)
    query, memory, path = torch.randn(30, 5, 64), torch.randn(30, 40, 128), paths(30, 5, 20, 40)
    threads, found = torch.get_num_threads(), []
    try:
        for number in (1, 2):
            torch.set_num_threads(number)
            found.append(cached_attention(query, memory, 4, torch.arange(30), path))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(*found)


def test_a_search_with_caches_is_as_one_without(implementation):
    """Hypotheses change places and sentences end; each token still attends to its own hypothesis."""
    torch.manual_seed(1)
    weight, d = torch.randn(96, 32) / 6, 32
    attention = CachedSelfAttention(lambda x: x @ weight.T, heads=2)
    paths, inputs = (
        Paths.start(6, torch.device("cpu")),
        torch.zeros(6, 1, 0, d),
    )  # what each hypothesis is of
    for step in range(40):  # more tokens than a cache has room for at first
        paths, x = paths.extend(), torch.randn(*paths.slots.shape[:2], d)
        inputs = torch.cat([inputs, x[:, :, None]], dim=2)
        found = attention(x, paths)
        for s, sentence in enumerate(inputs):
            for w, tokens in enumerate(sentence):
                query, memory = (tokens @ weight.T).split([d, 2 * d], dim=-1)
                alone = cached_attention(query[None, -1:], memory[None], 2, torch.zeros(1, dtype=torch.long))
                torch.testing.assert_close(found[s, w], alone[0, 0], rtol=0, atol=2e-6)
        sentences = torch.arange(len(inputs))[torch.randperm(len(inputs))][: max(2, len(inputs) - step // 9)]
        parents = torch.randint(inputs.size(1), (len(sentences), 3))
        paths, inputs = paths.take(sentences[:, None], parents), inputs[sentences[:, None], parents]
    assert attention.memory.size(1) < 200  # slots are used again
