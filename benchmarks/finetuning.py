"""A fine-tuning step of RoBERTa-base, plain and with induced grammar, on one batch: time, operations, memory.

    python benchmarks/finetuning.py --sentences 4 --lengths 128 --threads 2

Stock fairseq (its own model and criterion) is the rival. Weights are random; time does not depend on them.
A step is forward, backward and fairseq's Adam. The systems take turns; the table gives medians, and ratios
within one run. Operations are those of matrix products, convolutions and attention, as torch counts them;
memory is the peak of a step on a GPU, above what all systems hold together before it.
"""

import argparse
import json
import statistics
import time
from argparse import Namespace
from pathlib import Path

import torch

from synmask.config import load, read_yaml
from synmask.engine.roberta import HEAD, GuidedRoberta
from synmask.engine.sentences import SentenceLoss  # isort: split

from fairseq.criterions.sentence_prediction import SentencePredictionConfig, SentencePredictionCriterion
from fairseq.data import Dictionary
from fairseq.models.roberta import RobertaModel
from fairseq.optim.adam import Adam
from torch.utils.flop_counter import FlopCounterMode

from synmask.engine.weights import RobertaShape, Weights

CONFIG = Path(__file__).parents[1] / "config.yaml"
STOCK = "stock fairseq"


class Rival:
    """A model that can take steps on one batch."""

    def __init__(self, name, weights, sentences, length, device):
        settings = load(read_yaml(CONFIG), [CONFIG])
        system = json.loads(settings.nlu_settings("glue", "rte", "roberta" if name == STOCK else name))[
            "system"
        ]
        arguments = Namespace(**vars(weights.shape.settings()), dropout=0.1, attention_dropout=0.1)
        torch.manual_seed(1)
        self.name = name
        if name == STOCK:
            task = Namespace(source_dictionary=weights.dictionary, target_dictionary=weights.dictionary)
            self.model = RobertaModel.build_model(arguments, task)
            self.model.register_classification_head(HEAD, num_classes=2)
            self.criterion = SentencePredictionCriterion(
                SentencePredictionConfig(classification_head_name=HEAD), task
            )
        else:
            self.model = GuidedRoberta.fine_tuned(weights, arguments, system, outputs=2)
            task = Namespace(classes=2, target_dictionary=weights.dictionary)
            self.criterion = SentenceLoss(task, system["mlm_weight"])
        self.model.to(device).train()
        self.sample = sample(sentences, length, len(weights.dictionary), device)
        self.optimizer = Adam(self.model.parameters(), lr=1e-5)
        self.times, self.memory = [], 0

    def step(self):
        self.optimizer.zero_grad()
        loss, size, _ = self.criterion(self.model, self.sample)
        (loss / size).backward()
        self.optimizer.step()

    def timed_step(self, device):
        before = synchronised(device)
        start = time.perf_counter()
        self.step()
        self.memory = max(self.memory, synchronised(device, peak=True) - before)
        self.times.append(time.perf_counter() - start)

    def operations(self):
        with FlopCounterMode(display=False) as counter:
            self.step()
        return counter.get_total_flops()


def synchronised(device, peak=False):
    """Wait for the device; → bytes allocated there, at their peak or now."""
    if device != "cuda":
        return 0
    torch.cuda.synchronize()
    if peak:
        return torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated()


def sample(sentences, length, words, device):
    """`sentences` examples of about `length` tokens, with pads in a quarter of them."""
    torch.manual_seed(2)
    tokens = torch.randint(4, words - 1, (sentences, length))
    tokens[::4, -3:] = 1
    inputs = {"src_tokens": tokens.to(device), "src_lengths": tokens.ne(1).sum(1).to(device)}
    target = torch.randint(2, (sentences,), device=device)
    return {"net_input": inputs, "target": target, "ntokens": tokens.numel(), "nsentences": sentences}


def new_weights(layers):
    """Random weights of RoBERTa-base's size, or of fewer layers."""
    dictionary = Dictionary()
    for number in range(50260):
        dictionary.add_symbol(str(number))
    dictionary.add_symbol("<mask>")
    shape = RobertaShape(layers, embed_dim=768, ffn_dim=3072, heads=12, max_positions=512)
    state = GuidedRoberta.build(shape.settings(), dictionary).state_dict()
    return Weights(shape, dictionary, {name: value for name, value in state.items() if "_float_" not in name})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sentences", type=int, default=4)
    parser.add_argument("--lengths", type=int, nargs="+", default=[128], help="tokens an example")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--systems", nargs="+", default=["roberta", "roberta-grammar"])
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    weights = new_weights(args.layers)
    for length in args.lengths:
        names = [STOCK, *args.systems]
        rivals = [Rival(name, weights, args.sentences, length, device) for name in names]
        operations = [rival.operations() for rival in rivals]  # this is their warm-up, too
        for turn in range(args.steps):  # who goes after whom matters by some percent, so the order rotates
            first = turn % len(rivals)
            for rival in rivals[first:] + rivals[:first]:
                rival.timed_step(device)
        base, operations_base = statistics.median(rivals[0].times), operations[0]
        print(f"{args.layers} layers, {args.sentences} x {length} tokens, {device}, {args.threads} threads\n")
        print("| system | parameters | s a step | of stock | operations | of stock | MB a step |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        for rival, count in zip(rivals, operations, strict=True):
            seconds = statistics.median(rival.times)
            parameters = sum(p.numel() for p in rival.model.parameters())
            memory = f"{rival.memory / 1e6:.0f}" if rival.memory else "–"
            print(
                f"| {rival.name} | {parameters / 1e6:.2f} M | {seconds:.3f} | {seconds / base:.3f} | "
                f"{count / 1e9:.0f} G | {count / operations_base:.3f} | {memory} |"
            )
        print()


if __name__ == "__main__":
    main()
