"""The benchmarks that test_gpu_report.py does not run: each prints its rows, in a small form."""

import importlib
import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("demo")
FOLDER = Path(__file__).parents[2] / "benchmarks"


def rows(warm, script, *words):
    """The rows of the tables that a benchmark prints, as cells; it has to succeed. It and what it starts start warm."""
    command, environment = [warm.python, FOLDER / script], os.environ | {"PYTHON_OF_JOBS": str(warm.python)}
    command += map(str, words)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")][1:]


@pytest.fixture
def results(built):
    return built.folder / "results"


def test_loops(results, warm):
    data = results / "demo/de-en/bin"
    once = ("--epochs", 1, "--turns", 1)
    table = rows(warm, "loops.py", "--data", data, *once, "--systems", "transformer")
    assert [row[:2] for row in table] == [["fairseq-train", "fp32"], ["transformer", "fp32"]]
    stock, ours = (float(row[3]) for row in table)
    assert ours == pytest.approx(stock, rel=0.03)  # the same training but for what is drawn


def test_the_page_says_which_rows_are_slower_than_stock(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    page = importlib.import_module("page")
    table = [
        "| system | parameters | CPU s per step (clock) | of stock | operations | of stock |",
        "|---|---:|---:|---:|---:|---:|",
        "| stock fairseq | 8.09 M | 0.517 (0.518) | 1.00 (1.00–1.00) | 32 G | 1.000 |",
        "| transformer | 6.51 M | 0.441 (0.442) | 0.85 (0.80–0.91) | 32 G | 1.009 |",
        "| grammar | 8.82 M | 0.611 (0.612) | 1.18 (1.11–1.25) | 48 G | 1.478 |",
    ]
    assert [*page.beside_stock("training", table)] == [
        "training, transformer: 0.85 (0.80–0.91) of stock fairseq's time",
        "training, grammar: 1.18 (1.11–1.25) of stock fairseq's time: slower than stock",
    ]
    head, _, *rows = (line.split("|")[-2].strip() for line in page.with_goals(table, page.GOALS["training"]))
    assert (head, rows) == ("goal", ["–", "≤ 0.85: reached", "≤ 1.15: missed"])
    assert not [*page.beside_stock("machine", ["| measured on |", "|---|", "| AMD EPYC, AVX2, 1 thread |"])]


def test_the_page_has_rows_for_both_kinds_of_processor(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    page = importlib.import_module("page")
    tables = {name: table for _, name, _, table, _ in page.TABLE.findall(page.PAGE.read_text("utf-8"))}
    of_kinds = {name for name, table in tables.items() if table.startswith(page.OF_EACH_KIND)}
    assert of_kinds >= {"machine", "training", "training-demo", "memory", "decoding"}


def test_a_kind_of_processor_replaces_its_own_rows_alone(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    page = importlib.import_module("page")
    before = ["| processor | system | s |", "|---|---|---:|", "| AVX-512 | a | 1 |", "| AVX2 | a | 2 |"]
    measured = ["| system | s |", "|---|---:|", "| a | 3 |", "| b | 4 |"]
    after = page.beside_others("AVX-512", measured, before)
    assert after == [*before[:2], "| AVX-512 | a | 3 |", "| AVX-512 | b | 4 |", "| AVX2 | a | 2 |"]
    after = page.beside_others("AVX2", measured, after)
    assert after[2:] == [
        f"| {kind} | {row}" for kind in ("AVX-512", "AVX2") for row in ("a | 3 |", "b | 4 |")
    ]
    other_columns = page.beside_others("AVX2", ["| system | CPU s |", *measured[1:]], after)
    assert other_columns[2:] == ["| AVX2 | a | 3 |", "| AVX2 | b | 4 |"]


def test_a_ratio_is_the_median_of_the_turns_with_the_lowest_and_the_highest(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    machine = importlib.import_module("machine")
    ours, rival = (
        machine.Times("cpu", [2.0, 3.0, 4.0], [9.0] * 3),
        machine.Times("cpu", [1.0, 4.0, 5.0], [9.0] * 3),
    )
    assert ours.of(rival) == (0.8, 0.75, 2.0)  # turn by turn: the medians' is 0.75
    assert str(ours.of(rival)) == "0.80 (0.75–2.00)"
    assert ours.shown(1) == "3.0 (9.0)"
    with ours.turn(steps=2):
        sum(range(10**5))
    assert 0 < ours.cpu[-1] < 1
