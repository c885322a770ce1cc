"""Tables of the parsing scores of an experiment's runs, one per protocol."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import pandas as pd

from synmask.pipeline.arguments import OneOrMore
from synmask.pipeline.display import arrow
from synmask.pipeline.evaluation.bootstrap import SAMPLES, Counts, corpus_f1
from synmask.pipeline.evaluation.significance import compare
from synmask.pipeline.files import together
from synmask.pipeline.record import read_record
from synmask.pipeline.reporting.cells import (
    SIGNIFICANT,
    VERY_SIGNIFICANT,
    TableOptions,
    cell_of,
    frame_of,
    marked,
    signed,
)
from synmask.pipeline.reporting.layout import Note, Table, write_tables
from synmask.pipeline.reporting.metrics import ATTACHMENT, DEPENDENCIES, PARSE_LABELS, PARSE_SCORES, PROTOCOLS
from synmask.pipeline.reporting.notes import missing
from synmask.pipeline.reporting.runs import check_once, check_same, of_table, parse_rows, read_counts

TREES = [
    "induced", "right-branching", "right-branching-with-punctuation", "right-branching-punctuation-high",
    "left-branching", "left-branching-with-punctuation", "balanced", "balanced-with-punctuation",
    "random", "random-with-punctuation", "oracle", "left-neighbour", "right-neighbour",
]  # fmt: skip
Spans = dict[tuple[str, str, str], list[dict[str, Counts]]]


def write_parse_table(
    *, options: TableOptions, inputs: OneOrMore[Path], counts: OneOrMore[Path], output: Path
) -> None:
    """Make tables of parsing scores, one per protocol: CSV, Markdown and LaTeX.

    They show systems and trivial trees, mean and standard deviation over seeds, and significance: the best of
    each column in bold (never the oracle), and marks of the paired bootstrap on F1. Trivial trees depend on
    the sentences only, so they have one score per direction. The CSV has a row for each kind of tree of each
    run.

    Args:
        inputs: parse.json of the runs.
        counts: parse_counts.json of the runs, in the same order.
        output: Prefix of .csv, .md and .tex.

    Raises:
        UserError: a file is missing or lacks a key, a run is given twice or is not of the table, or the runs
            of a direction differ in their sentences or trivial trees.
    """
    for scores, counted in together(inputs=inputs, counts=counts):
        read_record(scores, [counted])
    rows = pd.DataFrame(itertools.chain.from_iterable(map(parse_rows, inputs)))
    check_once(rows, "protocol", "tree")
    rows = rows.sort_values("tree", key=lambda trees: trees.map(TREES.index), kind="stable")
    runs = of_table(rows, options.expected)
    trivial = runs[runs["tree"] != "induced"].fillna(0.0)
    keys = [key for key in ("corpus", "counted", *PARSE_LABELS) if key in trivial]
    check_same(trivial, ["direction", "protocol", "tree"], *keys)  # so they are of the same sentences
    parts = [part for name in PROTOCOLS if len(part := runs[runs["protocol"] == name])]
    spans = read_counts(counts)
    tables = [_table(options, part, spans) for part in parts]
    write_tables(output, tables, {".csv": pd.concat(parts)[rows.columns]})


def _table(options: TableOptions, runs: pd.DataFrame, spans: Spans) -> Table:
    """One protocol's table: means ± sd of the systems, then the trivial trees."""
    protocol, expected, labels = runs["protocol"].iloc[0], options.expected, dict(options.labels)
    if protocol == DEPENDENCIES:  # some systems induce no heads
        labels = {name: label for name, label in labels.items() if name in {*runs["system"]}}
        expected = expected[expected["system"].isin(labels)]
    trivial = [tree for tree in TREES[1:] if tree in {*runs["tree"]}]
    cells, tested = [], []
    for column in options.columns:
        here = runs[runs["direction"] == column["column"]]
        tests, note = _significance(spans, protocol, column["column"], labels)
        tested += note
        induced = here[here["tree"] == "induced"]
        rows = [(name, label, induced[induced["system"] == name]) for name, label in labels.items()]
        rows += [(None, tree, here[here["tree"] == tree].drop_duplicates("tree")) for tree in trivial]
        for metric, row in itertools.product(ATTACHMENT if protocol == DEPENDENCIES else PARSE_SCORES, rows):
            cell = cell_of(column, metric, *row)
            cell["contest"] = row[:2] != (None, "oracle")
            cells.append(cell | (tests.get(row[0], {}) if metric == "f1" and cell["seeds"] else {}))
    rivals = [tree for tree in trivial if tree.startswith("right-branching")]
    lacking = missing(expected, runs)
    return Table(
        f"{options.title}, protocol “{protocol}”",
        marked(frame_of(cells)),
        [
            *([Note(lacking, warning=True)] if lacking else []),
            Note(_how_to_read(runs, protocol)),
            *map(Note, tested),
        ],
        baseline=next(iter(rivals), ""),
        stub="Trees",
    )


def _how_to_read(runs: pd.DataFrame, protocol: str) -> str:
    seeds = ", ".join(map(str, sorted({*runs["seed"]})))
    unit = "words" if protocol == DEPENDENCIES else "sentences"
    counted = runs.groupby("direction", sort=False)["counted"].first()
    numbers = ", ".join(f"{arrow(name)} {count}" for name, count in counted.items())
    text = f"Protocol “{protocol}”: {PROTOCOLS[protocol]}. Scored {unit}: {numbers}. "
    text += f"Mean ± sample standard deviation over seeds {seeds}; the best of each column is bold."
    if protocol != DEPENDENCIES:
        text += (
            f" F1 † differs from right-branching at p < {SIGNIFICANT}, ‡ at p < {VERY_SIGNIFICANT}, both by a"
            f" paired bootstrap over sentences and seeds ({SAMPLES:,} samples) and by a t-test over the"
            " seeds, not corrected for the number of comparisons; one seed says nothing about the spread over"
            " seeds. The oracle is the gold tree made binary."
        )
    return text


def _significance(
    spans: Spans, protocol: str, direction: str, labels: dict[str, str]
) -> tuple[dict[str, dict[str, float]], list[str]]:
    """The test of each system against right-branching, and a note on the systems against each other."""
    runs = {name: trees for name in labels if (trees := spans.get((direction, name, protocol)))}
    induced = {name: [kinds["induced"] for kinds in trees] for name, trees in runs.items()}
    tests = {name: _test(induced[name], trees[0]["right-branching"]) for name, trees in runs.items()}
    parts = []
    for first, second in itertools.combinations(runs, 2):
        test = _test(induced[second], induced[first])
        numbers = f"{signed(test['change'])} (p = {test['p']:.3f})"
        parts.append(f"{labels[second]} against {labels[first]} {numbers}")
    return tests, [f"F1 {arrow(direction)}, by the same tests: {'; '.join(parts)}."] if parts else []


def _test(ours: Sequence[Counts], theirs: Sequence[Counts] | Counts) -> dict[str, float]:
    """The difference in F1 from runs, or from one kind of trivial trees, and the p of the tests."""
    runs = [theirs] if isinstance(theirs, Counts) else theirs
    scores, rivals = corpus_f1(ours), corpus_f1(runs)
    test = compare(scores, rivals[0] if runs is not theirs else rivals, ours, runs)
    return {"change": fmean(scores) - fmean(rivals), "p": test.p}
