"""Labels and tokens as people write them, through every table, figure, page and card."""

import csv
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from html import unescape

import pandas as pd
import pytest
import yaml
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from markdown_it import MarkdownIt
from matplotlib.font_manager import fontManager
from rich.cells import cell_len

from synmask.pipeline import languages
from synmask.pipeline.cli import main
from synmask.pipeline.cli.plan import PlanRow, plan_lines
from synmask.pipeline.display import text_table
from synmask.pipeline.export.card import model_card
from synmask.pipeline.guidance import Guidance
from synmask.pipeline.published import Published
from synmask.pipeline.reporting import figures
from synmask.pipeline.reporting.cells import ScoreOptions, frame_of
from synmask.pipeline.reporting.layout import PrintedTable, escape, html_blocks, read_tables, write_tables
from synmask.pipeline.reporting.notes import notes
from synmask.pipeline.reporting.results import COSTS, RUN, SIGNATURES, select_expected
from synmask.pipeline.reporting.score_trees import as_text
from synmask.pipeline.reporting.tree_nodes import sentence_of
from synmask.pipeline.reporting.tree_page import figure, page
from synmask.pipeline.reporting.tree_text import draw
from synmask.pipeline.syntax.parses import Parse
from synmask.pipeline.syntax.treebank import Tree
from synmask.pipeline.workflow.hours import Hours

LABELS = [
    "_base", "[ours] Grammar", "*starred*", "a `b` c", "$x$ 5 % & #1", "a--b ''c''", "<b>&amp;", "012", "نظام",
    "_child0 of ~~none~~ #",
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
        (tmp_path / system).mkdir()
        (tmp_path / system / "history.csv").write_text(f"epoch,updates,train_loss,valid_loss\n{losses}")
        run = {"corpus": "c", "direction": "de-en", "system": system, "seed": 1, "settings": {}}
        (tmp_path / system / "train.json").write_text(json.dumps(run))
    main([
        "curves", "--inputs", *(str(tmp_path / system / "history.csv") for system in systems),
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


@pytest.fixture
def bundled_fonts(monkeypatch):
    """Matplotlib lists its own fonts alone."""
    bundled = [font for font in fontManager.ttflist if "DejaVu" in font.name or "Last Resort" in font.name]
    monkeypatch.setattr(fontManager, "ttflist", bundled)
    figures._add_installed_fonts.cache_clear()
    languages.print_note.cache_clear()
    yield
    figures._add_installed_fonts.cache_clear()


def test_a_font_that_is_newer_than_matplotlibs_list_is_found(bundled_fonts, monkeypatch, capsys, tmp_path):
    new = FontBuilder(1000)
    new.setupGlyphOrder([".notdef", "apple"])
    new.setupCharacterMap({ord("苹"): "apple"})
    new.setupGlyf({name: TTGlyphPen(None).glyph() for name in (".notdef", "apple")})
    new.setupHorizontalMetrics({name: (500, 0) for name in (".notdef", "apple")})
    new.setupHorizontalHeader(ascent=800, descent=-200)
    new.setupNameTable({"familyName": "New", "styleName": "Regular"})
    new.setupOS2()
    new.setupPost()
    new.save(tmp_path / "new.ttf")
    (tmp_path / "damaged.ttf").write_bytes(b"no font")
    paths = [str(tmp_path / name) for name in ("damaged.ttf", "new.ttf")]
    monkeypatch.setattr(figures, "findSystemFonts", lambda: paths)
    assert figures.fonts_for(["苹"]) == ["DejaVu Sans", "New"]
    assert capsys.readouterr().err == ""


def test_characters_without_a_font_are_said_before_the_figure(bundled_fonts, monkeypatch, capsys):
    monkeypatch.setattr(figures, "findSystemFonts", list)
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


def table_of(labels, notes=(), title="T"):
    names = {"corpus": "c", "column": "de-en", "metric": "p", "group": "", "run": None}
    numbers = {"seeds": 1, "asked": 1, "diverged": 0}
    cells = [
        names | numbers | {"system": str(place), "label": label, "mean": float(place)}
        for place, label in enumerate(labels)
    ]
    return PrintedTable(title, frame_of(cells), notes)


@pytest.mark.parametrize("label", LABELS)
def test_tables_show_labels_as_they_are(tmp_path, label):
    write_tables(tmp_path / "t", [table_of(["Base", label], title=label)], {})
    latex = (tmp_path / "t.tex").read_text(encoding="utf-8")
    assert not re.search(r"\\\\\s*[\[*]", latex)  # an argument of the \\ before it
    (read,) = read_tables(tmp_path / "t.json")
    assert (read.title, read.cells["label"].tolist()) == (label, ["Base", label])
    ((_, html),) = html_blocks(read, lambda cell: None)
    assert unescape(re.findall(r"<th *>(.*?)</th>", html)[-1]) == label
    markdown = (tmp_path / "t.md").read_text(encoding="utf-8")
    html = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown)
    shown = unescape(re.findall(r"<td.*?>(.*?)</td>|$", html)[2])
    assert shown.strip("\u2068\u2069") == label  # isolates, which nobody sees
    assert unescape(re.search("<h1>(.*)</h1>", html)[1]) == label


def test_latex_escapes_what_it_would_read_otherwise():
    assert escape("[a]") == "{}[a]"
    assert escape("*") == "{}*"
    assert escape("a `b` c--d e''f") == r"a \textasciigrave{}b\textasciigrave{} c-{}-d e'{}'f"


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="needs pdflatex")
def test_latex_with_such_labels_compiles(tmp_path):
    labels = [label for label in LABELS if label.isascii()]
    write_tables(tmp_path / "t", [table_of(labels)], {})
    head = r"\documentclass{article}\usepackage{booktabs,graphicx}"
    (tmp_path / "d.tex").write_text(head + r"\begin{document}\input{t.tex}\end{document}")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "d.tex"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert "Missing character" not in (tmp_path / "d.log").read_text(errors="replace")


@pytest.mark.parametrize("label", [*LABELS, "`", "``", "a`"])
def test_backquotes_of_a_label_are_no_code_in_notes(tmp_path, label):
    write_tables(tmp_path / "t", [table_of([label], [f"Missing: {label} De→En."])], {})
    html = MarkdownIt("commonmark").render((tmp_path / "t.md").read_text(encoding="utf-8").splitlines()[-1])
    assert "<code>" not in html
    assert f"Missing: {label} De" in unescape(html)
    assert escape(f"Missing: {label} De") in (tmp_path / "t.tex").read_text(encoding="utf-8")


def test_notes_take_labels_as_they_are():
    column = {"corpus": "c", "column": "de-en", "group": "`", "runs": {"a": [1]}}
    options = ScoreOptions(
        title="T",
        labels=[["a", "x `y` z"]],
        columns=[column, column | {"column": "en-de", "runs": {"a": [1, 2]}}],
        metrics=["bleu_tokenised"],
    )
    columns = [*RUN, *COSTS, *SIGNATURES, "overlap", "dropped", "bleu_tokenised"]
    runs = select_expected(pd.DataFrame([("c", "en-de", "a", 1)], columns=RUN), options.expected)
    runs = runs.reindex(columns=[*runs, *columns[len(RUN) :]])
    nothing = Published(papers={}, systems={}, results=())
    (missing, bad), _ = notes(options, nothing, table_of(["a"]).cells.iloc[:0], runs, "t")
    assert (
        missing
        == "Missing: x `y` z ` De→En (seed 1); x `y` z ` En→De (seed 2). To make what is missing: snakemake t.md"
    )
    assert bad.startswith("No finite score, so left out of the means: x `y` z ` En→De (seed 1).")


def test_tables_in_the_terminal_line_up():
    def widths(lines):
        return {cell_len(line) for line in lines if line}

    table = text_table(["", "F1"], [["苹果", "1.0"], ["e\u0301e\u0301", "10.00"], ["a\x1b[31m", "2"]])
    assert len(widths(table.splitlines())) == 1
    assert "\x1b" not in table
    rows = [PlanRow(name, 1, 0, Hours(1.0, 2.0), 10, 10, 10, 10) for name in ("中文语料 De→En", "base")]
    assert len(widths(next(plan_lines(rows)).splitlines())) == 1
    scores = {"induced": {"f1": 1.0}}
    labels = {"名词": {"f1": 1.0}, "N": {"f1": 1.0}}
    result = dict.fromkeys(("dependencies", "cut_words", "ties", "explained_by_labels_within_sentences"))
    result |= {"protocols": {"words": {"sentences": 1, "rows": scores, "recall_by_label": labels}}}
    assert len(widths(as_text(result | {"unparsed": 0}).splitlines()[-3:])) == 1


@pytest.mark.parametrize("label", [*LABELS, "a\nb", "\ufffe", "![x](http://x)"])
def test_a_card_shows_names_as_they_are(tmp_path, label):
    run = {"corpus": label, "direction": "de-en", "system": label, "seed": 1}
    facts = {
        "parameters": 5,
        "commit": label,
        "epochs": 1,
        "updates": 1,
        "train_seconds": 1.0,
        "device": label,
    }
    (tmp_path / "scores.json").write_text(json.dumps(run | facts | {"scores": {label: {"accuracy": 1.0}}}))
    guide = Guidance.model_construct(guide="grammar", options={"bpe": label})
    card = model_card(tmp_path / "average.pt", {"language": label}, guide, "", [], run)
    head, body = card.split("---\n", 2)[1:]
    assert yaml.safe_load(head)["language"] == label
    html = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(body)
    assert not re.search(r"<(em|strong|img|a|b|s)\b", html)
    cells = re.findall(r"<td.*?>(.*?)</td>", html)
    shown = re.sub("[\n\ufffe]", "\ufffd", label)
    assert unescape(cells[0]) == shown
    assert len(cells) == 5
    assert unescape(html).count(shown) >= 6
