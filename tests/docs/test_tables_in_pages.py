"""Copies of tables in pages have the numbers of the tracked data."""

import csv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
END = "<!-- end -->"


@pytest.mark.parametrize("name", ["demo"])
def test_a_pages_table_has_the_numbers_of_the_tracked_data(name):
    page = (ROOT / "docs/demo.md").read_text(encoding="utf-8")
    table = page.split(f"<!-- {name}.md -->")[1].split(END)[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    rows = {line.split("|")[1].strip(): line for line in lines}
    with (ROOT / f"docs/{name}.csv").open(encoding="utf-8", newline="") as handle:
        cells = list(csv.DictReader(handle))
    assert len(rows) == 1 + len({cell["label"] for cell in cells})
    for cell in cells:
        assert f"{float(cell['mean']):.2f} ± {float(cell['sd']):.2f}" in rows[cell["label"]]
