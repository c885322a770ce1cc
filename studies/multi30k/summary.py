"""README's picture: six contrasts of verdict.csv, which lies beside this file.

python studies/multi30k/summary.py > studies/multi30k/summary.svg
"""

import csv
from pathlib import Path

BLEU = [
    ("Grammar against Transformer, De→En", "grammar", "transformer", "de-en", "sacrebleu"),
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
PANELS = [
    ("Multi30k, small model: difference in BLEU", BLEU, -1.5, 3.5),
    ("Difference in F1 from right-branching trees", F1, -35.0, 35.0),
]
WIDTH, ROW, LEFT, RIGHT = 1000, 25, 350, 640  # in px; intervals are drawn between LEFT and RIGHT
STYLE = """
text { font: 14px sans-serif; fill: #1f2328; } .head { font-weight: bold; } .zero { stroke: #8c959f; }
.interval { stroke: #0969da; stroke-width: 2; } .ours { fill: #0969da; }
.paper { fill: none; stroke: #bc4c00; stroke-width: 2; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } .interval { stroke: #58a6ff; } .ours { fill: #58a6ff; } .paper { stroke: #f0883e; }
}
"""


def contrasts() -> dict[tuple[str, ...], dict[str, str]]:
    with Path(__file__).with_name("verdict.csv").open(encoding="utf-8", newline="") as file:
        return {
            (row["system"], row["rival"], row["direction"], row["metric"]): row
            for row in csv.DictReader(file)
        }


def signed(value: str) -> str:
    return f"{float(value):+.2f}".replace("-", "−")


def draw() -> str:
    rows, parts, y = contrasts(), [], 0
    for head, shown, low, high in PANELS:

        def x(value: str | float, low: float = low, high: float = high) -> str:
            return f"{LEFT + (float(value) - low) / (high - low) * (RIGHT - LEFT):.1f}"

        y += ROW
        parts += [f'<text class="head" x="4" y="{y - 7}">{head}</text>']
        end = y + ROW * len(shown)
        parts += [f'<line class="zero" x1="{x(0)}" x2="{x(0)}" y1="{y - 3}" y2="{end - 3}"/>']
        for label, *key in shown:
            row = rows[tuple(key)]
            middle, y = y + ROW // 2 - 3, y + ROW
            ends = f'x1="{x(row["low"])}" x2="{x(row["high"])}" y1="{middle}" y2="{middle}"'
            parts += [
                f'<text x="4" y="{y - 10}">{label}</text>',
                f'<line class="interval" {ends}/>',
                f'<circle class="ours" cx="{x(row["difference"])}" cy="{middle}" r="4"/>',
            ]
            if row["gain"]:
                parts += [f'<circle class="paper" cx="{x(row["gain"])}" cy="{middle}" r="4"/>']
            numbers = f"{signed(row['difference'])} [{signed(row['low'])}, {signed(row['high'])}]"
            parts += [f'<text x="{RIGHT + 20}" y="{y - 10}">{numbers}</text>']
            parts += [f'<text class="head" x="{WIDTH - 130}" y="{y - 10}">{row["verdict"]}</text>']
    key = [
        f'<circle class="ours" cx="{LEFT + 10}" cy="12" r="4"/>',
        f'<text x="{LEFT + 20}" y="17">here, 95% interval</text>',
        f'<circle class="paper" cx="{LEFT + 170}" cy="12" r="4"/>',
        f'<text x="{LEFT + 180}" y="17">the paper\'s gain</text>',
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}">\n'
        f"<style>{STYLE}</style>\n" + "\n".join([*key, *parts]) + "\n</svg>\n"
    )


if __name__ == "__main__":
    print(draw(), end="")
