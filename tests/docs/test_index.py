"""The numbers of docs/index.md are those of docs/verdict/verdict.csv."""

import csv
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SHOWN = {
    "Grammar − Transformer, De→En, sacreBLEU": ("grammar", "transformer", "de-en", "sacrebleu"),
    "Grammar − Transformer, En→De, sacreBLEU": ("grammar", "transformer", "en-de", "sacrebleu"),
    "Grammar without its parser's self-attention − right-branching trees, German, F1": (
        "grammar-noattention",
        "right-branching",
        "de-en",
        "f1_words",
    ),
}


@pytest.mark.parametrize("label", SHOWN)
def test_differences(label):
    with (DOCS / "verdict/verdict.csv").open(encoding="utf-8") as file:
        (row,) = (
            row
            for row in csv.DictReader(file)
            if (row["system"], row["rival"], row["direction"], row["metric"]) == SHOWN[label]
        )
    difference, low, high = (f"{float(row[key]):+.2f}" for key in ("difference", "low", "high"))
    line = f"| {label} | {difference} [{low}, {high}] |".replace("-0", "−0").replace("-1", "−1")
    assert line in (DOCS / "index.md").read_text(encoding="utf-8").splitlines()
