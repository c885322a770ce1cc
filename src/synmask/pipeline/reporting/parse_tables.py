"""Tables of the parsing scores of an experiment's runs, one per protocol."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pandas as pd

from synmask.pipeline.config.base import Line
from synmask.pipeline.evaluation.bootstrap import SAMPLES, Counts, corpus_f1
from synmask.pipeline.evaluation.significance import compare
from synmask.pipeline.files import UserError
from synmask.pipeline.options import Labels, Some, together
from synmask.pipeline.reporting.layout import (
    SIGNIFICANT,
    VERY_SIGNIFICANT,
    Layout,
    Value,
    arrow,
    highest,
    signed,
    write_csv,
    write_tables,
)
from synmask.pipeline.reporting.metrics import ATTACHMENT, DEPENDENCIES, PARSE_SCORES
from synmask.pipeline.reporting.parse_text import LABELS, PROTOCOLS
from synmask.pipeline.reporting.runs import check_once, parse_rows, read_counts

TREES = [
    "induced", "right-branching", "right-branching-with-punctuation", "right-branching-punctuation-high",
    "left-branching", "left-branching-with-punctuation", "balanced", "balanced-with-punctuation",
    "random", "random-with-punctuation", "oracle", "left-neighbour", "right-neighbour",
]  # fmt: skip


def write_parse_table(
    *,
    inputs: Some[Path],
    counts: Some[Path],
    output: Path,
    title: Line,
    labels: Labels,
    directions: Some[str],
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
    together(inputs=inputs, counts=counts)
    systems = dict(labels)
    runs = pd.DataFrame(itertools.chain.from_iterable(map(parse_rows, inputs)))
    if runs.empty:
        raise UserError(f"{title}: no parse.json given; name at least one run")
    _check(runs, systems, directions)
    spans = read_counts(counts)
    listed = {"direction": list(directions), "system": list(systems), "protocol": [*PROTOCOLS], "tree": TREES}
    order = {key: names.index for key, names in listed.items()}
    runs = runs.sort_values(
        ["protocol", "direction", "system", "seed", "tree"],
        key=lambda column: column.map(order[column.name]) if column.name in order else column,
        kind="stable",
    )
    tables = [
        _table(title, part, name, spans, systems, directions)
        for name, part in runs.groupby("protocol", sort=False)
    ]
    write_tables(output, tables)
    write_csv(output, runs)


def _check(runs: pd.DataFrame, systems: Mapping[str, str], directions: Sequence[str]) -> None:
    for key, listed in (("system", systems), ("direction", directions)):
        for name in runs[key]:
            if name not in listed:
                raise UserError(f"{key} {name} is not in the table; it has {', '.join(listed)}")
    if runs["counted"].isna().any():
        raise UserError("parse.json without a number of scored sentences; score all runs again")
    check_once(runs, "protocol", "tree")
    alike = [("protocol", runs, ["corpus"]), ("tree", runs[runs["tree"] == "induced"], ["counted"])]
    alike.append(("tree", runs[runs["tree"] != "induced"], [*LABELS]))
    for key, part, values in alike:
        for value in (value for value in values if value in part):
            different = part.groupby(["direction", "protocol", key])[value].nunique(dropna=True)
            if (different > 1).any():
                direction, protocol, _ = different[different > 1].index[0]
                raise UserError(
                    f"{direction}, protocol {protocol}: {value} of the same {key} differs between runs; "
                    "score all runs alike"
                )


def _table(
    title: str,
    runs: pd.DataFrame,
    protocol: str,
    spans: dict[tuple, dict[str, Counts]],
    systems: Mapping[str, str],
    directions: Sequence[str],
) -> Layout:
    """One protocol's table: means ± sd of the systems, then the trivial trees."""
    metrics = ATTACHMENT if protocol == DEPENDENCIES else PARSE_SCORES
    if protocol == DEPENDENCIES:  # some systems induce no heads
        systems = {name: label for name, label in systems.items() if name in set(runs["system"])}
    trivial = [tree for tree in TREES[1:] if tree in set(runs["tree"])]
    table = Layout(
        f"{title}, protocol “{protocol}”",
        ["Trees"],
        [(arrow(direction), LABELS[metric]) for direction in directions for metric in metrics],
        baseline=next((tree for tree in trivial if tree.startswith("right-branching")), ""),
    )
    rows = [
        *((label, "induced", system) for system, label in systems.items()),
        *((tree, tree, None) for tree in trivial),
    ]
    table.rows = [([name], []) for name, *_ in rows]
    notes = []
    for direction in directions:
        here = runs[runs["direction"] == direction]
        tests, differences = _significance(spans, protocol, direction, systems)
        notes += differences
        for metric in metrics:
            column = []
            for _, tree, system in rows:
                scores = _scores(here, tree, system, metric)
                run = (runs["corpus"].iloc[0], direction, system) if system else None
                test = tests.get(system, {}) if metric == "f1" and len(scores) else {}
                mean = float(scores.mean()) if len(scores) else None
                sd = scores.std(ddof=1) if len(scores) > 1 else None
                column.append(Value(mean, sd=sd, run=run, **test))
            rivals = (None if row[1] == "oracle" else one.mean for row, one in zip(rows, column, strict=True))
            for (_, cells), one, best in zip(table.rows, column, highest(rivals, 2), strict=True):
                cells.append(replace(one, best=best))
    table.notes = [_how_to_read(runs, protocol, directions), *_missing(runs, systems, directions), *notes]
    return table


def _scores(runs: pd.DataFrame, tree: str, system: str | None, metric: str) -> pd.Series:
    """A metric of a system's runs, or of a trivial tree; empty if any value is missing."""
    here = runs[runs["tree"] == tree]
    values = (here[here["system"] == system] if system else here.drop_duplicates("tree"))[metric]
    return values if values.notna().all() else values[:0]


def _how_to_read(runs: pd.DataFrame, protocol: str, directions: Sequence[str]) -> str:
    seeds = ", ".join(map(str, sorted(set(runs["seed"]))))
    unit = "words" if protocol == DEPENDENCIES else "sentences"
    counted = [
        f"{arrow(name)} {runs[runs['direction'] == name]['counted'].iloc[0]}"
        for name in directions
        if (runs["direction"] == name).any()
    ]
    text = f"Protocol “{protocol}”: {PROTOCOLS[protocol]}. Scored {unit}: {', '.join(counted)}. "
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
    spans: dict[tuple, dict[str, Counts]], protocol: str, direction: str, systems: Mapping[str, str]
) -> tuple[dict[str, dict[str, float]], list[str]]:
    """The test of each system against right-branching, and a note on the systems against each other."""
    runs = {
        system: [
            kept
            for (where, name, _, rules), kept in spans.items()
            if (where, name, rules) == (direction, system, protocol)
        ]
        for system in systems
    }
    runs = {system: found for system, found in runs.items() if found}
    tests, parts = {}, []
    for system, found in runs.items():
        change, p = _test([kept["induced"] for kept in found], found[0]["right-branching"])
        tests[system] = {"p": p, "change": change}
    for one, other in itertools.combinations(runs, 2):
        change, p = _test(*([kept["induced"] for kept in runs[name]] for name in (other, one)))
        parts.append(f"{systems[other]} against {systems[one]} {signed(change)} (p = {p:.3f})")
    return tests, [f"F1 {arrow(direction)}, by the same tests: {'; '.join(parts)}."] if parts else []


def _test(ours: Sequence[Counts], theirs: Sequence[Counts] | Counts) -> tuple[float, float]:
    """The difference in F1 from runs, or from one kind of trivial trees, and the p of the tests."""
    runs = [theirs] if isinstance(theirs, Counts) else theirs
    scores, rivals = corpus_f1(ours), corpus_f1(runs)
    test = compare(scores, rivals[0] if runs is not theirs else rivals, ours, runs)
    return fmean(scores) - fmean(rivals), test.p


def _missing(runs: pd.DataFrame, systems: Mapping[str, str], directions: Sequence[str]) -> list[str]:
    """One line on missing runs: those with seeds that other systems or directions have."""
    seeds = sorted(set(runs["seed"]))
    there = set(zip(runs["system"], runs["direction"], runs["seed"], strict=True))
    parts = []
    for system, direction in itertools.product(systems, directions):
        absent = [seed for seed in seeds if (system, direction, seed) not in there]
        if absent:
            which = "all seeds" if absent == seeds else "seed " + ", ".join(map(str, absent))
            parts.append(f"{systems[system]} {arrow(direction)} ({which})")
    return [f"Missing runs: {'; '.join(parts)}."] if parts else []
