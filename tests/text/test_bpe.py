import contextlib
import hashlib
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
from synmask.pipeline.text.bpe import apply_file, learn
from synmask.pipeline.text.detokenise import join_subwords


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


def vocabularies(folder):
    return [folder / "vocabulary.de", folder / "vocabulary.en"]


def library_codes(texts, merges):
    """The merges that `subword-nmt learn-bpe` learns from the files, one after the other."""
    codes = io.StringIO()
    with contextlib.redirect_stderr(io.StringIO()):
        learn_bpe(io.StringIO("".join(path.read_text() for path in texts)), codes, merges)
    return codes.getvalue()


def test_learn_equals_the_library(texts, tmp_path, capfd):
    learn(inputs=texts, codes=tmp_path / "codes", vocabularies=vocabularies(tmp_path), merges=150)
    assert (tmp_path / "codes").read_text() == library_codes(texts, 150)
    assert capfd.readouterr() == ("", "")
    learn(inputs=texts[::-1], codes=tmp_path / "reversed", vocabularies=vocabularies(tmp_path), merges=150)
    assert (tmp_path / "codes").read_bytes() == (tmp_path / "reversed").read_bytes()


def test_vocabularies_equal_the_library(texts, tmp_path):
    learn(inputs=texts, codes=tmp_path / "codes", vocabularies=vocabularies(tmp_path), merges=150)
    for text, vocabulary in zip(texts, vocabularies(tmp_path), strict=True):
        apply_file(input=text, output=tmp_path / "split", codes=tmp_path / "codes")
        expected = Counter((tmp_path / "split").read_text().replace("\n", " ").split(" "))
        del expected[""]
        found = [line.rsplit(" ", 1) for line in read_lines(vocabulary)]
        assert {piece: int(count) for piece, count in found} == expected
        assert [int(count) for _, count in found] == sorted(expected.values(), reverse=True)


def test_learn_stops_when_no_pair_occurs_twice(texts, tmp_path, capsys):
    learn(inputs=texts, codes=tmp_path / "codes", vocabularies=vocabularies(tmp_path), merges=100_000)
    count = len(list(read_lines(tmp_path / "codes"))) - 1
    assert count < 100_000
    assert (tmp_path / "codes").read_text() == library_codes(texts, 100_000)
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"learned {count} merges, not 100000" in error


def test_learn_is_the_same_in_every_process(texts, tmp_path):
    program = (
        "import sys; from synmask.pipeline.text.bpe import learn; codes, *texts = sys.argv[1:]; "
        "learn(inputs=texts, codes=codes, vocabularies=[f'{codes}.{i}' for i, _ in enumerate(texts)], merges=100)"
    )
    sums = set()
    for seed in "012":
        codes = tmp_path / f"codes{seed}"
        environment = os.environ | {"PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", program, codes, *texts], check=True, env=environment)
        sums.add(hashlib.sha256(codes.read_bytes()).hexdigest())
    assert len(sums) == 1


@pytest.mark.parametrize("lines", [[], ["", " "], ["a b c"], ["ab cd"]])
def test_nothing_to_learn(tmp_path, lines):
    write_lines(tmp_path / "in", lines)
    with pytest.raises(UserError, match="in: no BPE merge to learn") as error:
        learn(
            inputs=[tmp_path / "in"],
            codes=tmp_path / "codes",
            vocabularies=[tmp_path / "vocabulary"],
            merges=10,
        )
    assert "\n" not in str(error.value)
    assert not (tmp_path / "codes").exists()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("threshold", [None, 30])
def test_apply_equals_the_library(texts, tmp_path, monkeypatch, threads, threshold):
    monkeypatch.setattr(parallel, "CHUNK", 50)
    learn(inputs=texts, codes=tmp_path / "codes", vocabularies=vocabularies(tmp_path), merges=150)
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


def test_a_sentence_that_is_too_long_is_named(tmp_path):
    write_lines(tmp_path / "codes", ["#version: 0.2", "l o"])
    write_lines(tmp_path / "in", ["a b c", "lo w lol"])
    apply_file(input=tmp_path / "in", output=tmp_path / "out", codes=tmp_path / "codes", most=5)
    with pytest.raises(UserError) as error:
        apply_file(input=tmp_path / "in", output=tmp_path / "other", codes=tmp_path / "codes", most=4)
    what = "5 sub-words, a model reads 4; split the sentence in the corpus' file"
    assert str(error.value) == f"{tmp_path}/in, line 2: {what}"
    assert not (tmp_path / "other").exists()
