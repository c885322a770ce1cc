"""Tables of the parsing scores of an experiment's runs, one per protocol."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import pandas as pd

from synmask.pipeline.arguments import Labels, OneOrMore, together
from synmask.pipeline.config.base import Line, arrow
from synmask.pipeline.evaluation.bootstrap import SAMPLES, Counts, corpus_f1
from synmask.pipeline.evaluation.significance import compare
from synmask.pipeline.files import UserError
from synmask.pipeline.record import read_record
from synmask.pipeline.reporting.cells import SIGNIFICANT, VERY_SIGNIFICANT, frame_of, marked, signed
from synmask.pipeline.reporting.layout import Note, Table, write_tables
from synmask.pipeline.reporting.metrics import ATTACHMENT, DEPENDENCIES, PARSE_LABELS, PARSE_SCORES, PROTOCOLS
from synmask.pipeline.reporting.runs import check_once, check_same, parse_rows, read_counts

TREES = [
    "induced", "right-branching", "right-branching-with-punctuation", "right-branching-punctuation-high",
    "left-branching", "left-branching-with-punctuation", "balanced", "balanced-with-punctuation",
    "random", "random-with-punctuation", "oracle", "left-neighbour", "right-neighbour",
]  # fmt: skip
Spans = dict[tuple[str, str, str], list[dict[str, Counts]]]


def write_parse_table(
    *,
    inputs: OneOrMore[Path],
    counts: OneOrMore[Path],
    output: Path,
    title: Line,
    labels: Labels,
    directions: OneOrMore[str],
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
        title: Heading of the tables.
        directions: The directions in order.

    Raises:
        UserError: a file is missing or lacks a key, a run is given twice or is not of the table, or the runs
            of a direction differ in their sentences or trivial trees.
    """
    for scores, counted in together(inputs=inputs, counts=counts):
        read_record(scores, [counted])
    runs = pd.DataFrame(itertools.chain.from_iterable(map(parse_rows, inputs)))
    order = {"protocol": [*PROTOCOLS], "direction": [*directions], "system": [*dict(labels)], "tree": TREES}
    for key in ("system", "direction"):
        for name in runs[key]:
            if name not in order[key]:
                raise UserError(f"{key} {name} is not in the table; it has {', '.join(order[key])}")
    check_once(runs, "protocol", "tree")
    trivial = runs[runs["tree"] != "induced"].fillna(0.0)
    keys = [key for key in ("corpus", "counted", *PARSE_LABELS) if key in trivial]
    check_same(trivial, ["direction", "protocol", "tree"], *keys)  # so they are of the same sentences
    runs = runs.sort_values(
        ["protocol", "direction", "system", "seed", "tree"],
        key=lambda column: column.map(order[column.name].index) if column.name in order else column,
        kind="stable",
    )
    spans = read_counts(counts)
    parts = [part for _, part in runs.groupby("protocol", sort=False)]
    tables = [_table(title, part, spans, dict(labels), directions) for part in parts]
    write_tables(output, tables, {".csv": runs})


def _table(
    title: str, runs: pd.DataFrame, spans: Spans, labels: dict[str, str], directions: Sequence[str]
) -> Table:
    """One protocol's table: means ± sd of the systems, then the trivial trees."""
    protocol = runs["protocol"].iloc[0]
    metrics = ATTACHMENT if protocol == DEPENDENCIES else PARSE_SCORES
    if protocol == DEPENDENCIES:  # some systems induce no heads
        labels = {name: label for name, label in labels.items() if name in {*runs["system"]}}
    trivial = [tree for tree in TREES[1:] if tree in {*runs["tree"]}]
    cells, tested = [], []
    for direction in directions:
        here = runs[runs["direction"] == direction]
        tests, note = _significance(spans, protocol, direction, labels)
        tested += note
        rows = [
            (name, label, here[(here["tree"] == "induced") & (here["system"] == name)])
            for name, label in labels.items()
        ]
        rows += [(None, tree, here[here["tree"] == tree].drop_duplicates("tree")) for tree in trivial]
        for metric, (system, label, part) in itertools.product(metrics, rows):
            values = part[metric] if part[metric].notna().all() else part[metric][:0]
            cell = {
                "corpus": runs["corpus"].iloc[0],
                "column": direction,
                "metric": metric,
                "system": system,
                "label": label,
                "mean": values.mean(),
                "sd": values.std(ddof=1),
                "run": system and direction,
                "head": PARSE_LABELS[metric],
                "contest": system is not None or label != "oracle",
            }
            cells.append(cell | (tests.get(system, {}) if metric == "f1" and len(values) else {}))
    same = {"group": "", "digits": 2, "seeds": 0, "asked": 0, "diverged": 0}
    return Table(
        f"{title}, protocol “{protocol}”",
        marked(frame_of(cells).assign(**same)),
        [*_missing(runs, labels, directions), Note(_how_to_read(runs, protocol)), *map(Note, tested)],
        baseline=next((tree for tree in trivial if tree.startswith("right-branching")), ""),
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


def _missing(runs: pd.DataFrame, labels: dict[str, str], directions: Sequence[str]) -> list[Note]:
    """One line on missing runs: those with seeds that other systems or directions have."""
    seeds = sorted({*runs["seed"]})
    there = {*zip(runs["system"], runs["direction"], runs["seed"], strict=True)}
    parts = []
    for system, direction in itertools.product(labels, directions):
        absent = [seed for seed in seeds if (system, direction, seed) not in there]
        if absent:
            which = "all seeds" if absent == seeds else "seed " + ", ".join(map(str, absent))
            parts.append(f"{labels[system]} {arrow(direction)} ({which})")
    return [Note(f"Missing runs: {'; '.join(parts)}.", warning=True)] if parts else []
