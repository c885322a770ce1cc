"""Tables as Markdown, LaTeX, HTML and JSON; LaTeX is compiled."""

import re
import shutil
import subprocess
from html import escape

import pytest
from markdown_it import MarkdownIt

from synmask.pipeline.display import arrow
from synmask.pipeline.errors import UserError
from synmask.pipeline.reporting.cells import frame_of, mark_best, text_of
from synmask.pipeline.reporting.layout import (
    LATEX,
    WIDEST,
    PrintedTable,
    html_blocks,
    read_tables,
    write_tables,
)

GROUPS, DIRECTIONS = ("One", "Two", "Three"), ("de-en", "en-de")
COLUMNS = [(group, direction, metric) for group in GROUPS for direction in DIRECTIONS for metric in "PR"]
SPECIAL = r"a_b&c%d$e#f{g}h~i^j\k|l<m>n"


def cell(mean=None, column="de-en", metric="P", system="grammar", group="", **kwargs):
    """A cell of a table, ready to be printed."""
    names = {"corpus": group, "column": column, "metric": metric, "group": group}
    rest = {
        "system": system,
        "label": system,
        "seeds": 1,
        "asked": 1,
        "best": False,
        "diverged": 0,
    }
    return names | rest | {"mean": mean, "run": column} | kwargs


def table(count, title="A title", label="grammar", **kwargs):
    cells = [
        cell(float(place), direction, metric, group=group, sd=0.1, label=label, best=place == 1)
        for place, (group, direction, metric) in enumerate(COLUMNS[:count])
    ]
    return PrintedTable(title, frame_of(cells), **kwargs)


@pytest.fixture
def written(tmp_path):
    """Writes tables and returns the Markdown's and the LaTeX's lines."""

    def write(*tables):
        write_tables(tmp_path / "t", tables, {})
        markdown, latex = ((tmp_path / f"t.{end}").read_text(encoding="utf-8") for end in ("md", "tex"))
        return markdown.splitlines(), latex.splitlines()

    return write


def test_a_narrow_table_is_one_block(written):
    markdown, latex = written(table(4, warnings=["Make it: make x"], notes=["A note."]))
    assert [line for line in markdown if not line.startswith("|:-")] == [
        "# A title",
        "",
        "| System | One De→En P | One De→En R | One En→De P | One En→De R |",
        "| grammar | 0.00 ± 0.10 | **1.00 ± 0.10** | 2.00 ± 0.10 | 3.00 ± 0.10 |",
        "",
        "Make it: make x",
        "",
        "A note.",
    ]
    assert r" & \multicolumn{4}{c}{One} \\" in latex
    assert r" & \multicolumn{2}{c}{De$\rightarrow$En} & \multicolumn{2}{c}{En$\rightarrow$De} \\" in latex
    assert r"System & P & R & P & R \\" in latex
    assert (
        r"grammar & 0.00 $\pm$ 0.10 & \textbf{1.00 $\pm$ 0.10} & 2.00 $\pm$ 0.10 & 3.00 $\pm$ 0.10 \\"
        in latex
    )
    assert r"Make it: make x\par" in latex


def test_a_wide_table_is_a_block_a_group(written):
    assert len(COLUMNS) > WIDEST
    markdown, latex = written(table(12))
    assert "**One**" in markdown
    two = markdown[markdown.index("**Two**") :]
    assert "| grammar | 4.00 ± 0.10 | 5.00 ± 0.10 | 6.00 ± 0.10 | 7.00 ± 0.10 |" in two
    assert latex.count(r"\toprule") == 3
    assert r"\textbf{Two}\par\smallskip" in latex
    assert not [line for line in latex if "multicolumn{4}" in line]  # the group stands above its block


def test_empty_levels_are_not_printed(written):
    published = cell(None, "CoLA", "glue", printed="1.0", origin="measured")
    markdown, latex = written(PrintedTable("T", frame_of([published])))
    assert "| System |  | CoLA |" in markdown
    assert "| grammar | published | 1.0 |" in markdown
    assert not [line for line in latex if "multicolumn" in line]


def test_tables_under_each_other(written):
    markdown, latex = written(table(2), table(2, title="Another"))
    assert markdown.index("# Another") > markdown.index("# A title")
    assert latex.count(r"\begin{table}") == 2


def test_special_characters_are_escaped(written, tmp_path):
    _, latex = written(table(2, title="50% of demo_x", label=SPECIAL))
    escaped = (
        r"a\_b\&c\%d\$e\#f\{g\}h\textasciitilde{}i\textasciicircum{}j\textbackslash{}k\textbar{}l$<$m$>$n"
    )
    assert any(line.startswith(escaped + " & 0.00") for line in latex)
    assert r"\caption{50\% of demo\_x}" in latex
    text = (tmp_path / "t.md").read_text(encoding="utf-8")
    shown = MarkdownIt("commonmark").enable("table").render(text)
    assert f'<td style="text-align:left">{escape(SPECIAL)}</td>' in shown
    assert "<h1>50% of demo_x</h1>" in shown


def test_a_table_comes_back_from_json_as_it_went(tmp_path):
    cells = frame_of([cell(35.8, sd=0.123456789, p=0.03, change=-1.5, seeds=2, asked=3), cell(system="b")])
    whole = PrintedTable("T", cells, ["Missing."], ["A note."], "b")
    write_tables(tmp_path / "t", [whole], {})
    (read,) = read_tables(tmp_path / "t.json")
    assert (read.title, read.warnings, read.notes, read.baseline) == ("T", ["Missing."], ["A note."], "b")
    assert text_of(read.cells.iloc[0]) == "35.80 ± 0.12† [2 of 3]"
    assert text_of(read.cells.iloc[1]) is None
    assert read.cells["sd"][0] == 0.123456789
    assert [*html_blocks(read, lambda cell: None)] == [*html_blocks(whole, lambda cell: None)]
    for text in ("{", "[1]", '[{"title": "x"}]', '[{"no": 1}]', "3", '[{"cells": [], "notes": []}]'):
        (tmp_path / "t.json").write_text(text)
        with pytest.raises(UserError, match=r"t\.json: not"):
            read_tables(tmp_path / "t.json")


def test_html_has_marks_links_and_heads():
    numbers = [
        cell(1.0, change=0.9, p=0.03, best=True),
        cell(2.0, metric="<R>", printed="3.0", origin="measured"),
    ]
    ((_, html),) = html_blocks(PrintedTable("T", frame_of(numbers)), lambda cell: f"#{cell['metric']}")
    assert '<a href="#P"><strong>1.00†</strong></a> <small>Δ +0.90, p 0.030</small>' in html
    assert "&lt;R&gt;" in html
    assert re.search("<td *>3.0</td>", html)  # published: no run of ours
    assert re.search(r'<th[^>]*colspan="2"[^>]*>De→En</th>', html)


@pytest.mark.parametrize(("mean", "text"), [(-0.004, "0.00"), (-0.006, "-0.01"), (-0.0, "0.00")])
def test_no_number_is_minus_zero(mean, text):
    assert text_of(frame_of([cell(mean)]).iloc[0]) == text


def test_what_lacks_or_diverged_stands_beside_the_number():
    faults = {
        (5, 0): "1.00",
        (4, 0): "1.00 [4 of 5]",
        (5, 1): "1.00 [1 diverged]",
        (3, 2): "1.00 [3 of 5, 2 diverged]",
    }
    for (seeds, diverged), text in faults.items():
        assert text_of(frame_of([cell(1.0, seeds=seeds, asked=5, diverged=diverged)]).iloc[0]) == text


@pytest.mark.parametrize(
    ("values", "best"),
    [
        ([1.0, 2.0, 1.999], [False, True, True]),
        ([None, 3.0], [False, False]),
        ([None, 3.0, 1], [False, True, False]),
    ],
)
def test_the_highest_as_printed_needs_rivals(values, best):
    cells = frame_of(cell(value, system=str(place)) for place, value in enumerate(values))
    assert mark_best(cells)["best"].tolist() == best
    for free in ({"metric": "parameters"}, {"system": "oracle trees"}):
        assert not mark_best(cells.assign(**free))["best"].any()


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="needs pdflatex")
def test_latex_compiles(written, tmp_path):
    notes = ["".join(LATEX), "Run with “λ”: snakemake results/tables/a_b.md"]
    written(table(4, label=SPECIAL, notes=notes), table(12, title="Wide − ±"))
    packages = r"\usepackage{booktabs,graphicx}"
    document = rf"\documentclass{{article}}{packages}\begin{{document}}\input{{t.tex}}\end{{document}}"
    (tmp_path / "page.tex").write_text(document)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False
    )
    assert done.returncode == 0, done.stdout[-2000:]
    log = (tmp_path / "page.log").read_text(errors="replace")
    assert "Overfull" not in log
    assert "Missing character" not in log


def test_labels_beyond_latin(written, tmp_path):
    cells = [cell(1.0, label=label, system=label) for label in ("猫の系", "نظام (2)", "abc")]
    written(PrintedTable("T", frame_of(cells), notes=["Missing: \u2068نظام\u2069 De→En."]))
    assert "\n| \u2068نظام (2)\u2069 | " in (tmp_path / "t.md").read_text(encoding="utf-8")
    latex = (tmp_path / "t.tex").read_text(encoding="utf-8")
    assert latex.startswith("% Letters beyond Latin need LuaLaTeX")
    assert "Missing: نظام De" in latex
    written(PrintedTable("T − é → λ", frame_of([cell(1.0, label="ß")])))
    assert (tmp_path / "t.tex").read_text(encoding="utf-8").startswith(r"\begin{table}")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("de-en", "De→En"),
        ("en-pt-BR", "En→Pt-BR"),
        ("pt-BR-zh_TW", "Pt-BR→Zh_TW"),
        ("pt-BR-zh-Hant", "Pt-BR→Zh-Hant"),
        ("SST-2", "SST-2"),
        ("MNLI-mm", "MNLI-mm"),
        ("test-matched", "test-matched"),
    ],
)
def test_directions_are_shown_with_an_arrow(name, shown):
    assert arrow(name) == shown
