"""Tables and figures."""

import argparse
import json

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
    option(
        "tasks", "scores.json and baselines.json of tasks of language understanding", nargs="*", default=[]
    )
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
        "Make tables of parsing scores, one a protocol: systems and trivial trees, mean and deviation over "
        "seeds, significance; CSV, Markdown and LaTeX.",
    )
    option("inputs", "parse.json of the runs", nargs="+")
    option("counts", "parse_counts.json of the runs, in the same order", nargs="+")
    option("output", "prefix of .csv, .md and .tex")
    option("title", "heads the tables", type=str)
    option("labels", "the systems in order, as JSON pairs of name and label", type=_pairs)
    option("directions", "the directions in order", nargs="+", type=str)

    option = add(verbs, "curves", _curves, "Plot training and validation loss by epoch.")
    option("inputs", "history.csv of the runs", nargs="+")
    option("runs", "system and seed of each input, as a JSON list of pairs", type=json.loads)
    option("labels", "the systems in order, as JSON pairs of name and label", type=_pairs)
    option("output", "prefix of .svg, .pdf and .csv")

    for name, verb, what in (
        ("bleu-figure", _bleu_figure, "by system, with confidence intervals over test sentences"),
        ("source-figure", _source_figure, "by length of the source and by its split words, of one direction"),
    ):
        option = add(verbs, name, verb, f"Plot BLEU {what}.")
        option("inputs", "output of `sentences`, a file a run", nargs="+")
        option("runs", "direction, system and seed of each, as a JSON list of triples", type=json.loads)
        option("labels", "the systems in order, as JSON pairs of name and label", type=_pairs)
        option("output", "prefix of .svg, .pdf and .csv")

    option = add(
        verbs,
        "sweep-figure",
        _sweep_figure,
        "Plot BLEU of the validation and the test set against a number in the settings.",
    )
    option("inputs", "scores.json of the runs", nargs="+")
    option("setting", "where the number stands, e.g. system.options.bpe_dim", type=str)
    option("output", "prefix of .svg, .pdf and .csv")

    option = add(verbs, "task-figure", _task_figure, "Draw scores on tasks of language understanding.")
    option("table", "prefix of the table's .csv and .runs.csv")
    option("output", "prefix of .svg, .pdf and .csv")

    option = add(verbs, "speed-figure", _speed_figure, "Plot time and memory by length of the sentences.")
    option("input", "output of `speed`")
    option("labels", "the systems in order, as JSON pairs of name and label", type=_pairs)
    option("output", "prefix of .svg, .pdf and .csv")

    option = add(verbs, "diagram", _diagram, "Draw the method: how induced syntax masks attention.")
    option("output", "prefix of .svg, .pdf and .csv")

    option = add(
        verbs, "distribution-figure", _distribution_figure, "Draw P_D of one sentence as a heat map."
    )
    option("distribution", "output of `parse`")
    option("title", "heads the figure", type=str)
    option("output", "prefix of .svg, .pdf and .csv")

    option = add(
        verbs,
        "report",
        _report,
        "Write one page on what was run: tables, figures, translations and runs; it opens without a network. "
        "What does not exist is called missing.",
    )
    option("plan", "what belongs to it, as JSON: see `snakemake -np results/report.html`", type=json.loads)
    option("captions", "folder of the figures' captions, a NAME.rst each")
    option("output", "the HTML file, in the folder of the results")


def _pairs(text: str) -> dict[str, str]:
    labels = dict(json.loads(text))
    if len({*labels.values()}) < len(labels):
        raise argparse.ArgumentTypeError(f"two systems have one label: {text}")
    return labels


def _table(a: Arguments) -> None:
    from synmask.config import read_published
    from synmask.reporting.tables import write_table

    write_table(a.plan, read_published(a.published), a.scores, a.parses, a.tasks, a.comparisons, a.output)


def _excerpt(a: Arguments) -> None:
    from synmask.reporting.excerpt import write_excerpt

    write_excerpt(a.table, a.page, a.data)


def _parse_table(a: Arguments) -> None:
    from synmask.reporting.parse_tables import write_parse_table

    write_parse_table(a.inputs, a.counts, a.output, title=a.title, systems=a.labels, directions=a.directions)


def _curves(a: Arguments) -> None:
    from synmask.reporting.figures import curves

    histories = {(system, seed): path for (system, seed), path in zip(a.runs, a.inputs, strict=True)}
    curves(histories, a.output, a.labels)


def _bleu_figure(a: Arguments) -> None:
    from synmask.evaluation.sentences import intervals
    from synmask.reporting.bleu_figures import bleu_bars

    bleu_bars(intervals(_runs(a)), a.output, a.labels)


def _source_figure(a: Arguments) -> None:
    from synmask.evaluation.sentences import GROUPS, by_source
    from synmask.reporting.bleu_figures import bleu_by_source

    runs = _runs(a)
    bleu_by_source({column: by_source(runs, column) for column in GROUPS}, a.output, a.labels)


def _runs(a: Arguments) -> dict:
    from synmask.evaluation.sentences import Run

    return {
        Run(direction, system, seed): path
        for (direction, system, seed), path in zip(a.runs, a.inputs, strict=True)
    }


def _sweep_figure(a: Arguments) -> None:
    from synmask.reporting.bleu_figures import sweep

    sweep(a.inputs, a.setting, a.output)


def _task_figure(a: Arguments) -> None:
    from synmask.reporting.task_figures import task_bars

    task_bars(a.table, a.output)


def _speed_figure(a: Arguments) -> None:
    from synmask.reporting.figures import speed

    speed(a.input, a.output, a.labels)


def _diagram(a: Arguments) -> None:
    from synmask.reporting.diagram import diagram

    diagram(a.output)


def _distribution_figure(a: Arguments) -> None:
    from synmask.files import read_json
    from synmask.reporting.figures import distribution

    value = read_json(a.distribution)
    distribution(value["tokens"], value["distribution"], a.output, a.title)


def _report(a: Arguments) -> None:
    from synmask.reporting.report import write_report

    write_report(a.plan, a.output, captions=a.captions)
