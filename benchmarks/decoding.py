"""Sentences a second of our beam search and of fairseq's, with the same weights, batches and beam.

    python benchmarks/decoding.py --source results/demo/de-en/bpe/test.de \
        results/demo/de-en/{transformer,grammar}/seed1/average.pt

Both are warm and search in turns; times are CPU seconds of the process, medians over the turns, with making
batches. The rival decodes a guided decoder (lpsi) without a cache, since it cannot know what to keep.
"""

import argparse
import platform
import statistics
import time
from importlib.metadata import version
from pathlib import Path

import torch

from synmask.files import read_lines
from synmask.translation.average import load_model
from synmask.translation.beam import BeamSearch
from synmask.translation.decode import encoded, searched  # isort: split

from fairseq.sequence_generator import SequenceGenerator


def rival(model, task, beam, length_penalty):
    """fairseq's generator, as `searched` calls ours."""
    generator = SequenceGenerator([model], task.tgt_dict, beam_size=beam, len_penalty=length_penalty)
    return lambda batch: generator.generate([model], batch)


def timed(search, model, task, sentences, tokens):
    """Seconds (without a GPU, the CPU's), and each sentence's best hypothesis as fairseq or we give it."""
    clock = time.perf_counter if torch.cuda.is_available() else time.process_time
    start = clock()
    found = {}
    for results in searched(model, task, search, sentences, tokens, None, None):
        found |= {number: hypotheses[0] for number, hypotheses in results.items()}
    return clock() - start, [found[number] for number in sorted(found)]


def processor():
    """The processor's name, where Linux tells it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def compare(path, lines, tokens, beam, turns):
    """A row of the table for a model file; it is printed, too."""
    model, task, _ = load_model(path)
    sentences = encoded(lines, model.encoder.max_positions(), task)
    searches = BeamSearch([model], task.tgt_dict, beam, 1.0), rival(model, task, beam, 1.0)
    seconds, found = ([], []), [None, None]
    for search in searches:
        timed(search, model, task, sentences[:20], tokens)
    for _ in range(turns):
        for index, search in enumerate(searches):
            spent, found[index] = timed(search, model, task, sentences, tokens)
            seconds[index].append(spent)
    ours, theirs = (len(sentences) / statistics.median(spent) for spent in seconds)
    same = sum(a.tokens.tolist() == b["tokens"].tolist() for a, b in zip(*found, strict=True))
    apart = max(abs(a.score - float(b["score"])) for a, b in zip(*found, strict=True))
    print(
        f"| {task.settings.system.guide} | {ours:.1f} | {theirs:.1f} | {ours / theirs:.2f} | "
        f"{same} of {len(sentences)} | {apart:.0e} |",
        flush=True,
    )
    rates = {"ours": ours, "fairseq": theirs, "ratio": ours / theirs}
    agreement = {"same": same, "sentences": len(sentences), "apart": apart}
    return {"guide": task.settings.system.guide} | rates | agreement


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", type=Path, help="model files: average.pt")
    parser.add_argument("--source", type=Path, required=True, help="sentences in BPE")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=8000, help="source tokens a batch")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    lines = list(read_lines(args.source))[: args.sentences]
    where = torch.cuda.get_device_name() if torch.cuda.is_available() else processor()
    print(
        f"{where}, {args.threads} threads, torch {torch.__version__}, fairseq {version('fairseq')}; "
        f"{len(lines)} sentences, {args.tokens} tokens a batch, beam {args.beam}\n"
    )
    print("| guide | ours, sentences/s | fairseq's | ratio | same hypotheses | scores differ by |")
    print("|---|---:|---:|---:|---:|---:|")
    for path in args.models:
        compare(path, lines, args.tokens, args.beam, args.turns)


if __name__ == "__main__":
    main()
