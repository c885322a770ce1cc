"""The page: what it holds, what it links to, and that a real browser shows it."""

import base64
import copy
import hashlib
import json
import os
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from synmask.files import UserError
from synmask.reporting.layout import Layout, Value, write_markdown
from synmask.reporting.report import write_report

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="900pt" height="200pt"><rect id="x" width="900" height="200"/></svg>'
TABLE = """# Toy

| System |  | De→En sacreBLEU | De→En chrF |
|---|---|---:|---:|
| Transformer | published | 34.71 | – |
| Transformer | here | 30.10 ± 0.10 | 50.00 |
| Grammar \\<b>&\\</b> co | here | **31.00** | – |
| PASCAL | published | 34.84 | – |

Missing runs: grammar De→En (seed 2).
"""
PLAN = {
    "title": "Report: Toy & more",
    "figures": ["results/figures/method.svg"],
    "experiments": [
        {
            "name": "toy",
            "title": "Toy & more",
            "corpus": "toy",
            "directions": ["de-en"],
            "systems": [["transformer", "Transformer"], ["grammar", "Grammar <b>&</b> co"]],
            "seeds": [1, 2],
            "tables": ["results/tables/toy.md", "results/tables/toy-parsing.md"],
            "figures": ["results/figures/toy-bleu.svg", "results/figures/toy-de-en-curves.svg"],
        }
    ],
}


OWN = {"transformer": {"guide": "none"}, "grammar": {"guide": "grammar", "layers": 7}}


def run_files(folder, system, seed, bleu):
    folder.mkdir(parents=True)
    scores = {"test": {"sacrebleu": bleu, "bleu_tokenised": bleu, "chrf": 50.0}, "valid": {"sacrebleu": 77.7}}
    run = {
        "corpus": "toy", "direction": "de-en", "system": system, "seed": seed, "scores": scores, "commit": "abc123",
        "device": "CPU", "parameters": 1234567, "tokens_per_second": 999.9, "train_seconds": 90.0,
        "versions": {"torch": "2.0"}, "command": "synmask score --hypothesis a<b", "settings": {"training": {"lr": 0.5}, "system": OWN[system]},
    }  # fmt: skip
    (folder / "scores.json").write_text(json.dumps(run))
    (folder / "train.log").write_text("".join(f"epoch {k} <done>\n" for k in range(30)))
    lines = [f"the {system} {k} <script>alert(1)</script> cat" for k in range(3)]
    (folder / "hypothesis.test.txt").write_text("\n".join(lines) + "\n")
    os.utime(folder / "scores.json", (1.7e9, 1.7e9))


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Results of two systems and two seeds, of which one run, a table and a figure are missing."""
    monkeypatch.chdir(tmp_path)
    pair = tmp_path / "results/toy/de-en"
    for system, seed, bleu in (
        ("transformer", 1, 30.0),
        ("transformer", 2, 30.2),
        ("grammar", 1, float("nan")),
    ):
        run_files(pair / system / f"seed{seed}", system, seed, bleu)
    for name, text in (("test.de", "die Katze"), ("test.en", "the cat")):
        (pair / "text").mkdir(exist_ok=True)
        (pair / "text" / name).write_text("".join(f"{text} Nr{k}\n" for k in range(3)))
    for name, text in (("tables/toy.md", TABLE), ("figures/toy-bleu.svg", SVG), ("figures/method.svg", SVG)):
        path = tmp_path / "results" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (tmp_path / "captions").mkdir()
    (tmp_path / "captions/bleu.rst").write_text("BLEU by <system>.\n")
    return tmp_path


def page(project):
    output = project / "results/report.html"
    write_report(PLAN, output, captions=project / "captions")
    return output


class Links(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.ids, self.links, self.loads = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.links += [attributes["href"]] if tag == "a" else []
        self.loads += [
            value
            for name, value in attributes.items()
            if name in ("src", "srcset") or (tag == "link" and name == "href")
        ]


def test_every_link_leads_somewhere_and_nothing_is_loaded(project):
    html = page(project).read_text()
    links = Links(html)
    assert len(set(links.ids)) == len(links.ids)
    for link in links.links:
        if link.startswith("#"):
            assert link[1:] in links.ids
        elif not link.endswith((".pdf", ".csv", ".tex")):  # the fixture has none
            assert (project / "results" / link).exists(), link
    assert "toy/de-en/grammar/seed1/scores.json" in links.links
    assert all(load.startswith("data:image/svg+xml;base64,") for load in links.loads)
    assert "@import" not in html
    assert "url(" not in html


def test_the_numbers_of_a_system_link_to_its_runs(project):
    html = page(project).read_text()
    assert '<a href="#run-toy-de-en-transformer">30.10 ± 0.10</a>' in html
    assert '<a href="#run-toy-de-en-grammar"><strong>31.00</strong></a>' in html
    assert '<td style="text-align:right">34.84</td>' in html  # quoted: no run of ours
    assert re.search(r'<a href="#run-toy-de-en-transformer-2-log">30\.20</a>', html)
    assert '<h4 id="run-toy-de-en-grammar">' in html


def test_what_was_run_is_said(project):
    html = page(project).read_text()
    for said in ("3 of 4", "2023-11-14 22:13 UTC", "abc123", "CPU", "torch 2.0", "0.07 hours", "epoch 29 &lt;done&gt;",
                 "synmask score --hypothesis a&lt;b", "1,234,567", "BLEU by &lt;system&gt;."):  # fmt: skip
        assert said in html, said
    assert "epoch 3 &lt;done&gt;" not in html  # only the log's end


def test_settings_that_differ_stand_side_by_side(project):
    html = re.sub(r"\s+", "", page(project).read_text())
    assert "<tr><td>system.guide</td><td>none</td><td>grammar</td></tr>" in html
    assert "<tr><td>system.layers</td><td>–</td><td>7</td></tr>" in html
    assert "<dt>training.lr</dt><dd>0.5</dd>" in html


def test_what_is_missing_is_called_missing(project):
    html = page(project).read_text()
    for path in (
        "results/tables/toy-parsing.md",
        "results/figures/toy-de-en-curves.svg",
        "results/toy/de-en/grammar/seed2/scores.json",
    ):
        assert f"snakemake {path}" in html
    assert "no number" in html  # grammar, seed 1 diverged
    assert ">nan<" not in html


def test_an_empty_project_is_a_page_of_missing_things(project, open_page):
    plan = PLAN | {"experiments": [PLAN["experiments"][0] | {"corpus": "none"}]}
    write_report(plan, project / "results/report.html", captions=project / "captions")
    shown = open_page(project / "results/report.html")
    assert "0 of 4" in shown.html
    assert not shown.console


def test_text_of_the_data_is_never_markup(project):
    html = page(project).read_text()
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert" in html
    assert "<b>&</b>" not in html


HOSTILE = (
    "![x](http://a.example/x.png) <img src=http://b.example/y.png> [z](javascript:alert) _e_ *f* `g` a|b"
)


def test_a_label_or_title_is_no_image_link_or_markup(project):
    """In the table's Markdown by itself, and in the page even where the Markdown holds an image."""
    layout = Layout(
        HOSTILE, ["System"], [(HOSTILE, "De→En")], [([HOSTILE], [Value(1.5, 1)])], [f"{HOSTILE} `make x`"]
    )
    write_markdown(Path("results/tables/toy.md"), layout)
    shown = MarkdownIt("commonmark").enable("table").render(Path("results/tables/toy.md").read_text())
    assert not re.search(r"<(img|a|em|script)\b", shown)
    assert shown.count("http://a.example/x.png") == 4
    assert shown.count("<code>") == 2  # of the note: its own, and harmless in a label
    plan = copy.deepcopy(PLAN)
    plan["title"] = plan["experiments"][0]["title"] = HOSTILE
    plan["experiments"][0]["systems"][1][1] = HOSTILE
    for text in (
        None,
        f"# {HOSTILE}\n\n| System | De→En |\n|---|---:|\n| {HOSTILE.replace('|', '')} | 1 |\n\n{HOSTILE}\n",
    ):
        if text:
            Path("results/tables/toy.md").write_text(text)
        write_report(plan, Path("results/report.html"), captions=project / "captions")
        said = Path("results/report.html").read_text()
        assert {
            src for src in re.findall(r'<img[^>]*src="([^"]*)', said) if not src.startswith("data:")
        } == set()
        assert not re.search(r'href="(?!#|[a-z][\w./-]*")', said)
    Path("results/tables/toy.md").unlink()


def test_the_policy_allows_the_pages_own_scripts_and_nothing_else(project):
    text = page(project).read_text()
    policy = unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1])
    assert "default-src 'none'" in policy
    for script in re.findall(r"<script>(.*?)</script>", text, re.DOTALL):
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert not re.search(r"<[^>]*\son[a-z]+=", text)  # no inline event handlers


def test_a_browser_runs_the_pages_scripts_and_no_others(project, open_page):
    """What stands in the page against all escaping is neither run nor fetched."""
    path = page(project)
    script = "document.body.dataset.evil = 1"
    evil = f"<script>{script}</script><img src=x onerror='{script}'><p id=e onclick='{script}'>e</p>"
    path.write_text(path.read_text().replace("</main>", evil + "</main>"))
    asked = "document.getElementById('e').click(); return [document.body.dataset.evil, document.querySelector('th button') !== null].join()"
    assert open_page(path, asked).said == ",true"


def test_other_pages_become_sections(project):
    other = project / "results/figures/toy-trees.html"
    other.write_text(
        "<html><head><style>x</style></head><body class='a'><h1>Trees</h1><p class='tree-x'>here</p></body></html>"
    )
    plan = PLAN["experiments"][0] | {"pages": [["Trees of toy", str(other)], ["More", "results/gone.html"]]}
    output = project / "results/report.html"
    write_report(PLAN | {"experiments": [plan]}, output, captions=project / "captions")
    html = output.read_text()
    assert re.search(r"Trees of toy</h3>\s*<p class='tree-x'>here</p>", html)
    assert '<h3 id="toy-page-1">' in html
    assert '<a href="#toy-page-1">trees of toy</a>' in html
    assert "snakemake results/gone.html" in html
    other.write_text("half a page")
    with pytest.raises(UserError, match=r"toy-trees\.html: not a whole HTML page"):
        write_report(PLAN | {"experiments": [plan]}, output, captions=project / "captions")


def test_the_same_results_give_the_same_page(project):
    assert page(project).read_bytes() == page(project).read_bytes()


def test_broken_scores_are_one_line(project):
    path = project / "results/toy/de-en/transformer/seed2/scores.json"
    for text, said in (("{", "not JSON"), ("[1]", "no scores in it"), ('{"scores": 3}', "no scores in it")):
        path.write_text(text)
        with pytest.raises(UserError, match=rf"seed2/scores\.json: {said}"):
            page(project)


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scripts", [True, False])
def test_the_page_fits_the_window_and_shows_all(project, open_page, width, scripts):
    measure = """
      const shown = (e) => e.checkVisibility() && e.getBoundingClientRect().height > 5;
      const all = (query) => [...document.querySelectorAll(query)];
      return JSON.stringify({
        inner: innerWidth, scroll: document.scrollingElement.scrollWidth,
        tables: all("table").filter(shown).length, pictures: all("img").filter(shown).length,
        examples: all("article").filter(shown).length, controls: all("input, button").length,
        small: all("p, td, dd").filter((e) => parseFloat(getComputedStyle(e).fontSize) < 12).length,
        outside: all("p, dd, h1, h2, h3, h4, figure, article, .wide").filter(
          (e) => e.getBoundingClientRect().right > innerWidth + 1).length,
      });"""
    shown = open_page(page(project), measure, width=width, scripts=scripts)
    said = json.loads(shown.said)
    assert not shown.console
    assert said.pop("controls") == (13 if scripts else 0)  # 11 columns, 2 filters
    assert said == {
        "inner": width, "scroll": width, "tables": 3, "pictures": 2, "examples": 3, "small": 0, "outside": 0,
    }  # fmt: skip


def test_tables_sort_and_lists_filter(project, open_page):
    script = """
      const rows = () => [...document.querySelectorAll("table.sortable tbody tr")];
      const column = (k) => rows().map((row) => row.cells[k].textContent.trim());
      const press = (k) => document.querySelectorAll("table.sortable th button")[k].click();
      const type = (k, text) => {
        const input = document.querySelectorAll("input")[k];
        input.value = text;
        input.dispatchEvent(new Event("input"));
      };
      press(1); const systems = column(1);
      press(3); press(3); const scores = column(3);
      type(1, "transformer 30.2"); const left = rows().filter((row) => row.checkVisibility()).length;
      type(0, " nr2 "); const sentences = document.querySelectorAll("article:not([hidden])").length;
      return JSON.stringify({ systems, scores, left, sentences });"""
    said = json.loads(open_page(page(project), script).said)
    assert said["systems"][0].startswith("Grammar")
    assert said["scores"][:2] == ["30.20", "30.00"]
    assert (said["left"], said["sentences"]) == (1, 1)


def test_a_numbers_link_opens_the_run(project, open_page):
    script = """document.querySelector('a[href="#run-toy-de-en-transformer-2-log"]').click();
      return String(document.querySelector("#run-toy-de-en-transformer-2").open);"""
    assert open_page(page(project), script).said == "true"


def test_a_tasks_own_score_stands_on_the_page(tmp_path):
    """MRPC's is F1, although accuracy comes first in the file."""
    folder = tmp_path / "glue/mrpc/roberta/seed1"
    folder.mkdir(parents=True)
    (folder / "scores.json").write_text(json.dumps({"scores": {"dev": {"accuracy": 70.0, "f1": 81.25}}}))
    entry = {
        "name": "glue",
        "title": "GLUE",
        "corpus": "glue",
        "directions": ["mrpc"],
        "systems": [["roberta", "RoBERTa"]],
        "seeds": [1],
        "tables": [],
        "figures": [],
        "columns": {"MRPC": "mrpc"},
        "metrics": {"dev": "dev"},
    }
    page = tmp_path / "page.html"
    write_report(
        {"title": "x", "figures": [], "experiments": [entry]}, page, captions=tmp_path, results=tmp_path
    )
    text = page.read_text()
    assert "81.25" in text
    assert "<th>Task</th>" in text
    assert "Translations" not in text
