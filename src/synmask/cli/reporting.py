"""Tables and figures."""

import argparse
import json
from pathlib import Path

from synmask.cli.options import Arguments, add


def add_verbs(verbs: argparse._SubParsersAction) -> None:
    option = add(
        verbs,
        "table",
        _table,
        "Make a table from whatever runs are given: published numbers, mean and deviation over seeds, "
        "significance; CSV, Markdown and LaTeX.",
    )
    option("plan", "rows, columns and the runs that are asked for, as JSON", type=json.loads)
    option("published", "published.yaml")
    option("scores", "scores.json of the runs", nargs="*")
    option("parses", "parse.json of the runs", nargs="*")
    option("comparisons", "output of `significance`", nargs="*")
    option("output", "prefix of .csv, .runs.csv, .md and .tex")

    option = add(
        verbs,
        "excerpt",
        _excerpt,
        "Copy a table into a page of the documentation; between <!-- table --> and <!-- end of table -->.",
    )
    option("table", "prefix of the table's .md and .csv")
    option("page", "a Markdown file with the marks")
    option("data", "output: a copy of the .csv")

    option = add(
        verbs,
        "parse-table",
        _parse_table,
        "Make a table of parsing scores: mean and deviation over seeds, CSV, Markdown and LaTeX.",
    )
    option("inputs", "parse.json of the runs", nargs="+")
    option("output", "prefix of .csv, .md and .tex")
    option("title", "heads the table", type=str)
    option("labels", "the systems in order, as JSON pairs of name and label", type=_pairs)
    option("directions", "the directions in order", nargs="+", type=str)

    option = add(verbs, "curves", _curves, "Plot training and validation loss by epoch.")
    option("inputs", "history.csv of the runs", nargs="+")
    option("runs", "system and seed of each input, as a JSON list of pairs", type=json.loads)
    option("output", "prefix of .svg, .pdf and .csv")

    option = add(verbs, "bleu-figure", _bleu_figure, "Plot BLEU by system, with its spread over seeds.")
    option("inputs", "scores.json of the runs", nargs="+")
    option("labels", "the systems in order, as JSON pairs of name and label", type=_pairs)
    option("output", "prefix of .svg, .pdf and .csv")

    option = add(verbs, "tree-figure", _tree_figure, "Draw one sentence's gold tree above the induced ones.")
    option("gold", "bracketed gold trees, one a line")
    option("trees", "output of `parse`, one file a system", nargs="+")
    option("labels", "what each of them is called", nargs="+", type=str)
    option("distribution", "output of `parse`: names the sentence")
    option("output", "prefix of .svg, .pdf and .csv")

    option = add(
        verbs, "distribution-figure", _distribution_figure, "Draw P_D of one sentence as a heat map."
    )
    option("distribution", "output of `parse`")
    option("title", "heads the figure", type=str)
    option("output", "prefix of .svg, .pdf and .csv")


def _pairs(text: str) -> dict[str, str]:
    return dict(json.loads(text))


def _table(a: Arguments) -> None:
    from synmask.config import read_published
    from synmask.reporting.tables import write_table

    write_table(a.plan, read_published(a.published), a.scores, a.parses, a.comparisons, a.output)


def _excerpt(a: Arguments) -> None:
    from synmask.reporting.excerpt import write_excerpt

    write_excerpt(a.table, a.page, a.data)


def _parse_table(a: Arguments) -> None:
    from synmask.reporting.parse_tables import write_parse_table

    outputs = [Path(f"{a.output}.{kind}") for kind in ("csv", "md", "tex")]
    write_parse_table(a.inputs, *outputs, title=a.title, systems=a.labels, directions=a.directions)


def _curves(a: Arguments) -> None:
    from synmask.reporting.figures import curves

    curves({(system, seed): path for (system, seed), path in zip(a.runs, a.inputs, strict=True)}, a.output)


def _bleu_figure(a: Arguments) -> None:
    from synmask.reporting.figures import bleu_bars

    bleu_bars(a.inputs, a.output, a.labels)


def _tree_figure(a: Arguments) -> None:
    from synmask.files import read_json, read_lines
    from synmask.reporting.figures import trees
    from synmask.syntax.treebank import read_trees

    number = read_json(a.distribution)["sentence"] - 1
    induced = {}
    for label, path in zip(a.labels, a.trees, strict=True):
        row = json.loads(list(read_lines(path))[number])
        induced[label] = (row["tokens"], row["distances"])
    trees(list(read_trees(a.gold))[number], induced, a.output)


def _distribution_figure(a: Arguments) -> None:
    from synmask.files import read_json
    from synmask.reporting.figures import distribution

    value = read_json(a.distribution)
    distribution(value["tokens"], value["distribution"], a.output, a.title)
