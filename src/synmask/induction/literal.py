"""P_D as the paper defines it: the reference for the fast forms of `synmask.induction.distribution`."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def literal_distribution(
    distance: Tensor,
    height: Tensor,
    padding: Tensor | None = None,
    *,
    distance_scale: float | Tensor = 1.0,
    height_scale: float | Tensor = 1.0,
) -> Tensor:
    """P_D summed over all spans (Kai et al. 2024, Eqs. 6 to 9): O(n^4) time, O(n^3) memory.

    Arguments and result are those of `dependency_distribution`; nothing is checked.
    """
    if padding is not None:
        distance = distance.masked_fill(padding[:, 1:] | padding[:, :-1], 0)
        height = height.masked_fill(padding, 0)
    n = height.size(1)
    i, j, k = torch.meshgrid(*[torch.arange(n, device=height.device)] * 3, indexing="ij")
    before = F.pad(distance, (1, 0))[:, None, :].expand(-1, n, -1)  # of the gap before token j
    # of the gaps from i to j > i
    highest = before.masked_fill((j <= i)[:, :, 0], -math.inf).cummax(-1).values
    highest = torch.maximum(highest, highest.mT)
    inside = (distance_scale * (height[:, :, None] - highest)).sigmoid()  # p(j in C(i))
    if padding is not None:
        inside = inside.masked_fill(padding[:, :, None] | padding[:, None, :], 0)
    p_left = (inside - F.pad(inside, (1, -1))).tril()  # p_L(l|i)
    p_right = (inside - F.pad(inside, (-1, 1))).triu()  # p_R(r|i)
    held = (i <= k) & (k <= j)  # token k lies in the span [i, j]
    scores = (height_scale * height)[:, None, None, :].masked_fill(~held, torch.finfo(height.dtype).min)
    p_parent = scores.softmax(-1)  # p_Pr(j|[l, r])
    p_span = p_left[:, :, :, None] * p_right[:, :, None, :]
    return torch.einsum("bilr,blrj->bij", p_span, p_parent)
