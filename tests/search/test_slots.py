"""Slots of caches: none is given to two tokens that are both needed."""

import torch

from synmask.pipeline.search.slots import INITIAL_SLOTS, Paths


def test_new_tokens_get_the_first_slots_that_no_hypothesis_uses(implementation):
    paths = Paths(torch.tensor([4, 2]), torch.tensor([[[0, 3], [0, 2]], [[1, 2], [1, 0]]]), size=4)
    longer = paths.extend()
    assert longer.slots.tolist() == [[[0, 3, 1], [0, 2, 4]], [[1, 2, 3], [1, 0, 4]]]
    assert longer.size == 5
    assert [index.tolist() for index in longer.last()] == [[[4], [2]], [[1, 4], [3, 4]]]


def test_a_path_stays_as_it_is_while_others_come_and_go(implementation):
    torch.manual_seed(1)
    paths = Paths.start(5, torch.device("cpu"))
    for _ in range(30):
        before, paths = paths, paths.extend()
        assert torch.equal(paths.slots[..., :-1], before.slots)
        for sentence in paths.slots.tolist():
            new = [slots[-1] for slots in sentence]
            assert len({*new}) == len(new)
            assert not {*new} & {slot for slots in sentence for slot in slots[:-1]}
        assert paths.size > int(paths.slots.max())
        kept = torch.randperm(len(paths.rows))[: max(2, len(paths.rows) - 1)]
        chosen = paths.take(kept[:, None], torch.randint(paths.slots.size(1), (len(kept), 3)))
        assert torch.equal(chosen.rows, paths.rows[kept])
        paths = chosen


def test_a_cache_that_grows_keeps_what_it_holds():
    paths = Paths(torch.tensor([1]), torch.zeros((1, 1, 1), dtype=torch.long), size=INITIAL_SLOTS)
    cache = paths.with_room(None, torch.zeros(1, 1, 3))
    cache[:] = torch.randn(cache.shape)
    assert paths.with_room(cache, cache) is cache
    grown = paths._replace(size=INITIAL_SLOTS + 1).with_room(cache, cache)
    assert grown.size(1) > INITIAL_SLOTS
    assert torch.equal(grown[:, : cache.size(1)], cache)
