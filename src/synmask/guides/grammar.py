"""Grammar induction as a guide (Kai et al. 2024): the parser's parent distribution gates attention."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from synmask.guides import Guide
from synmask.induction.distribution import calibrate, dependency_distribution
from synmask.induction.parser import Combination, GrammarParser

Relation = Literal["parent", "child"]
Activation = Literal["sigmoid", "softmax"]
Calibration = Literal["masked", "as-published"]

PUBLISHED_INFINITY = 1e9  # the published code's distance at and after the last token and at pads


@dataclass(frozen=True)
class Induced:
    """What the parser found in a batch.

    distance (B, n-1), calibrated; height (B, n); distribution (B, n, n): row i the distribution of token i's
    parent, with its diagonal; padding (B, n); relations (B, R, n, n): what attention is multiplied by, the
    diagonal 0, one for each of the guide's relations.
    """

    distance: Tensor
    height: Tensor
    distribution: Tensor
    padding: Tensor
    relations: Tensor


class GrammarGuide(Guide):
    """Attention gated by the induced parent distribution P_D.

    "sigmoid" (from scratch): A = sigmoid(scores) * M; "softmax" (on a pre-trained model):
    A = softmax(scores) * (M + 1). M is P_D with its diagonal 0 (relation "parent"), its transpose
    ("child"), or both, mixed by weights that every layer and head learns. Neither is normalised again.

    Args:
        embed_dim: d; heads: H, the heads of an encoder layer.
        bpe, bpe_dim, conv_layers, conv_kernel, attention: of `GrammarParser`.
        layers: how many encoder layers are guided, from the first.
        relations: "parent", "child" or both.
        activation: "sigmoid" or "softmax".
        calibration: "masked", or "as-published": a sentence with a left pad gets the published code's
            margin of about 1e9, which takes the distances out of play (docs/method.md).

    Raises:
        ValueError: an option has none of these values.
    """

    def __init__(
        self,
        embed_dim: int,
        heads: int,
        *,
        bpe: Combination = "add",
        bpe_dim: int = 256,
        conv_layers: int = 3,
        conv_kernel: int = 9,
        attention: bool = True,
        layers: int = 1,
        relations: Sequence[Relation] = ("parent", "child"),
        activation: Activation = "sigmoid",
        calibration: Calibration = "masked",
    ) -> None:
        super().__init__()
        _one_of("activation", activation, Activation)
        _one_of("calibration", calibration, Calibration)
        for relation in relations:
            _one_of("relations", relation, Relation)
        if not relations or len(set(relations)) < len(relations):
            raise ValueError(f"relations must be one or two different ones, not {list(relations)}")
        self.needs = frozenset() if bpe == "none" else frozenset({"bpe_labels"})
        self.layers = layers
        self.relations = tuple(relations)
        self.activation = activation
        self.calibration = calibration
        self.parser = GrammarParser(embed_dim, conv_layers, conv_kernel, bpe, bpe_dim, attention)
        self.log_distance_scale = nn.Parameter(torch.zeros(()))
        self.log_height_scale = nn.Parameter(torch.zeros(()))
        if len(relations) > 1:
            self.relation_logits = nn.Parameter(0.1 * torch.randn(layers, heads, len(relations)))

    def prepare(self, x: Tensor, padding: Tensor, annotations: Mapping[str, Tensor]) -> Induced:
        """Parse the batch: x (B, n, d), padding (B, n), annotations["bpe_labels"] (B, n) -> Induced."""
        distance, height = self.parser(x, padding, annotations.get("bpe_labels"))
        distance = self._calibrate(distance, height, padding)
        distribution = dependency_distribution(
            distance,
            height,
            padding,
            distance_scale=self.log_distance_scale.exp(),
            height_scale=self.log_height_scale.exp(),
        )
        itself = torch.eye(height.size(1), dtype=torch.bool, device=height.device)
        parent = distribution.masked_fill(itself, 0)
        relations = torch.stack([parent if name == "parent" else parent.mT for name in self.relations], dim=1)
        return Induced(distance, height, distribution, padding, relations)

    def attend(self, scores: Tensor, prepared: Induced, layer: int) -> Tensor:
        """Scaled scores (B, H, n, n) -> attention weights, in guided layer `layer` (0 is the first)."""
        mask = prepared.relations
        if len(self.relations) > 1:
            weights = self.relation_logits[layer].softmax(-1).to(mask.dtype)
            mask = torch.einsum("hr,brij->bhij", weights, mask)
        if self.activation == "sigmoid":
            return (scores.sigmoid() * mask).to(scores.dtype)
        padded = scores.masked_fill(prepared.padding[:, None, None, :], float("-inf"))
        return (padded.softmax(-1) * (mask + 1)).to(scores.dtype)

    def _calibrate(self, distance: Tensor, height: Tensor, padding: Tensor) -> Tensor:
        """Calibrated distances (B, n-1), with the published code's blow-up if that is asked for.

        There a sentence that does not begin at position 0 counts as a proper span: its borders, at 1e9, are
        above its heights by about 1e9, and so much is subtracted from all its distances.
        """
        calibrated = calibrate(distance, height, padding)
        if self.calibration == "masked":
            return calibrated
        exact = torch.promote_types(distance.dtype, torch.float32)  # 1e9 does not fit narrower types
        highest = height.to(exact).masked_fill(padding, float("-inf")).amax(1, keepdim=True)
        blown_up = distance.to(exact) - (PUBLISHED_INFINITY - highest)
        return torch.where(padding[:, :1], blown_up, calibrated.to(exact))


def _one_of(option: str, value: str, kind: object) -> None:
    if value not in get_args(kind):
        raise ValueError(f"{option} must be one of {', '.join(get_args(kind))}, not {value!r}")
