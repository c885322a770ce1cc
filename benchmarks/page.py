r"""Measure the tables of docs/performance.md again: `make bench`, in about 5 minutes on one quiet core.

    python benchmarks/page.py
    python benchmarks/page.py --only training distribution

A table stands between `<!-- NAME: COMMAND -->` and `<!-- end -->`. The command runs in the repository; the
table that it prints takes the place, or with the column `processor` that of the rows of this kind of
processor. A table whose results are missing stays as it is. A row with a goal says whether the median
reaches it. With AVX-512, measure the rows of AVX2 (and no table without the column) by

    ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2 CT2_FORCE_CPU_ISA=AVX2 \
        python benchmarks/page.py
"""

import argparse
import os
import re
import shlex
import subprocess
import sys

from machine import MASKED, ROOT
from synmask.pipeline.cpu.processor import CPU

PAGE = ROOT / "docs/performance.md"
TABLE = re.compile(r"(<!-- (\S+): (.+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)

OF_EACH_KIND = "| processor "  # how a table begins that has rows for each kind of processor
STOCK, RATIO = "of stock", "ratio"  # columns: time relative to stock fairseq's, speed relative to a rival's
STEP = {"transformer": ("≤", 0.85), "grammar": ("≤", 1.15)}
SEARCH = {"CTranslate2": ("≥", 1.1), "CTranslate2, int8": ("≥", 1.0)}
GOALS = {  # of the medians, by table and row
    "training": STEP,
    "training-demo": STEP | {"transformer": ("≤", 0.75)},
    "decoding": SEARCH,
}


def beside_stock(name, table):
    """A line per row of a table of training times: its share of stock fairseq's time, and if it is slower."""
    head, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    for cells in rows[2:] if STOCK in head else ():  # below the rule and stock fairseq
        ratio = cells[head.index(STOCK)]
        slower = ": slower than stock" if _median(ratio) > 1 else ""
        yield f"{name}, {cells[0]}: {ratio} of stock fairseq's time{slower}"


def _median(ratio):
    """The first number of a ratio with its spread: 0.85 (0.83–0.88)."""
    return float(ratio.split()[0])


def with_goals(table, goals):
    """The table with a column that says of a row's goal whether the median reaches it."""
    head, rule, *rows = table
    names = [name.strip() for name in head.strip("|").split("|")]
    column = names.index(STOCK if STOCK in names else RATIO)
    lines = [f"{head} goal |", f"{rule}---|"]
    for line in rows:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        told = "–"
        for sign, value in (goals[cell] for cell in cells[:2] if cell in goals):
            median = _median(cells[column])
            reached = median <= value if sign == "≤" else median >= value
            told = f"{sign} {value}: {'reached' if reached else 'missed'}"
        lines.append(f"{line} {told} |")
    return lines


def beside_others(kind, table, before):
    """This processor's table with the column `processor`, and with the rows of other kinds as before."""
    head, rule, *rows = table
    kept = before[2:] if before[0] == f"{OF_EACH_KIND}{head}" else ()  # not under other columns
    others = [row for row in kept if not row.startswith(f"| {kind} |")]
    rows = sorted([*others, *(f"| {kind} {row}" for row in rows)], key=lambda row: row.split(" | ")[0])
    return [f"{OF_EACH_KIND}{head}", f"|---{rule}", *rows]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [name for _, name, *_ in TABLE.findall(PAGE.read_text())]
    parser.add_argument("--only", nargs="+", default=names, choices=names)
    args = parser.parse_args()
    failed = []

    def made(found):
        head, name, command, before, end = found.groups()
        if name not in args.only or (MASKED and not before.startswith(OF_EACH_KIND)):
            return found[0]
        words = [sys.executable, *shlex.split(command)[1:]]
        if missing := [word for word in words if word.startswith("results/") and not (ROOT / word).exists()]:
            print(f"left as it is: {name}, for want of {missing[0]}", flush=True)
            return found[0]
        print(command, flush=True)
        environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
        done = subprocess.run(words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            failed.append(name)
            return found[0]
        table = [line for line in done.stdout.splitlines() if line.startswith("|")]
        print(*beside_stock(name, table), sep="\n", flush=True)
        table = with_goals(table, GOALS[name]) if name in GOALS else table
        if before.startswith(OF_EACH_KIND):
            table = beside_others(CPU.capability.removesuffix(" with bf16"), table, before.splitlines())
        return "\n".join([head.strip(), *table, end])

    page = TABLE.sub(made, PAGE.read_text())
    PAGE.write_text(page)
    if failed:
        sys.exit(f"not measured: {', '.join(failed)}")


if __name__ == "__main__":
    main()
