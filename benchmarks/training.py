"""A training step of each system at the paper's IWSLT14 size, on the same batch: time and operations.

    python benchmarks/training.py --threads 2

Stock fairseq (its own model and criterion) is the rival. A step is forward, backward and fairseq's Adam. The
systems take turns; the table gives medians, and ratios within one run. Operations are those of matrix
products, convolutions and attention, forward and backward, as torch counts them.
"""

import argparse
import json
import statistics
import time
from argparse import Namespace
from pathlib import Path

import torch

from synmask.config import load, read_yaml
from synmask.engine.criterion import MixedLoss
from synmask.engine.model import GuidedTransformer  # isort: split

from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerConfig, TransformerModelBase
from fairseq.optim.adam import Adam
from torch.utils.flop_counter import FlopCounterMode

from synmask.engine.trainer import fairseq_config

CONFIG = Path(__file__).parents[1] / "config.yaml"
SIZES = {"iwslt14": (8848, 6632), "nc11": (14000, 12000), "aspec": (40000, 40000)}


class Rival:
    """A model that can take steps on one batch."""

    def __init__(self, name, corpus, batch, length, device):
        config = load(read_yaml(CONFIG), [CONFIG])
        self.name = name
        entry = config.corpora[corpus]
        direction = "-".join(entry.languages[:2])
        system = "transformer" if name == "stock fairseq" else name
        settings = json.loads(config.run_settings(corpus, direction, system))
        cfg = fairseq_config(Path("data"), Path("run"), *direction.split("-"), settings, seed=1)
        words = [Dictionary(), Dictionary()]
        for dictionary, size in zip(words, SIZES[corpus], strict=True):
            for number in range(size - len(dictionary)):
                dictionary.add_symbol(str(number))
        task = Namespace(
            source_dictionary=words[0], target_dictionary=words[1], target_dictionary_pad=words[1].pad()
        )
        torch.manual_seed(1)
        if name == "stock fairseq":
            self.model = TransformerModelBase.build_model(TransformerConfig.from_namespace(cfg.model), task)
            self.criterion = LabelSmoothedCrossEntropyCriterion(task, False, 0.1)
        else:
            self.model = GuidedTransformer.build(cfg.model, task, settings["system"])
            self.criterion = MixedLoss(task, 0.1, settings["system"]["mlm_weight"])
        self.model.to(device).train()
        self.sample = sample(batch, length, SIZES[corpus], device, settings["system"], name)
        self.optimizer = Adam([p for p in self.model.parameters() if p.requires_grad], lr=1e-5)
        self.times = []

    def step(self):
        self.optimizer.zero_grad()
        loss, size, _ = self.criterion(self.model, self.sample)
        (loss / size).backward()
        self.optimizer.step()

    def timed_step(self, device):
        synchronise(device)
        start = time.perf_counter()
        self.step()
        synchronise(device)
        self.times.append(time.perf_counter() - start)

    def operations(self):
        with FlopCounterMode(display=False) as counter:
            self.step()
        return counter.get_total_flops()


def sample(batch, length, sizes, device, system, name):
    """`batch` sentence pairs of about `length` tokens, with pads in a quarter of them."""
    torch.manual_seed(2)
    source = torch.randint(4, sizes[0], (batch, length))
    target = torch.randint(4, sizes[1], (batch, length))
    source[::4, -3:] = 1
    net = {"src_tokens": source, "src_lengths": source.ne(1).sum(1), "prev_output_tokens": target.roll(1, 1)}
    value = {"net_input": net, "target": target, "ntokens": target.numel(), "nsentences": batch}
    if name != "stock fairseq":
        heads = torch.randint(length - 3, (batch, length, 1)).expand(-1, -1, 2)
        distances = torch.randint(1, 12, (batch, length))
        net["annotations"] = {"bpe_labels": 2 * (source % 2), "heads": heads, "distances": distances}
        if system["mask_rate"]:
            net["masked"] = (torch.rand(batch * length) < system["mask_rate"]).nonzero().view(-1)
            value["masked_target"] = source.view(-1)[net["masked"]]
    return to(value, device)


def to(value, device):
    if isinstance(value, dict):
        return {key: to(inner, device) for key, inner in value.items()}
    return value.to(device) if torch.is_tensor(value) else value


def synchronise(device):
    if device == "cuda":
        torch.cuda.synchronize()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", default="iwslt14", choices=SIZES, help="whose model size")
    parser.add_argument("--sentences", type=int, default=32)
    parser.add_argument("--length", type=int, default=32, help="tokens a sentence")
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--systems", nargs="+", default=["transformer", "transformer-mlm", "grammar-nobpe", "grammar"]
    )
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    names = ["stock fairseq", *args.systems]
    rivals = [Rival(name, args.corpus, args.sentences, args.length, device) for name in names]
    operations = [rival.operations() for rival in rivals]  # this is their warm-up, too
    for turn in range(args.steps):  # who goes after whom matters by some percent, so the order rotates
        first = turn % len(rivals)
        for rival in rivals[first:] + rivals[:first]:
            rival.timed_step(device)
    base, operations_base = statistics.median(rivals[0].times), operations[0]
    print(f"{args.corpus}, {args.sentences} x {args.length} tokens, {device}, {args.threads} threads\n")
    print("| system | parameters | s a step | of stock | operations | of stock |")
    print("|---|---:|---:|---:|---:|---:|")
    for rival, count in zip(rivals, operations, strict=True):
        seconds = statistics.median(rival.times)
        parameters = sum(p.numel() for p in rival.model.parameters())
        print(
            f"| {rival.name} | {parameters / 1e6:.2f} M | {seconds:.3f} | {seconds / base:.3f} | "
            f"{count / 1e9:.0f} G | {count / operations_base:.3f} |"
        )


if __name__ == "__main__":
    main()
