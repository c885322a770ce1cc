from argparse import Namespace
from pathlib import Path

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerModelBase
from torch import nn

from small_models import slow_modules, typed
from synmask.pipeline.config.loading import load, project_files, read_all
from synmask.pipeline.cpu.modules import accelerate
from synmask.pipeline.guidance import GUIDES
from synmask.pipeline.training.operators import FAIRSEQ_MODULES
from synmask.pipeline.translation.task import GuidedTranslation, transformer_config

ROOT = Path(__file__).parents[2]
COPIES = ("in_proj_weight", "in_proj_bias", "out_proj_weight", "out_proj_bias")


def dictionary(size):
    words = Dictionary()
    while len(words) < size:
        words.add_symbol(f"w{len(words)}")
    return words


def build(settings, source=24, target=16, seed=1):
    task = GuidedTranslation(dictionary(source), dictionary(target), typed(settings))
    torch.manual_seed(seed)
    return task.build_model()


def batch(lengths, vocabulary=24, seed=3):
    torch.manual_seed(seed)
    tokens = torch.full((len(lengths), max(lengths)), 1)
    for row, n in zip(tokens, lengths, strict=True):
        row[: n - 1] = torch.randint(4, vocabulary, (n - 1,))
        row[n - 1] = 2
    labels = torch.where(tokens == 1, 1, 2 * (tokens % 2))
    return {
        "src_tokens": tokens,
        "src_lengths": torch.tensor(lengths),
        "prev_output_tokens": torch.randint(4, 16, (len(lengths), 5)),
        "annotations": {"bpe_labels": labels},
    }


@pytest.mark.parametrize("guide", [name for name, kind in GUIDES.items() if "words" not in kind.reads])
def test_each_model_is_built_of_our_modules(settings_of, guide):
    words, settings = dictionary(24), typed(settings_of(guide))
    assert not slow_modules(GuidedTranslation(words, words, settings, 1, words).build_model())


def test_transformer_is_stock_fairseq(settings):
    """Bit for bit with the same faster modules; within rounding without them."""
    ours = build(settings)
    torch.manual_seed(1)
    words = {"source_dictionary": ours.encoder.dictionary, "target_dictionary": ours.decoder.dictionary}
    stock = TransformerModelBase.build_model(ours.cfg, Namespace(**words))
    for layer in stock.encoder.layers:
        layer.can_use_fastpath = False
    inputs = batch([6, 4, 6, 2])
    inputs.pop("annotations")
    with torch.no_grad():
        torch.testing.assert_close(ours.eval()(**inputs)[0], stock.eval()(**inputs)[0])
    accelerate(stock, FAIRSEQ_MODULES)
    for mode in ("train", "eval"):
        losses = []
        for model in (ours, stock):
            getattr(model, mode)()
            torch.manual_seed(5)
            logits, _ = model(**inputs)
            model.zero_grad()
            logits.logsumexp(-1).sum().backward()
            losses.append((logits, model.encoder.embed_tokens.weight.grad.clone()))
        assert torch.equal(losses[0][0], losses[1][0])
        assert torch.equal(losses[0][1], losses[1][1])
    names = {name for name, _ in stock.named_parameters()} - {name for name, _ in ours.named_parameters()}
    assert {name.rsplit(".", 1)[1] for name in names} == {
        *COPIES, "fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"
    }  # fmt: skip


@pytest.mark.parametrize("system", ["transformer", "grammar"])
def test_a_sentence_alone_and_in_a_batch(settings, grammar_settings, system):
    chosen = settings if system == "transformer" else grammar_settings
    model = build(chosen).eval()
    inputs = batch([7, 5, 2, 1])
    logits, _ = model(**inputs)
    for row, n in enumerate(inputs["src_lengths"].tolist()):
        for width in (n, n + 3):
            alone = {key: value[row : row + 1] for key, value in inputs.items() if key != "annotations"}
            tokens = torch.full((1, width), 1)
            tokens[:, :n] = inputs["src_tokens"][row, :n]
            labels = torch.full((1, width), 1)
            labels[:, :n] = inputs["annotations"]["bpe_labels"][row, :n]
            alone |= {"src_tokens": tokens, "annotations": {"bpe_labels": labels}}
            torch.testing.assert_close(model(**alone)[0], logits[row : row + 1], rtol=0, atol=2e-6)


def test_systems_of_one_seed_share_their_first_weights(settings, grammar_settings):
    plain, guided = build(settings), build(grammar_settings)
    theirs = dict(guided.named_parameters())
    for name, parameter in plain.named_parameters():
        assert torch.equal(parameter, theirs[name]), name


def guided_attention_oracle(layer, x, mask):
    """Loops over sentences, heads, rows and columns: sigmoid(q·k / sqrt(d_head)) times the mask, times v."""
    attention = layer.self_attn
    n, size, d = x.shape
    width = d // attention.num_heads
    out = torch.zeros(n, size, d)
    for b in range(size):
        q, k, v = (getattr(attention, f"{name}_proj")(x[:, b]) for name in "qkv")
        for h in range(attention.num_heads):
            part = slice(h * width, (h + 1) * width)
            for i in range(n):
                for j in range(n):
                    score = (q[i, part] @ k[j, part]) / width**0.5
                    out[i, b, part] += torch.sigmoid(score) * mask[b, h, i, j] * v[j, part]
    return attention.out_proj(out)


def test_guided_layer_against_loops(grammar_settings):
    model = build(grammar_settings).eval()
    layer, torch_mask = model.encoder.layers[0], torch.rand(2, 2, 5, 5)
    x = torch.randn(5, 2, 16)
    with torch.no_grad():
        found = layer(x, None, lambda scores, values, *_: (scores.sigmoid() * torch_mask) @ values)
        y = layer.self_attn_layer_norm(x + guided_attention_oracle(layer, x, torch_mask))
        expected = layer.final_layer_norm(y + layer.fc2(torch.relu(layer.fc1(y))))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_masked_language_model_head_against_loops(grammar_settings):
    model = build(grammar_settings).eval()
    nn.init.normal_(model.mlm_bias)
    inputs = batch([6, 4])
    masked = torch.tensor([0, 3, 7])
    _, extra = model(**inputs, masked=masked)
    states = model.encoder(inputs["src_tokens"], annotations=inputs["annotations"])["encoder_out"][0]
    for row, position in enumerate(masked.tolist()):
        state = states[position % 6, position // 6]
        state = (state - state.mean()) / (state.var(unbiased=False) + 1e-5).sqrt()
        for word in range(24):
            expected = state @ model.encoder.embed_tokens.weight[word] + model.mlm_bias[word]
            assert abs(extra["mlm_logits"][row, word] - expected) < 1e-4


def test_parameters_of_the_papers_iwslt14_model():
    config = load(read_all(project_files(ROOT)))

    def parameters(system):
        run = config.run_settings("iwslt14", "de-en", system).plain()
        return sum(p.numel() for p in build(run, 8848, 6632).parameters())

    added = parameters("grammar") - parameters("transformer")
    assert added == pytest.approx(9.06e6, abs=0.01e6)
    assert parameters("grammar") == pytest.approx(49e6, abs=0.5e6)


def test_settings_reach_fairseqs_configuration(settings):
    cfg = transformer_config(typed(settings))
    assert cfg.encoder.layers == settings["model"]["encoder_layers"]
    assert cfg.dropout == settings["training"]["dropout"]
