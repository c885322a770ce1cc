"""The page: what it holds, what it links to, and that a real browser shows it."""

import base64
import copy
import hashlib
import json
import os
import re
from html import unescape
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from browser import SMALLEST
from synmask.pipeline.errors import UserError
from synmask.pipeline.reporting.cells import frame_of
from synmask.pipeline.reporting.layout import PrintedTable, write_tables
from synmask.pipeline.reporting.report import write_report
from synmask.pipeline.reporting.tree_page import page as tree_page
from synmask.pipeline.syntax.parses import Parse
from synmask.pipeline.syntax.treebank import Tree

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="900pt" height="200pt"><rect id="x" width="900" height="200"/></svg>'
GRAMMAR = "Grammar <b>&</b> co"


def cells_of(system, means, **kwargs):
    """The cells of a row."""
    names = {"corpus": "toy", "column": "de-en", "group": "", "system": system, "run": "de-en"}
    numbers = {"seeds": 2, "asked": 2, "diverged": 0, "best": False}
    heads = ("tokenised BLEU", "sacreBLEU", "chrF")
    return [
        names | numbers | {"metric": head, "mean": mean} | kwargs
        for head, mean in zip(heads, means, strict=False)
    ]


def table():
    """Of two systems and a published number."""
    published = {"published": 34.71, "printed": "34.71", "origin": "measured"}
    *bleu, chrf = cells_of("transformer", [30.1, 30.1, 50.0], label="Transformer", sd=0.1)
    rows = [*(cell | published for cell in bleu), chrf]
    *bleu, chrf = cells_of("grammar", [31.0, 31.0, 49.0], label=GRAMMAR, sd=0.1)
    rows += [*(cell | {"best": True, "p": 0.03, "change": 0.9} for cell in bleu), chrf | {"system": "other"}]
    warnings = ["Diverged: one.", "Missing: Grammar (seed 2); " + "and more " * 50]
    notes = ["How to read.", "Marks.", "Signature."]
    return PrintedTable("Toy", frame_of(rows), warnings, notes, "Transformer")


RUNS = {"transformer": [1, 2], "grammar": [1, 2]}


def column(corpus, name, runs):
    return {"corpus": corpus, "column": name, "group": "", "runs": runs}


SPEC = {
    "title": "Report: Toy & more",
    "figures": ["results/figures/method.svg"],
    "experiments": [
        {
            "name": "toy",
            "title": "Toy & more",
            "systems": [["transformer", "Transformer"], ["grammar", GRAMMAR]],
            "columns": [column("toy", "de-en", RUNS)],
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
        "versions": {"torch": "2.0"}, "command": "synmask score --hypothesis 'a<b'", "settings": {"training": {"lr": 0.5}, "system": OWN[system]},
    }  # fmt: skip
    (folder / "scores.json").write_text(json.dumps(run))
    log = "".join(f"epoch {k} <done>\n" for k in range(30))
    (folder / "train.log").write_bytes(b"a library's caf\xe9, which is no UTF-8\n" + log.encode())
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
    (tmp_path / "results/tables").mkdir()
    write_tables(tmp_path / "results/tables/toy", [table()], {})
    (tmp_path / "results/figures").mkdir()
    for name in ("toy-bleu", "method"):
        (tmp_path / f"results/figures/{name}.svg").write_text(SVG)
    (tmp_path / "captions").mkdir()
    (tmp_path / "captions/bleu.rst").write_text("BLEU by <system>.\n")
    return tmp_path


def page(project):
    output = project / "results/report.html"
    write_report(spec=SPEC, output=output, captions=project / "captions")
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


def test_runs_that_were_packed_without_their_times_have_none(project):
    assert (
        page(project).read_text().count("2023-11-14") == 5
    )  # each of three runs; the first and last; the head
    for path in project.rglob("scores.json"):
        os.utime(path, (0, 0))
    html = page(project).read_text()
    assert "1970" not in html
    assert "<h4>Seed 2: sacreBLEU 30.20</h4>" in html


def test_the_numbers_of_a_system_link_to_its_runs(project):
    html = page(project).read_text()
    assert '<a href="#run-toy-de-en-transformer">30.10 ± 0.10</a>' in html
    assert '<a href="#run-toy-de-en-grammar"><strong>31.00 ± 0.10†</strong></a>' in html
    assert re.search("<td *>34.71</td>", html)  # published: no run of ours
    assert re.search("<td *>49.00 ± 0.10</td>", html)  # of a system that is not on the page
    assert '<a href="#run-toy-de-en-transformer-2">30.20</a>' in html


def test_marks_are_explained(project):
    html = re.sub(r"\s+", " ", page(project).read_text())
    assert "<small>Δ +0.90, p 0.030</small>" in html
    assert (
        "Δ: difference from Transformer; p: how often chance alone gives one as large, not corrected" in html
    )
    shown = re.sub("<details.*?</details>", "", html[html.index('<div class="table">') :])
    assert shown.index('<p class="warning">Diverged: one.</p>') < shown.index("<table>")  # beside the numbers
    assert shown.index("<table>") < shown.index("How to read.") < shown.index("Marks.")
    assert "Signature." not in shown
    assert '<p class="warning">Diverged: one.</p>' in html
    assert re.search(r"<summary>Missing: Grammar \(seed 2\); [^<]*\.\.\.</summary>", html)


def test_a_tables_files_stand_in_its_heading(project):
    heading = re.search(r"<h4>Toy(.*?)</h4>", page(project).read_text(), re.DOTALL)[1]
    assert re.findall('href="(.*?)"', heading) == [f"tables/toy.{kind}" for kind in ("md", "csv", "tex")]


def test_what_an_experiment_says_of_itself_stands_above_its_results(project):
    spec = copy.deepcopy(SPEC)
    spec["experiments"][0]["note"] = "Too small & few."
    write_report(spec=spec, output=project / "results/report.html", captions=project / "captions")
    html = (project / "results/report.html").read_text()
    assert html.index("<h1>") < html.index('<p class="warning">Too small &amp; few.</p>') < html.index("<nav")


def test_the_title_stands_once_and_what_few_read_is_folded(project):
    html = page(project).read_text()
    body = html[html.index("<body") :]
    assert body.count("Toy &amp; more") == 1
    assert re.search(r"<h1>Report: Toy &amp; more</h1>", body)
    for folded in ("Settings", "The method"):
        assert f"<summary><h3>{folded}</h3></summary>" in body
    assert '<a class="skip" href="#contents">' in body


@pytest.mark.parametrize(("metric", "folded"), [("memory", True), ("sacrebleu", False)])
def test_a_table_of_costs_is_folded(project, metric, folded):
    cells = frame_of(cells_of("a", [1.5], label="A", metric=metric))
    write_tables(project / "results/tables/toy", [PrintedTable("Toy & more: numbers", cells)], {})
    assert ("<details><summary>Numbers</summary>" in page(project).read_text()) == folded


def test_what_was_run_is_reported(project):
    html = page(project).read_text()
    for message in ("3 of 4", "2023-11-14 22:13 UTC", "abc123", "CPU", "torch 2.0", "0.07 hours", "epoch 29 &lt;done&gt;",
                 "synmask score --hypothesis &#39;a&lt;b&#39;", "1,234,567", "BLEU by &lt;system&gt;."):  # fmt: skip
        assert message in html, message
    assert "epoch 3 &lt;done&gt;" not in html  # only the log's end


def test_settings_that_differ_stand_side_by_side(project):
    html = re.sub(r"\s+", "", page(project).read_text())
    assert '<tr><thscope="row">system.guide</th><td>none</td><td>grammar</td></tr>' in html
    assert '<tr><thscope="row">system.layers</th><td>–</td><td>7</td></tr>' in html
    assert "<dt>training.lr</dt><dd>0.5</dd>" in html


def test_what_is_missing_is_called_missing(project):
    html = page(project).read_text()
    for path in (
        "results/tables/toy-parsing.md",
        "results/figures/toy-de-en-curves.svg",
        "results/toy/de-en/grammar/seed2/scores.json",
    ):
        assert f"snakemake {path}" in html
    assert "Missing: 1 of 4 runs. All of them: <code>snakemake toy</code>" in html
    assert (
        html.count("seed2/scores.json") == html.count("transformer/seed2/scores.json") + 1
    )  # one line per run
    assert "no number" in html  # grammar, seed 1 diverged
    assert ">nan<" not in html


def test_an_empty_project_is_a_page_of_missing_things(project, open_page):
    spec = SPEC | {"experiments": [SPEC["experiments"][0] | {"columns": [column("none", "de-en", RUNS)]}]}
    write_report(spec=spec, output=project / "results/report.html", captions=project / "captions")
    shown = open_page(project / "results/report.html")
    assert "0 of 4" in shown.html
    assert not shown.console


def test_text_of_the_data_is_never_markup(project):
    html = page(project).read_text()
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert" in html
    assert "<b>&</b>" not in html


def test_a_label_from_right_to_left_does_not_turn_what_stands_beside_it(project):
    spec = copy.deepcopy(SPEC)
    spec["experiments"][0]["systems"][1][1] = "نظام"
    write_report(spec=spec, output=Path("results/report.html"), captions=project / "captions")
    html = Path("results/report.html").read_text(encoding="utf-8")
    assert "نظام" in html
    assert not re.search("(?<!\u2068)نظام|نظام(?!\u2069)", html)


HOSTILE = (
    "![x](http://a.example/x.png) <img src=http://b.example/y.png> [z](javascript:alert) _e_ *f* `g` a|b"
)


def test_a_label_or_title_is_no_image_link_or_markup(project):
    """In the table's Markdown by itself, and in the page even where the Markdown holds an image."""
    rows = cells_of("a", [1.5], label=HOSTILE, group=HOSTILE)
    rows += cells_of("b", [1.0], label="b", group=HOSTILE, p=0.5, change=-0.5)
    table = PrintedTable(HOSTILE, frame_of(rows), [HOSTILE], baseline=HOSTILE)
    write_tables(Path("results/tables/toy"), [table], {})
    shown = MarkdownIt("commonmark").enable("table").render(Path("results/tables/toy.md").read_text())
    assert not re.search(r"<(img|a|em|script)\b", shown)
    assert shown.count("http://a.example/x.png") == 4
    assert "<code>" not in shown
    spec = copy.deepcopy(SPEC)
    spec["title"] = spec["experiments"][0]["title"] = HOSTILE
    spec["experiments"][0]["systems"][1][1] = HOSTILE
    write_report(spec=spec, output=Path("results/report.html"), captions=project / "captions")
    html = Path("results/report.html").read_text()
    assert not [src for src in re.findall(r'<img[^>]*src="([^"]*)', html) if not src.startswith("data:")]
    assert not re.search(r'href="(?!#|[a-z][\w./-]*")', html)


def test_the_policy_allows_the_pages_own_scripts_and_nothing_else(project):
    text = page(project).read_text()
    policy = unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1])
    assert "default-src 'none'" in policy
    for script in re.findall(r"<script>(.*?)</script>", text, re.DOTALL):
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert not re.search(r"<[^>]*\son[a-z]+=", text)  # no inline event handlers


def test_a_browser_runs_the_pages_scripts_and_no_others(project, open_page):
    """Markup that escaping missed is neither run nor fetched."""
    path = page(project)
    script = "document.body.dataset.evil = 1"
    evil = f"<script>{script}</script><img src=x onerror='{script}'><p id=e onclick='{script}'>e</p>"
    path.write_text(path.read_text().replace("</main>", evil + "</main>"))
    script = "document.getElementById('e').click(); return [document.body.dataset.evil, document.querySelector('th button') !== null].join()"
    assert open_page(path, script).result == ",true"


def test_other_pages_become_sections(project):
    other = project / "results/figures/toy-trees.html"
    other.write_text(
        "<html><head><style>x</style></head><body><main><h1>Trees</h1><p class='tree-x'>here</p></main></body></html>"
    )
    spec = SPEC["experiments"][0] | {"pages": [["Trees of toy", str(other)], ["More", "results/gone.html"]]}
    output = project / "results/report.html"
    write_report(spec=SPEC | {"experiments": [spec]}, output=output, captions=project / "captions")
    html = output.read_text()
    assert re.search(r"Trees of toy</h3>\s*<p class='tree-x'>here</p>", html)
    assert '<h3 id="toy-page-1">' in html
    assert '<a href="#toy-page-1">Trees of toy</a>' in html
    assert "snakemake results/gone.html" in html
    other.write_text("half a page")
    with pytest.raises(UserError, match=r"toy-trees\.html: not a whole HTML page"):
        write_report(spec=SPEC | {"experiments": [spec]}, output=output, captions=project / "captions")


def test_the_same_results_give_the_same_page(project):
    assert page(project).read_bytes() == page(project).read_bytes()


def test_broken_scores_are_one_line(project):
    path = project / "results/toy/de-en/transformer/seed2/scores.json"
    for text, message in (
        ("{", "not JSON"),
        ("[1]", "no scores in it"),
        ('{"scores": 3}', "no scores in it"),
    ):
        path.write_text(text)
        with pytest.raises(UserError, match=rf"seed2/scores\.json: {message}"):
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
        examples: all("article").filter(shown).length, controls: all("input, button, select").filter(shown).length,
        small: all("p, td, dd").filter((e) => parseFloat(getComputedStyle(e).fontSize) < 12).length,
        outside: all("p, dd, h1, h2, h3, h4, figure, article, .wide, nav").filter(
          (e) => e.getBoundingClientRect().right > innerWidth + 1).length,
      });"""
    shown = open_page(page(project), measure, width=width, scripts=scripts)
    content = json.loads(shown.result)
    assert not shown.console
    assert content.pop("controls") == (18 if scripts else 0)  # 11 columns, a filter, 6 of the translations
    assert content == {
        "inner": width, "scroll": width, "tables": 2, "pictures": 1, "examples": 3, "small": 0, "outside": 0,
    }  # fmt: skip


@pytest.mark.parametrize(("width", "top"), [(1280, 0), (400, 0)])
def test_the_contents_stay_in_sight(project, open_page, width, top):
    script = """scrollTo(0, document.scrollingElement.scrollHeight);
      const box = document.querySelector("nav").getBoundingClientRect();
      return [Math.round(box.top), box.bottom > 20].join();"""
    assert open_page(page(project), script, width=width).result == f"{top},true"


def test_all_texts_are_legible(project, open_page):
    """13 pixels at least."""
    assert float(open_page(page(project), f"return {SMALLEST}").result) >= 13


def test_tables_sort_and_lists_filter(project, open_page):
    script = """
      const rows = () => [...document.querySelectorAll("table.sortable tbody tr")];
      const column = (k) => rows().map((row) => row.cells[k].textContent.trim());
      const press = (k) => document.querySelectorAll("table.sortable th button")[k].click();
      const filter = document.querySelector("label.controls input");
      press(1); const systems = column(1);
      press(3); press(3); const scores = column(3);
      filter.value = "transformer 30.2"; filter.dispatchEvent(new Event("input"));
      const left = rows().filter((row) => row.checkVisibility()).length;
      return JSON.stringify({ systems, scores, left });"""
    content = json.loads(open_page(page(project), script).result)
    assert content["systems"][0].startswith("Grammar")
    assert content["scores"][:2] == ["30.20", "30.00"]
    assert content["left"] == 1


def test_translations_are_compared_by_system_and_seed(project, open_page):
    """Seed 1: grammar is worse than transformer in each sentence, most in the last; seed 2 is transformer alone."""
    pair = project / "results/toy/de-en"
    for name, seed, lines in (
        ("transformer", 1, ["the cat Nr0", "the cat Nr1", "the cat Nr2"]),
        ("transformer", 2, ["a dog Nr0", "the cat Nr1", "the Nr2"]),
        ("grammar", 1, ["the cat Nr0 x", "the cat", "no"]),
    ):
        (pair / name / f"seed{seed}/hypothesis.test.txt").write_text("\n".join(lines) + "\n")
    script = """
      const form = document.querySelector(".compare form");
      const set = (name, value) => { form.elements[name].value = value; form.dispatchEvent(new Event("input")); };
      const shown = () => [...document.querySelectorAll("article")].filter((one) => one.checkVisibility());
      const numbers = () => shown().map((one) => one.dataset.number).join("");
      const lacking = () => shown().map((one) => [...one.querySelectorAll(".lacking")].map((e) => e.textContent).join()).join("|");
      const rows = () => [...shown()[0].querySelectorAll("[data-system]")].filter((e) => e.checkVisibility()).length;
      const said = [numbers(), lacking(), rows(), [...document.querySelectorAll("mark")].map((e) => e.textContent).slice(1).join()];
      set("order", "loss"); said.push(numbers());
      set("order", "number"); said.push(numbers());
      set("words", "nr1"); said.push(numbers(), form.querySelector("output").value); set("words", "");
      set("least", 4); said.push(numbers()); set("least", 1);
      set("system", "Transformer"); set("seed", 2); said.push(lacking(), rows());
      return JSON.stringify(said);"""
    content = json.loads(open_page(page(project), script).result)
    assert content == [
        "123", "|Nr1|the,cat,Nr2", 2, "a dog,x,no", "321", "123", "2", "1 of 1 sentences", "", "the cat||cat", 1,
    ]  # fmt: skip


def test_a_numbers_link_opens_the_runs_card(project, open_page):
    script = """document.querySelector('a[href="#run-toy-de-en-transformer-2"]').click();
      return new Promise((resolve) => setTimeout(() => resolve(
        [...document.querySelectorAll(".card")].map((card) => card.open).join()), 100));"""
    assert open_page(page(project), script).result == "true,false"
    assert (
        open_page(
            page(project), "return document.querySelectorAll('.card')[1].open", part="#run-toy-de-en-grammar"
        ).result
        == "true"
    )


def test_the_cards_commands_can_be_pasted(project):
    (project / "results/toy").rename(project / "results/my toy")
    for path in project.glob("results/my toy/**/scores.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"corpus": "my toy"}))
    spec = copy.deepcopy(SPEC)
    spec["experiments"][0]["columns"][0]["corpus"] = "my toy"
    write_report(spec=spec, output=project / "results/report.html", captions=project / "captions")
    html = unescape((project / "results/report.html").read_text())
    target = "'results/my toy/de-en/transformer/seed1/scores.json'"
    assert f"snakemake --force {target}" in html
    assert f"snakemake {target} --forcerun train" in html
    assert f"snakemake {target.replace('transformer/seed1', 'grammar/seed2')}" in html  # what is missing


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible(project, open_page, scheme):
    """No serious finding of axe-core, with a section of trees, everything unfolded."""
    other = project / "results/figures/toy-trees.html"
    tree = Tree("S", (Tree("A", ("a",)), Tree("B", (Tree("C", ("b",)), Tree("D", ("c",))))))
    parse = Parse(["a", "b", "c"], [2, 1], 3, None, [1, 2, 3], [[[1, 0.9]], [[3, 0.9]], [[1, 0.9]]])
    other.write_text(tree_page("Trees", [tree], {"Grammar": [parse]}))
    spec = SPEC["experiments"][0] | {"pages": [["Trees of toy", str(other)]]}
    output = project / "results/report.html"
    write_report(spec=SPEC | {"experiments": [spec]}, output=output, captions=project / "captions")
    if scheme == "dark":
        output.write_text(
            output.read_text().replace("(prefers-color-scheme: dark)", "all").replace("light dark", "dark")
        )
    axe = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    script = (
        axe.replace("</script", r"<\/script")
        + """;
      for (const one of document.querySelectorAll("details")) one.open = true;
      return axe.run(document).then((found) => JSON.stringify(found.passes.length < 20 ? "hardly run" : found.violations
        .filter((one) => ["serious", "critical"].includes(one.impact))
        .map((one) => [one.id, one.nodes.length, one.nodes[0].html.slice(0, 200), one.nodes[0].failureSummary])));"""
    )
    assert json.loads(open_page(output, script).result) == []


def test_a_tasks_own_score_stands_on_the_page(tmp_path, monkeypatch):
    """MRPC's is F1, although accuracy comes first in the file."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "results/glue/mrpc/roberta/seed1"
    folder.mkdir(parents=True)
    (folder / "scores.json").write_text(json.dumps({"scores": {"dev": {"accuracy": 70.0, "f1": 81.25}}}))
    entry = {
        "name": "glue",
        "title": "GLUE",
        "systems": [["roberta", "RoBERTa"]],
        "columns": [column("glue", "MRPC", {"roberta": [1]}) | {"task": "mrpc", "part": "dev"}],
        "tables": [],
        "figures": [],
        "metrics": {"dev": "dev"},
    }
    page = tmp_path / "page.html"
    write_report(spec={"title": "x", "figures": [], "experiments": [entry]}, output=page, captions=tmp_path)
    text = page.read_text()
    assert "81.25" in text
    assert '<th scope="col">Task</th>' in text
    assert "Translations" not in text
