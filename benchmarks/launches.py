"""Operators that a training step launches on a GPU, and memory that it keeps for the backward pass.

    python benchmarks/launches.py

Needs no GPU: tensors are on the device "meta", which has shapes and no numbers, and takes the same code as a
GPU. Views, empty tensors and the optimiser (one fused call) are not counted. PyTorch splits dropout and its
fused attention into several operators there, in each system, so the number on a GPU is lower. Stock fairseq
cannot be counted: it reads values of tensors in each step, for which the host waits on a GPU. "Induction" is
the part of `grammar` that parses and computes P_D. Memory: all that autograd keeps between forward and
backward, without weights, gradients and the optimiser's state.
"""

import argparse
import contextlib
from collections import Counter

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode

import machine
from training import SIZES, rival

PAPER = {"iwslt14": (128, 32), "nc11": (128, 32), "aspec": (128, 32)}  # 4,096 tokens
FREE = ("view", "empty", "detach", "promote_types", "scalar_tensor", "local_scalar_dense", "alias")


class Launches(TorchDispatchMode):
    """Counts the operators that do some work; several may be counted at a time."""

    def __init__(self):
        super().__init__()
        self.names = Counter()

    def __torch_dispatch__(self, operator, types, arguments=(), named=None):
        name = operator.overloadpacket.__name__
        if not operator.is_view and not any(word in name for word in FREE):
            self.names[name] += 1
        return operator(*arguments, **(named or {}))

    @property
    def total(self):
        return sum(self.names.values())


def on_meta(system, corpus, sentences, length):
    """A system at a corpus's size, ready for a step."""
    torch.autocast = lambda *_, **__: contextlib.nullcontext()  # the real ones know no "meta"
    torch.is_autocast_enabled = lambda *_: False
    return rival(system, corpus, sentences, length, device="meta")


def step(one):
    """Operators of the forward and the backward pass, and bytes that are kept between them."""
    kept = {}

    def keep(tensor):
        kept[tensor.untyped_storage()._cdata] = tensor.untyped_storage().nbytes()
        return tensor

    weights = {p.untyped_storage()._cdata for p in one.model.parameters()}
    with saved_tensors_hooks(keep, lambda tensor: tensor), Launches() as forward:
        loss, size, _ = one.criterion(one.model, one.sample)
    with Launches() as backward:
        (loss / size).backward()
    return forward.total, backward.total, sum(size for key, size in kept.items() if key not in weights)


def induction(one):
    """Operators of the forward and the backward pass of `Guide.prepare` alone."""
    tokens = one.sample["net_input"]["src_tokens"]
    x = torch.empty(*tokens.shape, one.model.encoder.guide.shape.embed_dim, device="meta", requires_grad=True)
    labels = {"bpe_labels": one.sample["net_input"]["annotations"]["bpe_labels"]}
    with Launches() as forward:
        relations = one.model.encoder.guide.prepare(x, tokens.eq(1), labels).relations
    with Launches() as backward:
        relations.sum().backward()
    return forward.total, backward.total - 1  # the sum's


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", nargs="+", default=["transformer", "grammar"])
    parser.add_argument("--corpora", nargs="+", default=[*PAPER], choices=SIZES)
    args = parser.parse_args()
    print(machine.described("torch", "fairseq"), end="\n\n")
    print("| corpus | system | forward | backward | together | of the first | kept, MB | of the first |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for corpus in args.corpora:
        first = None
        for system in args.systems:
            one = on_meta(system, corpus, *PAPER.get(corpus, (64, 16)))
            forward, backward, kept = step(one)
            first = first or (forward + backward, kept)
            ratios = (forward + backward) / first[0], kept / first[1]
            print(
                f"| {corpus} | {system} | {forward} | {backward} | {forward + backward} | {ratios[0]:.2f} | "
                f"{kept / 1e6:,.0f} | {ratios[1]:.2f} |"
            )
            if system == "grammar":
                forward, backward = induction(one)
                print(f"| {corpus} | its induction | {forward} | {backward} | {forward + backward} | | | |")


if __name__ == "__main__":
    main()
