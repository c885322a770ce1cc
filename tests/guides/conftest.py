"""Small batches for guides, in float64 unless a test says otherwise."""

import pytest
import torch

from synmask.guides import Shape, build_guide

D, H = 8, 2


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
        self.annotations = {"heads": heads, "distances": distances, "bpe_labels": labels}

    def part(self, b):
        """The sentence b alone, without pads."""
        alone = Batch(self.lengths[b])
        span = slice(self.start[b], self.start[b] + self.lengths[b])
        alone.x, alone.padding = self.x[b : b + 1, span], self.padding[b : b + 1, span]
        alone.scores = self.scores[b : b + 1, :, span, span]
        alone.annotations = {name: value[b : b + 1, span].clone() for name, value in self.annotations.items()}
        heads = alone.annotations["heads"]
        alone.annotations["heads"] = torch.where(heads < 0, heads, heads - self.start[b])
        return alone

    def attention(self, guide, layer=0):
        return guide.attend(self.scores, guide.prepare(self.x, self.padding, self.annotations), layer)


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
