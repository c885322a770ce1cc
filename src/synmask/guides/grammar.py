"""Grammar induction as a guide (Kai et al. 2024, §3): the parser's parent distribution gates attention."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from synmask.guides import Guide, Shape, Syntax
from synmask.guides.attention import masked_softmax
from synmask.induction.distribution import calibrate, dependency_distribution
from synmask.induction.parser import GrammarParser
from synmask.options.grammar import GrammarOptions

START_DISTANCE = -5.0  # sigmoid(5) = 0.993; beyond it, distances would get no gradient
PUBLISHED_INFINITY = 1e9  # the published code's distance at and after the last token and at pads


@dataclass(frozen=True)
class Induced:
    """The parser's result for a batch.

    Attributes:
        distance: (B, n-1), calibrated; height: (B, n).
        distribution: (B, n, n), in row i the distribution of token i's parent, including the diagonal.
        padding: (B, n).
        relations: (B, R, n, n), the masks of the guide's relations, with the diagonal 0.
    """

    distance: Tensor
    height: Tensor
    distribution: Tensor
    padding: Tensor
    relations: Tensor


class GrammarGuide(Guide):
    """Attention gated by the induced parent distribution P_D (Kai et al. 2024, Eq. 5).

    "sigmoid" (trained from scratch): A = sigmoid(scores) * M. "softmax" (on a pre-trained model):
    A = softmax(scores) * (M + 1). M is P_D with the diagonal 0 (relation "parent": Eq. 5), its transpose
    ("child": in the published code alone), or both, mixed by weights that each layer and head learns. A is
    not normalised.

    Options: `bpe`, `bpe_dim`, `conv_layers`, `conv_kernel` and `attention` are those of `GrammarParser`.
    `calibration` is "masked" or "as-published": then sentences with left pads get the published code's margin
    of about 1e9, which makes the distances ineffective (docs/method.md).

    It reads `annotations["bpe_labels"]` (B, n) int: 0, 2 or 1 (pad); none with bpe="none".

    Args:
        options: `GrammarOptions`.
        shape: the sizes of the guided encoder.
    """

    def __init__(self, options: GrammarOptions, shape: Shape) -> None:
        super().__init__(options, shape)
        o = options
        self.layers = o.layers
        self.parser = GrammarParser(
            shape.embed_dim, o.conv_layers, o.conv_kernel, o.bpe, o.bpe_dim, o.attention
        )
        self.log_distance_scale = nn.Parameter(torch.zeros(()))
        self.log_height_scale = nn.Parameter(torch.zeros(()))
        relations = len(o.relations)
        if relations > 1:
            self.relation_logits = nn.Parameter(0.1 * torch.randn(self.layers, shape.heads, relations))

    def prepare(self, x: Tensor, padding: Tensor, annotations: Mapping[str, Tensor]) -> Induced:
        """Parse the batch: x (B, n, d), padding (B, n), annotations["bpe_labels"] (B, n) → Induced.

        Distances and heights (§3.1), calibrated; P_D with both learnt scales (Eqs. 6 to 9); the masks.
        """
        distance, height = self.parser(x, padding, annotations.get("bpe_labels"))
        distance = self.calibrate(distance, height, padding)
        distribution = dependency_distribution(
            distance,
            height,
            padding,
            distance_scale=self.log_distance_scale.exp(),
            height_scale=self.log_height_scale.exp(),
        )
        itself = torch.eye(height.size(1), dtype=torch.bool, device=height.device)
        parent = distribution.masked_fill(itself, 0)
        relations = torch.stack(
            [parent if name == "parent" else parent.mT for name in self.options.relations], dim=1
        )
        return Induced(distance, height, distribution, padding, relations)

    def attend(self, scores: Tensor, prepared: Induced, layer: int) -> Tensor:
        """Scaled scores (B, H, n, n) → attention weights of layer `layer`, counted from 0."""
        mask = prepared.relations
        if len(self.options.relations) > 1:
            weights = self.relation_logits[layer].softmax(-1).to(mask.dtype)
            mask = (weights.expand(mask.size(0), -1, -1) @ mask.flatten(2)).view(scores.shape)
        if self.options.activation == "sigmoid":
            return (scores.sigmoid() * mask).to(scores.dtype)
        return (masked_softmax(scores, prepared.padding) * (mask + 1)).to(scores.dtype)

    def start_plain(self) -> None:
        """Start as close to unguided attention as A = softmax(scores) * (M + 1) can be.

        All heights are equal, and all distances are far below them. Each token's constituent is then the
        sentence, and P_D is nearly uniform: M is about 1/n off the diagonal, rows of A sum to about 1 + 1/n.
        """
        for output in (self.parser.distance_output, self.parser.height_output):
            nn.init.zeros_(output.weight)
            nn.init.zeros_(output.bias)
        nn.init.constant_(self.parser.distance_output.bias, START_DISTANCE)

    def syntax(self, prepared: Induced) -> Syntax:
        """Distances, heights and P_D, the distribution of heads."""
        return Syntax(prepared.distance, prepared.height, prepared.distribution)

    def calibrate(self, distance: Tensor, height: Tensor, padding: Tensor) -> Tensor:
        """Calibrated distances (B, n-1), with the published code's margin if `calibration` says so.

        In the published code, a sentence that does not begin at position 0 counts as a span with borders of
        1e9. They exceed its heights by about 1e9, and this is subtracted from all its distances.
        """
        calibrated = calibrate(distance, height, padding)
        if self.options.calibration == "masked":
            return calibrated
        exact = torch.promote_types(distance.dtype, torch.float32)  # 1e9 does not fit narrower types
        highest = height.to(exact).masked_fill(padding, float("-inf")).amax(1, keepdim=True)
        blown_up = distance.to(exact) - (PUBLISHED_INFINITY - highest)
        return torch.where(padding[:, :1], blown_up, calibrated.to(exact))
