"""The parser against loops over tokens written from docs/method.md, and its options."""

import math

import pytest
import torch
from torch import nn

from synmask.induction.parser import GrammarParser
from synmask.pipeline.cpu.modules import _fold_at_once, _fold_by_place, convolve_as_product

D = 6


def norm_tanh(vector):
    """Layer normalisation without affine parameters, then tanh, of a list of numbers."""
    mean = sum(vector) / len(vector)
    variance = sum((v - mean) ** 2 for v in vector) / len(vector)
    return [math.tanh((v - mean) / math.sqrt(variance + 1e-5)) for v in vector]


def linear(layer, vector):
    return [
        sum(w * v for w, v in zip(row, vector, strict=True)) + bias
        for row, bias in zip(layer.weight.tolist(), layer.bias.tolist(), strict=True)
    ]


def literal_parser(parser, x, labels):
    """One sentence without pads, x: n lists of d numbers, token by token -> distances, heights."""
    n, d = len(x), len(x[0])
    words = []
    if parser.bpe != "none":
        table = parser.label_embedding.weight.tolist()
        words = [norm_tanh(linear(parser.label_projection, table[label])) for label in labels]
    for convolution in parser.convolutions:
        weight, bias = convolution.weight.tolist(), convolution.bias.tolist()
        half = (len(weight[0][0]) - 1) // 2
        states = []
        for i in range(n):
            state = list(bias)
            for out in range(d):
                for step, channel in ((s, c) for s in range(len(weight[0][0])) for c in range(d)):
                    if 0 <= i + step - half < n:
                        state[out] += weight[out][channel][step] * x[i + step - half][channel]
            states.append(norm_tanh(state))
        x = states
    if parser.attention is not None:
        projected = [linear(parser.attention.inputs, state) for state in x]
        states = []
        for i in range(n):
            query = projected[i][:d]
            scores = [
                math.exp(
                    sum(q * k for q, k in zip(query, projected[j][d : 2 * d], strict=True)) / math.sqrt(d)
                )
                for j in range(n)
            ]
            mixed = [
                sum(scores[j] * projected[j][2 * d + c] for j in range(n)) / sum(scores) for c in range(d)
            ]
            attended = linear(parser.attention.output, mixed)
            states.append(
                [a + b for a, b in zip(x[i], attended, strict=True)] if parser.residual else attended
            )
        x = states
    if parser.bpe == "add":
        x = [[a + b for a, b in zip(s, w, strict=True)] for s, w in zip(x, words, strict=True)]
    elif parser.bpe == "concatenate":
        x = [s + w for s, w in zip(x, words, strict=True)]
    height = [linear(parser.height_output, norm_tanh(linear(parser.height_hidden, s)))[0] for s in x]
    distance = [
        linear(parser.distance_output, norm_tanh(linear(parser.distance_hidden, x[i] + x[i + 1])))[0]
        for i in range(n - 1)
    ]
    return distance, height


def build(seed=0, **options):
    torch.manual_seed(seed)
    return GrammarParser(D, **{"conv_layers": 2, "conv_kernel": 3, "bpe_dim": 4, **options}).double()


def sentences(*lengths):
    """x, padding and BPE labels of right-padded sentences, with junk at the pads of x."""
    generator = torch.Generator().manual_seed(1)
    n = max(lengths)
    x = torch.randn(len(lengths), n, D, dtype=torch.float64, generator=generator)
    padding = torch.arange(n) >= torch.tensor(lengths)[:, None]
    labels = torch.randint(0, 2, padding.shape, generator=generator) * 2
    return x, padding, labels.masked_fill(padding, 1)


OPTIONS = [
    {},
    {"bpe": "concatenate"},
    {"bpe": "none"},
    {"bpe_dim": 2},
    {"conv_layers": 3},
    {"conv_layers": 0},
    {"conv_kernel": 5},
    {"conv_kernel": 4},  # one token more after than before
    {"attention": "none"},
    {"attention": "residual"},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_agrees_with_loops_over_tokens(options):
    parser = build(**options)
    x, padding, labels = sentences(5, 1, 2, 4)
    distance, height = parser(x, padding, labels)
    assert distance.shape == (4, 4)
    assert height.shape == (4, 5)
    for b, length in enumerate([5, 1, 2, 4]):
        expected = literal_parser(parser, x[b, :length].tolist(), labels[b, :length].tolist())
        assert distance[b, : length - 1].tolist() == pytest.approx(expected[0], abs=1e-10)
        assert height[b, :length].tolist() == pytest.approx(expected[1], abs=1e-10)


@pytest.mark.parametrize("options", OPTIONS)
def test_left_pads_change_nothing(options):
    parser = build(**options)
    x, padding, labels = sentences(5, 3)
    distance, height = parser(x, padding, labels)
    rolled = [value[1:].roll(2, dims=1) for value in (x, padding, labels)]
    left_distance, left_height = parser(*rolled)
    assert torch.allclose(left_distance[0, 2:], distance[1, :2], atol=1e-12)
    assert torch.allclose(left_height[0, 2:], height[1, :3], atol=1e-12)


def test_one_token_alone():
    x, padding, labels = sentences(1)
    distance, height = build()(x, padding, labels)
    assert distance.shape == (1, 0)
    assert height.shape == (1, 1)


def test_every_parameter_gets_a_gradient():
    parser = build()
    distance, height = parser(*sentences(5, 3))
    (distance.square().sum() + height.square().sum()).backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in parser.parameters())
    assert parser.label_embedding.weight.grad.abs().sum(1).gt(0).tolist() == [True, False, True]  # 1: pads


@pytest.mark.parametrize(
    ("attention", "least", "most"), [("published", 0.025, 0.04), ("residual", 0.9, 1), ("none", 0.9, 1)]
)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_published_defect_the_attention_makes_all_tokens_alike(attention, least, most, seed):
    """At the start a thirtieth of the states' mean square differs between a sentence's tokens, where the
    attention's output takes the states' place; with PyTorch's own start it would be a hundredth."""
    torch.manual_seed(seed)
    parser = GrammarParser(512, attention=attention)
    x, padding = torch.randn(16, 20, 512), torch.zeros(16, 20, dtype=torch.bool)
    with torch.no_grad():
        states = parser._encode(x, padding)
    apart = (states - states.mean(1, keepdim=True)).square().mean() / states.square().mean()
    assert least < apart.item() < most


@pytest.mark.parametrize("bpe_dim", [2, 512])
def test_widths_of_the_label_embedding(bpe_dim):
    parser = build(bpe_dim=bpe_dim)
    assert parser.label_embedding.weight.shape == (3, bpe_dim)
    assert parser(*sentences(4))[1].isfinite().all()


def test_parameters_of_the_published_model():
    """docs/method.md, "From embeddings to distances and heights", part by part, at d = 512."""

    def count(*modules):
        return sum(p.numel() for module in modules for p in module.parameters())

    parser = GrammarParser(512)
    assert count(parser.convolutions) == 7_079_424
    assert count(parser.attention) == 1_050_624
    assert count(parser.distance_hidden, parser.distance_output) == 525_313
    assert count(parser.height_hidden, parser.height_output) == 263_169
    assert count(parser.label_embedding, parser.label_projection) == 132_352
    assert isinstance(parser, nn.Module)


def test_wrong_arguments():
    x, padding, labels = sentences(4, 2)
    parser = build()
    with pytest.raises(ValueError, match=r"bpe must be one of none, add, concatenate, not 'ad'"):
        build(bpe="ad")
    with pytest.raises(ValueError, match=r"attention must be one of none, published, residual, not True"):
        build(attention=True)
    with pytest.raises(ValueError, match=r"x must be \(B, n, 6\) .*\(2, 4, 5\)"):
        parser(x[..., :5], padding, labels)
    with pytest.raises(ValueError, match=r"x must be .*\(2, 0, 6\)"):
        parser(x[:, :0], padding[:, :0], labels[:, :0])
    with pytest.raises(ValueError, match=r"padding must be .*\(2, 4\).*\(2, 3\)"):
        parser(x, padding[:, :3], labels)
    with pytest.raises(ValueError, match=r"bpe_labels must be .*\(2, 4\).*None"):
        parser(x, padding)


@pytest.mark.parametrize("kernel", [1, 2, 5, 9])
def test_the_convolution_as_one_product_is_torchs(kernel):
    torch.manual_seed(5)
    convolution = torch.nn.Conv1d(6, 5, kernel, padding="same", dtype=torch.float64)
    x, found = torch.randn(3, 7, 6, dtype=torch.float64, requires_grad=True), []
    for result in (convolve_as_product(convolution, x), convolution(x.mT).mT):
        gradients = torch.autograd.grad(result.sin().sum(), (x, *convolution.parameters()))
        found.append((result, *gradients))
    for ours, theirs in zip(*found, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("kernel", [1, 2, 9])
def test_gradients_of_windows_are_the_same_on_processors_and_gpus(kernel):
    grad = torch.randn(2, 5, kernel * 3, dtype=torch.float64)
    shape = torch.Size((2, 5 + kernel - 1, 3))
    assert torch.allclose(_fold_by_place(grad, shape, kernel), _fold_at_once(grad, shape, kernel))
