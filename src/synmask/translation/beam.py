"""Beam search: fairseq's (sequence_generator.py, 0.12.2), with the same hypotheses in less time."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from fairseq.data import Dictionary
from torch import Tensor

from synmask.guides.steps import used
from synmask.translation.steps import DecoderSteps

LONGEST = 200  # tokens of a hypothesis, without `</s>`: fairseq's default
FEWER, OFTEN = 0.9, 8  # share of sentences that go on, or steps, after which caches are cleared
TOGETHER = 128  # sentences on a CPU, whose caches then hold what a step works on


class Hypothesis(NamedTuple):
    """tokens (m,), with `</s>`; score: the sum of their log-probabilities, divided by m^length_penalty."""

    tokens: Tensor
    score: float


class BeamSearch:
    """Beam search with one model, or with the mean of several models' probabilities.

    A sentence is finished when `beam` hypotheses have ended, or at LONGEST tokens.
    """

    def __init__(
        self, models: Sequence[Any], target: Dictionary, beam: int, length_penalty: float
    ) -> None:
        self.models = models
        self.pad, self.eos = target.pad(), target.eos()
        self.beam = min(beam, len(target) - 1)  # a pad is never chosen
        self.length_penalty = length_penalty
        self.longest = min([LONGEST, *(model.max_decoder_positions() - 1 for model in models)])

    @torch.inference_mode()
    def __call__(self, batch: dict[str, Any]) -> list[list[Hypothesis]]:
        """The hypotheses of each sentence of a batch, the best first."""
        net = {name: value for name, value in batch["net_input"].items() if name != "prev_output_tokens"}
        encoded = [model.encoder(**net) for model in self.models]
        numbers = torch.arange(len(net["src_tokens"]), device=net["src_tokens"].device)
        found = []
        for part in numbers.split(TOGETHER if numbers.device.type == "cpu" else len(numbers)):
            decoders = [
                DecoderSteps(model.decoder, model.encoder.reorder_encoder_out(out, part))
                for model, out in zip(self.models, encoded, strict=True)
            ]
            found += self._search(decoders, part)
        return [sorted(ended, key=lambda one: -one.score) for ended in found]

    def _search(self, decoders: list[DecoderSteps], numbers: Tensor) -> list[list[Hypothesis]]:
        """Hypotheses of len(numbers) sentences as they end. S go on; their hypotheses have t tokens each."""
        found: list[list[Hypothesis]] = [[] for _ in numbers]
        alive = list(range(len(found)))
        token = numbers.new_full((len(found), 1), self.eos)  # (S, W): W is 1, then the beam
        score = torch.zeros(token.shape, device=numbers.device)
        path = token.new_zeros((*token.shape, 0))  # (S, W, t): each hypothesis' slots in `written`
        written = token[:, :0]  # (S, slots): all tokens of all hypotheses
        for step in range(self.longest + 1):
            slot = torch.arange(token.size(1), device=token.device) + written.size(1)
            path = torch.cat([path, slot.expand_as(token)[..., None]], dim=2)
            written = torch.cat([written, token], dim=1)
            logs = self._log_probabilities(decoders, token, path, written.size(1))
            if step == 0:
                logs[..., self.eos] = -math.inf
            if step == self.longest:
                logs[..., : self.eos] = logs[..., self.eos + 1 :] = -math.inf
            score, token, parent = self._candidates(score, logs)
            ends = token.eq(self.eos) & (score > -math.inf)
            rows, ranks = ends[:, : self.beam].nonzero(as_tuple=True)
            slots = path[rows, parent[rows, ranks]]
            tokens = torch.cat([written[rows].gather(1, slots)[:, 1:], token[rows, ranks, None]], dim=1)
            scores = score[rows, ranks] / (step + 1) ** self.length_penalty
            for row, ids, value in zip(rows.tolist(), tokens, scores.tolist(), strict=True):
                if len(found[alive[row]]) < self.beam:
                    found[alive[row]].append(Hypothesis(ids, value))
            on = [row for row, number in enumerate(alive) if len(found[number]) < self.beam]
            if not on or step == self.longest:
                break
            best = ends.byte().argsort(dim=1, stable=True)[:, : self.beam]  # that have not ended
            score, token, parent = (values.gather(1, best) for values in (score, token, parent))
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

    def _log_probabilities(
        self, decoders: list[DecoderSteps], token: Tensor, path: Tensor, slots: int
    ) -> Tensor:
        """(S, W, V), of the next tokens; see `DecoderSteps`."""
        each = [decoder(token, path, slots).log_softmax(-1, dtype=torch.float32) for decoder in decoders]
        logs = each[0] if len(each) == 1 else torch.stack(each).logsumexp(0) - math.log(len(each))
        logs[..., self.pad] = -math.inf
        return logs

    def _candidates(self, score: Tensor, logs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The best 2 * beam continuations of each sentence: their scores, tokens and parents (S, 2 * beam).

        So many, since a hypothesis in the beam has one that ends at most. Each parent's best so many hold them.
        """
        most = min(2 * self.beam, logs.size(-1) - 1)
        values, tokens = logs.topk(most)
        score, index = (score[..., None] + values).flatten(1).topk(min(2 * self.beam, values[0].numel()))
        return score, tokens.flatten(1).gather(1, index), index // most
