"""Weights folders: fairseq's own."""

import re
import shutil
from argparse import Namespace

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.data.encoders.gpt2_bpe_utils import get_encoder
from fairseq.models.roberta import RobertaModel
from torch import nn

from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_lines, write_lines
from synmask.pipeline.roberta.weights import RobertaShape, load_weights, save_weights
from synmask.pipeline.text.gpt2 import encode_batch, learn_byte_bpe

SHAPE = RobertaShape(layers=3, embed_dim=16, ffn_dim=24, heads=4, max_positions=30)
TEXT = ["the dog chases the cats", "It's \"fine\", isn't it?", "  Straße\t中文 🙂 <mask> ", ""]
TOP = "encoder.sentence_encoder"


def stock(weights):
    """fairseq's RobertaModel with these weights, which must be all that it has."""
    task = Namespace(source_dictionary=weights.dictionary)
    model = RobertaModel.build_model(weights.shape.settings(), task)
    model.load_state_dict(dict(weights.state), strict=True)
    for layer in model.encoder.sentence_encoder.layers:
        layer.can_use_fastpath = False
    return model.eval()


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabulary")
    learn_byte_bpe(TEXT * 2, 20, folder)
    return folder


@pytest.fixture(scope="module")
def original(vocabulary):
    """A stock RoBERTa whose weights are all drawn at random."""
    words = 4 + len(list(read_lines(vocabulary / "dict.txt"))) + 1
    dictionary = Dictionary()
    while len(dictionary) < words:
        dictionary.add_symbol(f"w{len(dictionary)}")
    torch.manual_seed(4)
    model = RobertaModel.build_model(SHAPE.settings(), Namespace(source_dictionary=dictionary))
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    for layer in model.encoder.sentence_encoder.layers:
        layer.can_use_fastpath = False
    return model.eval()


@pytest.fixture
def folder(original, vocabulary, tmp_path):
    save_weights(tmp_path / "weights", original.state_dict(), SHAPE, vocabulary)
    return tmp_path / "weights"


def tokens(words, lengths=(9, 30, 1, 17)):
    torch.manual_seed(2)
    made = torch.full((len(lengths), max(lengths)), 1)
    for row, n in zip(made, lengths, strict=True):
        row[:n] = torch.randint(4, words, (n,))
        row[0], row[n - 1] = 0, 2
    return made


def assert_same(model, other, atol=0.0):
    rows = tokens(model.encoder.lm_head.bias.numel())
    real = rows != 1
    with torch.no_grad():
        logits, extra = model(rows, return_all_hiddens=True)
        others, other_extra = other(rows, return_all_hiddens=True)
    assert len(extra["inner_states"]) == SHAPE.layers + 1
    for x, y in zip(extra["inner_states"], other_extra["inner_states"], strict=True):
        torch.testing.assert_close(x.transpose(0, 1)[real], y.transpose(0, 1)[real], rtol=0, atol=atol)
    torch.testing.assert_close(logits[real], others[real], rtol=0, atol=atol)


def save(folder, change=dict, **settings):
    """Write model.pt with other weights or settings."""
    args = Namespace(**vars(SHAPE.settings()) | settings)
    torch.save({"args": args, "model": change(load_weights(folder).state)}, folder / "model.pt")


def test_what_was_saved_is_loaded(original, folder):
    weights = load_weights(folder)
    assert weights.shape == SHAPE
    assert set(weights.state) == set(SHAPE.parameters(len(weights.dictionary)))
    assert {value.dtype for value in weights.state.values()} == {torch.float32}
    assert weights.state["encoder.lm_head.weight"] is weights.state[f"{TOP}.embed_tokens.weight"]
    assert_same(stock(weights), original)


def test_the_same_bytes(original, vocabulary, folder, tmp_path):
    save_weights(tmp_path / "again", original.state_dict(), SHAPE, vocabulary)
    for path in folder.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()


def test_model_pt_is_added_to_its_vocabulary(original, vocabulary, tmp_path):
    folder = shutil.copytree(vocabulary, tmp_path / "w")
    before = {path.name: path.stat() for path in folder.iterdir()}
    save_weights(folder, original.state_dict(), SHAPE, folder)
    assert load_weights(folder).shape == SHAPE
    for name, stat in before.items():  # a workflow compares their times
        assert (folder / name).stat().st_mtime_ns == stat.st_mtime_ns


def test_loading_leaves_the_random_numbers_alone(folder):
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    load_weights(folder)
    assert torch.equal(torch.rand(3), expected)


def test_stock_fairseq_reads_the_folder(original, folder):
    hub = RobertaModel.from_pretrained(
        str(folder),
        bpe="gpt2",
        gpt2_encoder_json=str(folder / "encoder.json"),
        gpt2_vocab_bpe=str(folder / "vocab.bpe"),
    ).eval()
    weights = load_weights(folder)
    assert hub.task.source_dictionary == weights.dictionary
    for layer in hub.model.encoder.sentence_encoder.layers:
        layer.can_use_fastpath = False
    assert_same(hub.model, original)
    for line, ids in zip(TEXT[:2], encode_batch(TEXT[:2], folder), strict=True):
        rows = [weights.dictionary.index(str(number)) for number in ids]
        assert hub.encode(line).tolist() == [0, *rows, 2]
        assert weights.dictionary.unk() not in rows


def test_ids_are_those_of_fairseqs_bpe(vocabulary):
    theirs = get_encoder(str(vocabulary / "encoder.json"), str(vocabulary / "vocab.bpe"))
    odd = [f"a{chr(code)}b {chr(code)} {chr(code)}{chr(code)}1 " for code in range(0x3100)]
    assert encode_batch(TEXT + odd, vocabulary) == [theirs.encode(line) for line in TEXT + odd]


def refused(action, *words, message):
    with pytest.raises(UserError, match=message) as error:
        action(*words)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("name", ["dict.txt", "encoder.json", "model.pt"])
def test_a_missing_file(folder, name):
    (folder / name).unlink()
    assert str(folder) in refused(load_weights, folder, message=re.escape(name))


def changed(**values):
    return lambda state: state | {name.replace("__", "."): value for name, value in values.items()}


@pytest.mark.parametrize(
    ("change", "settings", "message"),
    [
        (dict, {"encoder_layers": 4}, r"lacks .*layers\.3.*, unlike a RoBERTa with 4 layers"),
        (dict, {"encoder_layers": 2}, r"has .*layers\.2.*, unlike a RoBERTa with 2 layers"),
        (dict, {"encoder_layers": 10**12}, "too few parameters for 1000000000000 layers"),
        (dict, {"encoder_embed_dim": 20}, r"has the shape .*, by the model's settings it is"),
        (dict, {"max_positions": 32}, r"embed_positions.* has the shape \(32, 16\), .* it is \(34, 16\)"),
        (dict, {"encoder_ffn_embed_dim": None}, r"the settings in model\.pt: ffn_dim: must be a whole number"),
        (dict, {"encoder_attention_heads": 3}, "embed_dim 16 is not a multiple of heads 3"),
        (changed(encoder__sentence_encoder__layer_norm__weight=torch.ones(16)), {}, r"has .*\.layer_norm\.weight"),
        (lambda state: state | {"encoder.lm_head.weight": state["encoder.lm_head.weight"] + 1}, {}, "not tied"),
        (lambda state: {k: v for k, v in state.items() if "lm_head.bias" not in k}, {}, r"lacks encoder\.lm_head\.bias"),
    ],
)  # fmt: skip
def test_another_architecture(folder, change, settings, message):
    save(folder, change, **settings)
    assert refused(load_weights, folder, message=message).startswith(f"{folder}: ")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            lambda lines: lines[:-1],
            r"dict.txt has \d+ symbols with the special ones, the model \d+ embeddings",
        ),
        (lambda lines: [*lines, "madeupword0000 0"], "both must be of one vocabulary"),
        (lambda lines: ["the 7", *lines[1:]], "dict.txt has 'the', which is no id of encoder.json"),
        (lambda lines: ["9999 7", *lines[1:]], "'9999', which is no id of encoder.json"),
        (lambda lines: ["13", *lines[1:]], "not a fairseq dictionary"),
        (lambda lines: [lines[1], *lines[1:]], "not a fairseq dictionary"),
    ],
)
def test_a_dictionary_of_another_vocabulary(folder, lines, message):
    write_lines(folder / "dict.txt", lines(list(read_lines(folder / "dict.txt"))))
    refused(load_weights, folder, message=message)


@pytest.mark.parametrize("part", [0, 0.3, 0.9])
def test_a_cut_checkpoint(folder, part):
    whole = (folder / "model.pt").read_bytes()
    (folder / "model.pt").write_bytes(whole[: int(part * len(whole))])
    refused(load_weights, folder, message="damaged checkpoint .*; make the weights again")


@pytest.mark.parametrize("saved", [{"weights": 1}, [1], {"model": 3}, {"model": {}}])
def test_a_checkpoint_of_something_else(folder, saved):
    torch.save(saved, folder / "model.pt")
    refused(load_weights, folder, message="damaged checkpoint|holds no model|the settings in model.pt")


class Evil:
    def __reduce__(self):
        return print, ("run",)


def test_code_in_a_checkpoint_is_not_run(folder, capsys):
    save(folder, evil=Evil())
    refused(load_weights, folder, message="damaged checkpoint")
    assert "run" not in capsys.readouterr().out


def test_nothing_is_saved_of_another_shape(original, vocabulary, tmp_path):
    shape = RobertaShape(layers=2, embed_dim=16, ffn_dim=24, heads=4, max_positions=28)
    refused(save_weights, tmp_path / "w", original.state_dict(), shape, vocabulary, message="embed_positions")
    shutil.copytree(vocabulary, tmp_path / "other")
    write_lines(tmp_path / "other/dict.txt", list(read_lines(vocabulary / "dict.txt"))[3:])
    refused(
        save_weights,
        tmp_path / "w",
        original.state_dict(),
        SHAPE,
        tmp_path / "other",
        message="one vocabulary",
    )
    (tmp_path / "other/vocab.bpe").unlink()
    shutil.copy(vocabulary / "dict.txt", tmp_path / "other")
    with pytest.raises(FileNotFoundError, match=r"other/vocab\.bpe"):
        save_weights(tmp_path / "w", original.state_dict(), SHAPE, tmp_path / "other")
    assert not (tmp_path / "w").exists()
