"""The benchmarks that test_gpu_report.py does not run: each prints its rows, in a small form."""

import gzip
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("demo")
FOLDER = Path(__file__).parents[2] / "benchmarks"


def rows(script, *words):
    """The rows of the tables that a benchmark prints, as cells; it has to succeed."""
    done = subprocess.run(
        [sys.executable, FOLDER / script, *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")][1:]


@pytest.fixture
def results(built):
    return built.folder / "results"


def test_loops(results):
    data = results / "demo/de-en/bin"
    once = ("--epochs", 1, "--turns", 1, "--precisions", "fp32")  # fairseq's bf16 is slow on many processors
    found = rows("loops.py", "--data", data, *once, "--systems", "transformer")
    assert [row[:2] for row in found] == [["fairseq-train", "fp32"], ["transformer", "fp32"]]
    stock, ours = (float(row[5]) for row in found)
    assert ours == pytest.approx(stock, rel=0.03)  # the same training but for what is drawn


def test_scale(results, tmp_path):
    for language in ("de", "en"):
        for split, name in (("train", "train"), ("valid", "val")):
            text = (results / f"demo/raw/{split}.{language}").read_bytes()
            (tmp_path / f"{name}.{language}.gz").write_bytes(gzip.compress(text))
    found = rows("scale.py", "--mirror", tmp_path, "--pairs", 300, "--corpus", "demo", "--updates", 1)
    assert [row[1] for row in found] == [
        "tokenise", "clean", "learn BPE", "apply BPE", "binarise", "start", "an update", "decode",
    ]  # fmt: skip
    assert {row[0] for row in found} == {"300"}
    assert float(found[-1][2]) > 0


def test_launches():
    transformer, grammar, induction = rows("launches.py", "--corpora", "iwslt14")
    assert [row[1] for row in (transformer, grammar)] == ["transformer", "grammar"]
    more = int(grammar[4]) - int(transformer[4])
    assert 0 < int(induction[4]) <= more < int(transformer[4]) / 2


def test_reporting(results):
    two, twenty = rows("reporting.py", "--results", results, "--runs", 2, 20)
    assert (two[0], twenty[0]) == ("2", "20")
    assert float(twenty[3]) > float(two[3])  # the page's size: each run is on it


def test_planning():
    one, three = rows("planning.py", "--seeds", 1, 3)
    assert int(three[0]) > int(one[0]) + 20  # each seed of a system has jobs of its own
    assert float(one[5]) > 0


def test_startup():
    bare, torch, settings = rows("startup.py", "--verbs", "settings", "--turns", 1)
    assert [row[3] for row in (bare, torch, settings)] == ["no", "yes", "no"]
    assert 0 < float(bare[1]) < float(settings[1]) < float(torch[1])
    assert "synmask" in settings[4]


def test_layers():
    found = rows("layers.py", "--turns", 1)
    assert [row[0] for row in found] == 8 * ["linear"] + 5 * ["attention"]
    assert all(float(row[2]) > 0 < float(row[4]) for row in found)


def test_layers_compares_what_computes_the_same(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    layers = importlib.import_module("layers")
    for contestants in (layers.linear_layers(24, 16, 40), layers.attentions(3, 2, 5, 8)):
        theirs, ours = (step() for step in contestants)
        for expected, gradient in zip(theirs, ours, strict=True):
            assert float((gradient - expected).abs().max()) < 1e-5 * float(expected.abs().max())


def test_parsing():
    done = subprocess.run(
        [sys.executable, FOLDER / "parsing.py", "--seeds", "1", "--sentences", "20"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "times faster" in done.stdout


def test_preprocessing(results, tmp_path):
    files = [tmp_path / f"train.{language}.gz" for language in ("de", "en")]
    for path in files:
        path.write_bytes(gzip.compress((results / "demo/raw" / path.stem).read_bytes()))
    stages = [row[0] for row in rows("preprocessing.py", "--text", *files, "--copies", 1)]
    assert stages[0] == "tokenise"
    assert stages[-1] == "binarise"
