"""The guide `grammar`: its mask and attention against loops, its options, the published defect."""

import math

import pytest
import torch

from synmask.guides import Guide, Shape, build_guide
from synmask.guides.grammar import GrammarGuide
from synmask.induction.distribution import dependency_distribution
from synmask.options.grammar import GrammarOptions

D, H = 8, 2
SHAPE = Shape(D, H, ffn_dim=16, layers=3)
SMALL = {"conv_layers": 1, "conv_kernel": 3, "bpe_dim": 4}


def build(seed=0, **options):
    torch.manual_seed(seed)
    return GrammarGuide(GrammarOptions(**{**SMALL, **options}), SHAPE).double()


def batch(*lengths, left=False):
    """x (zero at pads), padding, annotations and scores."""
    generator = torch.Generator().manual_seed(1)
    n = max(lengths)
    padding = torch.arange(n) >= torch.tensor(lengths)[:, None]
    padding = padding.flip(1) if left else padding
    x = torch.randn(len(lengths), n, D, dtype=torch.float64, generator=generator)
    labels = (torch.randint(0, 2, padding.shape, generator=generator) * 2).masked_fill(padding, 1)
    scores = torch.randn(len(lengths), H, n, n, dtype=torch.float64, generator=generator)
    return x.masked_fill(padding[:, :, None], 0), padding, {"bpe_labels": labels}, scores


def literal_attention(guide, prepared, scores, layer):
    """docs/method.md, "From P_D to attention", number by number."""
    batch, heads, n, _ = scores.shape
    found = torch.zeros_like(scores)
    for b, h, i, j in (
        (b, h, i, j) for b in range(batch) for h in range(heads) for i in range(n) for j in range(n)
    ):
        parent = {"parent": prepared.distribution[b, i, j], "child": prepared.distribution[b, j, i]}
        shares = [1.0]
        if len(guide.options.relations) > 1:
            raised = [math.exp(v) for v in guide.relation_logits[layer, h].tolist()]
            shares = [r / sum(raised) for r in raised]
        mask = 0.0
        if i != j:
            mask = sum(s * parent[r].item() for s, r in zip(shares, guide.options.relations, strict=True))
        if guide.options.activation == "sigmoid":
            found[b, h, i, j] = mask / (1 + math.exp(-scores[b, h, i, j].item()))
        elif not prepared.padding[b, j]:
            real = [math.exp(scores[b, h, i, k].item()) for k in range(n) if not prepared.padding[b, k]]
            found[b, h, i, j] = math.exp(scores[b, h, i, j].item()) / sum(real) * (mask + 1)
    return found


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("activation", ["sigmoid", "softmax"])
@pytest.mark.parametrize("relations", [("parent", "child"), ("parent",), ("child",)])
def test_attention_agrees_with_loops(relations, activation, left):
    guide = build(relations=relations, activation=activation, layers=2)
    x, padding, annotations, scores = batch(5, 3, left=left)
    prepared = guide.prepare(x, padding, annotations)
    for layer in range(2):
        found = guide.attend(scores, prepared, layer)
        assert torch.allclose(found, literal_attention(guide, prepared, scores, layer), atol=1e-12)
        assert found.masked_select(padding[:, None, None, :]).eq(0).all()
    if len(relations) > 1:
        assert not torch.equal(guide.attend(scores, prepared, 0), guide.attend(scores, prepared, 1))


def literal_published_calibration(distance, height, padding):
    """The published code's rule with its constants: 1e9 after the last token, at pads and outside."""
    far, result = 1e9, distance.clone()
    n = height.size(1)
    for b in range(len(height)):
        pads = padding[b].tolist()
        last = max(i for i in range(n) if not pads[i])
        after = [far if pads[i] or i == last else distance[b, i].item() for i in range(n)]
        heights = [-far if pads[i] else height[b, i].item() for i in range(n)]
        margin = 0.0
        for l in range(n):  # noqa: E741
            for r in (r for r in range(l, n) if not pads[r] and (l, r) != (0, last)):
                before = after[l - 1] if l else far
                margin = max(margin, min(before, after[r]) - max(heights[l : r + 1]))
        result[b] -= margin
    return result


@pytest.mark.parametrize("left", [False, True])
def test_published_calibration_agrees_with_loops(left):
    guide = build(calibration="as-published")
    x, padding, annotations, _ = batch(6, 5, 3, 1, left=left)
    distance, height = guide.parser(x, padding, annotations["bpe_labels"])
    expected = literal_published_calibration(distance * 5, height, padding)
    found = guide.calibrate(distance * 5, height, padding)
    between = ~(padding[:, 1:] | padding[:, :-1])
    assert torch.allclose(found[between], expected[between], rtol=0, atol=1e-5)
    assert (found[between].min() < -9e8) == left
    assert (guide.prepare(x, padding, annotations).distance[between].min() < -9e8) == left


def distance_gradient(calibration, left):
    """Gradient of a loss on the guided attention into the distance head, per sentence of 6 and 4 tokens."""
    guide = build(calibration=calibration).float()
    x, padding, annotations, scores = batch(6, 4, left=left)
    weights = guide.attend(scores.float(), guide.prepare(x.float(), padding, annotations), 0)
    # A plain sum would not do: rows of P_D sum to 1 whatever the distances are.
    loss = (weights * torch.arange(6)).square().sum((1, 2, 3))
    return [
        torch.autograd.grad(one, guide.parser.distance_output.weight, retain_graph=True)[0].abs().max().item()
        for one in loss
    ]


def test_published_defect_left_pads_silence_the_distances():
    full, padded = distance_gradient("as-published", left=True)
    assert full > 1e-5
    assert padded == 0.0


@pytest.mark.parametrize(
    ("calibration", "left"), [("masked", False), ("masked", True), ("as-published", False)]
)
def test_without_the_defect_the_distances_learn(calibration, left):
    assert min(distance_gradient(calibration, left)) > 1e-5


def test_published_defect_leaves_the_heights_alone():
    """With the distances out of play everyone's parent is drawn from the whole sentence by height."""
    guide = build(calibration="as-published")
    x, padding, annotations, _ = batch(6, 4, left=True)
    prepared = guide.prepare(x, padding, annotations)
    expected = prepared.height[1, 2:].softmax(0).expand(4, 4)
    assert torch.allclose(prepared.distribution[1, 2:, 2:], expected, atol=1e-12)


@pytest.mark.parametrize("activation", ["sigmoid", "softmax"])
def test_batch_mates_and_padding_change_nothing(activation):
    guide = build(activation=activation)
    x, padding, annotations, scores = batch(7, 4, 1)
    together = guide.attend(scores, guide.prepare(x, padding, annotations), 0)
    for b, length in enumerate([7, 4, 1]):
        part = (slice(b, b + 1), slice(0, length))
        alone = guide.prepare(x[part], padding[part], {"bpe_labels": annotations["bpe_labels"][part]})
        found = guide.attend(scores[b : b + 1, :, :length, :length], alone, 0)
        assert torch.allclose(together[b : b + 1, :, :length, :length], found, atol=1e-7)


@pytest.mark.parametrize(
    "options",
    [
        {"bpe": "none"},
        {"bpe": "concatenate"},
        {"bpe_dim": 5},
        {"conv_layers": 2},
        {"conv_kernel": 5},
        {"attention": "none"},
        {"attention": "residual"},
        {"relations": ("parent",)},
        {"relations": ("child",)},
        {"activation": "softmax"},
        {"calibration": "as-published"},
    ],
)
def test_every_option_changes_the_output(options):
    x, padding, annotations, scores = batch(6, 4, left=True)

    def attention(**options):
        guide, default = build(**options), build().state_dict()
        for name, value in guide.state_dict().items():  # so that no difference comes from other draws
            if name in default and default[name].shape == value.shape:
                value.copy_(default[name])
        return guide.attend(scores, guide.prepare(x, padding, annotations), 0)

    assert torch.equal(attention(), attention())
    assert (attention() - attention(**options)).abs().max() > 1e-4


def test_layers_have_their_own_relation_weights():
    guide = build(layers=3)
    assert guide.layers == 3
    assert guide.relation_logits.shape == (3, H, 2)
    spread = GrammarGuide(GrammarOptions(**SMALL), Shape(500, 500, 16, 3)).relation_logits.std().item()
    assert spread == pytest.approx(0.1, rel=0.15)
    assert not any("relation" in name for name, _ in build(relations=("parent",)).named_parameters())


def test_temperatures_are_learnt():
    guide = build()
    x, padding, annotations, scores = batch(6, 4)
    with torch.no_grad():
        guide.log_distance_scale.fill_(0.4)
        guide.log_height_scale.fill_(-0.3)
    prepared = guide.prepare(x, padding, annotations)
    expected = dependency_distribution(
        prepared.distance,
        prepared.height,
        padding,
        distance_scale=math.exp(0.4),
        height_scale=math.exp(-0.3),
    )
    assert torch.allclose(prepared.distribution, expected, atol=1e-12)
    guide.attend(scores, prepared, 0).square().sum().backward()
    for name, parameter in guide.named_parameters():
        # A constant added to all distances or all heights is what the calibration takes away again.
        assert name.endswith("output.bias") or parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("activation", ["sigmoid", "softmax"])
@pytest.mark.parametrize("left", [False, True])
def test_mixed_precision_is_finite(dtype, activation, left):
    for calibration in ("masked", "as-published"):
        guide = build(activation=activation, calibration=calibration).float()
        x, padding, annotations, scores = batch(9, 4, left=left)
        with torch.autocast("cpu", dtype=dtype):
            prepared = guide.prepare(x.float(), padding, annotations)
            weights = guide.attend(scores.to(dtype), prepared, 0)
        assert weights.dtype == dtype
        assert weights.isfinite().all()
        weights.float().square().sum().backward()
        assert all(p.grad.isfinite().all() for p in guide.parameters() if p.grad is not None)


def test_added_parameters_of_the_published_model():
    """9.06 M: the guide, and the MLM head's bias (not in the guide) for a source dictionary of 8,848."""
    guide = build_guide("grammar", {}, Shape(512, 4, 1024, 6))
    added = sum(p.numel() for p in guide.parameters()) + 8_848
    assert added == 9_059_740


def test_build_guide():
    guide = build_guide("grammar", {"bpe": "none", "layers": 2, **SMALL}, SHAPE)
    assert isinstance(guide, Guide)
    assert (guide.options.needs, guide.layers) == (frozenset(), 2)
    assert build().options.needs == {"bpe_labels"}
    assert guide.loss(None) is None
    assert guide.decoder() is None


@pytest.mark.parametrize(
    "options",
    [
        {"activation": "tanh"},
        {"calibration": "none"},
        {"relations": ("sibling",)},
        {"relations": ()},
        {"relations": ("parent", "parent")},
        {"bpe": "sum"},
    ],
)
def test_wrong_options(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        build(**options)
