"""Tables of a corpus, systems by directions, mean ± sd over seeds: CSV of the runs, Markdown, LaTeX."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from synmask.files import UserError, read_json, write_lines, writing

RUN = ["corpus", "direction", "system", "seed"]
SCORES = {"sacrebleu": "sacreBLEU", "bleu_tokenised": "tokenised BLEU", "chrf": "chrF"}
COSTS = ["parameters", "tokens_per_second", "train_seconds", "commit"]
LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "→": r"$\rightarrow$",
    "–": "--",
}


def write_table(
    scores: Sequence[Path],
    csv: Path,
    markdown: Path,
    latex: Path,
    *,
    title: str,
    systems: Mapping[str, str],
    directions: list[str],
) -> None:
    """Write the translation scores of a corpus' runs (one scores.json each).

    The CSV has one row a run; Markdown and LaTeX have the means ± sample standard deviations over seeds, the
    best mean of a column in bold, and below the seeds, what is missing, the signatures and the commits.
    `systems` gives the rows: the systems' names in order, and the label of each.

    Raises:
        UserError: a file is missing or lacks a key, a run is given twice or is not of the table, corpora
            are mixed, or runs of one column have different signatures.
    """
    runs = read_scores(scores)
    _check_runs(runs, systems, directions)
    signatures = [f"signature_{metric}" for metric in SCORES]
    notes = []
    for metric, name in SCORES.items():
        by_direction = {
            direction: _one_value(runs[runs["direction"] == direction], f"signature_{metric}")
            for direction in directions
            if direction in set(runs["direction"])
        }
        for signature in dict.fromkeys(by_direction.values()):
            where = [arrow(direction) for direction, other in by_direction.items() if other == signature]
            which = "" if len(where) == len(by_direction) else f" ({', '.join(where)})"
            notes.append(f"{name}{which}: {signature}.")
    table = _layout(runs.assign(row=runs["system"].map(systems)), [*systems.values()], directions, SCORES)
    table.notes = [_rules(runs), *_missing(runs, systems, directions), *notes, *_commits(runs)]
    _write_csv(runs, csv, [*RUN, *SCORES, *COSTS, *signatures], systems, directions)
    _write_markdown(markdown, title, table)
    _write_latex(latex, title, table)


def read_scores(paths: Iterable[Path]) -> pd.DataFrame:
    """The runs of scores.json files, one row each: what ran, its scores, signatures and costs.

    Raises:
        UserError: a file is missing, is not JSON, or lacks a key; or there is no file.
    """
    rows = []
    for path in paths:
        run = _read_json(path, [*RUN, "scores", "signatures"])
        _require(run["scores"], SCORES, path, "scores")
        _require(run["signatures"], SCORES, path, "signatures")
        row = {key: run.get(key) for key in [*RUN, *COSTS]} | {
            metric: run["scores"][metric] for metric in SCORES
        }
        rows.append(row | {f"signature_{metric}": run["signatures"][metric] for metric in SCORES})
    if not rows:
        raise UserError("no scores.json given; name at least one run")
    return pd.DataFrame(rows)


@dataclass
class _Table:
    """What Markdown and LaTeX show: per direction the same metrics, and the number of seeds of each row."""

    directions: list[str]
    metrics: list[str]
    rows: dict[str, list[tuple[str, bool]]]  # per direction and metric: the text, and whether it is the best
    seeds: dict[str, str]
    notes: list[str]


def _read_json(path: Path, keys: Iterable[str]) -> dict:
    run = read_json(path)
    _require(run, keys, path, "the file")
    return run


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


def _layout(
    runs: pd.DataFrame,
    rows: list[str],
    directions: list[str],
    metrics: dict[str, str],
    contest: Callable[[str], bool] = lambda row: True,
) -> _Table:
    """Means ± sd of `runs` by their column `row`; only rows for which `contest` holds can be the best."""
    table = _Table(directions, list(metrics.values()), {row: [] for row in rows}, {}, [])
    for direction in directions:
        for metric in metrics:
            groups = runs[runs["direction"] == direction].groupby("row")[metric]
            means, deviations = groups.mean(), groups.std(ddof=1)
            rivals = [f"{mean:.2f}" for row, mean in means.items() if contest(row)]
            best = max(rivals, key=float) if len(rivals) > 1 else None
            for row in rows:
                if row not in means:
                    table.rows[row].append(("–", False))
                    continue
                mean, deviation = f"{means[row]:.2f}", deviations[row]
                text = mean if pd.isna(deviation) else f"{mean} ± {deviation:.2f}"
                table.rows[row].append((text, mean == best and contest(row)))
    for row in rows:
        seeds = [
            runs[(runs["row"] == row) & (runs["direction"] == name)]["seed"].count() for name in directions
        ]
        table.seeds[row] = (
            " / ".join(map(str, seeds if len(set(seeds)) > 1 else seeds[:1])) if any(seeds) else "–"
        )
    return table


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


def _commits(runs: pd.DataFrame) -> list[str]:
    commits = list(dict.fromkeys(commit for commit in runs["commit"] if commit))
    return [f"Commit: {', '.join(commits)}."] if commits else []


def arrow(direction: str) -> str:
    """A direction as readers know it: "de-en" becomes "De→En"."""
    return "→".join(language.capitalize() for language in direction.split("-"))


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


def _write_markdown(path: Path, title: str, table: _Table) -> None:
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"

    heads = [f"{arrow(direction)} {metric}" for direction in table.directions for metric in table.metrics]
    lines = [f"# {title}", "", line(["System", *heads, "Seeds"]), "|---" + "|---:" * (len(heads) + 1) + "|"]
    for row, cells in table.rows.items():
        lines.append(
            line([row, *(f"**{text}**" if best else text for text, best in cells), table.seeds[row]])
        )
    write_lines(path, [*lines, *(part for note in table.notes for part in ("", note))])


def _write_latex(path: Path, title: str, table: _Table) -> None:
    """A table environment for the booktabs package."""
    width, groups = len(table.metrics), range(len(table.directions))
    spans = [rf"\multicolumn{{{width}}}{{c}}{{{_latex(arrow(name))}}}" for name in table.directions]
    rules = " ".join(rf"\cmidrule(lr){{{2 + width * k}-{1 + width * (k + 1)}}}" for k in groups)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_latex(' '.join([title.rstrip('.') + '.', *table.notes]))}}}",
        rf"\begin{{tabular}}{{l{'r' * (width * len(groups) + 1)}}}",
        r"\toprule",
        " & ".join(["", *spans, r"\\"]),
        rules,
        " & ".join(["System", *map(_latex, table.metrics * len(groups)), r"Seeds \\"]),
        r"\midrule",
    ]
    for row, cells in table.rows.items():
        texts = [rf"\textbf{{{_latex(text)}}}" if best else _latex(text) for text, best in cells]
        lines.append(" & ".join([_latex(row), *texts, rf"{_latex(table.seeds[row])} \\"]))
    write_lines(path, [*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


def _latex(text: str) -> str:
    return "".join(LATEX.get(character, character) for character in text)
