"""How long `synmask VERB` takes before it does its work, beside a bare Python and `import torch`.

    python benchmarks/startup.py
    python benchmarks/startup.py --verbs score translate --turns 5

Each turn is a fresh process. It makes the command line, imports the verb's module and reads its signature.
Modules that are chosen by name (guides, formats of corpora) are not imported. Prints medians of the seconds
since the process began, whether torch was imported, and the three packages that took longest: the time of
their own modules in one further run, which `-X importtime` makes slower.
"""

import argparse
import os
import re
import statistics
import time
from collections import Counter

import machine
from growth import ROOT, run
from synmask.pipeline.verbs import VERBS

RIVALS = {"`python -c pass`": "pass", "`import torch`": "import torch"}
TIMES = "; import time; print('', time.process_time(), time.time())"


def code(verb: str) -> str:
    """The start of one verb, up to the first line of its function."""
    return f"import synmask.pipeline.cli; synmask.pipeline.cli.app()['{verb}'].assemble_argument_collection()"


def seconds(program: str) -> tuple[float, float]:
    """CPU and wall seconds from the start of a process to the end of its program."""
    began = time.time()
    *_, cpu, ended = run(["-c", program + TIMES])[2].split()
    return float(cpu), float(ended) - began


def packages(program: str) -> Counter[str]:
    """Top-level package → seconds that importing its modules took, without what they import."""
    found: Counter[str] = Counter()
    said = run(["-X", "importtime", "-c", program])[2]
    for microseconds, name in re.findall(r"import time: +(\d+) \| +\d+ \| +(\w+)", said):
        found[name] += int(microseconds) / 1e6
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--verbs", nargs="+", default=[*VERBS], choices=VERBS, metavar="VERB")
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    os.chdir(ROOT)  # of the sources
    print(machine.described("torch", "fairseq", "cyclopts", "pydantic"), end="\n\n")
    print("| verb | CPU s | wall s | torch? | packages, s |\n|---|---:|---:|---|---|")
    for name, program in (RIVALS | {verb: code(verb) for verb in args.verbs}).items():
        turns = [seconds(program) for _ in range(args.turns)]
        times = " | ".join(f"{statistics.median(one):.2f}" for one in zip(*turns, strict=True))
        found = packages(program)
        torch = "yes" if "torch" in found else "no"
        most = [(package, spent) for package, spent in found.most_common(3) if spent > 0.005]
        longest = ", ".join(f"{package} {spent:.2f}" for package, spent in most)
        print(f"| {name} | {times} | {torch} | {longest} |", flush=True)


if __name__ == "__main__":
    main()
