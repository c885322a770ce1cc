"""Parameters start as in the published code: the rows of tests/README.md."""

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerConfig
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase, TransformerEncoderLayerBase
from scipy.stats import ks_2samp
from torch import nn

from small_models import typed
from synmask.guides import Shape, build_guide
from synmask.pipeline.translation.task import GuidedTranslation

D, FFN = 256, 512
SHAPE = Shape(D, heads=4, ffn_dim=FFN, layers=3)


def guide(name, shape=SHAPE):
    torch.manual_seed(1)
    return build_guide(name, {}, shape)


def assert_same_distribution(ours, published):
    """Two samples of one distribution, by the test of Kolmogorov and Smirnov."""
    samples = [x.detach().flatten()[:20_000].numpy() for x in (ours, published)]
    assert ks_2samp(*samples, method="asymp").pvalue > 1e-4


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_lpsi_tower_starts_as_fairseqs_layer(side):
    cfg = TransformerConfig()
    for part in (cfg.encoder, cfg.decoder):
        part.embed_dim, part.ffn_embed_dim, part.attention_heads = D, FFN, 4
    lpsi = guide("lpsi")
    if side == "encoder":
        tower, layer = lpsi.tower, TransformerEncoderLayerBase(cfg)
    else:
        tower, layer = lpsi.decoder().tower, TransformerDecoderLayerBase(cfg, no_encoder_attn=True)
    attention, published = tower.self_attn, layer.self_attn
    for kind in ("weight", "bias"):
        for part, name in zip(getattr(attention, f"in_proj_{kind}").chunk(3), "qkv", strict=True):
            assert_same_distribution(part, getattr(getattr(published, f"{name}_proj"), kind))
        for ours, theirs in (
            (attention.out_proj, published.out_proj),
            (tower.linear1, layer.fc1),
            (tower.linear2, layer.fc2),
            (tower.norm1, layer.self_attn_layer_norm),
            (tower.norm2, layer.final_layer_norm),
        ):
            assert_same_distribution(getattr(ours, kind), getattr(theirs, kind))


def test_lpsi_map_to_distances_starts_normal():
    lpsi = guide("lpsi")
    for output in (lpsi.output, lpsi.decoder().output):
        assert_same_distribution(output.weight, torch.randn(4, D) / D**0.5)
        assert output.bias.eq(0).all()


def test_lisa_starts_xavier():
    lisa = guide("lisa")
    torch.manual_seed(1)
    inputs = nn.Linear(D, 2 * D // 4)
    assert torch.equal(lisa.inputs.weight, nn.init.xavier_uniform_(inputs.weight))
    assert lisa.inputs.bias.eq(0).all()
    assert_same_distribution(lisa.bilinear, nn.init.xavier_uniform_(torch.empty(D // 4 + 1, D // 4)))


@pytest.mark.parametrize("name", ["grammar", "structformer"])
def test_parser_starts_as_torch(name):
    parser = guide(name).parser
    published = {f"convolutions.{number}": nn.Conv1d(D, D, 9) for number in range(3)}
    published |= {"distance_hidden": nn.Conv1d(D, D, 2), "distance_output": nn.Linear(D, 1)}
    published |= {"height_hidden": nn.Linear(D, D), "height_output": nn.Linear(D, 1)}
    if name == "grammar":
        published["label_projection"] = nn.Linear(256, D)
    for part, module in published.items():
        ours = parser.get_submodule(part)
        assert_same_distribution(ours.weight, module.weight)
        if len(ours.bias) > 1:
            assert_same_distribution(ours.bias, module.bias)
        assert 0 < ours.bias.abs().max() <= module.weight[0].numel() ** -0.5


@pytest.mark.parametrize("name", ["grammar", "structformer"])
def test_relations_and_scales_start_even(name):
    made = guide(name, shape=Shape(D, heads=128, ffn_dim=FFN, layers=3))
    assert_same_distribution(made.relation_logits, 0.1 * torch.randn(1000))
    assert made.log_distance_scale == made.log_height_scale == 0


def model(settings, tmp_path, words=2000):
    dictionary = Dictionary()
    for word in range(words):
        dictionary.add_symbol(str(word))
    torch.manual_seed(1)
    return GuidedTranslation(dictionary, dictionary, typed(settings)).build_model()


def test_mlm_bias_starts_as_torchs_linear(grammar_settings, tmp_path):
    found = model(grammar_settings, tmp_path).mlm_bias
    assert_same_distribution(found, nn.Linear(16, len(found)).bias)


def test_mlm_bias_is_drawn_last(grammar_settings, tmp_path):
    """With and without the head, all else of a seed starts the same."""
    with_head = dict(model(grammar_settings, tmp_path, words=50).named_parameters())
    grammar_settings["system"]["mlm_weight"] = 0.0
    without = dict(model(grammar_settings, tmp_path, words=50).named_parameters())
    assert with_head.keys() - without.keys() == {"mlm_bias"}
    assert all(torch.equal(with_head[name], value) for name, value in without.items())
