"""How much the distances that a RoBERTa induces differ within an example, at the start and fine-tuned.

    snakemake nlu-demo-attention && python benchmarks/spread.py

Reads the models that the workflow left in results/, and makes each run's start again from its seed. Over the
task's development examples, `<s>` and `</s>` included:

apart   share of the mean square of what the distances' last map reads that differs between an example's gaps
sd      standard deviation within an example: root of the mean squared deviation from the example's mean

A fine-tuning starts with the last maps of distances and heights at 0, so that all distances and all heights
are equal (docs/nlu.md); "drawn" is the same parser with last maps as PyTorch draws them.
"""

import argparse
import logging
from pathlib import Path

import torch

from synmask.pipeline.config.loading import load as load_config
from synmask.pipeline.config.loading import project_files, read_all
from synmask.pipeline.roberta.encoded import read_encoded
from synmask.pipeline.roberta.model import GuidedRoberta
from synmask.pipeline.roberta.weights import load_weights
from synmask.pipeline.tasks import TASKS
from synmask.pipeline.training.checkpoints import load

ROOT = Path(__file__).parents[1]


def within(values, real):
    """Mean squared deviation of values (B, m[, d]) from their row's mean, and their mean square: summed over
    d, where `real` (B, m)."""
    values = values if values.dim() == 3 else values[..., None]
    values = values.double().masked_fill(~real[..., None], 0)
    mean = values.sum(1, keepdim=True) / real.sum(1)[:, None, None]
    centred = (values - mean).masked_fill(~real[..., None], 0)
    return [x.square().sum().item() / real.sum().item() for x in (centred, values)]


def measure(model, encoded, pad):
    """→ apart (a share), sd of the distances, sd of the heights."""
    encoder = model.eval().encoder.sentence_encoder
    parser, read = encoder.guide.parser, []
    hook = parser.distance_output.register_forward_hook(lambda module, inputs, output: read.append(inputs[0]))
    rows = [torch.from_numpy(encoded[i]).long() for i in range(len(encoded))]
    tokens = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad)
    with torch.no_grad():
        found = encoder.induce(tokens, {})
    hook.remove()
    real = tokens.ne(pad)
    gaps = real[:, 1:] & real[:, :-1]
    different, all_of_it = within(read[0], gaps)
    return different / all_of_it, within(found.distance, gaps)[0] ** 0.5, within(found.height, real)[0] ** 0.5


def measured(task, system, seed, args):
    """Results of `measure` with last maps as drawn, at the start of a fine-tuning and in its best epoch."""
    config = load_config(read_all(project_files(ROOT)))
    settings = config.nlu_settings(args.benchmark, task, system)
    weights = load_weights(args.results / "weights" / config.benchmarks[args.benchmark].weights)
    folder = args.results / args.benchmark / task
    encoded = read_encoded(folder / "ids/dev.npz")
    torch.manual_seed(seed)
    outputs = max(1, len(TASKS[task].labels))
    model = GuidedRoberta.fine_tuned(
        weights, weights.shape.settings(settings.training), settings.system, outputs
    )
    pad, parser = weights.dictionary.pad(), model.encoder.sentence_encoder.guide.parser
    start = measure(model, encoded, pad)
    for output in (parser.distance_output, parser.height_output):
        output.reset_parameters()
    drawn = measure(model, encoded, pad)
    model.load_state_dict(load(folder / system / f"seed{seed}/best.pt")["model"])
    return drawn, start, measure(model, encoded, pad)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--benchmark", default="nlu-demo")
    parser.add_argument("--tasks", nargs="+", default=["acceptability", "entailment"])
    names = ["roberta-grammar", "roberta-grammar-noattention", "roberta-grammar-residual"]
    parser.add_argument("--systems", nargs="+", default=names)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    logging.getLogger("fairseq").setLevel(logging.WARNING)  # it logs every load of weights
    heads = ["apart: start", "trained", "sd of distances: drawn", "start", "trained", "of heights: trained"]
    print(f"| task | system | {' | '.join(heads)} |\n|---|---|{'---:|' * len(heads)}")
    for task in args.tasks:
        for system in args.systems:
            drawn, start, trained = measured(task, system, args.seed, args)
            shares = (f"{100 * apart:.1f}%" for apart in (start[0], trained[0]))
            sds = (f"{sd:.3f}" for sd in (drawn[1], start[1], *trained[1:]))
            print(f"| {task} | `{system}` | {' | '.join((*shares, *sds))} |", flush=True)


if __name__ == "__main__":
    main()
