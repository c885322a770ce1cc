"""Properties of every guide of the configuration."""

from pathlib import Path

import pytest
import torch

from synmask.guides import Shape, build_guide
from synmask.options import guide_names

ROOT = Path(__file__).parents[2] / "src/synmask"
NAMES = guide_names()
ALONE = [name for name in NAMES if name != "structformer"]  # its margin is that of the batch


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("name", ALONE)
def test_batch_mates_and_padding_change_nothing(batch, guide, name, left):
    these, made = batch(7, 4, 1, left=left), guide(name)
    together = these.attention(made)
    for b, n in enumerate(these.lengths):
        span = slice(these.start[b], these.start[b] + n)
        torch.testing.assert_close(
            together[b : b + 1, :, span, span], these.part(b).attention(made), rtol=0, atol=1e-6
        )
    assert together.masked_select(these.padding[:, None, None, :]).eq(0).all()


@pytest.mark.parametrize("name", NAMES)
def test_pads_are_not_read(batch, guide, name):
    these, made = batch(6, 3), guide(name)
    before = these.attention(made)
    these.scores = these.scores.masked_fill(these.padding[:, None, None, :], 50.0)
    after = these.attention(made)
    torch.testing.assert_close(before[:, :, :3, :3], after[:, :, :3, :3])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", NAMES)
def test_mixed_precision_is_finite(batch, guide, name, dtype):
    these, made = batch(9, 4, 1), guide(name).float().train()
    these.annotations["distances"][0, 7] = 2000
    with torch.autocast("cpu", dtype=dtype):
        prepared = made.prepare(these.x.float(), these.padding, these.annotations)
        weights = made.attend(these.scores.to(dtype).mul(30).requires_grad_(), prepared, 0)
    assert weights.dtype == dtype
    assert weights.isfinite().all()
    weights.float().square().sum().backward()
    assert all(p.grad.isfinite().all() for p in made.parameters() if p.grad is not None)


@pytest.mark.parametrize("name", ["pascal", "lisa", "distance", "lpsi"])
def test_gradients_into_the_scores(batch, guide, name):
    these, made = batch(4, 3), guide(name)
    prepared = made.prepare(these.x, these.padding, these.annotations)
    assert torch.autograd.gradcheck(
        lambda scores: made.attend(scores, prepared, 0), [these.scores.clone().requires_grad_()]
    )


def test_wrong_names_and_options():
    with pytest.raises(ValueError, match="'gramar' is not known; there are: distance, grammar"):
        build_guide("gramar", {}, None)
    with pytest.raises(ValueError, match="kernel"):
        build_guide("grammar", {"kernel": 3}, None)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("grammar", 9_050_892),
        ("pascal", 0),
        ("lisa", 147_840),
        ("distance", 0),
        ("lpsi", 4_209_672),
        ("structformer", 7_867_956),
    ],
)
def test_added_parameters(name, count):
    """The table of docs/systems.md, at the paper's IWSLT14 size."""
    encoder = build_guide(name, {}, Shape(512, 4, 1024, 6))
    both = [encoder, encoder.decoder()]
    assert sum(p.numel() for guide in both if guide for p in guide.parameters()) == count
    assert f"{count:,}" in (ROOT.parents[1] / "docs/systems.md").read_text()


@pytest.mark.parametrize(("name", "count"), [("sla", 9_228), ("syntax", 9_384)])
def test_parameters_added_to_roberta_base(name, count):
    """The table of docs/nlu.md."""
    guide = build_guide(name, {}, Shape(768, 12, 3072, 12))
    assert sum(p.numel() for p in guide.parameters()) == count
    assert f"{count:,}" in (ROOT.parents[1] / "docs/nlu.md").read_text()
