"""Labels and tokens as people write them, through every table, figure, page and card."""

import csv
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET

import pytest
from matplotlib.font_manager import fontManager
from rich.cells import cell_len

from synmask.pipeline import languages
from synmask.pipeline.cli import main
from synmask.pipeline.config.base import arrow
from synmask.pipeline.reporting import figures
from synmask.pipeline.reporting.layout import Layout, Value, escape, write_tables
from synmask.pipeline.reporting.tree_nodes import sentence_of
from synmask.pipeline.reporting.tree_page import figure, page
from synmask.pipeline.reporting.tree_text import draw
from synmask.pipeline.syntax.parses import Parse
from synmask.pipeline.syntax.treebank import Tree

LABELS = [
    "_base", "[ours] Grammar", "*starred*", "a `b` c", "$x$ 5 % & #1", "a--b ''c''", "<b>&amp;", "012", "نظام",
]  # fmt: skip
TOKENS = [
    "a\b", "\ufffe", "\x1b[31m", "]]>", "--", "<x>", "&amp;", "苹果", "تفاحة", "e\u0301", "$a$", "_", "`", "[x]",
]  # fmt: skip
DISTANCES = [float(number) for number in range(1, len(TOKENS))]
PARSE = Parse(TOKENS, DISTANCES, 99.0, None, [1.0] * len(TOKENS), [[(0, 0.5)]] * len(TOKENS))
GOLD = Tree("S", tuple(Tree("X\b", (token,)) for token in TOKENS))


def test_the_legend_has_every_label(tmp_path):
    systems = [f"s{number}" for number in range(len(LABELS))]
    for system in systems:
        losses = "1,1,5,5\n2,2,4,4\n3,3,3,3\n"
        (tmp_path / f"{system}.csv").write_text(f"epoch,updates,train_loss,valid_loss\n{losses}")
    main([
        "curves", "--inputs", *(str(tmp_path / f"{system}.csv") for system in systems),
        "--runs", json.dumps([[system, 1] for system in systems]),
        "--labels", json.dumps([*zip(systems, LABELS, strict=True)]), "--output", str(tmp_path / "fig"),
    ])  # fmt: skip
    svg = (tmp_path / "fig.svg").read_text(encoding="utf-8")
    ET.fromstring(svg)
    legend = svg[svg.index('id="legend_1"') :]
    assert legend.count('<g id="text_') == len(LABELS)
    assert "<!-- _base -->" in legend


def test_a_heat_map_of_hostile_tokens_is_xml(tmp_path):
    tokens = [*TOKENS, "</s>"]
    size = len(tokens)
    found = {"sentence": 1, "tokens": tokens, "distribution": [[1 / size] * size] * size}
    (tmp_path / "p.json").write_text(json.dumps(found))
    main([
        "distribution-figure", "--distribution", str(tmp_path / "p.json"), "--title", "_[T]",
        "--output", str(tmp_path / "f"),
    ])  # fmt: skip
    ET.fromstring((tmp_path / "f.svg").read_text(encoding="utf-8"))
    with open(tmp_path / "f.csv", encoding="utf-8", newline="") as handle:
        rows = [*csv.DictReader(handle)]
    assert [row["parent"] for row in rows[:size]] == tokens


def test_characters_without_a_font_are_said_before_the_figure(monkeypatch, capsys):
    bundled = [font for font in fontManager.ttflist if "DejaVu" in font.name or "Last Resort" in font.name]
    monkeypatch.setattr(fontManager, "ttflist", bundled)
    languages.note.cache_clear()
    assert figures.fonts_for(["plain", "é"]) == ["DejaVu Sans"]
    assert capsys.readouterr().err == ""
    assert figures.fonts_for(["苹果"]) == ["DejaVu Sans"]
    assert "no font here has 果 苹, so a figure shows boxes; install one" in capsys.readouterr().err


def test_trees_of_hostile_tokens_are_xml_and_harmless_in_a_terminal():
    text = figure(sentence_of(GOLD, {"_A": PARSE}), {"_A": PARSE})
    ET.fromstring(text)
    html = page("T", [GOLD], {"[A]": [PARSE]})
    svgs = re.findall("<svg.*?</svg>", html, re.S)
    assert len(svgs) == 2
    for svg in svgs:
        ET.fromstring(svg)
    assert 'dir="auto"' in html
    lines = draw(sentence_of(GOLD, {"A": PARSE}), {"A": PARSE})
    for shown in (text, html, lines):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]", shown)
        assert {"苹果", "تفاحة"} <= set(re.findall(r"\w+", shown))


def test_bars_in_the_terminal_stand_below_each_other():
    parse = Parse(["苹果", "b", "ccc"], [1.0, 2.0], 3.0)
    rows = [line for line in draw(sentence_of(None, {"A": parse}), {"A": parse}).splitlines() if "▇" in line]
    assert len(rows) == 2
    assert len({cell_len(line[: line.index("▇")]) for line in rows}) == 1


@pytest.mark.parametrize("label", LABELS)
def test_tables_show_labels_as_they_are(tmp_path, label):
    table = Layout("T", ["System"], [("", "P")], [(["Base"], [Value(1.0)]), ([label], [Value(2.0)])])
    write_tables(tmp_path / "t", [table])
    latex = (tmp_path / "t.tex").read_text(encoding="utf-8")
    assert not re.search(r"\\\\\s*[\[*]", latex)  # an argument of the \\ before it
    assert json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))[0]["rows"][1][0] == [label]


def test_latex_escapes_what_it_would_read_otherwise():
    assert escape("[a]") == "{}[a]"
    assert escape("*") == "{}*"
    assert escape("a `b` c--d e''f") == r"a \textasciigrave{}b\textasciigrave{} c-{}-d e'{}'f"


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="needs pdflatex")
def test_latex_with_such_labels_compiles(tmp_path):
    labels = [label for label in LABELS if label.isascii()]
    rows = [([label], [Value(1.0)]) for label in labels]
    write_tables(tmp_path / "t", [Layout("T", ["System"], [("", "P")], rows)])
    head = r"\documentclass{article}\usepackage{booktabs,graphicx}"
    (tmp_path / "d.tex").write_text(head + r"\begin{document}\input{t.tex}\end{document}")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "d.tex"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert "Missing character" not in (tmp_path / "d.log").read_text(errors="replace")


def test_directions_with_regions():
    assert arrow("en-pt-BR") == "En→Pt-BR"
    assert arrow("pt-BR-zh-Hant") == "Pt-BR→Zh-Hant"
