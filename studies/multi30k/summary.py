"""README's picture: three contrasts of registered/verdict.csv and five of verdict.csv.

python studies/multi30k/summary.py > studies/multi30k/summary.svg
"""

import csv
from pathlib import Path

from synmask.pipeline.reporting.cells import signed

REGISTERED = [
    ("Grammar against Transformer, De→En", "grammar", "transformer", "de-en", "sacrebleu"),
    ("… with the same masking and loss", "grammar", "transformer-mlm", "de-en", "sacrebleu"),
    ("… with as many parameters", "grammar", "transformer-wide-small", "de-en", "sacrebleu"),
]
BLEU = [
    ("Grammar against Transformer, En→De", "grammar", "transformer", "en-de", "sacrebleu"),
    ("Grammar against StructFormer, De→En", "grammar", "structformer", "de-en", "sacrebleu"),
    ("Grammar against PASCAL, De→En", "grammar", "pascal", "de-en", "sacrebleu"),
]
F1 = [
    ("Without the parser's attention, German", "grammar-noattention", "right-branching", "de-en", "f1_words"),
    (
        "Without the parser's attention, English",
        "grammar-noattention",
        "right-branching",
        "en-de",
        "f1_words",
    ),
]
PANELS = [  # head, file, contrasts, the ends of the axis, its ticks
    (
        "Registered, Multi30k, ten seeds: BLEU",
        "registered/verdict.csv",
        REGISTERED,
        (-1.5, 3.5),
        range(-1, 4),
    ),
    ("Exploratory, three to five seeds: BLEU", "verdict.csv", BLEU, (-1.5, 3.5), range(-1, 4)),
    ("Exploratory: F1 above right-branching trees", "verdict.csv", F1, (-35.0, 35.0), range(-30, 31, 15)),
]
WIDTH, ROW = 460, 24  # in px: a phone shows it at four fifths of its size
LEFT, RIGHT = 24, 240  # intervals are drawn between LEFT and RIGHT
STYLE = """
text { font: 15px sans-serif; fill: #1f2328; } .head { font-weight: bold; } .end { text-anchor: end; }
.tick { font-size: 14px; text-anchor: middle; }
.grid { stroke: #d1d9e0; } .zero { stroke: #656d76; }
.interval { stroke: #0969da; stroke-width: 2; } .ours { fill: #0969da; } .paper { fill: #bc4c00; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } .grid { stroke: #3d444d; } .zero { stroke: #9198a1; }
.interval { stroke: #58a6ff; } .ours { fill: #58a6ff; } .paper { fill: #f0883e; }
}
"""


def contrasts(file_name: str) -> dict[tuple[str, ...], dict[str, str]]:
    with (Path(__file__).parent / file_name).open(encoding="utf-8", newline="") as file:
        return {
            (row["system"], row["rival"], row["direction"], row["metric"]): row
            for row in csv.DictReader(file)
        }


def paper(x: float, y: float) -> str:
    """The mark of the paper's gain: a diamond."""
    return f'<path class="paper" d="M{x:.1f} {y - 6} l6 6 -6 6 -6 -6z"/>'


def panel(
    head: str, file_name: str, shown: list[tuple[str, ...]], ends: tuple[float, float], ticks: range, y: int
) -> list[str]:
    """The contrasts under `head`, drawn below `y`, on an axis with `ticks`."""
    rows = contrasts(file_name)

    def x(value: str | float) -> float:
        return LEFT + (float(value) - ends[0]) / (ends[1] - ends[0]) * (RIGHT - LEFT)

    bottom = y + ROW * (2 * len(shown) + 1) + 2
    parts = [f'<text class="head" x="4" y="{y + 18}">{head}</text>']
    for tick in ticks:
        kind, at = ("grid" if tick else "zero"), f"{x(tick):.1f}"
        number = f"{tick:+d}".replace("-", "−") if tick else "0"
        parts += [
            f'<line class="{kind}" x1="{at}" x2="{at}" y1="{y + ROW}" y2="{bottom}"/>',
            f'<text class="tick" x="{at}" y="{bottom + 14}">{number}</text>',
        ]
    for number, (label, *key) in enumerate(shown):
        row, top = rows[tuple(key)], y + ROW * (2 * number + 2)  # of the interval, below the label
        middle, base = top + ROW // 2, top + 18
        parts += [
            f'<text x="4" y="{base - ROW}">{label}</text>',
            f'<path class="interval" d="M{x(row["low"]):.1f} {middle} H{x(row["high"]):.1f}"/>',
            f'<circle class="ours" cx="{x(row["difference"]):.1f}" cy="{middle}" r="4"/>',
        ]
        if row["gain"]:
            parts += [paper(x(row["gain"]), middle)]
        difference, low, high = (signed(float(row[name])) for name in ("difference", "low", "high"))
        numbers = f"{difference} [{low}, {high}]"
        parts += [f'<text class="end" x="{WIDTH - 4}" y="{base}">{numbers}</text>']
        parts += [f'<text class="head end" x="{WIDTH - 4}" y="{base - ROW}">{row["verdict"]}</text>']
    return parts


def draw() -> str:
    parts = [
        '<circle class="ours" cx="10" cy="13" r="4"/>',
        '<text x="20" y="18">here [95% interval]</text>',
        paper(190, 13),
        '<text x="202" y="18">the paper\'s gain</text>',
        f'<text class="end" x="{WIDTH - 4}" y="18">the claim</text>',
    ]
    y = ROW
    for head, file_name, shown, ends, ticks in PANELS:
        parts += panel(head, file_name, shown, ends, ticks, y)
        y += ROW * (2 * len(shown) + 2)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}">\n'
        f"<style>{STYLE}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


if __name__ == "__main__":
    print(draw(), end="")
