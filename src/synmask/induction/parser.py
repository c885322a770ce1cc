"""Token embeddings of a sentence -> its syntactic distances and heights."""

import math
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmask.checks import check_annotation, check_padding, check_states

PAD_LABEL = 1  # a BPE label is 0 (whole word), 2 (piece of a split word) or this
Combination = Literal["none", "add", "concatenate"]
Attention = Literal["none", "published", "residual"]


def _norm_tanh(x: Tensor) -> Tensor:
    """tanh of the layer normalisation without affine parameters, over the last dimension."""
    return F.layer_norm(x, x.shape[-1:]).tanh()


class GrammarParser(nn.Module):
    """The grammar parser of Kai et al. 2024, §3.1: convolutions, one self-attention, two heads.

    Every parameter starts as in the published code: PyTorch's defaults, but the attention's as fairseq's
    `MultiheadAttention` and the label embedding from N(0, 1/bpe_dim), 0 for pads.

    Args:
        embed_dim: d, the width of the embeddings and of all that follows.
        conv_layers: how many convolutions (the paper: 3 for translation, 2 for RoBERTa).
        conv_kernel: tokens that one convolution sees.
        bpe: how the BPE labels join the states: "add" (the paper's), "concatenate" (the projected
            label beside the state, so that the heads read 2d) or "none" (labels are not read).
        bpe_dim: width of the label embedding before its projection to d.
        attention: what a self-attention with one head makes of the convolutions' states: "published",
            its output takes their place; "residual", it is added to them; "none", there is no attention.

    Raises:
        ValueError: an unknown value of `bpe` or `attention`.
    """

    def __init__(
        self,
        embed_dim: int,
        conv_layers: int = 3,
        conv_kernel: int = 9,
        bpe: Combination = "add",
        bpe_dim: int = 256,
        attention: Attention = "published",
    ) -> None:
        super().__init__()
        for name, value, known in (("bpe", bpe, Combination), ("attention", attention, Attention)):
            if value not in get_args(known):
                raise ValueError(f"{name} must be one of {', '.join(get_args(known))}, not {value!r}")
        self.embed_dim, self.bpe = embed_dim, bpe
        self.residual = attention == "residual"
        self.convolutions = nn.ModuleList(
            nn.Conv1d(embed_dim, embed_dim, conv_kernel, padding="same") for _ in range(conv_layers)
        )
        self.attention = None if attention == "none" else SelfAttention(embed_dim)
        if bpe != "none":
            table = torch.randn(3, bpe_dim) / math.sqrt(bpe_dim)
            table[PAD_LABEL] = 0
            self.label_embedding = nn.Embedding.from_pretrained(table, freeze=False, padding_idx=PAD_LABEL)
            self.label_projection = nn.Linear(bpe_dim, embed_dim)
        width = 2 * embed_dim if bpe == "concatenate" else embed_dim
        self.distance_hidden = nn.Linear(2 * width, embed_dim)  # a convolution of kernel 2 by another name
        self.distance_output = nn.Linear(embed_dim, 1)
        self.height_hidden = nn.Linear(width, embed_dim)
        self.height_output = nn.Linear(embed_dim, 1)

    def forward(self, x: Tensor, padding: Tensor, bpe_labels: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Distances and heights, not calibrated.

        Args:
            x: (B, n, d), what the first encoder layer gets; values at pads are ignored.
            padding: (B, n) bool, True at pads.
            bpe_labels: (B, n) int, 0, 2 or 1 (pad); not read with bpe="none".

        Returns:
            distance (B, n-1), of the gap after each token but the last, of no meaning beside pads;
            height (B, n), of no meaning at pads.

        Raises:
            ValueError: shapes, types or values that do not fit, or missing labels.
        """
        check_states(x, self.embed_dim)
        check_padding(padding, x.shape[:2])
        if self.bpe != "none":
            check_annotation("bpe_labels", bpe_labels, x.shape[:2])
        states = self._encode(x, padding)
        if self.bpe != "none":
            # There are three labels: they are projected before they are looked up.
            table = _norm_tanh(self.label_projection(self.label_embedding.weight))
            labels = F.embedding(bpe_labels, table, padding_idx=PAD_LABEL)
            states = states + labels if self.bpe == "add" else torch.cat([states, labels], dim=-1)
        distance = self.distance_output(_norm_tanh(self.distance_hidden(_pairs(states)))).squeeze(-1)
        height = self.height_output(_norm_tanh(self.height_hidden(states))).squeeze(-1)
        return distance, height

    def _encode(self, x: Tensor, padding: Tensor) -> Tensor:
        for convolution in self.convolutions:
            x = _norm_tanh(convolution(x.masked_fill(padding[:, :, None], 0).mT).mT)
        if self.attention is None:
            return x
        attended = self.attention(x, padding)
        return x + attended if self.residual else attended


def _pairs(x: Tensor) -> Tensor:
    """Each two neighbours: (B, n, d) -> (B, n-1, 2d)."""
    x = x.view_as(x)  # its two gradients are summed before that of the heights: always in the same order
    return torch.cat([x[:, :-1], x[:, 1:]], dim=-1)


class SelfAttention(nn.Module):
    """Softmax self-attention with one head and biases: (B, n, d) and padding (B, n) -> (B, n, d).

    Starts as fairseq's `MultiheadAttention`: weights Xavier-uniform, those of query, key and value each on
    its own with gain 1/sqrt(2); the output's bias 0, the others as PyTorch's.
    """

    def __init__(self, embed_dim: int) -> None:
        super().__init__()
        self.inputs = nn.Linear(embed_dim, 3 * embed_dim)  # query, key, value
        self.output = nn.Linear(embed_dim, embed_dim)
        for weight in self.inputs.weight.data.chunk(3):
            nn.init.xavier_uniform_(weight, gain=1 / math.sqrt(2))
        nn.init.xavier_uniform_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        query, key, value = self.inputs(x)[:, None].chunk(3, dim=-1)
        bias = torch.where(padding, -math.inf, 0.0).to(x.dtype)[:, None, None]
        attended = F.scaled_dot_product_attention(query, key, value, bias)
        return self.output(attended.squeeze(1))
