import subprocess
import sys
from pathlib import Path

import pytest

from synmask.cli import main

ROOT = Path(__file__).parents[1]


def synmask(*words, **how):
    command = [sys.executable, "-m", "synmask.cli", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, **how)


def test_help_names_and_explains_every_verb():
    text = synmask("--help").stdout
    verbs = [line.split()[0] for line in text.splitlines() if line.startswith("    ") and line[4] != " "]
    assert {
        "demo-corpus",
        "train",
        "average",
        "decode",
        "translate",
        "parseval",
        "significance",
        "table",
    } <= set(verbs)
    for verb in verbs:
        done = synmask(verb, "--help")
        assert done.returncode == 0
        assert len(done.stdout) > 150


def test_every_rule_calls_a_verb_that_exists():
    import re

    verbs = synmask("--help").stdout
    for path in ROOT.glob("workflow/rules/*.smk"):
        for verb in re.findall(r'"synmask ([a-z-]+) ', path.read_text()):
            assert f"    {verb} " in verbs or f"    {verb}\n" in verbs, verb


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["text", "--name", "x", "--source-in", "a", "--target-in", "b", "--source-out", "c", "--target-out", "d"], "no such file"),
        (["settings", "--corpus", "demoo", "--direction", "de-en", "--system", "grammar"], "no 'demoo' among the corpora"),
        (["average", "--run", "x", "--last", "2", "--data", "y", "--codes", "nowhere", "--vocabulary", "z",
          "--vocabulary-threshold", "0", "--source", "de", "--target", "en", "--text", "{}", "--settings", "{}",
          "--output", "o"], "nowhere: no such file"),
        (["tree", "--system", "gramar", "ja"], "no 'gramar' among the systems: transformer"),
        (["tree", "--system", "grammar", "--corpus", "dem", "ja"], "no 'dem' among the corpora: demo"),
        (["tree", "--system", "grammar", "--seed", "99", "ja"], "demo/de-en/grammar/seed99/average.pt: no such file; make it"),
        (["tree", "--system", "grammar", "--direction", "de-fr", "ja"], "no experiment with this corpus and direction"),
        (["tree", "--system", "grammar"], "give either a sentence"),
        (["tree", "ja"], "give either --system"),
    ],
)  # fmt: skip
def test_a_users_error_is_one_line_and_exit_code_1(words, said):
    done = synmask(*words)
    assert done.returncode == 1
    assert done.stderr.startswith(f"synmask {words[0]}: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_place_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "in").write_text("a\n")
    (tmp_path / "file").write_text("")
    words = ["tokenise", "--input", tmp_path / "in", "--language", "en", "--settings", "{}"]
    done = synmask(*words, "--output", tmp_path / "file/out")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_settings_are_the_workflows():
    from synmask.config import load, read_yaml

    expected = load(read_yaml(ROOT / "config.yaml")).run_settings("demo", "de-en", "grammar")
    done = synmask("settings", "--corpus", "demo", "--direction", "de-en", "--system", "grammar")
    assert done.stdout == expected + "\n"


def test_verbs_on_text_start_without_torch():
    code = (
        "import sys, synmask.cli, synmask.text.tokenise, synmask.text.bpe, synmask.corpora.demo, "
        "synmask.reporting.tables, synmask.evaluation.parseval; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tree-page", "--gold", "g", "--trees", "a", "b", "--labels", "x", "x", "--title", "t", "--output", "o"], "--labels x x: give each of --trees one"),
        (["tree-page", "--gold", "g", "--trees", "a", "--labels", "gold", "--title", "t", "--output", "o"], "--labels gold: give each of --trees one"),
        (["speed", "--models", "a", "b", "--labels", "x", "x", "--output", "o"], "--labels x x: give each of --models one"),
        (["curves", "--inputs", "a", "--runs", '[["a", 1]]', "--labels", '[["a", "x"], ["b", "x"]]', "--output", "o"], "two systems have one label"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)  # fmt: skip
def test_what_would_hide_another_is_refused(capsys, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code in (1, 2)
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
