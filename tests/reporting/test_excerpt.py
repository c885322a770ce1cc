"""Copies of tables in pages; the README's is of the numbers beside it."""

import csv
from pathlib import Path

import pytest

from synmask.pipeline.files import UserError
from synmask.pipeline.reporting.excerpt import BEGIN, END, write_excerpt

ROOT = Path(__file__).parents[2]


@pytest.fixture
def page(tmp_path):
    (tmp_path / "t.md").write_text("# A title\n\n| a |\n|---|\n\nA note.\n")
    (tmp_path / "t.csv").write_text("a\n1\n")
    page = tmp_path / "page.md"
    page.write_text(f"Before.\n{BEGIN}\nold\n{END}\nAfter.\n")
    return page


def test_the_table_replaces_what_is_between_the_marks(page):
    for _ in range(2):
        write_excerpt(page.parent / "t", page, page.parent / "data.csv")
        assert page.read_text() == f"Before.\n{BEGIN}\n| a |\n|---|\n\nA note.\n{END}\nAfter.\n"
        assert (page.parent / "data.csv").read_text() == "a\n1\n"


@pytest.mark.parametrize("text", ["", BEGIN, f"{END}\n{BEGIN}", f"{BEGIN}\n{BEGIN}\n{END}"])
def test_a_page_without_marks_is_left_as_it_is(page, text):
    page.write_text(text + "\n")
    with pytest.raises(UserError, match=r"page\.md: give it one line <!-- table -->"):
        write_excerpt(page.parent / "t", page, page.parent / "data.csv")
    assert page.read_text() == text + "\n"
    assert not (page.parent / "data.csv").exists()


@pytest.mark.parametrize(
    ("page", "data"), [("README.md", "docs/demo.csv"), ("docs/systems.md", "docs/demo-all.csv")]
)
def test_a_pages_table_has_the_numbers_of_the_tracked_data(page, data):
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = [line for line in text[text.index(BEGIN) : text.index(END)].splitlines() if line.startswith("| ")]
    rows = {line.strip("| ").split(" | ")[0]: line for line in lines}
    with (ROOT / data).open(encoding="utf-8", newline="") as handle:
        cells = list(csv.DictReader(handle))
    assert len(rows) == 1 + len({cell["label"] for cell in cells})
    for cell in cells:
        assert f"{float(cell['mean']):.2f} ± {float(cell['sd']):.2f}" in rows[cell["label"]]
