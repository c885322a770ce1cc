"""Sentences per second of our beam search and of rivals, with the same weights, batches and beam.

    python benchmarks/decoding.py results/demo/de-en/{transformer,grammar}/seed1/average.pt

The text is the test set beside the models. The rivals are fairseq's generator, our own search in bf16 and,
for an unguided model on a CPU, CTranslate2's with copied weights, in float32 and with 8 bits. In bf16 and
with 8 bits, hypotheses may differ.

All are warm and search in turns; times include making batches. Speeds are medians per CPU second, in brackets
per second; a ratio is the median of the turns' ratios, with the lowest and the highest turn. fairseq decodes
a guided decoder (lpsi) without a cache, since it cannot know what to keep.
"""

import argparse
import copy
import tempfile
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import nn

from synmask.pipeline.config.sections import Decoding
from synmask.pipeline.cpu.modules import FastDropout, FastLinear
from synmask.pipeline.evaluation.bleu import bleu
from synmask.pipeline.files import read_lines
from synmask.pipeline.training.operators import FastFairseqDropout, FastMultiheadAttention
from synmask.pipeline.translation.beam import MAX_HYPOTHESIS_TOKENS, BeamSearch, search_batches
from synmask.pipeline.translation.inputs import MAX_BATCH_SENTENCES, encode_lines  # isort: split

from fairseq.modules import FairseqDropout, MultiheadAttention
from fairseq.sequence_generator import SequenceGenerator

import machine
from synmask.pipeline.cpu.processor import CPU
from synmask.pipeline.text.notation import join_subwords
from synmask.pipeline.translation.model_file import load_model

# our modules: those of fairseq's own models
SLOWER = {
    FastFairseqDropout: FairseqDropout,
    FastMultiheadAttention: MultiheadAttention,
    FastDropout: nn.Dropout,
    FastLinear: nn.Linear,
}


def fairseqs(model, task, beam):
    """fairseq's generator, with its own modules: batch → (tokens, score) of the hypotheses of each sentence,
    best first."""
    model = copy.deepcopy(model)
    for module in model.modules():
        module.__class__ = SLOWER.get(type(module), type(module))
    generator = SequenceGenerator([model], task.tgt_dict, beam_size=beam, len_penalty=1.0)

    def search(batch):
        found = generator.generate([model], batch)
        return [[(one["tokens"].tolist(), float(one["score"])) for one in each] for each in found]

    return search


def ctranslate2s(model, task, beam, path, precision="float32"):
    """CTranslate2's beam search with the model file `path`, likewise, but only the best."""
    from ctranslate2 import Translator

    from synmask.pipeline.translation.ct2 import export_ctranslate2

    with tempfile.TemporaryDirectory() as folder:
        export_ctranslate2(path, Path(folder))
        translator = Translator(
            folder, compute_type=precision, inter_threads=1, intra_threads=torch.get_num_threads()
        )
    words, ids = task.src_dict.symbols, task.tgt_dict.indices
    most = min(MAX_HYPOTHESIS_TOKENS, model.decoder.max_positions() - 1)

    def search(batch):
        tokens = batch["net_input"]["src_tokens"].tolist()
        added = task.src_dict.pad(), task.src_dict.eos()
        source = [[words[one] for one in row if one not in added] for row in tokens]
        found = translator.translate_batch(
            source, beam_size=beam, max_decoding_length=most, return_scores=True, batch_type="examples"
        )
        ended = [([*map(ids.get, one.hypotheses[0]), task.tgt_dict.eos()], one.scores[0]) for one in found]
        return [[pair] for pair in ended]

    return search


def ours(model, task, beam, precision="fp32"):
    search = BeamSearch([model], task.tgt_dict, Decoding(beam=beam, precision=precision))
    return lambda batch: [[(one.tokens.tolist(), one.score) for one in each] for each in search(batch)]


def translated(search, model, task, sentences, tokens):
    """The best hypothesis of each sentence."""
    best = {}
    for results in search_batches(model, search, task.sources(sentences), tokens):
        best |= {number: hypotheses[0] for number, hypotheses in results.items()}
    return [best[number] for number in sorted(best)]


def compare(path, lines, tokens, beam, turns, references=()):
    """A row of the table for each rival, with a model file; they are printed, too."""
    model, task, *_ = load_model(path)
    guide, sentences = (
        task.settings.system.guide,
        encode_lines(lines, model.encoder.max_positions(), task.src_dict),
    )
    searches = {"ours": ours, "fairseq": fairseqs}
    device = next(model.parameters()).device.type
    cpu = device == "cpu"
    if not cpu or CPU.bf16_pairs:
        searches["ours, bf16"] = partial(ours, precision="bf16")
    if guide == "none" and cpu and find_spec("ctranslate2"):
        searches["CTranslate2"] = partial(ctranslate2s, path=path)
        searches["CTranslate2, int8"] = partial(ctranslate2s, path=path, precision="int8")
    searches = {name: made(model, task, beam) for name, made in searches.items()}
    times, best = {name: machine.Times(device) for name in searches}, {}
    for search in searches.values():
        translated(search, model, task, sentences[:20], tokens)
    for _ in range(turns):
        for name, search in searches.items():
            with times[name].turn(len(sentences)):
                best[name] = translated(search, model, task, sentences, tokens)
    scores = {name: scored(hypotheses, task, references) for name, hypotheses in best.items()}
    return [row(guide, name, times, best, scores) for name in list(searches)[1:]]


def scored(found, task, references):
    """BLEU of tokens, if there are references."""
    texts = [join_subwords(task.tgt_dict.string(torch.tensor(tokens))) for tokens, _ in found]
    metric = bleu("bleu_tokenised", "en")
    return f"{metric.corpus_score(texts, [references]).score:.2f}" if references else "–"


def row(guide, rival, times, best, scores):
    """Print one rival's row, and return its numbers."""
    pairs = list(zip(best["ours"], best[rival], strict=True))
    same, ratio = sum(a[0] == b[0] for a, b in pairs), times[rival].of(times["ours"])
    speeds = (times[name].shown(1, lambda seconds: 1 / seconds) for name in ("ours", rival))
    print(
        f"| {guide} | {rival} | {' | '.join(speeds)} | {ratio} | "
        f"{same} of {len(pairs)} | {scores['ours']}, {scores[rival]} |",
        flush=True,
    )
    rates = {"ours": 1 / times["ours"].median, "theirs": 1 / times[rival].median, "ratio": ratio.median}
    rates |= {"lowest": ratio.least, "highest": ratio.most}
    return {"guide": guide, "rival": rival} | rates | {"same": same, "sentences": len(pairs)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "models", nargs="+", type=Path, help="results/…/average.pt, of one corpus and direction"
    )
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=8000, help="source tokens per batch, at most")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--turns", type=int, default=machine.TURNS)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    pair = args.models[0].parents[2]
    source, target = (pair / f"bpe/test.{side}" for side in pair.name.split("-"))
    lines = list(read_lines(source))[: args.sentences]
    references = [join_subwords(line) for line in read_lines(target)][: args.sentences]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    print(machine.described("torch", "fairseq", device=device, threads=args.threads))
    batch = f"a batch of {args.tokens} tokens or {MAX_BATCH_SENTENCES} sentences"
    print(f"{len(lines)} sentences, {batch}, beam {args.beam}\n")
    speed = "ours, sentences per CPU s (per s)"
    print(f"| guide | rival | {speed} | rival's | ratio | same hypotheses | BLEU, rival's |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for path in args.models:
        compare(path, lines, args.tokens, args.beam, args.turns, references)


if __name__ == "__main__":
    main()
