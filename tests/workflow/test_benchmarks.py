"""The benchmarks that test_gpu_report.py does not run: each prints its rows, in a small form."""

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


def test_launches():
    transformer, grammar, induction = rows("launches.py", "--corpora", "iwslt14")
    assert [row[1] for row in (transformer, grammar)] == ["transformer", "grammar"]
    difference = int(grammar[4]) - int(transformer[4])
    assert 0 < int(induction[4]) <= difference < int(transformer[4]) / 2


def test_the_page_says_which_rows_are_slower_than_stock(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    page = importlib.import_module("page")
    table = [
        "| system | parameters | s per step | of stock | operations | of stock |",
        "|---|---:|---:|---:|---:|---:|",
        "| stock fairseq | 8.09 M | 0.517 | 1.000 | 32 G | 1.000 |",
        "| transformer | 6.51 M | 0.441 | 0.853 | 32 G | 1.009 |",
        "| grammar | 8.82 M | 0.611 | 1.183 | 48 G | 1.478 |",
    ]
    assert [*page.beside_stock("training@AVX2", table)] == [
        "training@AVX2, transformer: 0.853 of stock fairseq's time",
        "training@AVX2, grammar: 1.183 of stock fairseq's time: slower than stock",
    ]
    assert not [
        *page.beside_stock("launches", ["| corpus | of the first |", "|---|---:|", "| demo | 1.00 |"])
    ]
    assert not [*page.beside_stock("machine", ["AMD EPYC, AVX2, 1 thread"])]


def test_the_page_has_each_table_for_both_kinds_of_processor(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    page = importlib.import_module("page")
    commands = {}
    for _, name, command, *_ in page.TABLE.findall(page.PAGE.read_text(encoding="utf-8")):
        table, _, kind = name.partition("@")
        commands.setdefault(table, {})[kind] = command
    of_kinds = {table: each for table, each in commands.items() if "" not in each}
    assert {"training", "training-demo", "memory", "decoding"} <= of_kinds.keys()
    for each in of_kinds.values():
        assert each.keys() == {"AVX-512", "AVX2"}
        assert len({*each.values()}) == 1
