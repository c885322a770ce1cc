"""Token embeddings of a sentence -> its syntactic distances and heights."""

import math
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmask.bf16 import computed, lacking
from synmask.checks import check_annotation, check_padding, check_states
from synmask.modules import Linear
from synmask.processor import CPU

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
            self.label_projection = Linear(bpe_dim, embed_dim)
        width = 2 * embed_dim if bpe == "concatenate" else embed_dim
        self.distance_hidden = Linear(2 * width, embed_dim)  # a convolution of kernel 2 by another name
        self.distance_output = Linear(embed_dim, 1)
        self.height_hidden = Linear(width, embed_dim)
        self.height_output = Linear(embed_dim, 1)

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
            x = _norm_tanh(_convolved(convolution, x.masked_fill(padding[:, :, None], 0)))
        if self.attention is None:
            return x
        attended = self.attention(x, padding)
        return x + attended if self.residual else attended


def _convolved(convolution: nn.Conv1d, x: Tensor) -> Tensor:
    """(B, n, d) -> (B, n, d)."""
    if x.device.type == "cpu" and CPU.convolution == "oneDNN" and not lacking(x):
        return convolution(x.mT).mT
    return as_product(convolution, x)  # cuDNN's in float32 is suspected of 9 GB (docs/performance.md)


def _pairs(x: Tensor) -> Tensor:
    """Each two neighbours: (B, n, d) -> (B, n-1, 2d)."""
    batch, n, d = x.shape
    if n == 1:
        return x.new_empty(batch, 0, 2 * d)
    return x.unfold(1, 2, 1).mT.flatten(2).contiguous()


def as_product(convolution: nn.Conv1d, x: Tensor) -> Tensor:
    """A convolution with `padding="same"` of x (B, n, d) as one matrix product, (B, n, d)."""
    return computed(_product, x, convolution.weight, convolution.bias)


def _product(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.linear(_Windows.apply(x, weight.size(2)), weight.mT.flatten(1), bias)


class _Windows(torch.autograd.Function):
    """x (B, n, d), 0 beyond its ends -> what a kernel sees at each token, (B, n, kernel * d)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kernel: int) -> Tensor:
        before = (kernel - 1) // 2
        padded = F.pad(x, (0, 0, before, kernel - 1 - before))
        ctx.shape, ctx.kernel, ctx.before = padded.shape, kernel, before
        return padded.unfold(1, kernel, 1).mT.flatten(2).contiguous()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        padded = (_sums if grad.is_cpu else _sums_at_once)(grad, ctx.shape, ctx.kernel)
        return padded[:, ctx.before : ctx.before + grad.size(1)], None


def _sums(grad: Tensor, shape: torch.Size, kernel: int) -> Tensor:
    """The gradient of windows (B, n, kernel * d) -> that of the padded states, of `shape`.

    On a CPU, `_sums_at_once` takes 2 to 5 times as long. On a GPU, this launches operators for each place.
    """
    padded = grad.new_zeros(shape)
    for place, part in enumerate(grad.chunk(kernel, dim=2)):
        padded[:, place : place + grad.size(1)] += part
    return padded


def _sums_at_once(grad: Tensor, shape: torch.Size, kernel: int) -> Tensor:
    windows = grad.unflatten(2, (kernel, -1)).mT
    return torch.ops.aten.unfold_backward(windows, shape, 1, kernel, 1)


class SelfAttention(nn.Module):
    """Softmax self-attention with one head and biases: (B, n, d) and padding (B, n) -> (B, n, d).

    Starts as fairseq's `MultiheadAttention`: weights Xavier-uniform, those of query, key and value each on
    its own with gain 1/sqrt(2); the output's bias 0, the others as PyTorch's.
    """

    def __init__(self, embed_dim: int) -> None:
        super().__init__()
        self.inputs = Linear(embed_dim, 3 * embed_dim)  # query, key, value
        self.output = Linear(embed_dim, embed_dim)
        for weight in self.inputs.weight.data.chunk(3):
            nn.init.xavier_uniform_(weight, gain=1 / math.sqrt(2))
        nn.init.xavier_uniform_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        query, key, value = self.inputs(x)[:, None].chunk(3, dim=-1)
        bias = torch.where(padding, -math.inf, 0.0).to(x.dtype)[:, None, None]
        attended = computed(F.scaled_dot_product_attention, query, key, value, bias)
        return self.output(attended.squeeze(1))
