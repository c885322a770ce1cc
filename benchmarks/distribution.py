"""How much faster, and smaller, is P_D than by its literal definition, forward and backward?

    python benchmarks/distribution.py --plot docs/distribution.svg

The literal definition has one n x n x n array each for the spans of every token and for the parents of every
span, as the published implementations have. Prints machine, threads and versions, then a Markdown table. Both
are measured in turns; times are medians, on a CPU of CPU time.
"""

import argparse
import os
from functools import partial

os.environ.setdefault("KINETO_LOG_LEVEL", "9")  # the memory profiler is silent; read when torch is imported

import torch
from torch import Tensor

import machine
from machine import in_turns, peak_bytes
from synmask.induction.distribution import dependency_distribution, implementation
from synmask.induction.literal import literal_distribution

SIZES = (8, 16, 32, 64, 128, 256, 512)
TOKENS = 4096  # a batch, as on IWSLT14
BATCHES = {
    256: 4,
    512: 16,
}  # sentences at these sizes: the first so that memory suffices for the literal form
LITERAL_BYTES = 5e8  # the largest n x n x n array tried; the literal form holds several


def step(function, distance: Tensor, height: Tensor, upstream: Tensor) -> None:
    """One forward and backward pass; gradients are dropped."""
    torch.autograd.grad(function(distance, height), (distance, height), upstream)


def measure(n: int, batch: int, device: str, ours) -> dict:
    """One row of the table; the literal columns are None where its arrays would be too large."""
    generator = torch.Generator().manual_seed(n)
    shapes = (batch, n - 1), (batch, n), (batch, n, n)
    distance, height, upstream = (torch.randn(s, generator=generator).to(device) for s in shapes)
    arguments = distance.requires_grad_(), height.requires_grad_(), upstream
    known = {"n": n, "batch": batch, "literal_time": None, "literal_memory": None}
    if 4 * batch * n**3 > LITERAL_BYTES:
        return known | costs({"": ours}, arguments)
    torch.testing.assert_close(ours(*arguments[:2]), literal_distribution(*arguments[:2]), rtol=0, atol=5e-6)
    return known | costs({"": ours, "literal_": literal_distribution}, arguments)


def costs(functions: dict, arguments: tuple[Tensor, ...]) -> dict[str, float]:
    """Time and peak memory of a step of each function, under its name."""
    steps, device = [partial(step, one, *arguments) for one in functions.values()], arguments[0].device
    values, times = {}, in_turns(steps, device.type)
    for name, run, taken in zip(functions, steps, times, strict=True):
        values |= {f"{name}time": taken.median, f"{name}memory": peak_bytes(run, device)}
        values |= {f"{name}shown": taken.shown(2, lambda seconds: 1e3 * seconds)}
    if len(times) > 1:
        values["faster"] = str(times[1].of(times[0]))
    return values


def table(rows: list[dict]) -> str:
    """The rows as Markdown."""
    time = "| n | B | literal ms (clock) | ours ms (clock) | times faster |"
    lines = [f"{time} literal MB | ours MB | times smaller |"]
    lines.append("| --: " * 8 + "|")
    for row in rows:
        cells = [f"{row['n']}", f"{row['batch']}"]
        both = row["literal_time"] is not None
        cells += [row["literal_shown"] if both else "–", row["shown"], row["faster"] if both else "–"]
        literal, ours = row["literal_memory"], row["memory"]
        before = (f"{1e-6 * literal:.1f}", f"{literal / ours:.1f}") if both else ("–", "–")
        cells += [before[0], f"{1e-6 * ours:.1f}", before[1]]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def plot(rows: list[dict], path: str) -> None:
    """Time and memory per sentence against n, log-log."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "synmask"
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
    for panel, key, unit, label in zip(
        panels, ("time", "memory"), (1e3, 1e-6), ("ms a sentence", "MB a sentence"), strict=True
    ):
        for prefix, name, marker in (("literal_", "literal", "s"), ("", "factorised", "o")):
            known = [r for r in rows if r[prefix + key] is not None]
            values = [unit * r[prefix + key] / r["batch"] for r in known]
            panel.loglog([r["n"] for r in known], values, marker=marker, label=name)
        panel.set(xlabel="tokens n", ylabel=label)
        panel.set_xticks(SIZES, [str(n) for n in SIZES])
        panel.minorticks_off()
        panel.grid(alpha=0.3)
        panel.legend(frameon=False)
    figure.suptitle("dependency_distribution, forward and backward", fontsize=11)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of tokens")
    parser.add_argument("--device", default="cpu", help="cpu (default) or cuda")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads (default: 1)")
    parser.add_argument("--plot", metavar="FILE.svg", help="also draw time and memory against n")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows = []
    for n in options.sizes:
        batch = BATCHES.get(n, max(1, TOKENS // n))
        rows.append(measure(n, batch, options.device, dependency_distribution))
    where = machine.described("torch", device=options.device, threads=options.threads)
    print(f"{where}, P_D in {implementation(torch.device(options.device))}\n")
    print(table(rows))
    if options.plot:
        plot(rows, options.plot)


if __name__ == "__main__":
    main()
