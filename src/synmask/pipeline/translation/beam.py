"""Beam search that finds the same hypotheses as fairseq 0.12.2 (sequence_generator.py), but faster."""

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from fairseq.data import Dictionary
from torch import Tensor

from synmask.pipeline.config.sections import Decoding
from synmask.pipeline.cpu.processor import CPU
from synmask.pipeline.search.products import Products
from synmask.pipeline.search.slots import Paths, take_hypotheses
from synmask.pipeline.translation.dataset import AnnotatedPairs
from synmask.pipeline.translation.inputs import inference_batches
from synmask.pipeline.translation.steps import DecoderSteps, next_tokens

BF16_PAIRS = CPU.bf16_pairs
MAX_HYPOTHESIS_TOKENS = 200  # tokens of a hypothesis, without `</s>`: fairseq's default


@cache
def _note_fp32_is_faster() -> None:
    print("precision bf16: this processor is faster in fp32, so fp32 is taken", file=sys.stderr)


class Hypothesis(NamedTuple):
    """tokens (m,), with `</s>`; score: the sum of their log-probabilities divided by m^length_penalty."""

    tokens: Tensor
    score: float


class BeamSearch:
    """Beam search with one model, or with the mean probabilities of several models.

    A sentence is finished when `beam` hypotheses have ended, or after MAX_HYPOTHESIS_TOKENS.

    With `settings.precision` "bf16", the products of the decoder's layers are in bf16, on a CPU also those of
    the encoder and with the vocabulary. This may change a hypothesis. A CPU without AVX-512 for bf16 takes
    fp32, which is faster there, and prints a note once.
    """

    def __init__(self, models: Sequence[Any], target: Dictionary, settings: Decoding) -> None:
        self.models = models
        self.pad, self.eos, self.vocabulary = target.pad(), target.eos(), len(target)
        self.beam = min(settings.beam, len(target) - 1)  # a pad is never chosen
        self.length_penalty, self.max_tokens = settings.length_penalty, settings.max_tokens
        precision = settings.precision
        if precision == "bf16" and not BF16_PAIRS and next(models[0].parameters()).device.type == "cpu":
            _note_fp32_is_faster()
            precision = "fp32"
        self.products = Products(precision)
        self.longest = min([MAX_HYPOTHESIS_TOKENS, *(model.max_decoder_positions() - 1 for model in models)])

    @torch.inference_mode()
    def __call__(self, batch: dict[str, Any]) -> list[list[Hypothesis]]:
        """The hypotheses of each sentence in a batch, best first."""
        net = {name: value for name, value in batch["net_input"].items() if name != "prev_output_tokens"}
        rounded = self.products.rounded is not None and net["src_tokens"].device.type == "cpu"
        with torch.autocast("cpu", torch.bfloat16, enabled=rounded):
            sources = [model.encoder(**net) for model in self.models]
        decoders = [
            DecoderSteps(model.decoder, source, self.longest, self.products)
            for model, source in zip(self.models, sources, strict=True)
        ]
        finished = self._search(decoders, net["src_tokens"])
        return [sorted(ended, key=lambda hypothesis: -hypothesis.score) for ended in finished]

    def _search(self, decoders: list[DecoderSteps], source: Tensor) -> list[list[Hypothesis]]:
        """The hypotheses of each sentence of `source` (B, n) in the order in which they end.

        S sentences are unfinished. Each has W hypotheses of t tokens. At first W is 1, with `</s>` alone;
        then it is the beam.
        """
        sentences, device = len(source), source.device
        finished: list[list[Hypothesis]] = [[] for _ in range(sentences)]
        alive = list(range(sentences))
        score = torch.zeros((sentences, 1), device=device)
        tokens = torch.full((sentences, 1, 1), self.eos, device=device)  # (S, W, t)
        paths = Paths.start(sentences, device)
        never = self._forbidden(device)
        for step in range(self.longest + 1):
            paths = paths.extend()
            # twice as many as go on, since one of each hypothesis ends at most
            excluded = never[-1 if step == self.longest else min(step, 1)]
            limits = (score, 2 * self.beam, excluded)
            score, token, parent = next_tokens(decoders, tokens[..., -1], paths, *limits)
            ends = token.eq(self.eos) & (score > -math.inf)
            rows, ranks = ends[:, : self.beam].nonzero(as_tuple=True)
            if len(rows):
                ended = self._finish(tokens[rows, parent[rows, ranks]], score[rows, ranks])
                for row, hypothesis in zip(rows.tolist(), ended, strict=True):
                    if len(finished[alive[row]]) < self.beam:
                        finished[alive[row]].append(hypothesis)
            on = [row for row, number in enumerate(alive) if len(finished[number]) < self.beam]
            if not on or step == self.longest:
                break
            alive = [alive[row] for row in on]
            rows = torch.tensor(on, device=device)[:, None]
            ranks = ends[rows[:, 0]].byte().argsort(dim=1, stable=True)[:, : self.beam]
            going = ranks + rows * ends.size(1)
            score, token, parent = (values.take(going) for values in (score, token, parent))
            tokens = torch.cat([take_hypotheses(tokens, rows, parent), token[..., None]], dim=2)
            paths = paths.take(rows, parent)
        return finished

    def _forbidden(self, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        """(V,), True for tokens not allowed first, later, and last: pads; first also `</s>`; last all but
        `</s>`."""
        tokens = torch.arange(self.vocabulary, device=device)
        pads, ends = tokens == self.pad, tokens == self.eos
        return pads | ends, pads, ~ends

    def _finish(self, tokens: Tensor, score: Tensor) -> list[Hypothesis]:
        """Finished hypotheses: `</s>` and their other tokens (N, t); score (N,)."""
        scores = (score / tokens.size(1) ** self.length_penalty).tolist()
        ended = F.pad(tokens[:, 1:], (0, 1), value=self.eos)
        return [Hypothesis(*fields) for fields in zip(ended, scores, strict=True)]


def search_batches(
    model: Any,
    search: Callable[[dict[str, Any]], list[list[Hypothesis]]],
    sources: AnnotatedPairs,
    max_tokens: int,
) -> Iterator[dict[int, list[Hypothesis]]]:
    """For each batch: number of a sentence → its hypotheses, best first.

    Sentences without tokens are left out.
    """
    for batch in inference_batches(sources, model, max_tokens, least=2):
        yield dict(zip(batch["id"].tolist(), search(batch), strict=True))


def best_hypotheses(search: BeamSearch, sources: AnnotatedPairs, *, show_progress: bool = False) -> list[str]:
    """The best hypotheses in BPE, in the order of `sources`. A sentence without tokens stays empty."""
    hypotheses = [""] * len(sources)
    filled = int((sources.src_sizes > 1).sum())
    done, started = 0, time.perf_counter()
    for results in search_batches(search.models[0], search, sources, search.max_tokens):
        for number, (first, *_) in results.items():
            hypotheses[number] = sources.tgt_dict.string(first.tokens)
        done += len(results)
        if show_progress:
            speed = done / (time.perf_counter() - started)
            print(f"{done}/{filled} sentences, {speed:.1f} per second", file=sys.stderr, flush=True)
    return hypotheses
