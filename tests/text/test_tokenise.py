import random
import re
import subprocess
import sys

import pytest
from sacremoses import MosesTokenizer

from synmask.files import UserError, read_lines, write_lines
from synmask.text import parallel
from synmask.text.tokenise import detokenise, tokenise_file

GERMAN = [
    "Das ist gut. Dann kam er z.B. mit dem Auto.",
    "Am 3. Mai, um 12.30 Uhr, zahlte Dr. Müller 1.234,56 € (brutto)!",
    "Er sagte: »Nein, danke...« & ging",
    "[Lärm] <b>x</b> | 'eins' \"zwei\"; a-b",
    "Siehe Nr. 5 und Nr. fünf. ende.",
    "",
    "   ",
    "Größe\u00a0und\u2028Maß",
]
ENGLISH = [
    "It's John's, isn't it? The '90s vs. the U.S. economy.",
    "He paid $3,000.50 to Mr. Smith, e.g. No. 7. then left",
    "",
    "So... what?",
]


@pytest.mark.parametrize(
    ("language", "lines"), [("de", GERMAN), ("en", ENGLISH), ("fr", ["L'eau d'ici. a.b. c"])]
)
@pytest.mark.parametrize("lowercase", [False, True])
def test_equals_sacremoses(tmp_path, language, lines, lowercase):
    rng = random.Random(0)
    pieces = re.split(
        "( )", "aäB z.B. 3 , . ... ' \" & | [ ] ( ) - Dr. Nr. x. y. ß £ 1,2 » ? ! : / @ # İ 中 é"
    )
    lines = lines + ["".join(rng.choices(pieces, k=25)) for _ in range(300)]
    write_lines(tmp_path / "in", lines)
    tokenise_file(tmp_path / "in", tmp_path / "out", language, lowercase=lowercase)
    moses = MosesTokenizer(language)
    expected = [moses.tokenize(line, return_str=True, escape=True) for line in lines]
    if lowercase:
        expected = [line.lower() for line in expected]
    assert list(read_lines(tmp_path / "out")) == expected


def test_escapes_but_does_not_normalise(tmp_path):
    write_lines(tmp_path / "in", ["„Das“ & 'so' [1]", "DON'T"])
    tokenise_file(tmp_path / "in", tmp_path / "out", "en", lowercase=True)
    assert list(read_lines(tmp_path / "out")) == [
        "„ das “ &amp; &apos; so &apos; &#91; 1 &#93;",
        "don &apos;t",
    ]


def test_windows_line_ends_and_empty_lines(tmp_path):
    (tmp_path / "in").write_bytes(b"\xef\xbb\xbfa.\r\n\r\n \nb\r\n")
    tokenise_file(tmp_path / "in", tmp_path / "out", "en")
    assert (tmp_path / "out").read_bytes() == b"a .\n\n\nb\n"


def test_order_with_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(parallel, "CHUNK", 7)
    lengths = random.Random(0).choices([1, 1, 1, 200], k=200)
    write_lines(tmp_path / "in", [f"{number}. " * length for number, length in enumerate(lengths)])
    tokenise_file(tmp_path / "in", tmp_path / "one", "de")
    tokenise_file(tmp_path / "in", tmp_path / "three", "de", threads=3)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "three").read_bytes()
    assert len(list(read_lines(tmp_path / "three"))) == 200


@pytest.mark.parametrize("threads", [1, 2])
def test_a_fault_in_the_input_leaves_nothing(tmp_path, monkeypatch, threads):
    monkeypatch.setattr(parallel, "CHUNK", 2)
    (tmp_path / "in").write_bytes(b"a\n" * 30 + b"\xff\n")
    with pytest.raises(UserError, match="line 31: not UTF-8"):
        tokenise_file(tmp_path / "in", tmp_path / "out", "en", threads=threads)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_lines_are_read_as_they_are_needed(monkeypatch):
    monkeypatch.setattr(parallel, "CHUNK", 5)
    lines = iter(["x"] * 1000)
    results = parallel.map_lines(str.upper, lines, 2)
    assert next(results) == "X"
    assert len(list(lines)) > 900
    results.close()


def test_detokenise(tmp_path):
    lines = [
        "Er sagt : &quot; gut &quot; &amp; geht .",
        "",
        "Don &apos;t stop , it &apos;s 5 % &#91; ok &#93;",
    ]
    assert list(detokenise(lines[:2], "de")) == ['Er sagt: "gut" & geht.', ""]
    assert list(detokenise(lines[2:], "en")) == ["Don't stop, it's 5% [ok]"]


def test_detokenise_undoes_tokenise(tmp_path):
    lines = ["A man isn't walking (slowly), is he?", 'Two "dogs" & a cat.']
    write_lines(tmp_path / "in", lines)
    tokenise_file(tmp_path / "in", tmp_path / "out", "en")
    assert list(detokenise(read_lines(tmp_path / "out"), "en")) == lines


def test_start_up_without_torch():
    modules = "synmask.text.tokenise, synmask.text.bpe, synmask.text.clean, synmask.corpora.download"
    command = f"import sys, {modules}; assert not {{'torch', 'fairseq'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", command], check=True)
