"""Small batches for guides, in float64 unless a test says otherwise."""

import pytest
import torch

from synmask.guides import Shape, build_guide

D, H = 8, 2


def dependencies(length, draw):
    """The annotation "words" (n, 4) of two sentences between three marks, with random words and trees."""
    table = torch.tensor([[-1, -1, 0, 0]] * length)
    middle = length // 2
    for sentence, (begin, end) in enumerate([(1, middle), (middle + 1, length - 1)], start=1):
        starts = [begin]
        for i in range(begin, end):
            if i > begin and torch.rand((), generator=draw) < 0.7:
                starts.append(i)
            table[i] = torch.tensor([starts[-1], starts[-1], sentence, int(i % 5 == 3)])
        order = torch.randperm(len(starts), generator=draw).tolist()
        for number, word in enumerate(order[1:], start=1):  # each hangs on one before it in the order
            head = starts[order[int(torch.randint(0, number, (), generator=draw))]]
            table[:, 1] = torch.where(table[:, 0] == starts[word], head, table[:, 1])
    return table


def _edges(words):
    """The tree's distances between words, token by token, by search: (n, n), None where there is no way."""
    n = len(words)
    near = {word: set() for word, *_ in words if word >= 0}
    for word, head, *_ in words:
        if word >= 0 and head != word:
            near[word].add(head)
            near[head].add(word)
    table = [[None] * n for _ in range(n)]
    for i, (word, *_) in enumerate(words):
        if word < 0:
            continue
        far, front = {word: 0}, [word]
        while front:
            here = front.pop(0)
            for other in near[here] - far.keys():
                far[other] = far[here] + 1
                front.append(other)
        for j, (other, *_) in enumerate(words):
            table[i][j] = far.get(other)
    return table


class Batch:
    """Random inputs of a guide for sentences of these lengths, with pads on the right or the left.

    x (B, n, d) zero at pads, padding (B, n), annotations by name, scores (B, H, n, n).
    """

    def __init__(self, *lengths, left=False):
        draw = torch.Generator().manual_seed(1)
        n, size = max(lengths), len(lengths)
        position = torch.arange(n)
        start = n - torch.tensor(lengths) if left else torch.zeros(size, dtype=torch.long)
        end = start + torch.tensor(lengths)
        self.lengths, self.start = lengths, start.tolist()
        self.padding = (position < start[:, None]) | (position >= end[:, None])
        x = torch.randn(size, n, D, dtype=torch.float64, generator=draw)
        self.x = x.masked_fill(self.padding[:, :, None], 0)
        self.scores = torch.randn(size, H, n, n, dtype=torch.float64, generator=draw)
        heads = torch.full((size, n, 2), -1)
        distances = torch.full((size, n), -1)
        for b, length in enumerate(lengths):
            first = torch.randint(0, length, (length,), generator=draw)
            last = torch.minimum(
                first + torch.randint(0, 2, (length,), generator=draw), torch.tensor(length - 1)
            )
            heads[b, start[b] : end[b]] = torch.stack([first, last], -1) + start[b]
            distances[b, start[b] : end[b] - 1] = torch.randint(1, 9, (length - 1,), generator=draw)
        labels = (torch.randint(0, 2, (size, n), generator=draw) * 2).masked_fill(self.padding, 1)
        words = torch.full((size, n, 4), -1)
        for b, length in enumerate(lengths):
            table = dependencies(length, draw)
            table[:, :2] += start[b] * (table[:, :2] >= 0)
            words[b, start[b] : end[b]] = table
        self.annotations = {"heads": heads, "distances": distances, "bpe_labels": labels, "words": words}

    @property
    def inputs(self):
        """Scores, values (B, H, n, D / H) and states (B, n, D) of a layer."""
        draw = torch.Generator().manual_seed(3)
        size, n = self.padding.shape
        values = torch.randn(size, H, n, D // H, dtype=torch.float64, generator=draw)
        return self.scores, values, torch.randn(size, n, D, dtype=torch.float64, generator=draw)

    def part(self, b):
        """The sentence b alone, without pads."""
        alone = Batch(self.lengths[b])
        span = slice(self.start[b], self.start[b] + self.lengths[b])
        alone.x, alone.padding = self.x[b : b + 1, span], self.padding[b : b + 1, span]
        alone.scores = self.scores[b : b + 1, :, span, span]
        alone.annotations = {name: value[b : b + 1, span].clone() for name, value in self.annotations.items()}
        heads = alone.annotations["heads"]
        alone.annotations["heads"] = torch.where(heads < 0, heads, heads - self.start[b])
        places = alone.annotations["words"][..., :2]
        places[places >= 0] -= self.start[b]
        return alone

    def attention(self, guide, layer=0):
        return guide.attend(self.scores, guide.prepare(self.x, self.padding, self.annotations), layer)


@pytest.fixture
def edges():
    return _edges


@pytest.fixture
def batch():
    return Batch


@pytest.fixture
def guide():
    """Builds a guide with small parts, the same weights each time."""

    def build(name, encoder_layers=2, **options):
        torch.manual_seed(0)
        small = {"conv_layers": 1, "conv_kernel": 3} if name in ("grammar", "structformer") else {}
        if name == "grammar":
            small["bpe_dim"] = 4
        made = build_guide(name, small | options, Shape(D, H, ffn_dim=12, layers=encoder_layers)).double()
        return made.eval()

    return build
