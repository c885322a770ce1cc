"""The cost of the report's page with ever more runs: copies of the demo's.

    snakemake demo && python benchmarks/reporting.py
    python benchmarks/reporting.py --runs 10 100 --results results --output reporting

Each run is a link to seed 1 of one of two systems, with its translations, scores and records. Prints CPU
seconds (user and system), peak memory and the page's size; with --output also draws them.
"""

import argparse
import json
import tempfile
from pathlib import Path

import pandas as pd

import machine
from growth import ROOT, draw, run

SYSTEMS = {"transformer": "Transformer", "grammar": "Grammar"}
DIRECTION = "demo/de-en"


def report(results: Path, runs: int, folder: Path) -> dict[str, float]:
    """CPU seconds, peak memory and the page's size in MB with so many runs."""
    seeds = list(range(1, runs // len(SYSTEMS) + 1))
    direction = folder / "results" / DIRECTION
    for system in SYSTEMS:
        (direction / system).mkdir(parents=True)
        for seed in seeds:
            run_folder = direction / system / f"seed{seed}"
            run_folder.symlink_to((results / DIRECTION / system / "seed1").resolve())
    for shared in (results / DIRECTION).resolve().iterdir():
        if shared.name not in SYSTEMS:
            (direction / shared.name).symlink_to(shared)
    experiment = {
        "name": "demo", "title": "Demo", "corpus": "demo", "directions": ["de-en"],
        "systems": list(SYSTEMS.items()), "seeds": seeds, "tables": [], "figures": [],
    }  # fmt: skip
    plan = json.dumps({"title": "Report", "figures": [], "experiments": [experiment]})
    words = ["report", "--plan", plan, "--captions", str(ROOT / "workflow/report")]
    seconds, memory, _ = run(
        ["-m", "synmask.pipeline.cli", *words, "--output", "results/report.html"], folder
    )
    page = (folder / "results/report.html").stat().st_size / 1e6
    return {"runs": len(seeds) * len(SYSTEMS), "seconds": seconds, "memory": memory, "page": page}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="the demo's results")
    parser.add_argument("--runs", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--output", type=Path, help="the figure, without its ending")
    args = parser.parse_args()
    rows = []
    print(machine.described(), end="\n\n")
    print("| runs | CPU s | MB | page, MB |\n|---:|---:|---:|---:|")
    for runs in args.runs:
        with tempfile.TemporaryDirectory() as place:
            row = report(args.results, runs, Path(place))
        rows.append({"what": "report", **row})
        print(
            f"| {row['runs']:,} | {row['seconds']:.1f} | {row['memory']:,.0f} | {row['page']:.1f} |",
            flush=True,
        )
    if args.output:
        draw(pd.DataFrame(rows), "runs", "what", args.output)


if __name__ == "__main__":
    main()
