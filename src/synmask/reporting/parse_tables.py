"""Parsing scores of a corpus' runs: the systems, then the trivial trees."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from synmask.files import UserError, read_json, writing
from synmask.reporting.layout import Layout, Text, arrow, write_latex, write_markdown
from synmask.reporting.runs import RUN

PARSE_SCORES = {"precision": "P", "recall": "R", "f1": "F1", "sentence_f1": "sentence F1"}
TRIVIAL = ["right-branching", "left-branching", "balanced", "random", "oracle"]  # in this order


def write_parse_table(
    parses: Sequence[Path],
    csv: Path,
    markdown: Path,
    latex: Path,
    *,
    title: str,
    systems: Mapping[str, str],
    directions: list[str],
) -> None:
    """Write the parsing scores of a corpus' runs (one parse.json each): the systems, then the trivial trees.

    The CSV has one row for each kind of tree of each run; Markdown and LaTeX have the means ± sample standard
    deviations over seeds, the best mean of a column in bold, and below the seeds and what is missing.
    A trivial tree depends on the sentences only, so it has one score a direction. The oracle is never bold.
    `systems` gives the rows: the systems' names in order, and the label of each.

    Raises:
        UserError: a file is missing or lacks a key, a run is given twice or is not of the table, corpora are
            mixed, or runs of one column differ in protocol, sentences or trivial trees.
    """
    runs = pd.DataFrame(row for path in parses for row in _parse_rows(path))
    if runs.empty:
        raise UserError(f"{title}: no parse.json given; name at least one run")
    induced = runs[runs["tree"] == "induced"]
    _check_runs(induced, systems, directions)
    for _, column in runs.groupby("direction"):
        _one_value(column, "protocol")
        _one_value(column, "sentences")
    trivial = runs[runs["tree"] != "induced"]
    for (_, _), same in trivial.groupby(["direction", "tree"]):
        for metric in PARSE_SCORES:
            _one_value(same, metric)
    trivial = trivial.drop_duplicates(["direction", "tree"])
    baselines = sorted(set(trivial["tree"]), key=TRIVIAL.index)
    shown = pd.concat(
        [induced.assign(row=induced["system"].map(systems)), trivial.assign(row=trivial["tree"])]
    )
    table = _layout(title, shown, [*systems.values(), *baselines], directions)
    counts = induced.drop_duplicates("direction").set_index("direction")
    table.notes = [
        _rules(induced),
        "Trivial trees are scored by the same rules; the oracle is the best that any binary tree can get.",
        *_missing(induced, systems, directions),
        *(
            f"{arrow(name)}: {counts['sentences'][name]} sentences, protocol “{counts['protocol'][name]}”."
            for name in directions
            if name in counts.index
        ),
    ]
    _write_csv(runs, csv, [*RUN, "protocol", "sentences", "tree", *PARSE_SCORES], systems, directions)
    write_markdown(markdown, table)
    write_latex(latex, table)


def _parse_rows(path: Path) -> list[dict]:
    run = read_json(path)
    _require(run, [*RUN, "protocol", "sentences", "rows"], path, "the file")
    _require(run["rows"], ["induced"], path, "rows")
    head = {key: run[key] for key in [*RUN, "protocol", "sentences"]}
    rows = []
    for tree, scores in run["rows"].items():
        _require(scores, PARSE_SCORES, path, f"rows.{tree}")
        rows.append(head | {"tree": tree} | {metric: scores[metric] for metric in PARSE_SCORES})
    return rows


def _require(value: object, keys: Iterable[str], path: Path, where: str) -> None:
    lacking = [key for key in keys if not isinstance(value, dict) or key not in value]
    if lacking:
        raise UserError(f"{path}: no {', '.join(lacking)} in {where}; delete it and make it again")


def _check_runs(runs: pd.DataFrame, systems: Iterable[str], directions: list[str]) -> None:
    _one_value(runs, "corpus")
    for key, listed in (("system", systems), ("direction", directions)):
        for name in runs[key]:
            if name not in listed:
                raise UserError(f"{key} {name} is not in the table; it has {', '.join(listed)}")
    twice = runs[runs.duplicated(RUN)]
    if len(twice):
        run = twice.iloc[0]
        raise UserError(
            f"{run['system']} {run['direction']}, seed {run['seed']}: given twice; name each run once"
        )


def _one_value(runs: pd.DataFrame, key: str) -> object:
    """The value of `key`, which all `runs` must share."""
    first = runs.iloc[0]
    for _, run in runs[runs[key] != first[key]].iterrows():
        raise UserError(
            f"{key} differs in one column: {first[key]} ({first['system']} {first['direction']}, seed "
            f"{first['seed']}), {run[key]} ({run['system']} {run['direction']}, seed {run['seed']}); "
            "score all runs alike"
        )
    return first[key]


def _layout(title: str, runs: pd.DataFrame, rows: list[str], directions: list[str]) -> Layout:
    """Means ± sd of `runs` by their column `row`; the oracle cannot be the best."""
    cells: dict[str, list[Text]] = {row: [] for row in rows}
    for direction in directions:
        for metric in PARSE_SCORES:
            groups = runs[runs["direction"] == direction].groupby("row")[metric]
            means, deviations = groups.mean(), groups.std(ddof=1)
            rivals = [f"{mean:.2f}" for row, mean in means.items() if row != "oracle"]
            best = max(rivals, key=float) if len(rivals) > 1 else None
            for row in rows:
                if row not in means:
                    cells[row].append(Text("–"))
                    continue
                mean, deviation = f"{means[row]:.2f}", deviations[row]
                text = mean if pd.isna(deviation) else f"{mean} ± {deviation:.2f}"
                cells[row].append(Text(text, mean == best and row != "oracle"))
    heads = [(arrow(direction), name) for direction in directions for name in PARSE_SCORES.values()]
    return Layout(title, ["System"], heads, [([row], cells[row]) for row in rows])


def _rules(runs: pd.DataFrame) -> str:
    seeds = sorted(set(runs["seed"]))
    if len(seeds) == 1:
        return f"One seed ({seeds[0]}); the best of each column is bold."
    listed = ", ".join(map(str, seeds))
    return f"Mean ± sample standard deviation over seeds {listed}; the best mean of each column is bold."


def _missing(runs: pd.DataFrame, systems: Iterable[str], directions: list[str]) -> list[str]:
    """One line that names the runs that other systems or directions have."""
    seeds = sorted(set(runs["seed"]))
    there = set(zip(runs["system"], runs["direction"], runs["seed"], strict=True))
    parts = []
    for system in systems:
        for direction in directions:
            absent = [seed for seed in seeds if (system, direction, seed) not in there]
            if absent:
                which = "all seeds" if absent == seeds else "seed " + " and ".join(map(str, absent))
                parts.append(f"{system} {arrow(direction)} ({which})")
    return [f"Missing runs: {'; '.join(parts)}."] if parts else []


def _write_csv(
    runs: pd.DataFrame, path: Path, columns: list[str], systems: Iterable[str], directions: list[str]
) -> None:
    order = {"direction": directions.index, "system": list(systems).index}
    ordered = runs.sort_values(
        ["direction", "system", "seed"],
        key=lambda column: column.map(order[column.name]) if column.name in order else column,
        kind="stable",
    )
    with writing(path) as handle:
        ordered.to_csv(handle, columns=columns, index=False, lineterminator="\n")
