#!/usr/bin/env python3
"""Test the claims of a study on its runs.

    python studies/verdict.py studies/multi30k/claims.yaml RESULTS OUTPUT

RESULTS holds the runs: CORPUS/DIRECTION/SYSTEM/seedN/. Writes OUTPUT.md and OUTPUT.csv, a row per contrast,
the second with all tests, and OUTPUT.runs.csv, a row per run.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from synmask.pipeline.display import arrow, markdown_table
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_csv, read_json, write_all
from synmask.pipeline.paths import RUN as RUN_FOLDER
from synmask.pipeline.paths import existing, fill
from synmask.pipeline.record import run_names
from synmask.pipeline.reporting.cells import signed
from synmask.pipeline.reporting.contrasts import (
    Contrast,
    ContrastResult,
    Verdict,
    compare_all,
    counts_by_sentence,
    read_results,
)
from synmask.pipeline.reporting.results import RUN, read_parse_scores, read_scores, score_of

HEADS = {  # metrics of heads.json (studies/probe.py): what knows nothing of the parser → the row that does
    "attachment": {"best rule": "induced"},
    "probe": {"position": "position and parser", "position and length": "position, length and parser"},
}
UNITS = {
    "sacrebleu": "BLEU",
    "perplexity": "perplexity",
    "f1_words": "F1",
    "f1_paper": "F1 as the paper counts",
}
UNITS |= {"attachment": "% of heads", "probe": "% of heads by a probe"}
OF_RUN = ["device", "commit", "valid_perplexity", "valid_sacrebleu", "sacrebleu", "f1_words"]
OF_RUN += ["minutes", "tokens_per_second"]


def read_study(folders: Sequence[Path], metric: str) -> pd.DataFrame:
    """`read_results` of two kinds of metrics more: perplexity of the test set, and heads (`HEADS`)."""
    if metric in HEADS:
        rows = (row for folder in folders for row in heads_of(folder, metric))
        return pd.DataFrame(rows, columns=[*RUN, "tree", "score", "counts"])
    if metric == "perplexity":
        results = read_results(folders, "sacrebleu")
        return results.assign(score=[perplexity_of(run) for run in results.to_dict("records")])
    return read_results(folders, metric)


def perplexity_of(run: dict[str, Any]) -> float:
    """Of the test set, from its counts by sentence."""
    return float(score_of("perplexity")(counts_by_sentence(run, "perplexity").sum(axis=0)))


def heads_of(folder: Path, metric: str) -> Iterator[dict[str, Any]]:
    """The results in a run's heads.json, if there is one: each row as one kind of trees."""
    if not (folder / "heads.json").exists():
        return
    heads, run = read_json(folder / "heads.json"), run_names(read_json(folder / "scores.json"))
    counts = heads["counts"][metric]
    for tree, right in counts["right"].items():
        table = np.stack((right, 2 * np.array(counts["words"])), axis=1)
        results = {"tree": tree, "score": heads[metric][tree], "counts": lambda _metric, table=table: table}
        yield run | results


def contrast_of(system: str, metric: str, baseline: str = "", trivial: str = "", **kwargs: Any) -> Contrast:
    """A contrast as claims.yaml gives it."""
    row = HEADS[metric][trivial] if metric in HEADS else "induced"
    rival = {"rival": baseline or trivial, "trivial": bool(trivial), "row": row}
    return Contrast(system=system, metric=metric, **rival, **kwargs)


def claim_verdict(parts: Sequence[Verdict]) -> Verdict:
    """A claim holds if all its contrasts hold, and does not hold if one of them does not."""
    if "does not hold" in parts:
        return "does not hold"
    return "holds" if {*parts} == {"holds"} else "cannot tell"


def write_verdict(claims: Path, folder: Path, output: Path) -> None:
    study = yaml.safe_load(claims.read_text(encoding="utf-8"))
    folders = existing(fill(RUN_FOLDER, corpus=study["corpus"]), folder)
    contrasts = [
        (claim["name"], contrast_of(**entry)) for claim in study["claims"] for entry in claim["contrasts"]
    ]
    results = compare_all([contrast for _, contrast in contrasts], partial(read_study, folders))
    claimed = [
        (name, result) for (name, _), group in zip(contrasts, results, strict=True) for result in group
    ]
    if not claimed:
        raise UserError(f"{folder}/{study['corpus']}: no runs of any contrast; run them first")
    table = pd.DataFrame([{"claim": name} | asdict(result) for name, result in claimed])
    frames = {"csv": table.drop(columns=["ours", "theirs"]), "runs.csv": run_table(folders)}
    texts = {kind: frame.to_csv(index=False, lineterminator="\n") for kind, frame in frames.items()}
    texts["md"] = f"{claim_table(claimed)}\n"
    write_all({Path(f"{output}.{kind}"): text for kind, text in texts.items()})


def claim_table(claimed: Sequence[tuple[str, ContrastResult]]) -> str:
    """A row per contrast: the differences by direction, those that decide in bold."""
    directions = sorted({result.direction for _, result in claimed})
    rows: dict[tuple[str, str, str, str], dict[str, ContrastResult]] = {}
    for name, result in claimed:
        contrast = (name, result.system, result.rival, result.metric)
        rows.setdefault(contrast, {})[result.direction] = result
    lines, last = [], ""
    for (name, system, rival, metric), by_direction in rows.items():
        verdicts = [result.verdict for other, result in claimed if other == name]
        claim = "" if name == last else f"{name}: **{claim_verdict(verdicts)}**"
        cells = (
            table_cell(by_direction[direction]) if direction in by_direction else "–"
            for direction in directions
        )
        lines.append((claim, f"`{system}` − `{rival}`, {UNITS[metric]}", *cells))
        last = name
    heads = ("Claim", "Contrast", *map(arrow, directions))
    return markdown_table(heads, "ll" + "r" * len(directions), lines)


def table_cell(result: ContrastResult) -> str:
    """+0.08 [−0.67, +0.82], paper +1.18"""
    text = result.interval + ("" if result.gain is None else f", paper {signed(result.gain)}")
    return text if result.verdict == "cannot tell" else f"**{text}**"


def run_table(folders: Sequence[Path]) -> pd.DataFrame:
    """All scored runs; `commit` is that of the scores."""
    paths = [path for folder in folders if (path := folder / "scores.json").exists()]
    parses = filter(Path.exists, (path.with_name("parse.json") for path in paths))
    trees = read_parse_scores(parses, "words").query("tree == 'induced'").set_index(RUN)["f1"].to_dict()
    table = read_scores(paths)
    table["f1_words"] = [trees.get(run) for run in table[RUN].itertuples(index=False, name=None)]
    table["valid_perplexity"] = [*map(valid_perplexity, paths)]
    table["minutes"] = table["train_seconds"] / 60
    columns, saved = [*RUN, *OF_RUN], [*map(read_json, paths)]
    if any("perplexity" in run for run in saved):  # else made before it was stored
        table["perplexity"] = [run.get("perplexity", {}).get("test") for run in saved]
        table["processor"] = [run.get("processor") for run in saved]
        columns += ["perplexity", "processor"]
    return table[columns]


def valid_perplexity(scores: Path) -> float | None:
    """Of the validation set after the last epoch, before checkpoints are averaged."""
    path = scores.with_name("history.csv")
    if not path.exists():
        return None
    return float(read_csv(path, ["valid_ppl"], "train again")["valid_ppl"].iloc[-1])


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(f"usage: {sys.argv[0]} CLAIMS RESULTS OUTPUT")
    try:
        write_verdict(*map(Path, sys.argv[1:]))
    except UserError as error:
        sys.exit(str(error))
