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
from synmask.pipeline.text import parallel
from synmask.pipeline.text.bpe import apply_file, learn_joint_bpe
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
        apply_file(input=text, output=tmp_path / "split", codes=codes)
        expected = Counter((tmp_path / "split").read_text().replace("\n", " ").split(" "))
        del expected[""]
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


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("threshold", [None, 30])
def test_apply_equals_the_library(texts, tmp_path, codes, monkeypatch, threads, threshold):
    monkeypatch.setattr(parallel, "CHUNK_LINES", 50)
    options = {}
    vocabulary = None
    if threshold:
        apply_file(input=texts[0], output=tmp_path / "split", codes=tmp_path / "codes")
        tokens = (tmp_path / "split").read_text().split()
        write_lines(
            tmp_path / "vocabulary", [f"{token} {tokens.count(token)}" for token in sorted(set(tokens))]
        )
        options = {"vocabulary": tmp_path / "vocabulary", "vocabulary_threshold": threshold}
        vocabulary = read_vocabulary(read_lines(tmp_path / "vocabulary"), threshold)
    apply_file(input=texts[1], output=tmp_path / "out", codes=tmp_path / "codes", threads=threads, **options)
    with open(tmp_path / "codes", encoding="utf-8") as codes:
        bpe = BPE(codes, vocab=vocabulary)
    expected = [bpe.process_line(line) for line in read_lines(texts[1])]
    assert list(read_lines(tmp_path / "out")) == expected
    if threshold:
        codes = tmp_path / "codes"
        apply_file(
            input=texts[1],
            output=tmp_path / "all",
            codes=codes,
            vocabulary=tmp_path / "vocabulary",
            vocabulary_threshold=1,
        )
        assert (tmp_path / "all").read_bytes() != (tmp_path / "out").read_bytes()


def test_apply_by_example(tmp_path):
    write_lines(tmp_path / "codes", ["#version: 0.2", "l o", "lo w</w>", "n e"])
    write_lines(tmp_path / "in", ["low new lows", "", "  x low "])
    apply_file(input=tmp_path / "in", output=tmp_path / "out", codes=tmp_path / "codes")
    lines = list(read_lines(tmp_path / "out"))
    assert lines == ["low ne@@ w lo@@ w@@ s", "", "x low"]
    assert [join_subwords(line) for line in lines] == ["low new lows", "", "x low"]


def test_join_subwords():
    assert join_subwords("un@@ glaub@@ lich gut") == "unglaublich gut"
    assert join_subwords("gut un@@") == "gut un"
    assert join_subwords("a@@b c") == "a@@b c"
    assert join_subwords("") == ""


@pytest.mark.parametrize("text", ["", "#version: 0.2\n", "#version: 0.2\na b c\n", "#version: x\na b\n"])
def test_not_codes(tmp_path, capfd, text):
    (tmp_path / "codes").write_text(text)
    write_lines(tmp_path / "in", ["a"])
    with pytest.raises(UserError, match="codes: not a list of BPE merges") as error:
        apply_file(input=tmp_path / "in", output=tmp_path / "out", codes=tmp_path / "codes")
    assert "\n" not in str(error.value)
    assert capfd.readouterr() == ("", "")


def test_not_a_vocabulary(tmp_path):
    write_lines(tmp_path / "codes", ["#version: 0.2", "a b"])
    write_lines(tmp_path / "in", ["a"])
    with pytest.raises(UserError, match="in: not a BPE vocabulary"):
        apply_file(
            input=tmp_path / "in",
            output=tmp_path / "out",
            codes=tmp_path / "codes",
            vocabulary=tmp_path / "in",
            vocabulary_threshold=1,
        )
    with pytest.raises(UserError, match="nowhere: no such file"):
        apply_file(input=tmp_path / "in", output=tmp_path / "out", codes=tmp_path / "nowhere")
