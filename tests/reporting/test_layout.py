"""Laid-out tables as Markdown and LaTeX; LaTeX is compiled."""

import shutil
import subprocess
from html import escape

import pytest
from markdown_it import MarkdownIt

from synmask.pipeline.config.base import arrow
from synmask.pipeline.files import UserError
from synmask.pipeline.reporting.layout import (
    LATEX,
    WIDEST,
    Layout,
    Value,
    highest,
    read_tables,
    write_tables,
)

GROUPS, DIRECTIONS = ("One", "Two", "Three"), ("De→En", "En→De")
HEADS = [(group, direction, metric) for group in GROUPS for direction in DIRECTIONS for metric in "PR"]
SPECIAL = r"a_b&c%d$e#f{g}h~i^j\k|l<m>n"


def layout(columns, title="A title", label="grammar", **kwargs):
    row = [Value(place, sd=0.1, best=place == 1) for place in range(columns)]
    return Layout(title, ["System"], HEADS[:columns], [([label], row)], **kwargs)


@pytest.fixture
def written(tmp_path):
    """Writes tables and returns the Markdown's and the LaTeX's lines."""

    def write(*tables):
        write_tables(tmp_path / "t", tables)
        return [(tmp_path / f"t.{end}").read_text(encoding="utf-8").splitlines() for end in ("md", "tex")]

    return write


def test_a_narrow_table_is_one_block(written):
    markdown, latex = written(layout(4, notes=["A note."]))
    assert markdown == [
        "# A title",
        "",
        "| System | One De→En P | One De→En R | One En→De P | One En→De R |",
        "|---|---:|---:|---:|---:|",
        "| grammar | 0.00 ± 0.10 | **1.00 ± 0.10** | 2.00 ± 0.10 | 3.00 ± 0.10 |",
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


def test_a_wide_table_is_a_block_a_group(written):
    assert len(HEADS) > WIDEST
    markdown, latex = written(layout(12))
    assert "**One**" in markdown
    assert (
        "| grammar | 4.00 ± 0.10 | 5.00 ± 0.10 | 6.00 ± 0.10 | 7.00 ± 0.10 |"
        in markdown[markdown.index("**Two**") :]
    )
    assert latex.count(r"\toprule") == 3
    assert r"\textbf{Two}\par\smallskip" in latex
    assert not [line for line in latex if "multicolumn{4}" in line]  # the group stands above its block


def test_empty_levels_are_not_printed(written):
    table = Layout("T", ["System", ""], [("", "", "CoLA")], [(["a", "here"], [Value(printed="1.0")])])
    markdown, latex = written(table)
    assert "| System |  | CoLA |" in markdown
    assert not [line for line in latex if "multicolumn" in line]


def test_tables_under_each_other(written):
    markdown, latex = written(layout(2), layout(2, title="Another"))
    assert markdown.index("# Another") > markdown.index("# A title")
    assert latex.count(r"\begin{table}") == 2


def test_special_characters_are_escaped(written):
    markdown, latex = written(layout(2, title="50% of demo_x", label=SPECIAL))
    escaped = (
        r"a\_b\&c\%d\$e\#f\{g\}h\textasciitilde{}i\textasciicircum{}j\textbackslash{}k\textbar{}l$<$m$>$n"
    )
    assert any(line.startswith(escaped + " & 0.00") for line in latex)
    assert r"\caption{50\% of demo\_x}" in latex
    shown = MarkdownIt("commonmark").enable("table").render("\n".join(markdown))
    assert f"<td>{escape(SPECIAL)}</td>" in shown
    assert "<h1>50% of demo_x</h1>" in shown


def test_directions_and_other_columns():
    assert arrow("de-en") == "De→En"
    assert arrow("SST-2") == "SST-2"
    assert arrow("MNLI-mm") == "MNLI-mm"


def test_numbers_come_back_from_json_as_they_went(tmp_path):
    value = Value(35.8, sd=0.123456789, p=0.03, change=-1.5, seeds=2, asked=3, run=("demo", "de-en", "a"))
    table = Layout("T", ["System"], [("", "De→En", "chrF")], [(["a"], [value])], ["A note."], "b")
    write_tables(tmp_path / "t", [table])
    (read,) = read_tables(tmp_path / "t.json")
    assert (read.heads, read.notes, read.baseline, read.changes()) == (table.heads, ["A note."], "b", True)
    assert read.rows[0][1][0].text == "35.80 ± 0.12† [2 of 3]"
    assert read.rows[0][1][0].sd == 0.123456789
    for text in ("{", "[1]", '[{"title": "x"}]', '[{"no": 1}]'):
        (tmp_path / "t.json").write_text(text)
        with pytest.raises(UserError, match=r"t\.json: not"):
            read_tables(tmp_path / "t.json")


def test_for_reading_columns_that_say_the_same_are_merged_and_dashes_left_out():
    heads = [("", way, name) for way in DIRECTIONS for name in ("BLEU", "sacreBLEU")]
    heads.append(("", "En→De", "chrF"))
    rows = [(["a"], [*map(Value, (1.0, 1.001, 1.0, 2.0)), Value()]), (["b", "here"], [Value()] * 5)]
    table = Layout("T", ["System"], heads, rows)
    read = table.readable()
    assert [head[1:] for head in read.heads] == [
        ("De→En", "BLEU, sacreBLEU (equal here)"), ("En→De", "BLEU"), ("En→De", "sacreBLEU"),
    ]  # fmt: skip
    assert [[value.text for value in values] for _, values in read.rows] == [["1.00", "1.00", "2.00"]]
    three = Layout("T", [], [("", name) for name in "PRF"], [([], [Value(1.0)] * 3)])
    assert three.readable().heads == [("", "P, R, F (equal here)")]


@pytest.mark.parametrize(("mean", "text"), [(-0.004, "0.00"), (-0.006, "-0.01"), (-0.0, "0.00")])
def test_no_number_is_minus_zero(mean, text):
    assert Value(mean).text == text


@pytest.mark.parametrize(
    ("values", "best"),
    [
        ([1.0, 2.0, 1.999], [False, True, True]),
        ([None, 3.0], [False, False]),
        ([None, 3.0, 1], [False, True, False]),
    ],
)
def test_the_highest_as_printed_needs_rivals(values, best):
    assert highest(values, 2) == best


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="needs pdflatex")
def test_latex_compiles(written, tmp_path):
    notes = ["".join(LATEX), "Run `snakemake results/tables/a_b.md` with “λ”."]
    written(layout(4, label=SPECIAL, notes=notes), layout(12, title="Wide − ±"))
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


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("de-en", "De→En"),
        ("pt-BR-zh_TW", "Pt-BR→Zh_TW"),
        ("MNLI-m", "MNLI-m"),
        ("test-matched", "test-matched"),
    ],
)
def test_directions_are_shown_with_an_arrow(name, shown):
    assert arrow(name) == shown
