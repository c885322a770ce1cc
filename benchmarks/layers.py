"""Layers that we compute in another way than torch on a CPU: forward and backward, against torch's.

    python benchmarks/layers.py
    ONEDNN_MAX_CPU_ISA=AVX2 python benchmarks/layers.py        # oneDNN as on a processor without AVX-512

Linear layers are oneDNN's instead of MKL's, attention is products and a softmax instead of torch's fused one
(`synmask.pipeline.training.operators`); which is faster depends on the processor and the size. Sizes are those of
config.yaml's models. The two take turns. Prints medians of CPU milliseconds, and GFLOP/s of linear layers.
"""

import argparse
import statistics
import time

import torch
from torch import nn
from torch.nn.functional import linear as torch_linear
from torch.nn.functional import scaled_dot_product_attention

import machine
from synmask.pipeline.training.operators import attention, linear

# tokens of a batch, inputs, outputs: of the demo's model, multi30k-small's and IWSLT14's
LINEAR = [
    (960, 128, 256), (1024, 256, 256), (1024, 256, 512), (1024, 256, 5000),
    (1024, 512, 512), (1024, 512, 1024), (1024, 1024, 512), (1024, 512, 6632),
]  # fmt: skip
# sentences, heads, tokens of a sentence, numbers of a head
ATTENTION = [(64, 4, 16, 64), (125, 4, 16, 64), (32, 4, 32, 128), (8, 12, 128, 64), (2, 12, 512, 64)]


def medians(contestants, turns):
    """CPU milliseconds of each function, in turns."""
    times = [[] for _ in contestants]
    for turn in range(turns + 2):  # the first two are a warm-up
        for spent, step in zip(times, contestants, strict=True):
            start = time.process_time()
            step()
            if turn > 1:
                spent.append(1e3 * (time.process_time() - start))
    return [statistics.median(spent) for spent in times]


def linear_layers(tokens, inputs, outputs):
    """Forward and backward of torch's layer, and of ours."""
    x, weight = torch.randn(tokens, inputs), torch.randn(outputs, inputs)
    leaves = [one.requires_grad_() for one in (x, weight, torch.randn(outputs))]
    grad = torch.randn(tokens, outputs)
    return [lambda f=f: torch.autograd.grad(f(*leaves), leaves, grad) for f in (torch_linear, linear)]


def attentions(sentences, heads, tokens, width):
    """Forward and backward of torch's fused attention, and of ours."""
    leaves = [torch.randn(sentences, heads, tokens, width, requires_grad=True) for _ in range(3)]
    bias, grad = torch.zeros(sentences, 1, 1, tokens), torch.randn(sentences, heads, tokens, width)

    def ours(query, key, value):
        return attention(query * width**-0.5, key, value, bias, nn.Identity())

    def theirs(query, key, value):
        return scaled_dot_product_attention(query, key, value, bias)

    return [lambda f=f: torch.autograd.grad(f(*leaves), leaves, grad) for f in (theirs, ours)]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print(machine.described("torch", threads=args.threads), "\n")
    print("| layer | size | torch: ms | GFLOP/s | ours: ms | GFLOP/s | times as fast |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for kind, sizes, contestants in (
        ("linear", LINEAR, linear_layers),
        ("attention", ATTENTION, attentions),
    ):
        for size in sizes:
            theirs, ours = medians(contestants(*size), args.turns)
            operations = 6e-6 * size[0] * size[1] * size[2] if kind == "linear" else None
            speed = [f"{operations / ms:.0f}" if operations else "–" for ms in (theirs, ours)]
            cells = [kind, " x ".join(map(str, size)), f"{theirs:.2f}", speed[0], f"{ours:.2f}", speed[1]]
            print(f"| {' | '.join(cells)} | {theirs / ours:.2f} |")


if __name__ == "__main__":
    main()
