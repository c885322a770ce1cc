#!/usr/bin/env python3
"""The tables of the registered report (README.md), from the runs, verdict.csv and secondary.csv.

python studies/multi30k/registered/report.py RUNS MEASURES

RUNS holds the unpacked archive; the CSV files lie beside this file. Prints Markdown, and writes the secondary
measures, also of each test set, to the CSV file MEASURES.
"""

import sys
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pandas as pd

from synmask.pipeline.display import markdown_table
from synmask.pipeline.evaluation.significance import compare_seeds
from synmask.pipeline.files import read_json
from synmask.pipeline.reporting.cells import signed

CORPUS, DIRECTION = "multi30k-confirmation", "de-en"
GRAMMAR, RIVALS = "grammar", ["transformer", "transformer-mlm", "transformer-wide-small"]
SYSTEMS = [*RIVALS, GRAMMAR]
SETS = {
    "flickr2016": "2016 Flickr",
    "flickr2017": "2017 Flickr",
    "coco2017": "2017 MSCOCO",
    "flickr2018": "2018 Flickr",
}
METRICS = {
    "sacrebleu": "sacreBLEU",
    "chrf": "chrF",
    "perplexity": "perplexity",
    "f1_words": "F1",
}
DIGITS = {"perplexity": 3}  # of a difference; else 2
Score = Callable[[dict[str, Any]], float]  # of a run's scores.json
Run = tuple[str, int]  # system, seed


def read_runs(folder: Path) -> dict[Run, dict[str, Any]]:
    """Each run's scores.json."""
    systems = folder / CORPUS / DIRECTION
    paths = sorted(path for system in SYSTEMS for path in (systems / system).glob("seed*/scores.json"))
    return {(path.parts[-3], int(path.parent.name.removeprefix("seed"))): read_json(path) for path in paths}


def contrasts(name: str) -> list[dict[str, Any]]:
    return pd.read_csv(Path(__file__).with_name(name)).to_dict("records")


def tested(rows: Sequence[dict[str, Any]]) -> str:
    """Each contrast with its p-values and verdict; the test against the paper's gain has a row of its own."""
    lines = []
    for row in rows:
        name = f"`{row['system']}` − `{row['rival']}`, {METRICS[row['metric']]}"
        difference = interval(row["metric"], row["difference"], row["low"], row["high"])
        p = [small(row[key]) for key in ("p_test_set", "p_seeds", "p")]
        lines.append([name, difference, *p, f"**{row['verdict']}**"])
        if not pd.isna(row["gain"]):
            p = [small(row[key]) for key in ("p_gain_test_set", "p_gain_seeds")]
            lines.append([f"the same, against {signed(row['gain'])}", "", *p, "–", ""])
    heads = ["Contrast", "Difference [95% interval]", "p, sentences", "p, seeds", "p, corrected", "Verdict"]
    return markdown_table(heads, "lrrrrl", lines)


def interval(metric: str, difference: float, low: float, high: float) -> str:
    """−0.55 [−1.05, −0.04]"""
    middle, *ends = (signed(value, DIGITS.get(metric, 2)) for value in (difference, low, high))
    return f"{middle} [{', '.join(ends)}]"


def small(p: float) -> str:
    return f"{p:.4f}" if p >= 0.0001 else "< 0.0001"


def needed(rows: Sequence[dict[str, Any]]) -> str:
    """Of each open contrast, the seeds per system that Welch's test would need."""
    open_ones = [row for row in rows if row["verdict"] == "cannot tell"]
    lines = [
        [f"`{row['system']}` − `{row['rival']}`, {METRICS[row['metric']]}", f"{row['needed']:.0f}"]
        for row in open_ones
    ]
    return markdown_table(["Contrast", "Seeds per system"], "lr", lines) if lines else ""


def by_machine(runs: dict[Run, dict[str, Any]]) -> str:
    """The primary differences on each kind of machine, without a test."""
    seeds_on: dict[tuple[str, str], list[int]] = {}
    for seed in sorted({seed for _, seed in runs}):
        # the four systems of a seed are made on one machine
        (name_and_precision,) = {machine(runs[system, seed]) for system in SYSTEMS}
        seeds_on.setdefault(name_and_precision, []).append(seed)
    lines = []
    for names, seeds in {**seeds_on, ("all", ""): sorted({seed for _, seed in runs})}.items():
        cells = [
            signed(difference(runs, rival, score(metric), seeds))
            for rival, metric in [*((rival, "sacrebleu") for rival in RIVALS), ("transformer", "perplexity")]
        ]
        lines.append([*names, listed(seeds), *cells])
    heads = [
        "Machine",
        "Training",
        "Seeds",
        *(f"− `{rival}`, BLEU" for rival in RIVALS),
        "− `transformer`, perplexity",
    ]
    return markdown_table(heads, "lllrrrr", lines)


def machine(run: dict[str, Any]) -> tuple[str, str]:
    """The GPU or the processor, and the precision of training."""
    device = run["processor"] if run["device"] == "CPU" else run["device"]
    return device.replace("(R)", ""), run["settings"]["training"]["precision"]


def listed(seeds: Sequence[int]) -> str:
    """11 and 20; 12 to 19"""
    if len(seeds) > 2 and seeds[-1] - seeds[0] == len(seeds) - 1:
        return f"{seeds[0]} to {seeds[-1]}"
    return " and ".join(map(str, seeds))


def score(metric: str, of_set: str = "") -> Score:
    """How a metric is read: on all sentences of the test set, or on those of one of its sets."""
    if of_set:
        return lambda run: run["test_sets"][of_set][metric]
    if metric == "perplexity":
        return lambda run: run["perplexity"]["test"]
    return lambda run: run["scores"]["test"][metric]


def scores(
    runs: dict[Run, dict[str, Any]], system: str, read: Score, seeds: Sequence[int] = ()
) -> list[float]:
    return [
        read(run) for (name, seed), run in runs.items() if name == system and (not seeds or seed in seeds)
    ]


def difference(runs: dict[Run, dict[str, Any]], rival: str, read: Score, seeds: Sequence[int]) -> float:
    return fmean(scores(runs, GRAMMAR, read, seeds)) - fmean(scores(runs, rival, read, seeds))


def measures(runs: dict[Run, dict[str, Any]]) -> pd.DataFrame:
    """Mean and standard deviation over the seeds, and the grammar's difference with Welch's 95% interval."""
    rows = []
    for metric, of_set in product(("sacrebleu", "chrf", "perplexity"), ("", *SETS)):
        read = score(metric, of_set)
        for system in SYSTEMS:
            values = scores(runs, system, read)
            effect = (
                compare_seeds(scores(runs, GRAMMAR, read), values)[:3] if system != GRAMMAR else [None] * 3
            )
            rows.append([metric, SETS.get(of_set, "all"), system, fmean(values), stdev(values), *effect])
    names = ["metric", "test_set", "system", "mean", "sd", "difference", "low", "high"]
    return pd.DataFrame(rows, columns=names)


def secondary(measured: pd.DataFrame) -> str:
    """The measures of all test sentences."""
    lines = []
    for metric, rows in measured[measured["test_set"] == "all"].groupby("metric", sort=False):
        systems = [*rows.itertuples()]
        lines.append([METRICS[metric], *(f"{system.mean:.2f} ± {system.sd:.2f}" for system in systems)])
        effects = (interval(metric, system.difference, system.low, system.high) for system in systems[:-1])
        lines.append(["`grammar` minus it", *effects, ""])
    heads = ["Measure", *(f"`{system}`" for system in SYSTEMS)]
    return markdown_table(heads, "l" + "r" * len(SYSTEMS), lines)


def report(folder: Path, measures_csv: Path) -> str:
    runs, primary = read_runs(folder), contrasts("verdict.csv")
    measured = measures(runs)
    measured.to_csv(measures_csv, index=False, lineterminator="\n")
    parts = {
        "### The four primary contrasts": tested(primary),
        "### Seeds that the open contrasts would need": needed(primary),
        "### By kind of machine, without a test": by_machine(runs),
        "### Secondary: trees": tested(contrasts("secondary.csv")),
        "### Secondary: means, and differences with their 95% intervals, without a test": secondary(measured),
    }
    return "\n".join(f"{head}\n\n{table}\n" for head, table in parts.items() if table)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} RUNS MEASURES")
    print(report(*map(Path, sys.argv[1:])), end="")
