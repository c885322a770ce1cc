"""README's picture, numbers and entries to cite are those of studies/multi30k/verdict.csv and CITATION.cff."""

import csv
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_picture_is_that_of_the_verdict():
    drawn = subprocess.run(
        [sys.executable, ROOT / "studies/multi30k/summary.py"],
        env={"PYTHONUTF8": "1"},
        capture_output=True,
        check=True,
    )
    assert drawn.stdout == (ROOT / "studies/multi30k/summary.svg").read_bytes()


def test_the_differences():
    with (ROOT / "studies/multi30k/verdict.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == "sacrebleu"]
    rows = [row for row in rows if (row["system"], row["rival"]) == ("grammar", "transformer")]
    above, below = sorted(rows, key=lambda row: row["direction"])
    low, high, lower = (float(value) for value in (above["low"], above["high"], below["difference"]))
    text = " ".join(README.split())
    assert (
        f"{float(above['difference']):.2f} BLEU above a Transformer (95% interval −{-low:.2f} to {high:.2f}, De→En) "
        f"and {-lower:.2f} below"
    ) in text


def test_the_verdicts_on_rivals():
    with (ROOT / "studies/multi30k/verdict.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["claim"] == "Better than other guided systems"]
    assert {row["rival"]: row["verdict"] for row in rows} == {
        "structformer": "does not hold",
        "pascal": "does not hold",
        "lpsi": "cannot tell",
        "lisa": "cannot tell",
    }
    assert "StructFormer and PASCAL do not hold here; those over LPSI and LISA, we cannot tell" in README


def test_the_entries_to_cite():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    (paper,) = citation["references"]
    entries = README[README.index("```bibtex") :]
    names = [f"{author['family-names']}, {author['given-names']}" for author in paper["authors"]]
    for field in (
        paper["title"], paper["doi"], paper["url"], paper["collection-title"], f"{paper['start']}--{paper['end']}",
        " and ".join(names), str(paper["year"]), citation["title"], citation["version"], citation["authors"][0]["name"],
    ):  # fmt: skip
        assert f"{{{field}}}" in entries
