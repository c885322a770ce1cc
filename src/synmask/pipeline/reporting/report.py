"""The report: one HTML page that needs no network, with findings, tables, figures, translations, runs."""

import base64
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import groupby
from operator import attrgetter
from os.path import relpath
from pathlib import Path
from typing import Any, get_args

from markupsafe import Markup

from synmask.pipeline.arguments import Json
from synmask.pipeline.display import arrow, isolate
from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation.bleu import words_of
from synmask.pipeline.files import read_aligned, read_lines, writing
from synmask.pipeline.languages import split_direction
from synmask.pipeline.metric_names import Cost
from synmask.pipeline.paths import PAIR, fill
from synmask.pipeline.reporting.cells import probability, signed
from synmask.pipeline.reporting.effects import panels
from synmask.pipeline.reporting.examples import Example, Name, examples
from synmask.pipeline.reporting.html import part, render
from synmask.pipeline.reporting.layout import PrintedTable, html_blocks, read_tables
from synmask.pipeline.reporting.page_spec import PagePart, PageSpec
from synmask.pipeline.reporting.results import commits
from synmask.pipeline.reporting.training_runs import (
    TRANSLATED,
    TRANSLATION_SCORES,
    TrainingRun,
    read_runs,
    settings,
    summary,
)

TITLES = {
    "curves": "Training and validation loss",
    "sweep": "BLEU by setting",
    "distribution": "Whose child is each token: P_D",
    "method": "The method",
}


def write_report(*, spec: Json[PageSpec], captions: Path, output: Path) -> None:
    """Write the report: tables, figures, trees, translations and runs on one page.

    The page needs no network and lists what is missing. For a page on the results that exist:
    `snakemake results/report.html --config partial=true`

    Args:
        spec: Its contents: see `snakemake -np results/report.html`. Of a table, the JSON beside the Markdown
            is read.
        captions: Folder of the figures' captions, NAME.rst for EXPERIMENT-NAME.svg or
            EXPERIMENT-DIRECTION-NAME.svg.
        output: The HTML file, in the folder of the results, to which its links are relative.

    Raises:
        UserError: a file that exists cannot be read, or is not what it should be.
    """
    parts = [
        entry | {"systems": [(name, isolate(label)) for name, label in entry["systems"]]}
        for entry in spec["experiments"]
    ]
    spec = {**spec, "experiments": parts}
    experiments = [_experiment(entry, captions) for entry in spec["experiments"]]
    filters = {
        "cards": lambda runs: [
            (key, list(group))
            for key, group in groupby(runs, attrgetter("training.direction", "training.system"))
        ],
        "blocks": _blocks,
        "costs": lambda table: table.cells["metric"].isin(get_args(Cost)).any(),
        "heading": _heading,
        "json": partial(json.dumps, indent=1, sort_keys=True, ensure_ascii=False),
        "link": partial(relpath, start=output.parent),
        "number": lambda value, digits=2, unit=1: "–" if value is None else f"{value / unit:z,.{digits}f}",
        "shell": lambda words: shlex.join(map(str, words)),
        "words": lambda text, language: words_of(language)(text),
    } | {function.__name__: function for function in (arrow, commits, probability, split_direction, signed)}
    runs = [run for entry in experiments for run in [*entry["runs"], *entry["missing"]]]
    script = part("page.js")
    page = render(
        "page.html",
        [script, part("tree_page.js")],
        filters,
        title=spec["title"],
        script=Markup(script),
        figures=_figures(spec["figures"], "", captions),
        absent_figures=_absent(spec["figures"]),
        experiments=experiments,
        panels=[*panels(spec, runs)],
        summary=summary(runs),
    )
    with writing(output) as handle:
        handle.write(page)


def _experiment(spec: PagePart, captions: Path) -> dict[str, Any]:
    """The template's variables on one experiment."""
    runs = read_runs(spec)
    there = [run for run in runs if run.scores]
    numbers = [Path(path).with_suffix(".json") for path in spec["tables"]]
    pages = spec.get("pages", [])
    return {
        "metrics": TRANSLATION_SCORES,
        "note": None,
        **spec,
        "kind": "Task" if "metrics" in spec else "Direction",
        "runs": there,
        "missing": [run for run in runs if not run.scores],
        "summary": summary(runs),
        "settings": settings(there),
        "tables": [(path, read_tables(path)) for path in numbers if path.exists()],
        "figures": _figures(spec["figures"], spec["name"], captions),
        "pages": [(heading, _body(Path(path))) for heading, path in pages if Path(path).exists()],
        "absent": _absent([*spec["tables"], *spec["figures"], *(path for _, path in pages)]),
        "translations": {} if "metrics" in spec else _translations(there),
    }


def _blocks(table: PrintedTable, experiment: dict[str, Any]) -> list[tuple[str, Markup]]:
    """A table's HTML, in which the numbers of the experiment's runs link to them."""
    trainings = (run.training for run in experiment["runs"])
    there = {(training.corpus, training.direction, training.system) for training in trainings}

    def link(cell: Mapping[str, Any]) -> str | None:
        here = (cell["corpus"], cell["run"], cell["system"]) in there
        return f"#run-{experiment['name']}-{cell['run']}-{cell['system']}" if here else None

    return [*html_blocks(table, link)]


def _heading(title: str, experiment: str) -> str:
    """A table's title without that of its experiment, which stands above it."""
    short = title.removeprefix(experiment).lstrip(":, ") or "scores"
    return short[0].upper() + short[1:]


def _absent(paths: Iterable[str]) -> list[str]:
    """The paths that do not exist, or are tables without their JSON."""
    return [path for path in paths if not Path(path.replace(".md", ".json")).exists()]


def _figures(paths: Iterable[str], experiment: str, captions: Path) -> list[dict[str, Any]]:
    """The figures that exist, as inline images, so that their ids and styles do not clash."""
    figures = []
    for path in map(Path, paths):
        if path.exists():
            name = path.stem.removeprefix(f"{experiment}-")
            direction, _, figure = name.rpartition("-")
            text = captions / f"{figure}.rst"
            caption = " ".join(read_lines(text)).strip() if text.exists() else ""
            title = ", ".join(filter(None, [TITLES.get(figure, figure), arrow(direction)]))
            image = base64.b64encode(path.read_bytes()).decode("ascii")
            figures.append(
                {
                    "title": title,
                    "stem": path.with_suffix(""),
                    "caption": caption,
                    "image": f"data:image/svg+xml;base64,{image}",
                }
            )
    return figures


def _body(page: Path) -> Markup:
    """The body of an HTML page without its heading."""
    body = re.search(r"<main><h1>.*?</h1>(.*)</main>", page.read_text(encoding="utf-8"), re.DOTALL)
    if body is None:
        raise UserError(f"{page}: not a whole HTML page; delete it and rerun")
    return Markup(body[1])


def _translations(runs: Iterable[TrainingRun]) -> dict[str, tuple[list[Name], list[Example]]]:
    """Direction → the runs that translate it, the baseline's first, and sentences that they translate."""
    by_direction = {}
    for (corpus, direction), group in groupby(runs, attrgetter("training.corpus", "training.direction")):
        translated = [run for run in group if (run.folder / TRANSLATED).exists()]
        hypotheses = {(run.label, run.training.seed): run.folder / TRANSLATED for run in translated}
        folder = Path(fill(PAIR / "text", direction, corpus=corpus))
        texts = [folder / f"test.{language}" for language in split_direction(direction)]
        if hypotheses and all(path.exists() for path in texts):
            signature = translated[0].scores.get("signatures", {}).get("sacrebleu", "")
            kwargs = {"language": split_direction(direction)[1], "lowercase": "case:lc" in signature}
            lines = read_aligned([*texts, *hypotheses.values()], "decode the test set again")
            if shown := examples(lines, [*hypotheses], **kwargs):
                by_direction[direction] = [*hypotheses], shown
    return by_direction
