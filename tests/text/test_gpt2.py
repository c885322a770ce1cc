import json
import random
import shutil
import subprocess
import sys
from collections import Counter

import pytest

from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_lines, write_json, write_lines
from synmask.pipeline.text.gpt2 import encode_batch, learn_byte_bpe, read_encoder, read_merges

NASTY = [
    "",
    " ",
    "a",
    " leading, trailing  ",
    "two  spaces,   three",
    "tab\there\t\t, \x0b\x0c \x1c \x85 \u2028 end",
    "He said \"yes\"; it's they're WE'LL don't I'd 's",
    "“Quotes” — it’s 3.50€, 1,000km², No.7",
    "Das Mädchen fährt über die Straße. čeština, Ελληνικά, русский, 中文字符, עברית",
    "emoji 🙂🙂 👩‍👩‍👧 e\u0301 \ufeff \u00a0nbsp \u00ad",
    "<s> <mask> </s> <|endoftext|> <unk>",
    "\U0010ffff\u0000\x7f",
]
SENTENCES = ["the dog chases the cat", "the cats that see the dog sleep", "it's the dogs' cat, isn't it?"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bpe")
    assert learn_byte_bpe(SENTENCES * 3 + NASTY, 50, folder) == 50
    return folder


def files(folder):
    return folder / "encoder.json", folder / "vocab.bpe"


def test_the_same_ids_as_transformers(folder):
    from transformers import GPT2Tokenizer

    encoder, merges = files(folder)
    vocabulary = read_encoder(encoder) | {"<|endoftext|>": 999}
    theirs = GPT2Tokenizer(vocab=vocabulary, merges=read_merges(merges), add_prefix_space=False)
    lines = [line for line in NASTY if "<|endoftext|>" not in line] + SENTENCES
    assert encode_batch(lines, folder) == [theirs(line)["input_ids"] for line in lines]


def test_every_text_can_be_decoded(folder):
    """Bytes ↔ characters as GPT-2's encoder.py defines them; then the merged tokens are the text again."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in kept]
    byte_of = {chr(byte): byte for byte in kept} | {chr(256 + n): byte for n, byte in enumerate(others)}
    token_of = {number: token for token, number in read_encoder(folder / "encoder.json").items()}
    for line, ids in zip(NASTY, encode_batch(NASTY, folder), strict=True):
        assert bytes(byte_of[c] for number in ids for c in token_of[number]).decode() == line


def test_the_most_frequent_pair_is_merged_first(tmp_path):
    learn_byte_bpe(["abab cab"], 2, tmp_path)
    assert list(read_lines(tmp_path / "vocab.bpe")) == ["#version: 0.2", "a b"]  # others occur once
    assert set(read_encoder(tmp_path / "encoder.json").values()) == set(range(257))


def test_fewer_merges_than_asked_for_are_said(tmp_path, capsys):
    assert learn_byte_bpe(["abab"], 9, tmp_path) == 1
    assert "learned 1 merges, not 9" in capsys.readouterr().err


def test_the_dictionary_counts_the_text(folder):
    lines = SENTENCES * 3 + NASTY
    counts = Counter(number for ids in encode_batch(lines, folder) for number in ids)
    rows = [line.split(" ") for line in read_lines(folder / "dict.txt")]
    assert sorted(int(number) for number, _ in rows) == list(range(256 + 50))
    assert {int(number): int(count) for number, count in rows} == {n: counts[n] for n in range(306)}
    assert [row[::-1] for row in rows] == sorted(
        (row[::-1] for row in rows), key=lambda r: (-int(r[0]), r[1])
    )


@pytest.mark.parametrize("parallel", ["false", "true"])
def test_the_same_bytes_in_another_process(folder, tmp_path, parallel):
    draw = random.Random(3)
    lines = ["".join(draw.choices("abcd e", k=draw.randint(0, 30))) for _ in range(3000)]
    write_lines(tmp_path / "text", lines)
    command = "import sys; from synmask.pipeline.text.gpt2 import learn_byte_bpe; from synmask.pipeline.files import read_lines; "
    command += "learn_byte_bpe(list(read_lines(sys.argv[1])), 200, sys.argv[2])"
    environment = {"TOKENIZERS_PARALLELISM": parallel, "PYTHONPATH": ":".join(sys.path)}
    subprocess.run(
        [sys.executable, "-c", command, tmp_path / "text", tmp_path / "a"], check=True, env=environment
    )
    learn_byte_bpe(lines, 200, tmp_path / "b")
    for name in ("encoder.json", "vocab.bpe", "dict.txt"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_batches_keep_their_order(folder, monkeypatch):
    whole = encode_batch(NASTY, folder)
    monkeypatch.setattr("synmask.pipeline.text.gpt2.BATCH", 5)
    assert encode_batch(NASTY, folder) == whole


def without_a_byte(encoder):
    del encoder["a"]
    return encoder


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: [1, 2], "not an encoder.json"),
        (lambda encoder: encoder | {"a": "1"}, "not an encoder.json"),
        (without_a_byte, "no token 'a'"),
        (lambda encoder: {t: n for t, n in encoder.items() if n < 300}, "do not belong together"),
    ],
)
def test_a_wrong_encoder(folder, tmp_path, change, message):
    encoder, merges = files(folder)
    shutil.copy(merges, tmp_path)
    write_json(tmp_path / "encoder.json", change(json.loads(encoder.read_text())))
    with pytest.raises(UserError, match=message) as error:
        encode_batch(["a"], tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("line", ["a b c", "a", "a  b", ""])
def test_a_wrong_merge(folder, tmp_path, line):
    shutil.copy(folder / "encoder.json", tmp_path)
    write_lines(tmp_path / "vocab.bpe", ["#version: 0.2", "a b", line])
    with pytest.raises(UserError, match=r"vocab\.bpe, line 3: not two tokens"):
        encode_batch(["a"], tmp_path)


def test_nothing_to_learn(tmp_path):
    with pytest.raises(UserError, match="no text to learn"):
        learn_byte_bpe(["", ""], 5, tmp_path)
