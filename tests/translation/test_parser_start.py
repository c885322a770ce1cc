"""The parser's attention and labels start as in the published code, whose attention is fairseq's."""

import pytest
import torch
from fairseq.modules import MultiheadAttention

from synmask.induction.parser import GrammarParser, SelfAttention

D = 512


@pytest.fixture(scope="module")
def ours():
    torch.manual_seed(1)
    return SelfAttention(D)


@pytest.fixture(scope="module")
def published():
    torch.manual_seed(2)
    return MultiheadAttention(D, 1, self_attention=True)


def parts(ours):
    """fairseq's names of our attention's weights and biases."""
    names = ("q_proj", "k_proj", "v_proj")
    split = zip(names, ours.inputs.weight.chunk(3), ours.inputs.bias.chunk(3), strict=True)
    return {
        **{
            f"{name}.{kind}": value
            for name, *pair in split
            for kind, value in zip(("weight", "bias"), pair, strict=True)
        },
        "out_proj.weight": ours.output.weight,
        "out_proj.bias": ours.output.bias,
    }


def test_every_weight_of_the_attention_starts_as_fairseqs(ours, published):
    """Uniform distributions: the same bounds and standard deviations."""
    expected = dict(published.named_parameters())
    assert parts(ours).keys() == expected.keys()
    for name, value in parts(ours).items():
        near = {"rel": 0.02 if value.dim() == 2 else 0.15, "abs": 1e-9}
        assert value.std().item() == pytest.approx(expected[name].std().item(), **near), name
        assert value.abs().max().item() == pytest.approx(expected[name].abs().max().item(), **near), name


def test_with_the_same_weights_the_attention_is_fairseqs(ours, published):
    published.load_state_dict(parts(ours))
    x = torch.randn(3, 7, D)
    padding = torch.arange(7) >= torch.tensor([7, 5, 1])[:, None]
    expected, _ = published(*[x.transpose(0, 1)] * 3, key_padding_mask=padding)
    assert torch.allclose(ours(x, padding), expected.transpose(0, 1), atol=1e-5)


@pytest.mark.parametrize("bpe_dim", [64, 4096])
def test_label_embedding_starts_small_and_its_pad_at_zero(bpe_dim):
    torch.manual_seed(1)
    embedding = GrammarParser(8, bpe_dim=bpe_dim).label_embedding
    assert embedding.weight[1].eq(0).all()
    assert embedding.weight[[0, 2]].std().item() == pytest.approx(bpe_dim**-0.5, rel=0.2)
    assert embedding.weight.requires_grad
