import os
import shutil
import stat

import pytest

from synmask.pipeline.errors import UserError, machine_fault
from synmask.pipeline.text import segment
from synmask.pipeline.text.tokenise import tokenise

needs_juman = pytest.mark.skipif(shutil.which("juman") is None, reason="needs Juman (docs/corpora.md)")


@needs_juman
def test_juman_splits_words_and_keeps_lines(monkeypatch):
    monkeypatch.setattr(segment, "JUMAN_LINES", 2)
    lines = ["吾輩は猫である。", "", "EOS", "@ |x| # \\ *", "全角　空白と abc 1,234.5"] * 3
    expected = ["吾輩 は 猫 である 。", "", "EOS", "@ ｜x｜ # \\ *", "全 角 空白 と abc 1,234.5"] * 3
    assert list(tokenise(lines, "ja", tokeniser="juman", threads=3)) == expected


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Puts a shell script in the place of a program."""

    def put(name, script):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")

    return put


def refused(words):
    with pytest.raises(UserError) as error:
        list(words)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_juman_that_is_not_there_or_does_not_work(program, monkeypatch):
    program("juman", "cat > /dev/null; echo EOS")  # as Debian 12's, whose table of connections is empty
    output = refused(segment.juman(["猫"]))
    assert "juman: lost text of '猫'" in output
    assert "docs/corpora.md" in output
    program("juman", "cat > /dev/null")
    assert "gave 0 lines for 1" in refused(segment.juman(["猫"]))
    program("juman", "cat > /dev/null; echo 'not found <.jumanrc>' >&2; exit 1")
    assert "stopped with code 1: not found <.jumanrc>" in refused(segment.juman(["猫"]))
    monkeypatch.setenv("PATH", "/nowhere")
    assert "juman: no such program; install Juman 7.0 as docs/corpora.md says" in refused(
        segment.juman(["猫"])
    )


@pytest.mark.xdist_group("corenlp")
def test_corenlp_after_moses(corenlp_jars):
    english = [
        "It's John's, isn't it?He said:\"Go!\" [x] well-known U.S. firms & 5/6 km",
        "",
        "Q&A 1990's (3,000.50)...",
    ]
    assert list(tokenise(english, "en", tokeniser="corenlp", jars=corenlp_jars)) == [
        "It 's John 's , isn ' t it ? He said : \" Go ! \" [ x ] well-known U. S. firms & 5 / 6 km",
        "",
        "Q & A 1990 's ( 3,000.50 ) ...",
    ]
    german = ['Das ist z.B. gut.Im 3. Jahr, "ja" – Ost-West-Konflikt.', "zwei"]
    assert list(tokenise(german, "de", tokeniser="corenlp", lowercase=True, jars=corenlp_jars)) == [
        'das ist z. b. gut . im 3 . jahr , " ja " – ost-west-konflikt .',
        "zwei",
    ]


def test_java_faults_are_one_line(program, tmp_path, monkeypatch):
    jar = tmp_path / "some.jar"
    assert "PTBTokenizer: the jars: no such file; give CoreNLP's jars with --jars" in refused(
        segment.penn_tokens(["a"], [])
    )
    assert "some.jar: no such file" in refused(segment.penn_tokens(["a"], [jar]))
    jar.write_text("not a jar")
    output = refused(segment.penn_tokens(["a", "", "b"], [jar]))
    assert "PTBTokenizer: stopped with code 1 after 0 of 2 lines: Error" in output
    program("java", "echo one; echo java.lang.OutOfMemoryError: heap >&2")
    assert "after 1 of 2 lines: java.lang.OutOfMemoryError: heap" in refused(
        segment.stanford(["a", "b"], [jar])
    )
    program("java", "echo one; echo two; echo three")
    assert "after 3 of 2 lines" in refused(segment.penn_tokens(["a", "b"], [jar]))
    monkeypatch.setenv("PATH", "/nowhere")
    assert "PTBTokenizer: no Java; install one" in refused(segment.penn_tokens(["a"], [jar]))


def test_signs_with_a_meaning_become_full_width_after_segmenting(program, tmp_path):
    seen = tmp_path / "seen"
    spaced = r"sed 's/\(.\)/\1 /g'"
    program("java", f'for file; do :; done; cat "$file" >> {seen}; {spaced} "$file"')
    jars = [tmp_path / "corenlp.jar", tmp_path / "models.jar"]
    for jar in jars:
        jar.touch()
    assert list(tokenise(["是[1|2]"], "zh", tokeniser="stanford", jars=jars)) == ["是 ［ 1 ｜ 2 ］"]
    words = r"printf '%s 読み\n' 値 '[' '|' ']'; echo EOS"
    program("juman", f"cat >> {seen}; {words}")
    assert list(tokenise(["値[|]"], "ja", tokeniser="juman")) == ["値 ［ ｜ ］"]
    assert seen.read_text() == "是[1|2]\n値[|]\n"


def test_stanford_is_asked_for_its_chinese_treebank_model(program, tmp_path):
    jars = [tmp_path / "a.jar", tmp_path / "b.jar"]
    for jar in jars:
        jar.touch()
    program("java", f'echo "$@" > {tmp_path}/words; for file; do :; done; sed "s/./& /g" "$file"')
    assert list(segment.stanford(["我爱", "", "北京"], jars)) == ["我 爱", "", "北 京"]
    words = (tmp_path / "words").read_text()
    assert f"-cp {jars[0]}:{jars[1]} edu.stanford.nlp.ie.crf.CRFClassifier" in words
    assert "-loadClassifier edu/stanford/nlp/models/segmenter/chinese/ctb.gz" in words


def test_a_full_disk_names_the_file(tmp_path, full_disk):
    (tmp_path / "some.jar").touch()
    full_disk()
    with pytest.raises(OSError, match="too large") as error:
        list(segment.penn_tokens(["word " * 50_000], [tmp_path / "some.jar"]))
    assert machine_fault(error.value).endswith("/text: File too large")
