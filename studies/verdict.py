#!/usr/bin/env python3
"""Test the claims of a study on its runs.

    python studies/verdict.py studies/multi30k/claims.yaml RESULTS OUTPUT

RESULTS holds the runs: CORPUS/DIRECTION/SYSTEM/seedN/. Writes OUTPUT.md and OUTPUT.csv, a row per contrast,
the second with all tests, and OUTPUT.runs.csv, a row per run.
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from synmask.pipeline.display import arrow, pipes
from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation.bootstrap import Counts
from synmask.pipeline.evaluation.sentences import OF_SENTENCES
from synmask.pipeline.files import read_csv, read_json, write_lines
from synmask.pipeline.paths import RUN as RUN_FOLDER
from synmask.pipeline.paths import existing, filled
from synmask.pipeline.reporting.cells import signed
from synmask.pipeline.reporting.contrasts import Contrast, ContrastResult, Runs, Verdict, compare_all
from synmask.pipeline.reporting.layout import write_csv
from synmask.pipeline.reporting.runs import RUN, read_parse_scores, read_scores

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


class StudyRuns(Runs):
    """Runs with two kinds of scores more: perplexity of the test set, and heads (`HEADS`)."""

    def scores(self, metric: str, direction: str, system: str, row: str = "induced") -> list[float]:
        if metric == "perplexity":
            score = OF_SENTENCES[metric][1]
            return [float(score(run.sum(axis=1))) for run in self.counts(metric, direction, system)]
        if metric in HEADS:
            return [heads[metric][row] for heads in self._heads(direction, system)]
        return super().scores(metric, direction, system, row)

    def counts(self, metric: str, direction: str, system: str, row: str = "induced") -> list:
        if metric in HEADS:
            found = [heads["counts"][metric] for heads in self._heads(direction, system)]
            return [Counts(np.array(one["right"][row]), 2 * np.array(one["words"])) for one in found]
        return super().counts(metric, direction, system, row)

    def _heads(self, direction: str, system: str) -> list[dict[str, Any]]:
        return [read_json(path) for path in self.seeds(direction, system, "heads.json").values()]


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


def write_verdict(claims: Path, results: Path, output: Path) -> None:
    study = yaml.safe_load(claims.read_text(encoding="utf-8"))
    runs = StudyRuns(existing(filled(RUN_FOLDER, corpus=study["corpus"]), results))
    contrasts = [
        (claim["name"], contrast_of(**one)) for claim in study["claims"] for one in claim["contrasts"]
    ]
    found = compare_all([contrast for _, contrast in contrasts], runs)
    named = [(name, one) for (name, _), group in zip(contrasts, found, strict=True) for one in group]
    if not named:
        raise UserError(f"{results}/{study['corpus']}: no runs of any contrast; run them first")
    write_lines(Path(f"{output}.md"), claim_table(named, runs.directions()))
    table = pd.DataFrame([{"claim": name} | asdict(one) for name, one in named])
    write_csv(output, table.drop(columns=["ours", "theirs"]))
    write_csv(f"{output}.runs", run_table(runs))


def claim_table(named: Sequence[tuple[str, ContrastResult]], directions: Sequence[str]) -> list[str]:
    """A row per contrast: the differences by direction, those that decide in bold."""
    rows: dict[tuple[str, str, str, str], dict[str, ContrastResult]] = {}
    for name, one in named:
        rows.setdefault((name, one.system, one.rival, one.metric), {})[one.direction] = one
    lines, last = [], ""
    for (name, system, rival, metric), found in rows.items():
        verdicts = [one.verdict for other, one in named if other == name]
        claim = "" if name == last else f"{name}: **{claim_verdict(verdicts)}**"
        cells = (table_cell(found[direction]) if direction in found else "–" for direction in directions)
        lines.append((claim, f"`{system}` − `{rival}`, {UNITS[metric]}", *cells))
        last = name
    heads = ("Claim", "Contrast", *map(arrow, directions))
    return pipes(heads, "ll" + "r" * len(directions), lines)


def table_cell(one: ContrastResult) -> str:
    """+0.08 [−0.67, +0.82], paper +1.18"""
    text = one.interval + ("" if one.gain is None else f", paper {signed(one.gain)}")
    return text if one.verdict == "cannot tell" else f"**{text}**"


def run_table(runs: Runs) -> pd.DataFrame:
    """All scored runs; `commit` is that of the scores."""
    folders = sorted(folder for seeds in runs.folders.values() for folder in seeds.values())
    paths = [path for folder in folders if (path := folder / "scores.json").exists()]
    parses = filter(Path.exists, (path.with_name("parse.json") for path in paths))
    trees = read_parse_scores(parses, "words").set_index(RUN)["f1"].to_dict()
    table = read_scores(paths)
    table["f1_words"] = [trees.get(run) for run in table[RUN].itertuples(index=False, name=None)]
    table["valid_perplexity"] = [*map(perplexity, paths)]
    table["minutes"] = table["train_seconds"] / 60
    columns, saved = [*RUN, *OF_RUN], [*map(read_json, paths)]
    if any("perplexity" in run for run in saved):  # else made before it was stored
        table["perplexity"] = [run.get("perplexity", {}).get("test") for run in saved]
        table["processor"] = [run.get("processor") for run in saved]
        columns += ["perplexity", "processor"]
    return table[columns]


def perplexity(scores: Path) -> float | None:
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
