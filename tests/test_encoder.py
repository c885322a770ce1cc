"""The encoder in a model of one's own: its errors in its own words, and empty batches."""

import pytest
import torch

from synmask import (
    GrammarGuide,
    GrammarOptions,
    GuidedEncoder,
    LisaOptions,
    PascalGuide,
    PascalOptions,
    Shape,
    StructformerGuide,
    build_guide,
)
from synmask.options import guide_names

SHAPE = Shape(embed_dim=8, heads=2, ffn_dim=12, layers=2)
SMALL = {"conv_layers": 1, "conv_kernel": 3}
OPTIONS = {"grammar": SMALL | {"bpe_dim": 4}, "structformer": SMALL}
X, PADS = torch.zeros(2, 7, 8), torch.zeros(2, 7, dtype=torch.bool)
LABELS = torch.zeros(2, 7, dtype=torch.long)


def encoder(name="grammar", **options):
    return GuidedEncoder(SHAPE, build_guide(name, OPTIONS.get(name, {}) | options, SHAPE))


def annotations(batch, n, padding=None):
    """Annotations of sentences that were not parsed, for all guides."""
    none = torch.full((batch, n), -1)
    labels = torch.zeros(batch, n, dtype=torch.long) if padding is None else padding.long()
    heads, words = none[..., None].expand(-1, -1, 2), none[..., None].expand(-1, -1, 4)
    return {"bpe_labels": labels, "distances": none, "heads": heads, "words": words}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X, PADS[:, :6]), r"padding must be \(B, n\) = \(2, 7\) bool, True at pads, not \(2, 6\) bool"),
        ((X, PADS.float()), r"padding must be .*, not \(2, 7\) float32"),
        ((X[0],), r"x must be \(B, n, 8\) with n >= 1, embeddings, not \(7, 8\) float32"),
        ((X[..., :5],), r"x must be \(B, n, 8\) .* not \(2, 7, 5\)"),
        ((LABELS,), r"x must be \(B, n, 8\) .* not \(2, 7\) int64; embed token ids first"),
        ((X, ~PADS), r"padding has a row without a real token, row 0: True marks pads, so give ~mask for"),
        ((X,), r'the guide reads bpe_labels: give annotations=\{"bpe_labels": …\}, or build .* bpe="none"'),
        ((X, PADS, {"labels": LABELS}), "the guide reads bpe_labels: give annotations="),
        ((X, PADS, LABELS), r'annotations must be a dict, such as \{"bpe_labels": …\}, not Tensor'),
        ((X, PADS, {"bpe_labels": LABELS[:, :5]}), r"bpe_labels must be \(2, 7\), of integers, not \(2, 5\)"),
        ((X, PADS, {"bpe_labels": LABELS.float()}), "bpe_labels must be .* of integers, not .* float32"),
        ((X, PADS, {"bpe_labels": [0] * 7}), r"bpe_labels must be a tensor \(2, 7\), not list"),
        ((X, PADS, {"bpe_labels": LABELS + 3}), r"bpe_labels must be 0 .* 1 \(pad\), not 3"),
        ((X, PADS, {"bpe_labels": LABELS - 1}), r"bpe_labels must be 0 .* 1 \(pad\), not -1"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        encoder()(*arguments)


@pytest.mark.parametrize("name", [name for name in guide_names() if name != "lisa"])
def test_annotations_are_asked_for_by_name(name):
    model = encoder(name)
    for needed in model.guide.options.needs:
        with pytest.raises(ValueError, match=f"the guide reads {needed}: give annotations"):
            model(X)
        with pytest.raises(ValueError, match=f"{needed} must be .* not \\(7,\\)"):
            model(X, None, {needed: torch.zeros(7, dtype=torch.long)})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Shape(8, 0, 12, 2), "heads must be a whole number above 0, not 0"),
        (lambda: Shape(8, 2, 12.5, 2), "ffn_dim must be a whole number above 0, not 12.5"),
        (lambda: Shape(8, 3, 12, 2), "embed_dim 8 is not a multiple of heads 3"),
        (lambda: GrammarOptions(conv_layers="3"), "conv_layers must be a whole number, not '3'"),
        (lambda: GrammarOptions(conv_kernel=2.5), "conv_kernel must be a whole number, not 2.5"),
        (lambda: GrammarOptions(conv_kernel=True), "conv_kernel must be a whole number, not True"),
        (lambda: GrammarOptions(relations="parent"), "relations must be a list, not 'parent'"),
        (lambda: GrammarOptions(relations=["both"]), "relations must be a list of parent, child or both"),
        (lambda: GrammarOptions(bpe=None), "bpe must be one of none, add, concatenate, not None"),
        (lambda: PascalOptions(heads="1"), "heads must be a whole number, not '1'"),
        (lambda: PascalOptions(sigma="1"), "sigma must be a number, not '1'"),
        (lambda: GrammarGuide(GrammarOptions(layers=3), SHAPE), "layers must be at most 2, .* not 3"),
        (lambda: PascalGuide(PascalOptions(heads=3), SHAPE), "heads must be at most 2, .* not 3"),
        (lambda: GrammarGuide({"bpe": "none"}, SHAPE), r"options .*: give GrammarOptions\(…\), or call"),
        (lambda: StructformerGuide({}, SHAPE), r"options must not be \{\}: give StructformerOptions\(…\)"),
        (
            lambda: GuidedEncoder(SHAPE, build_guide("lisa", {}, Shape(8, 4, 12, 2))),
            r"the guide was built for Shape\(.*heads=4.*\), the encoder has Shape\(.*heads=2",
        ),
    ],
)
def test_wrong_options_and_sizes(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_options_that_are_right():
    assert GrammarOptions(relations=["child"]).relations == ("child",)
    assert PascalOptions(heads=None, sigma=2).sigma == 2
    assert LisaOptions(parse_weight=0).parse_weight == 0


@pytest.mark.parametrize("name", [None, *guide_names()])
def test_an_empty_batch_gives_an_empty_result(name):
    model = GuidedEncoder(SHAPE) if name is None else encoder(name)
    x = torch.zeros(0, 7, 8, requires_grad=True)
    states, _ = model(x, PADS[:0], annotations(0, 7))
    assert states.shape == (0, 7, 8)
    states.sum().backward()
    assert x.grad.shape == x.shape
