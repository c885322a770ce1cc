"""Beam search that finds the same hypotheses as fairseq 0.12.2 (sequence_generator.py), but faster."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from fairseq.data import Dictionary
from torch import Tensor

from synmask.search.attention import used
from synmask.search.continuations import best
from synmask.search.products import Products
from synmask.translation.steps import DecoderSteps

LONGEST = 200  # tokens of a hypothesis, without `</s>`: fairseq's default
CHUNK = 128  # sentences searched together: their logits fit into a CPU's caches
FEWER = 0.9  # finished sentences leave the caches when at most this share is unfinished ...
OFTEN = 8  # ... and every OFTEN steps


class Hypothesis(NamedTuple):
    """tokens (m,), with `</s>`; score: the sum of their log-probabilities divided by m^length_penalty."""

    tokens: Tensor
    score: float


class BeamSearch:
    """Beam search with one model, or with the mean probabilities of several models.

    A sentence is finished when `beam` hypotheses have ended, or after LONGEST tokens.
    """

    def __init__(self, models: Sequence[Any], target: Dictionary, beam: int, length_penalty: float) -> None:
        self.models = models
        self.pad, self.eos, self.vocabulary = target.pad(), target.eos(), len(target)
        self.beam = min(beam, len(target) - 1)  # a pad is never chosen
        self.length_penalty = length_penalty
        self.products = Products()
        self.longest = min([LONGEST, *(model.max_decoder_positions() - 1 for model in models)])

    @torch.inference_mode()
    def __call__(self, batch: dict[str, Any]) -> list[list[Hypothesis]]:
        """The hypotheses of each sentence in a batch, best first."""
        net = {name: value for name, value in batch["net_input"].items() if name != "prev_output_tokens"}
        encoded = [model.encoder(**net) for model in self.models]
        found = []
        for part in torch.arange(len(net["src_tokens"]), device=net["src_tokens"].device).split(CHUNK):
            decoders = [
                self._decoder(model, model.encoder.reorder_encoder_out(out, part))
                for model, out in zip(self.models, encoded, strict=True)
            ]
            found += self._search(decoders, torch.full_like(part[:, None], self.eos))
        return [sorted(ended, key=lambda one: -one.score) for ended in found]

    def _decoder(self, model: Any, encoder_out: dict[str, Any]) -> DecoderSteps:
        return DecoderSteps(model.decoder, encoder_out, self.longest, self.products)

    def _search(self, decoders: list[DecoderSteps], token: Tensor) -> list[list[Hypothesis]]:
        """The hypotheses of each sentence in the order in which they end.

        S sentences are unfinished. Each has W hypotheses of t tokens; `token` (S, W) are their last tokens.
        At first W is 1, with `</s>` alone; then it is the beam.
        """
        found: list[list[Hypothesis]] = [[] for _ in token]
        alive = list(range(len(found)))
        score = torch.zeros(token.shape, device=token.device)
        path = token.new_zeros((*token.shape, 0))  # (S, W, t): the slots of each hypothesis in `written`
        written = token[:, :0]  # (S, slots): all tokens of all hypotheses
        for step in range(self.longest + 1):
            slot = torch.arange(token.size(1), device=token.device) + written.size(1)
            path = torch.cat([path, slot.expand_as(token)[..., None]], dim=2)
            written = torch.cat([written, token], dim=1)
            logits = [decoder(token, path, written.size(1)) for decoder in decoders]
            # twice as many as go on, since one of each hypothesis ends at most
            score, token, parent = best(logits, score, 2 * self.beam, self._never(step, token.device))
            ends = token.eq(self.eos) & (score > -math.inf)
            rows, ranks = ends[:, : self.beam].nonzero(as_tuple=True)
            paths = path[rows, parent[rows, ranks]]
            for row, one in zip(
                rows.tolist(), self._ended(written[rows], paths, score[rows, ranks]), strict=True
            ):
                if len(found[alive[row]]) < self.beam:
                    found[alive[row]].append(one)
            on = [row for row, number in enumerate(alive) if len(found[number]) < self.beam]
            if not on or step == self.longest:
                break
            going = ends.byte().argsort(dim=1, stable=True)[:, : self.beam]  # ranks
            score, token, parent = (values.gather(1, going) for values in (score, token, parent))
            path = path.gather(1, parent[..., None].expand(-1, -1, step + 1))
            if len(on) <= FEWER * len(alive) or step % OFTEN == OFTEN - 1:
                alive = [alive[row] for row in on]
                rows = torch.tensor(on, device=path.device)
                score, token, (slots, path) = score[rows], token[rows], used(path[rows], written.size(1))
                kept = rows[:, None], slots
                written = written[kept]
                for decoder in decoders:
                    decoder.keep(*kept)
        return found

    def _never(self, step: int, device: torch.device) -> Tensor:
        """(V,), True of tokens that must not come next: pads, `</s>` at first, and at last all others."""
        tokens = torch.arange(self.vocabulary, device=device)
        if step == self.longest:
            return tokens != self.eos
        return (tokens == self.pad) | ((tokens == self.eos) & (step == 0))

    def _ended(self, written: Tensor, path: Tensor, score: Tensor) -> list[Hypothesis]:
        """Finished hypotheses with paths (N, t) through `written` (N, slots), without `</s>`; score (N,)."""
        tokens = F.pad(written.gather(1, path)[:, 1:], (0, 1), value=self.eos)
        scores = (score / path.size(1) ** self.length_penalty).tolist()
        return [Hypothesis(*one) for one in zip(tokens, scores, strict=True)]
