"""The cost of planning: `snakemake -n demo` with ever more seeds, beside a bare workflow with as many jobs.

    python benchmarks/planning.py
    python benchmarks/planning.py --seeds 3 30 --output planning

The bare workflow has a chain of rules for each run, too, but these have nothing except an input, an output
and a command: what Snakemake costs at least. Prints CPU seconds (user and system), peak memory and the ratio;
with --output also draws them against the number of jobs.
"""

import argparse
import re
import tempfile
from pathlib import Path

import pandas as pd
import yaml

import machine
from growth import ROOT, draw, run

STEPS = ["train", "average", "decode", "score", "sentences", "parse", "parseval", "tree"]
RUN = "results/{corpus}/{pair}/{system}/seed{seed}/"


def plan(folder: Path, words: list[str]) -> dict[str, float]:
    """CPU seconds, peak memory in MB and the number of jobs of `snakemake -n` in a folder."""
    seconds, memory, said = run(["-m", "snakemake", "-n", *words], folder)
    jobs = re.search(r"^([\d,]+) jobs|^total +(\d+)", said, re.M)
    count = int((jobs[1] or jobs[2]).replace(",", ""))
    return {"jobs": count, "seconds": seconds, "memory": memory}


def ours(folder: Path, seeds: int) -> dict[str, float]:
    """Plan the demo with so many seeds."""
    for name in ("src", "workflow", "profiles", "Snakefile", "config", "config.yaml"):
        if not (folder / name).exists():
            (folder / name).symlink_to(ROOT / name)
    overlay = {"experiments": {"demo": {"seeds": list(range(1, seeds + 1))}}}
    (folder / "seeds.yaml").write_text(yaml.safe_dump(overlay))
    return plan(folder, ["demo", "--configfile", "seeds.yaml"])


def bare(folder: Path, jobs: int) -> dict[str, float]:
    """Plan a workflow with about so many jobs that has no functions, logs, parameters or resources."""
    runs = max(1, jobs // len(STEPS))
    text = f"rule all:\n    input: expand('results/demo/de-en/grammar/seed{{s}}/tree', s=range({runs}))\n"
    for step, before in zip(STEPS, [None, *STEPS], strict=False):
        source = f"    input: '{RUN}{before}'\n" if before else ""
        text += f"rule {step}:\n{source}    output: '{RUN}{step}'\n    shell: 'touch {{output}}'\n"
    (folder / "Snakefile").write_text(text)
    return plan(folder, [])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[3, 35, 360])
    parser.add_argument("--output", type=Path, help="the figure, without its ending")
    args = parser.parse_args()
    rows = []
    print(machine.described("snakemake"), end="\n\n")
    print(
        "| jobs | synmask: CPU s | MB | bare: CPU s | MB | ratio of CPU s |\n|---:|---:|---:|---:|---:|---:|"
    )
    with tempfile.TemporaryDirectory() as place:
        folders = {name: Path(place, name) for name in ("synmask", "bare")}
        for folder in folders.values():
            folder.mkdir()
        for seeds in args.seeds:
            mine = ours(folders["synmask"], seeds)
            other = bare(folders["bare"], mine["jobs"])
            rows += [{"workflow": "synmask", **mine}, {"workflow": "bare", **other}]
            cells = [
                f"{found[key]:,.{digits}f}"
                for found in (mine, other)
                for key, digits in (("seconds", 1), ("memory", 0))
            ]
            print(
                f"| {mine['jobs']:,} | {' | '.join(cells)} | {mine['seconds'] / other['seconds']:.1f} |",
                flush=True,
            )
    if args.output:
        draw(pd.DataFrame(rows), "jobs", "workflow", args.output)


if __name__ == "__main__":
    main()
