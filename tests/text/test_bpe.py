import contextlib
import io
import os
import random
import subprocess
import sys
from collections import Counter

import pytest
from subword_nmt.apply_bpe import BPE, read_vocabulary
from subword_nmt.learn_bpe import learn_bpe

from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_lines, write_lines
from synmask.pipeline.text.bpe import BpeSplitter, learn_joint_bpe, read_frequent
from synmask.pipeline.text.notation import join_subwords


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Two files of made-up words (many as frequent as each other), with empty lines and double spaces."""
    rng = random.Random(0)
    folder = tmp_path_factory.mktemp("texts")
    for name, letters in [("de", "aeinrstäß中"), ("en", "aeinrsth'")]:
        words = ["".join(rng.choices(letters, k=rng.randint(1, 9))) for _ in range(200)]
        lines = [" ".join(rng.choices(words, k=rng.randint(0, 12))) for _ in range(300)]
        lines[7] = f"{words[0]}  {words[1]}\u00a0{words[2]}"
        write_lines(folder / name, lines)
    return [folder / "de", folder / "en"]


@pytest.fixture
def codes(texts, tmp_path):
    """A file of 150 merges of both texts."""
    write_lines(tmp_path / "codes", learn_joint_bpe(texts, 150)[0])
    return tmp_path / "codes"


def library_codes(texts, merges):
    """The merges that `subword-nmt learn-bpe` learns from the files, one after the other."""
    codes = io.StringIO()
    with contextlib.redirect_stderr(io.StringIO()):
        learn_bpe(io.StringIO("".join(path.read_text() for path in texts)), codes, merges)
    return codes.getvalue()


def test_learn_equals_the_library(texts, capfd):
    codes, _ = learn_joint_bpe(texts, 150)
    assert "\n".join([*codes, ""]) == library_codes(texts, 150)
    assert capfd.readouterr() == ("", "")
    assert learn_joint_bpe(texts[::-1], 150)[0] == codes


def test_vocabularies_equal_the_library(texts, tmp_path, codes):
    for text, vocabulary in zip(texts, learn_joint_bpe(texts, 150)[1], strict=True):
        split = map(BpeSplitter(codes.read_text()), read_lines(text))
        expected = Counter(piece for line in split for piece in line.split(" ") if piece)
        rows = [line.rsplit(" ", 1) for line in vocabulary]
        assert {piece: int(count) for piece, count in rows} == expected
        assert [int(count) for _, count in rows] == sorted(expected.values(), reverse=True)


def test_learn_stops_when_no_pair_occurs_twice(texts, capsys):
    codes, _ = learn_joint_bpe(texts, 100_000)
    count = len(codes) - 1
    assert count < 100_000
    assert "\n".join([*codes, ""]) == library_codes(texts, 100_000)
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"learned {count} merges, not 100000" in error


def test_learn_is_the_same_in_every_process(texts):
    program = "import sys; from synmask.pipeline.text.bpe import learn_joint_bpe; print(learn_joint_bpe(sys.argv[1:], 100))"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program, *texts],
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
        ).stdout
        for seed in "012"
    }
    assert len(outputs) == 1


@pytest.mark.parametrize("lines", [[], ["", " "], ["a b c"], ["ab cd"]])
def test_nothing_to_learn(tmp_path, lines):
    write_lines(tmp_path / "in", lines)
    with pytest.raises(UserError, match="in: no BPE merge to learn") as error:
        learn_joint_bpe([tmp_path / "in"], 10)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("threshold", [None, 1, 30])
def test_split_equals_the_library(texts, tmp_path, codes, threshold):
    vocabulary, whole = None, BpeSplitter(codes.read_text())
    if threshold:
        tokens = " ".join(map(whole, read_lines(texts[0]))).split()
        write_lines(
            tmp_path / "vocabulary", [f"{token} {tokens.count(token)}" for token in sorted(set(tokens))]
        )
        vocabulary = read_vocabulary(read_lines(tmp_path / "vocabulary"), threshold)
        assert read_frequent(tmp_path / "vocabulary", threshold) == vocabulary
    lines = [*map(BpeSplitter(codes.read_text(), vocabulary), read_lines(texts[1]))]
    with open(codes, encoding="utf-8") as handle:
        bpe = BPE(handle, vocab=vocabulary)
    assert lines == [bpe.process_line(line) for line in read_lines(texts[1])]
    if threshold == 30:
        assert lines != [*map(whole, read_lines(texts[1]))]


def test_split_by_example():
    splitter = BpeSplitter("\n".join(["#version: 0.2", "l o", "lo w</w>", "n e"]))
    lines = [*map(splitter, ["low new lows", "", "  x low "])]
    assert lines == ["low ne@@ w lo@@ w@@ s", "", "x low"]
    assert [join_subwords(line) for line in lines] == ["low new lows", "", "x low"]


def test_join_subwords():
    assert join_subwords("un@@ glaub@@ lich gut") == "unglaublich gut"
    assert join_subwords("gut un@@") == "gut un"
    assert join_subwords("a@@b c") == "a@@b c"
    assert join_subwords("") == ""


@pytest.mark.parametrize("text", ["", "#version: 0.2\n", "#version: 0.2\na b c\n", "#version: x\na b\n"])
def test_not_codes(capfd, text):
    with pytest.raises(ValueError, match=r"not a list of BPE merges|invalid literal for int"):
        BpeSplitter(text.removesuffix("\n"))
    assert capfd.readouterr() == ("", "")


def test_not_a_vocabulary(tmp_path):
    write_lines(tmp_path / "in", ["a"])
    with pytest.raises(UserError, match="in: not a BPE vocabulary"):
        read_frequent(tmp_path / "in", 1)
