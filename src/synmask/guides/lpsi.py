"""LPSI (Harada & Watanabe, ACL-SRW 2021): a layer beside the model induces distances that gate attention."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmask.guides import Guide, LossInputs, Shape, Syntax
from synmask.guides.attention import log_gates, masked_softmax, on_first_heads
from synmask.options.lpsi import LpsiOptions


@dataclass(frozen=True)
class TowerGates:
    """distance (B, G, n) of each token and gated head, float32 or wider; log_gate (B, G, n, n);
    padding (B, n); outside (B, 1, 1 or n, n): True where attention is not allowed."""

    distance: Tensor
    log_gate: Tensor
    padding: Tensor
    outside: Tensor


class LpsiGuide(Guide):
    """A = softmax(scores) * g, normalised, in the first layer of the encoder and of the decoder.

    g_ij is the product of sigmoid(t (d_i - d_k)) over the tokens k from j to i, without i: tokens with a
    larger distance are walls. A Transformer layer beside the model (the tower) computes the distances, one
    per token for each of the first `heads` heads. The decoder has its own tower, which sees only earlier
    tokens. Loss, with `sync`: `sync_weight` times the difference between the decoder's distances and the
    source's, mapped by cross-attention: "rank", the order of each two tokens, with a margin.

    It reads no annotations.

    Args:
        options: `LpsiOptions`.
        shape: the sizes of the guided encoder.
        causal: whether a token sees earlier ones alone, as in a decoder.
    """

    def __init__(self, options: LpsiOptions, shape: Shape, causal: bool = False) -> None:
        super().__init__(options, shape)
        self.causal = causal
        self.tower = nn.TransformerEncoderLayer(
            shape.embed_dim, shape.heads, shape.ffn_dim, dropout=0.0, batch_first=True
        )
        self.output = nn.Linear(shape.embed_dim, min(options.heads or shape.heads, shape.heads))
        # The published tower is fairseq's layer; only these two start differently from torch's.
        attention, scale = self.tower.self_attn, shape.embed_dim**-0.5
        nn.init.uniform_(attention.in_proj_bias, -scale, scale)
        nn.init.xavier_uniform_(attention.out_proj.weight)
        nn.init.normal_(self.output.weight, std=scale)
        nn.init.zeros_(self.output.bias)

    def decoder(self) -> Self:
        """The decoder's own tower."""
        return type(self)(self.options, self.shape, causal=True)

    def prepare(self, x: Tensor, padding: Tensor, annotations: Mapping[str, Tensor]) -> TowerGates:
        """x (B, n, d) → distances and gates."""
        n = x.size(1)
        after = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        masks = {"src_mask": after if self.causal else None}
        if x.size(0):  # torch's attention cannot mask the pads of an empty batch
            masks["src_key_padding_mask"] = padding
        distance = self.output(self.tower(x, **masks)).mT
        distance = distance.to(torch.promote_types(distance.dtype, torch.float32))
        factor = F.logsigmoid(self.options.temperature * (distance[..., :, None] - distance[..., None, :]))
        outside = padding[:, None, None, :]
        return TowerGates(
            distance, log_gates(factor, factor), padding, outside | after if self.causal else outside
        )

    def steps(self, cached: Callable[..., Any]) -> "TowerSteps":
        return TowerSteps(self, cached)

    def attend(self, scores: Tensor, prepared: TowerGates, layer: int) -> Tensor:
        """Scores (B, H, n, n) → weights."""
        gate = on_first_heads(self.output.out_features, prepared.log_gate, scores, neutral=0.0)
        return masked_softmax(scores + gate, prepared.outside).to(scores.dtype)

    def syntax(self, prepared: TowerGates) -> Syntax:
        """The distance of a gap is the mean over heads of the distance of the token after it."""
        return Syntax(prepared.distance.mean(1)[:, 1:])

    def loss(self, inputs: LossInputs) -> Tensor | None:
        """The synchronisation loss, summed over pairs of target tokens."""
        if self.options.sync == "none":
            return None
        induced, real = inputs.target.distance.mean(1), ~inputs.target.padding
        distance = inputs.source.distance.mean(1)[..., None]
        carried = (inputs.cross_attention.float() @ distance).squeeze(-1)
        order = (induced[:, :, None] - induced[:, None, :]).sign()
        missed = F.relu(self.options.sync_margin - order * (carried[:, :, None] - carried[:, None, :]))
        pairs = (real[:, :, None] & real[:, None, :]).tril(-1)
        return self.options.sync_weight * missed[pairs].sum()


class TowerSteps:
    """The decoder's tower in beam search; keys, values and distances are computed once per token."""

    def __init__(self, guide: LpsiGuide, cached: Callable[..., Any]) -> None:
        self.guide = guide
        attention = guide.tower.self_attn
        project = partial(F.linear, weight=attention.in_proj_weight, bias=attention.in_proj_bias)
        self.attention = cached(project, attention.num_heads)
        self.distance: Tensor | None = None  # (rows, slots, G)

    def __call__(self, x: Tensor, paths: Any) -> Tensor:
        """See `Guide.steps`."""
        guide, tower = self.guide, self.guide.tower
        states = tower.norm1(x + tower.self_attn.out_proj(self.attention(x, paths)))
        states = tower.norm2(states + tower.linear2(F.relu(tower.linear1(states))))
        distance = guide.output(states)  # (S, W, G)
        self.distance = paths.with_room(self.distance, distance)
        self.distance[paths.last()] = distance
        walls = self.distance[paths.rows[:, None, None], paths.slots]  # (S, W, t, G), along each hypothesis
        factor = F.logsigmoid(guide.options.temperature * (distance[:, :, None] - walls))
        factor[:, :, -1] = 0  # a token is no wall to itself
        gate = factor.flip(2).cumsum(2).flip(2).permute(0, 3, 1, 2)
        return F.pad(gate, (0, 0, 0, 0, 0, guide.shape.heads - gate.size(1)))
