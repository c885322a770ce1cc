"""The numbers and verdicts on the first screens are those of studies/multi30k/verdict.csv."""

import csv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHOWN = {
    "Grammar − Transformer, De→En, sacreBLEU": ("grammar", "transformer", "de-en", "sacrebleu"),
    "Grammar − Transformer, En→De, sacreBLEU": ("grammar", "transformer", "en-de", "sacrebleu"),
    "Grammar without its parser's self-attention − right-branching trees, German, F1 over words": (
        "grammar-noattention",
        "right-branching",
        "de-en",
        "f1_words",
    ),
    "The same, English": ("grammar-noattention", "right-branching", "en-de", "f1_words"),
}


def contrast(label):
    """Difference and its interval as a page writes them, and the verdict."""
    with (ROOT / "studies/multi30k/verdict.csv").open(encoding="utf-8") as file:
        (row,) = (
            row
            for row in csv.DictReader(file)
            if (row["system"], row["rival"], row["direction"], row["metric"]) == SHOWN[label]
        )
    numbers = (f"{float(row[key]):+.2f}".replace("-", "−") for key in ("difference", "low", "high"))
    return *numbers, row["verdict"]


@pytest.mark.parametrize("label", SHOWN)
def test_index(label):
    difference, low, high, verdict = contrast(label)
    line = f"| {label} | {difference} [{low}, {high}] | {verdict} |"
    assert line in (ROOT / "docs/index.md").read_text(encoding="utf-8").splitlines()


def test_readme():
    (above, low, high, _), (below, *_) = map(contrast, [*SHOWN][:2])
    assert (
        f"{above[1:]} BLEU above a Transformer (95% interval {low} to {high[1:]}, De→En) and {below[1:]} below"
    ) in (ROOT / "README.md").read_text(encoding="utf-8")
