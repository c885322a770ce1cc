"""The benchmarks that test_gpu_report.py does not run: each prints its rows, in a small form."""

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


def test_launches():
    transformer, grammar, induction = rows("launches.py", "--corpora", "iwslt14")
    assert [row[1] for row in (transformer, grammar)] == ["transformer", "grammar"]
    more = int(grammar[4]) - int(transformer[4])
    assert 0 < int(induction[4]) <= more < int(transformer[4]) / 2
