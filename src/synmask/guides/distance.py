"""Distance-Transformer (Hou et al., Findings of EMNLP 2022): constituency distances gate attention."""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from synmask.guides import Guide
from synmask.guides.attention import log_gates, masked_softmax, on_first_heads


class DistanceGuide(Guide):
    """A_ij = exp(s_ij) g_ij / sum_k exp(s_ik) g_ik, on the first `heads` heads of the first layer.

    g_ij is the product of (1 + tanh((d_i - d_k) / t)) / 2 over all gaps k between i and j except the one next
    to i; d_i is the distance of the gap next to i on the side of j. Gaps with a larger distance than this
    block attention. Sentences without distances are not guided.

    It reads `annotations["distances"]` (B, n) int: of the gap after each token; -1: none.

    Args:
        options: `DistanceOptions`.
        shape: the sizes of the guided encoder.
    """

    def prepare(self, x: Tensor, padding: Tensor, annotations: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """distances (B, n) → logarithms of the gates (B, n, n), in float32, and padding (B, n)."""
        after = annotations["distances"].float()
        before = after.roll(1, dims=1)  # the first token's value is never read
        # (1 + tanh(x)) / 2 = sigmoid(2x). Column j is the gap that is crossed to reach j.
        scale = 2 / self.options.temperature
        to_left = F.logsigmoid(scale * (before[:, :, None] - after[:, None, :]))
        to_right = F.logsigmoid(scale * (after[:, :, None] - before[:, None, :]))
        position = torch.arange(after.size(1), device=after.device)
        near = (position[:, None] - position).abs() == 1
        unknown = (after < 0).all(1)[:, None, None]
        gates = log_gates(to_left.masked_fill(near, 0), to_right.masked_fill(near, 0))
        return gates.masked_fill(unknown, 0), padding

    def attend(self, scores: Tensor, prepared: tuple[Tensor, Tensor], layer: int) -> Tensor:
        """Scores (B, H, n, n) → weights."""
        gates, padding = prepared
        gate = on_first_heads(self.options.heads, gates[:, None], scores, neutral=0.0)
        return masked_softmax(scores + gate, padding).to(scores.dtype)
