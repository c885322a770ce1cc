"""RoBERTas saved by transformers, converted and loaded by stock fairseq."""

import json
import shutil
from argparse import Namespace

import pytest
import torch
from fairseq.models.roberta import RobertaModel
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import RobertaConfig, RobertaForMaskedLM, RobertaTokenizer

from synmask.pipeline.cli import main
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_json, read_lines, write_json, write_lines
from synmask.pipeline.roberta.huggingface import convert_huggingface
from synmask.pipeline.roberta.weights import load_weights
from synmask.pipeline.text.gpt2 import encode_batch, learn_byte_bpe, read_encoder, read_merges

TEXT = ["the dog chases the cats", "It's \"fine\", isn't it?", "  Straße\t中文 🙂 cécé ", ""]
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


def vocabulary(bpe, layout):
    """Ids as RoBERTa's (<mask> after a filler, last) or those of a tokenizer trained with <mask> first."""
    tokens = sorted(read_encoder(bpe / "encoder.json"))
    tokens = [*tokens, "madeupword0000", "<mask>"] if layout == "mask last" else ["<mask>", *tokens]
    return {token: number for number, token in enumerate([*SPECIAL, *tokens])}


def make(folder, bpe, layout="mask last", **settings):
    """A RobertaForMaskedLM with all its parameters drawn at random, and its vocabulary, as published."""
    ids = vocabulary(bpe, layout)
    unused = 0 if layout == "mask last" else 3
    sizes = {"num_hidden_layers": 3, "hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 4}
    config = RobertaConfig(
        vocab_size=len(ids) + unused, max_position_embeddings=32, layer_norm_eps=1e-5, **sizes | settings
    )
    torch.manual_seed(6)
    model = RobertaForMaskedLM(config).eval()
    for name, parameter in model.named_parameters():
        nn.init.normal_(parameter, std=0.3)
        if name.endswith((".word_embeddings.weight", "position_embeddings.weight")):
            nn.init.zeros_(parameter[1])  # of <pad>
    model.save_pretrained(folder)
    write_json(folder / "vocab.json", ids)
    shutil.copy(bpe / "vocab.bpe", folder / "merges.txt")
    return model


@pytest.fixture(scope="module")
def bpe(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bpe")
    learn_byte_bpe(TEXT * 2, 20, folder)
    return folder


@pytest.fixture(scope="module")
def published(tmp_path_factory, bpe):
    folder = tmp_path_factory.mktemp("published")
    make(folder, bpe)
    return folder


@pytest.fixture
def source(published, tmp_path):
    return shutil.copytree(published, tmp_path / "source")


def fairseq_model(folder):
    weights = load_weights(folder)
    model = RobertaModel.build_model(
        weights.shape.settings(), Namespace(source_dictionary=weights.dictionary)
    )
    model.load_state_dict(dict(weights.state), strict=True)
    for layer in model.encoder.sentence_encoder.layers:
        layer.can_use_fastpath = False
    return model.eval()


def differences(model, other, lengths=(30, 7, 2, 19)):
    """The largest difference of hidden states and of logits at real positions of a padded batch."""
    torch.manual_seed(3)
    rows = torch.full((len(lengths), max(lengths)), 1)
    for row, n in zip(rows, lengths, strict=True):
        row[:n] = torch.randint(4, model.config.vocab_size, (n,))
        row[0], row[n - 1] = 0, 2
    real = rows != 1
    with torch.no_grad():
        theirs = model(rows, attention_mask=real.long(), output_hidden_states=True)
        logits, extra = other(rows, return_all_hiddens=True)
    states = [state.transpose(0, 1) for state in extra["inner_states"]]
    assert len(states) == len(theirs.hidden_states) == model.config.num_hidden_layers + 1
    pairs = [*zip(states, theirs.hidden_states, strict=True), (logits, theirs.logits)]
    return [(x - y)[real].abs().max().item() for x, y in pairs]


@pytest.mark.parametrize("layout", ["mask last", "mask first"])
def test_hidden_states_and_logits_stay_the_same(bpe, tmp_path, layout, capsys):
    model = make(tmp_path / "source", bpe, layout)
    main(["convert-roberta", "--input", str(tmp_path / "source"), "--output", str(tmp_path / "out")])
    assert "heads=4 layers=3" in capsys.readouterr().err
    assert max(differences(model, fairseq_model(tmp_path / "out"))) <= 1e-5


@pytest.mark.parametrize("layout", ["mask last", "mask first"])
def test_text_leads_to_the_same_rows(bpe, tmp_path, layout):
    model = make(tmp_path / "source", bpe, layout)
    convert_huggingface(input=tmp_path / "source", output=tmp_path / "out")
    dictionary = load_weights(tmp_path / "out").dictionary
    ids = vocabulary(bpe, layout)
    theirs = RobertaTokenizer(vocab=ids, merges=read_merges(bpe / "vocab.bpe"))
    lines = encode_batch(TEXT, tmp_path / "out")
    for line, numbers in zip(TEXT, lines, strict=True):
        rows = [dictionary.index(str(number)) for number in numbers]
        assert rows == theirs(line, add_special_tokens=False)["input_ids"]
        assert dictionary.unk() not in rows
    for token in (*SPECIAL, "<mask>"):
        assert dictionary.index(token) == ids[token]
    assert len(dictionary) == model.config.vocab_size


def test_the_dictionary_of_robertas_layout(source, tmp_path):
    """As in the published dict.txt: ids, then fillers; <mask> is not listed."""
    convert_huggingface(input=source, output=tmp_path / "out")
    rows = list(read_lines(tmp_path / "out/dict.txt"))
    assert rows == [*(f"{number} 0" for number in range(4, len(rows) + 3)), "madeupword0000 0"]
    tokens = read_encoder(tmp_path / "out/encoder.json")
    assert not {*SPECIAL, "<mask>", "madeupword0000"} & set(tokens)


def test_the_vocabulary_may_be_in_tokenizer_json(source, tmp_path):
    convert_huggingface(input=source, output=tmp_path / "out")
    tokenizer = RobertaTokenizer(
        vocab=read_json(source / "vocab.json"), merges=read_merges(source / "merges.txt")
    )
    tokenizer.save_pretrained(source)
    (source / "vocab.json").unlink()
    (source / "merges.txt").unlink()
    convert_huggingface(input=source, output=tmp_path / "again")
    saved = read_json(source / "tokenizer.json")
    saved["model"]["merges"] = [" ".join(pair) for pair in saved["model"]["merges"]]  # as it was once written
    write_json(source / "tokenizer.json", saved)
    convert_huggingface(input=source, output=tmp_path / "old")
    for path in (tmp_path / "out").iterdir():
        for other in ("again", "old"):
            assert path.read_bytes() == (tmp_path / other / path.name).read_bytes()


def test_half_precision_and_a_head_that_is_written_out(source, tmp_path):
    convert_huggingface(input=source, output=tmp_path / "out")
    tensors = {name: value.half() for name, value in load_file(source / "model.safetensors").items()}
    tensors["lm_head.decoder.weight"] = tensors["roberta.embeddings.word_embeddings.weight"].clone()
    tensors["lm_head.decoder.bias"] = tensors.pop("lm_head.bias")
    tensors["roberta.embeddings.position_ids"] = torch.arange(32)
    save_file(tensors, source / "model.safetensors")
    convert_huggingface(input=source, output=tmp_path / "half")
    whole, half = (load_weights(tmp_path / name).state for name in ("out", "half"))
    for name, value in whole.items():
        torch.testing.assert_close(half[name], value, rtol=0, atol=2e-3)
    saved = torch.load(tmp_path / "half/model.pt", weights_only=True)["model"]
    assert {value.dtype for value in saved.values()} == {torch.float32}
    tied = saved["encoder.lm_head.weight"], saved["encoder.sentence_encoder.embed_tokens.weight"]
    assert tied[0].data_ptr() == tied[1].data_ptr()  # the file holds it once


def refused(source, output, message):
    with pytest.raises(UserError, match=message) as error:
        convert_huggingface(input=source, output=output)
    assert "\n" not in str(error.value)
    assert str(source) in str(error.value)
    assert not output.exists()


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocab.json", "merges.txt"])
def test_a_missing_file(source, tmp_path, name):
    (source / name).unlink()
    refused(source, tmp_path / "out", name)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("model_type", "bert", "model_type is 'bert'; fairseq's RoBERTa has 'roberta'"),
        ("model_type", None, "model_type is None"),
        ("hidden_act", "gelu_new", "hidden_act is 'gelu_new'; .* has 'gelu'"),
        ("layer_norm_eps", 1e-12, "layer_norm_eps is 1e-12; .* has 1e-05"),
        ("pad_token_id", 0, "pad_token_id is 0"),
        ("position_embedding_type", "relative_key", "position_embedding_type is 'relative_key'"),
        ("hidden_size", None, "has no hidden_size"),
        ("num_hidden_layers", 4, r"has no roberta\.encoder\.layer\.3\."),
        ("num_attention_heads", 5, "embed_dim 16 is not a multiple of heads 5"),
        ("vocab_size", 300, "both must be of one vocabulary|the vocabulary has the id"),
        ("num_attention_heads", 0, "has no num_attention_heads"),
        ("max_position_embeddings", 514, r"embed_positions.* has the shape \(32, 16\)"),
    ],
)
def test_another_model(source, tmp_path, key, value, message):
    config = json.loads((source / "config.json").read_text()) | {key: value}
    write_json(source / "config.json", config)
    with pytest.raises(UserError, match=message) as error:
        convert_huggingface(input=source, output=tmp_path / "out")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out/model.pt").exists()


@pytest.mark.parametrize("part", [0, 0.1, 0.99])
def test_a_cut_safetensors_file(source, tmp_path, part):
    whole = (source / "model.safetensors").read_bytes()
    (source / "model.safetensors").write_bytes(whole[: int(part * len(whole))])
    refused(source, tmp_path / "out", "damaged or no safetensors file")


def test_a_model_without_its_language_model_head(source, tmp_path):
    tensors = load_file(source / "model.safetensors")
    save_file({name: t for name, t in tensors.items() if "lm_head" not in name}, source / "model.safetensors")
    refused(source, tmp_path / "out", r"has no lm_head.*; save a RobertaForMaskedLM")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda ids: ids | {"<s>": ids["<pad>"], "<pad>": ids["<s>"]}, "<s> must have the id 0"),
        (lambda ids: {token: n for token, n in ids.items() if token != "<mask>"}, "has no <mask>"),
        (lambda ids: ids | {"more": 9999}, "has the id 9999, the model"),
        (lambda ids: {token: n for token, n in ids.items() if token != "Ā"}, "no token 'Ā'"),
        (lambda ids: {token: n for token, n in ids.items() if len(token) < 2 or n < 4 or token == "<mask>"}, "do not"),
        (lambda ids: list(ids), "gives tokens their ids"),
    ],
)  # fmt: skip
def test_another_vocabulary(source, tmp_path, change, message):
    write_json(source / "vocab.json", change(read_json(source / "vocab.json")))
    refused(source, tmp_path / "out", message)


def test_a_tokenizer_of_another_kind(source, tmp_path):
    (source / "vocab.json").unlink()
    for saved in ({}, {"model": {"type": "Unigram", "vocab": [["a", 1.0]]}, "added_tokens": []}):
        write_json(source / "tokenizer.json", saved)
        refused(source, tmp_path / "out", "not the tokenizer of a RoBERTa")


def test_damaged_merges(source, tmp_path):
    write_lines(source / "merges.txt", ["#version: 0.2", "one"])
    refused(source, tmp_path / "out", r"merges\.txt, line 2: not two tokens")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("tokenizer.json", {"normalizer": {"type": "Lowercase"}}, "normalises text"),
        (
            "tokenizer.json",
            {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True}},
            "puts a space",
        ),
        (
            "tokenizer.json",
            {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"add_prefix_space": True}]}},
            "puts a space",
        ),
        ("tokenizer_config.json", {"do_lower_case": True}, "lower-cases text"),
        ("tokenizer_config.json", {"add_prefix_space": True}, "puts a space"),
    ],
)
def test_a_tokenizer_that_changes_text_is_refused(published, tmp_path, name, change, message):
    folder = shutil.copytree(published, tmp_path / "model")
    write_json(folder / name, change)
    with pytest.raises(UserError, match=rf"{name}: it {message}"):
        convert_huggingface(input=folder, output=tmp_path / "weights")
    assert not (tmp_path / "weights").exists()
