"""Time and memory of dependency_distribution, forward and backward, against the dense form.

    python benchmarks/distribution.py --plot docs/distribution.svg

The dense form is written below from the formulas: one n x n x n array each for the spans of every token and
for the parents of every span, as the published implementations have. Prints a Markdown table.
"""

import argparse
import os
from functools import partial

os.environ.setdefault("KINETO_LOG_LEVEL", "9")  # the memory profiler is silent; read when torch is imported

import torch
from torch import Tensor

from synmask.engine.speed import peak_bytes, seconds
from synmask.induction.distribution import dependency_distribution

SIZES = (8, 16, 32, 64, 128, 256, 512)
TOKENS = 4096  # a batch, as on IWSLT14
BATCHES = {256: 4, 512: 16}  # sentences at these sizes: the first so that memory suffices for the dense form
DENSE_BYTES = 5e8  # the largest n x n x n array tried; the dense form holds several


def dense(distance: Tensor, height: Tensor) -> Tensor:
    """The dense form: distance (B, n-1), height (B, n) -> (B, n, n), no pads, scales 1."""
    n = height.size(1)
    ones = torch.ones(n, n, dtype=torch.bool, device=height.device)
    after = torch.where(ones.triu(), distance_at(distance, n), -torch.inf).cummax(-1).values  # max of i..j
    before = torch.where(ones.tril(-1), distance_at(distance, n), -torch.inf)  # at column j: gap j | j+1
    before = before.flip(-1).cummax(-1).values.flip(-1)
    inside_right = torch.sigmoid(height[:, :, None] - after[:, :, :-1])  # at column j: p(j+1 in C(i))
    inside_right = torch.cat([inside_right.new_ones(len(height), n, 1), inside_right], -1)
    inside_right = torch.where(ones.triu(1), inside_right, 1.0)
    inside_left = torch.where(ones.tril(-1), torch.sigmoid(height[:, :, None] - before), 1.0)
    left = (inside_left - torch.nn.functional.pad(inside_left[:, :, :-1], (1, 0))).tril()
    right = (inside_right - torch.nn.functional.pad(inside_right[:, :, 1:], (0, 1))).triu()
    span = left[:, :, :, None] * right[:, :, None, :]  # (B, i, l, r)
    held = ones.triu()[:, None, :] & ones.tril()[None, :, :]  # (l, r, k): l <= k <= r
    parent = height[:, None, None, :].masked_fill(~held, -1e9).softmax(-1)  # (B, l, r, j)
    return span.flatten(2) @ parent.flatten(1, 2)


def distance_at(distance: Tensor, n: int) -> Tensor:
    """(B, n-1) -> (B, 1, n): distances as a row, one more column to fill up."""
    return torch.nn.functional.pad(distance, (0, 1))[:, None, :].expand(-1, n, -1)


def step(function, distance: Tensor, height: Tensor, upstream: Tensor) -> None:
    """One forward and backward pass; gradients are dropped."""
    torch.autograd.grad(function(distance, height), (distance, height), upstream)


def measure(n: int, batch: int, device: str, ours) -> dict:
    """One row of the table; the dense columns are None where its arrays would be too large."""
    generator = torch.Generator().manual_seed(n)
    shapes = (batch, n - 1), (batch, n), (batch, n, n)
    distance, height, upstream = (torch.randn(s, generator=generator).to(device) for s in shapes)
    arguments = distance.requires_grad_(), height.requires_grad_(), upstream
    if 4 * batch * n**3 > DENSE_BYTES:
        return {"n": n, "batch": batch, "dense_time": None, "dense_memory": None} | costs(
            {"": ours}, arguments
        )
    torch.testing.assert_close(ours(*arguments[:2]), dense(*arguments[:2]), rtol=0, atol=5e-6)
    return {"n": n, "batch": batch} | costs({"": ours, "dense_": dense}, arguments)


def costs(functions: dict, arguments: tuple[Tensor, ...]) -> dict[str, float]:
    """Best time and peak memory of a step of each function, under its name."""
    steps, device = (
        [partial(step, function, *arguments) for function in functions.values()],
        arguments[0].device,
    )
    values = {}
    for name, run, best in zip(functions, steps, seconds(steps, device), strict=True):
        values |= {f"{name}time": best, f"{name}memory": peak_bytes(run, device)}
    return values


def table(rows: list[dict]) -> str:
    """The rows as Markdown."""
    lines = [
        "| n | B | dense ms | ours ms | times faster | dense MB | ours MB | times smaller |",
        "| --: | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for row in rows:
        dense_time, faster, dense_memory, smaller = "–", "–", "–", "–"
        if row["dense_time"] is not None:
            dense_time, faster = f"{1e3 * row['dense_time']:.1f}", f"{row['dense_time'] / row['time']:.1f}"
            dense_memory, smaller = (
                f"{row['dense_memory'] / 1e6:.1f}",
                f"{row['dense_memory'] / row['memory']:.1f}",
            )
        lines.append(
            f"| {row['n']} | {row['batch']} | {dense_time} | {1e3 * row['time']:.2f} | {faster} "
            f"| {dense_memory} | {row['memory'] / 1e6:.1f} | {smaller} |"
        )
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
        for prefix, name, marker in (("dense_", "dense", "s"), ("", "factorised", "o")):
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
    parser.add_argument("--batch", type=int, help="sentences (default: 4,096 tokens; n 256: 4, 512: 16)")
    parser.add_argument("--device", default="cpu", help="cpu (default) or cuda")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads (default: 2)")
    parser.add_argument("--compile", action="store_true", help="put ours through torch.compile")
    parser.add_argument("--plot", metavar="FILE.svg", help="also draw time and memory against n")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    ours = torch.compile(dependency_distribution) if options.compile else dependency_distribution
    rows = []
    for n in options.sizes:
        batch = options.batch or BATCHES.get(n, max(1, TOKENS // n))
        rows.append(measure(n, batch, options.device, ours))
    print(table(rows))
    if options.plot:
        plot(rows, options.plot)


if __name__ == "__main__":
    main()
