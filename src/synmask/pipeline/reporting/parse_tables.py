"""Tables of the parsing scores of an experiment's runs, one per protocol."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from synmask.pipeline.arguments import OneOrMore
from synmask.pipeline.display import arrow
from synmask.pipeline.reporting.cells import TableOptions, cells_of, signed
from synmask.pipeline.reporting.layout import PrintedTable, write_tables
from synmask.pipeline.reporting.metrics import ATTACHMENT, DEPENDENCIES, PARSE_LABELS, PARSE_SCORES, PROTOCOLS
from synmask.pipeline.reporting.notes import how_to_read, missing_runs, significance
from synmask.pipeline.reporting.results import check_once, check_same, parse_rows, select_expected

TREES = [
    "induced", "right-branching", "right-branching-with-punctuation", "right-branching-punctuation-high",
    "left-branching", "left-branching-with-punctuation", "balanced", "balanced-with-punctuation",
    "random", "random-with-punctuation", "oracle", "left-neighbour", "right-neighbour",
]  # fmt: skip


def write_parse_table(*, options: TableOptions, inputs: OneOrMore[Path], output: Path) -> None:
    """Make tables of parsing scores, one per protocol: CSV, Markdown and LaTeX.

    They show systems and trivial trees, mean and standard deviation over seeds, the best of each column in
    bold (never the oracle), and marks of significance on F1. The CSV has a row per run and kind of tree.

    Args:
        inputs: parse.json of the runs; parse_counts.json beside each, for tests.
        output: Prefix of .csv, .md and .tex.

    Raises:
        UserError: a file is missing or lacks a key, a run is given twice or is not of the table, or the runs
            of a direction differ in their sentences or trivial trees.
    """
    rows = pd.DataFrame(itertools.chain.from_iterable(map(parse_rows, inputs)))
    check_once(rows, "protocol", "tree")
    rows = rows.sort_values("tree", key=lambda trees: trees.map(TREES.index), kind="stable")
    runs = select_expected(rows, options.expected)
    keys = [key for key in ("corpus", "counted", *PARSE_LABELS) if key in runs]
    trivial = runs[runs["tree"] != "induced"]
    check_same(trivial, ["direction", "protocol", "tree"], *keys)  # so they are of the same sentences
    parts = [part for name in PROTOCOLS if len(part := runs[runs["protocol"] == name])]
    tables = [_table(options, part, output) for part in parts]
    write_tables(output, tables, {".csv": pd.concat(parts)[rows.columns].drop(columns="counts")})


def _table(options: TableOptions, runs: pd.DataFrame, output: Path) -> PrintedTable:
    """One protocol's table: means ± sd of the systems, then the trivial trees, each as one more system."""
    protocol, trees = runs["protocol"].iloc[0], {*runs["tree"]}
    trivial = [(f"{tree} trees", tree) for tree in TREES[1:] if tree in trees]
    baseline, label = next((row for row in trivial if row[1].startswith("right-branching")), (None, ""))
    unit, metrics, systems = "sentences", PARSE_SCORES, options.labels
    if protocol == DEPENDENCIES:
        induced = {*runs["system"]}  # some systems induce no heads
        unit, metrics, systems = "words", ATTACHMENT, [row for row in systems if row[0] in induced]
    options = replace(options, labels=[*systems, *trivial])
    grown = runs[runs["tree"] != "induced"].drop_duplicates(["direction", "tree"])
    grown = grown.assign(system=grown["tree"] + " trees", seed=0)
    grown["counts"] = grown["counts"].where(grown["system"].eq(baseline))  # others are not tested
    rows = pd.concat([runs[runs["tree"] == "induced"], grown])
    cells = cells_of(options, metrics, rows, baseline, {})
    counted = runs.groupby("direction", sort=False)["counted"].first()
    numbers = ", ".join(f"{arrow(name)} {count}" for name, count in counted.items())
    about = f"Protocol “{protocol}”: {PROTOCOLS[protocol]}. Scored {unit}: {numbers}."
    explained = [about, how_to_read(cells, runs), significance(label, unit, cells, "Student's")]
    notes = [" ".join(filter(None, explained)), *_between(options, rows, systems)]
    warnings = [*filter(None, [missing_runs(options.expected, runs, output)])]
    return PrintedTable(f"{options.title}, protocol “{protocol}”", cells, warnings, notes, label)


def _between(options: TableOptions, runs: pd.DataFrame, systems: Sequence[tuple[str, str]]) -> Iterator[str]:
    """A note per direction on the F1 of systems against each other."""
    tests = [
        cells_of(replace(options, labels=systems[place:]), ["f1"], runs, rival, {}).assign(rival=label)
        for place, (rival, label) in enumerate(systems, start=1)
    ]
    for direction, cells in pd.concat(tests).dropna(subset=["p"]).groupby("column", sort=False):
        parts = (
            f"{cell.label} against {cell.rival} {signed(cell.change)} (p = {cell.p:.3f})"
            for cell in cells.itertuples()
        )
        yield f"F1 {arrow(direction)}, by the same tests: {'; '.join(parts)}."
