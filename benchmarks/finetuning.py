"""A fine-tuning step of RoBERTa-base, plain and guided by syntax, on one batch: time, operations, memory.

    python benchmarks/finetuning.py --sentences 4 --lengths 128 --threads 2
    python benchmarks/finetuning.py --alone --sentences 16 --steps 3 --threads 1

Stock fairseq is the rival; what is measured, and how: steps.py. With --alone each system has a process of its
own, so that its peak is its own, too, and the first system is what ratios are against. Weights and trees are
random; time does not depend on them.
"""

import argparse
import resource
import statistics
from argparse import Namespace
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch

from synmask.pipeline.config.loading import load, project_files, read_all
from synmask.pipeline.roberta.encoded import COLUMNS, NONE
from synmask.pipeline.roberta.labelled import SentenceLoss, batched  # isort: split

from fairseq.criterions.sentence_prediction import SentencePredictionConfig, SentencePredictionCriterion
from fairseq.data import Dictionary
from fairseq.models.roberta import RobertaModel

import machine
from steps import STOCK, Rival, compare
from synmask.pipeline.roberta.model import HEAD, GuidedRoberta
from synmask.pipeline.roberta.weights import RobertaShape, Weights

ROOT = Path(__file__).parents[1]


def costs(names, layers, sentences, length, steps, **how):
    """The cost of a step of each system; `how`: a Rival's device and precision."""
    weights = new_weights(layers)
    return compare([rival(name, weights, sentences, length, **how) for name in names], steps)


def rival(name, weights, sentences, length, **how):
    """A RoBERTa system of config.yaml, or stock fairseq."""
    config = load(read_all(project_files(ROOT)))
    system = config.nlu_settings("glue", "rte", "roberta" if name == STOCK else name).system
    arguments = Namespace(**vars(weights.shape.settings()), dropout=0.1, attention_dropout=0.1)
    torch.manual_seed(1)
    if name == STOCK:
        task = Namespace(source_dictionary=weights.dictionary, target_dictionary=weights.dictionary)
        model = RobertaModel.build_model(arguments, task)
        model.register_classification_head(HEAD, num_classes=2)
        criterion = SentencePredictionCriterion(SentencePredictionConfig(classification_head_name=HEAD), task)
    else:
        model = GuidedRoberta.fine_tuned(weights, arguments, system, outputs=2)
        task = Namespace(classes=2, target_dictionary=weights.dictionary)
        criterion = SentenceLoss(task, system.mlm_weight)
    batch = sample(sentences, length, len(weights.dictionary))
    if system.kind.reads:
        batch["net_input"]["annotations"] = batched([tree(length) for _ in range(sentences)])
    return Rival(name, model, criterion, batch, **how)


def tree(length):
    """Annotations of one sentence whose words, a sub-word each, hang on random ones before them."""
    table = np.full((length, COLUMNS), [NONE, NONE, 0, 0])
    for place in range(1, length - 1):
        table[place] = place, np.random.default_rng(place).integers(1, max(2, place)), 1, 0
    return table


def sample(sentences, length, words):
    """`sentences` examples of about `length` tokens, with pads in a quarter of them."""
    torch.manual_seed(2)
    tokens = torch.randint(4, words - 1, (sentences, length))
    tokens[::4, -3:] = 1
    inputs = {"src_tokens": tokens, "src_lengths": tokens.ne(1).sum(1)}
    target = torch.randint(2, (sentences,))
    return {"net_input": inputs, "target": target, "ntokens": tokens.numel(), "nsentences": sentences}


def new_weights(layers):
    """Random weights of RoBERTa-base's size, or of fewer layers."""
    dictionary = Dictionary()
    for number in range(50260):
        dictionary.add_symbol(str(number))
    dictionary.add_symbol("<mask>")
    shape = RobertaShape(layers=layers, embed_dim=768, ffn_dim=3072, heads=12, max_positions=512)
    state = GuidedRoberta.build(shape.settings(), dictionary).state_dict()
    return Weights(shape, dictionary, {name: value for name, value in state.items() if "_float_" not in name})


@dataclass(frozen=True)
class Measured:
    """Of one system: a step's CPU seconds, operations, bytes that it adds; the most that the process held."""

    parameters: int
    seconds: float
    operations: int
    step: int
    process: int


def measured(name, args, length):
    """Take steps with one system, in this process alone."""
    torch.set_num_threads(args.threads)
    one = rival(name, new_weights(args.layers), args.sentences, length, device="cpu")
    operations = one.operations()  # this is the warm-up, too
    for _ in range(args.steps):
        one.timed_step()
    process = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # before the profiler adds its own
    parameters = sum(p.numel() for p in one.model.parameters())
    return Measured(parameters, statistics.median(one.times), operations, one.memory(), process)


def each_alone(args, length):
    """Measure the systems one after the other, and print a table."""
    heads = ("CPU s per step", "operations", "MB per step", "MB of the process")
    print("| system | parameters |" + "".join(f" {head} | ratio |" for head in heads))
    print("|---|" + "---:|" * (1 + 2 * len(heads)))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        first = None
        for name in args.systems:
            found = pool.submit(measured, name, args, length).result()
            first = first or found
            cells = [
                f"{found.seconds:.1f} | {found.seconds / first.seconds:.2f}",
                f"{found.operations / 1e9:,.0f} G | {found.operations / first.operations:.2f}",
                f"{found.step / 1e6:,.0f} | {found.step / first.step:.2f}",
                f"{found.process / 1e6:,.0f} | {found.process / first.process:.2f}",
            ]
            print(f"| {name} | {found.parameters:,} | {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sentences", type=int, default=4)
    parser.add_argument("--lengths", type=int, nargs="+", default=[128], help="tokens per example")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--alone", action="store_true", help="one process per system, on the CPU")
    parser.add_argument(
        "--systems",
        nargs="+",
        default=["roberta", "roberta-grammar", "sla", "syntax-roberta"],
    )
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    device = "cuda" if torch.cuda.is_available() and not args.alone else "cpu"
    names = [STOCK, *args.systems]
    print(machine.described("torch", "fairseq", device=device, threads=args.threads))
    for length in args.lengths:
        print(f"{args.layers} layers, {args.sentences} x {length} tokens\n")
        if args.alone:
            each_alone(args, length)
            continue
        costs(names, args.layers, args.sentences, length, args.steps, device=device)


if __name__ == "__main__":
    main()
