"""One page on what was run, that opens without a network: tables, figures, translations, runs."""

import base64
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from os.path import relpath
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from synmask.files import UserError, read_lines, writing
from synmask.reporting.entries import METRICS, Run, read_runs, settings, summary
from synmask.reporting.examples import Example, examples
from synmask.reporting.html import part, policy
from synmask.reporting.layout import arrow, plain


@dataclass
class Figure:
    """A figure of the page; without `image` it is missing."""

    name: str
    stem: Path
    caption: str
    image: str | None


def write_report(
    plan: Mapping[str, Any],
    output: Path,
    *,
    captions: Path,
    results: Path = Path("results"),
) -> None:
    """Write the page from whatever exists of what `plan` names; the rest is called missing.

    Args:
        plan: `title`, `figures` (of no experiment) and `experiments`, each with `name`, `title`, `corpus`,
            `directions`, `systems` (pairs of name and label), `seeds`, and the paths of its `tables`
            (Markdown) and `figures` (SVG); if need be `pages`, a heading and the path of each HTML page that
            becomes a section (it must load nothing). An experiment on a benchmark has tasks as directions,
            `columns`, the task of each column of its tables, and `metrics`, the heads of its parts' scores.
        output: the HTML file; the results are linked relative to it.
        captions: folder of the figures' captions, NAME.rst for EXPERIMENT-NAME.svg or
            EXPERIMENT-DIRECTION-NAME.svg.
        results: the folder that the runs lie in.
    Raises:
        UserError: a file that exists cannot be read, or is not what it should be.
    """
    experiments = [_experiment(entry, captions, results) for entry in plan["experiments"]]
    environment = Environment(
        loader=PackageLoader("synmask.reporting", "page"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "arrow": arrow,
        "json": partial(json.dumps, indent=1, sort_keys=True, ensure_ascii=False),
        "link": partial(relpath, start=Path(output).parent),
        "number": lambda value, digits=2: "–" if value is None else f"{value:,.{digits}f}",
    }
    page = environment.get_template("page.html").render(
        title=plan["title"],
        policy=policy(part("page.js"), part("tree_page.js")),
        script=Markup(part("page.js")),
        figures=[_figure(Path(path), "", captions) for path in plan["figures"]],
        experiments=experiments,
        summary=summary([run for entry in experiments for run in entry["runs"]]),
    )
    with writing(output) as handle:
        handle.write(page)


def _experiment(entry: Mapping[str, Any], captions: Path, results: Path) -> dict[str, Any]:
    """What the template says about one experiment."""
    entry = {**entry, "systems": dict(entry["systems"])}
    translates = "columns" not in entry
    runs = read_runs(entry, results)
    anchors = _Anchors(entry)
    return {
        "name": entry["name"],
        "title": entry["title"],
        "metrics": entry.get("metrics", METRICS),
        "kind": "Direction" if translates else "Task",
        "runs": runs,
        "summary": summary(runs),
        "settings": settings(runs),
        "anchors": anchors,
        "tables": [_table(Path(path), anchors) for path in entry["tables"]],
        "figures": [_figure(Path(path), entry["name"], captions) for path in entry["figures"]],
        "pages": [(heading, Path(path), _body(Path(path))) for heading, path in entry.get("pages", [])],
        "translations": [
            (direction, _examples(results / entry["corpus"] / direction, direction, runs))
            for direction in (entry["directions"] if translates else ())
        ],
    }


class _Anchors:
    """Where on the page an experiment's runs stand."""

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self.entry = entry
        self.labels = {_cell(label): system for system, label in entry["systems"].items()}
        columns = entry.get("columns") or {arrow(name): name for name in entry["directions"]}
        self.columns = {_cell(name): column for name, column in columns.items()}

    def run(self, run: Run) -> str:
        return f"{self.group(run.direction, run.system)}-{run.seed}"

    def group(self, direction: str, system: str) -> str:
        """The seeds of a system in one direction."""
        return f"run-{self.entry['name']}-{direction}-{system}"

    def cell(self, row: str, column: str) -> str | None:
        """What a table's number comes from, by the texts that head its row and column."""
        if row not in self.labels:
            return None
        directions = [direction for name, direction in self.columns.items() if name in column]
        if not directions and "columns" in self.entry:  # the average of all
            return None
        return self.group((directions or self.entry["directions"])[0], self.labels[row])


def _cell(text: str) -> str:
    """What the parser finds in the cell of a table that was written with `text`."""
    return plain(text).replace(r"\|", "|")


def _table(path: Path, anchors: _Anchors) -> dict[str, Any]:
    """Markdown tables and their notes as HTML; every number of our own runs links to them."""
    if not path.exists():
        return {"path": path, "html": None}
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["image", "link", "autolink"])
    tokens = parser.parse("\n".join(read_lines(path)))
    row: list[Token] = []
    heads: list[str] = []
    for position, token in enumerate(tokens):
        if token.type == "heading_open":
            token.tag = tokens[position + 2].tag = "h4"
        elif token.type == "table_open":
            heads = []
        elif token.type == "tr_open":
            row = []
        elif token.type == "th_open":
            heads.append(tokens[position + 1].content)
        elif token.type == "td_open":
            row.append(tokens[position + 1])
            ours = len(row) > 1 and row[1].content not in ("published", "quoted")
            if ours and any(map(str.isdigit, row[-1].content)):
                _link(row[-1], anchors.cell(row[0].content, heads[len(row) - 1]))
    html = parser.renderer.render(tokens, parser.options, {})
    scrolling = html.replace("<table>", '<div class="wide" tabindex="0"><table>')
    return {"path": path, "html": Markup(scrolling.replace("</table>", "</table></div>"))}


def _link(cell: Token, anchor: str | None) -> None:
    if anchor:
        opening = Token("link_open", "a", 1, attrs={"href": f"#{anchor}"})
        cell.children = [opening, *cell.children, Token("link_close", "a", -1)]


def _figure(path: Path, experiment: str, captions: Path) -> Figure:
    """A figure, as an image that the page itself holds: its ids and styles stay its own."""
    name = path.stem.removeprefix(f"{experiment}-")
    text = captions / f"{name.rsplit('-', 1)[-1]}.rst"
    caption = " ".join(read_lines(text)).strip() if text.exists() else ""
    image = None
    if path.exists():
        image = f"data:image/svg+xml;base64,{base64.b64encode(path.read_bytes()).decode('ascii')}"
    return Figure(name, path.with_suffix(""), caption, image)


def _body(page: Path) -> Markup | None:
    """What an HTML page shows below its heading; None where there is none."""
    if not page.exists():
        return None
    body = re.search(r"<body[^>]*>(.*)</body>", page.read_text(encoding="utf-8"), re.DOTALL)
    if body is None:
        raise UserError(f"{page}: not a whole HTML page; delete it and rerun")
    return Markup(re.sub(r"<h1.*?</h1>", "", body[1], count=1, flags=re.DOTALL))


def _examples(folder: Path, direction: str, runs: Iterable[Run]) -> list[Example]:
    """Examples of a direction: of each system the first seed that has translations."""
    source, target = direction.split("-")
    hypotheses: dict[str, Path] = {}
    for run in runs:
        path = run.folder / "hypothesis.test.txt"
        if run.direction == direction and path.exists():
            hypotheses.setdefault(run.label, path)
    texts = [folder / "text" / f"test.{language}" for language in (source, target)]
    return examples(*texts, hypotheses) if hypotheses and all(path.exists() for path in texts) else []
