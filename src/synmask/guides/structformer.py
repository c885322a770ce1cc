"""StructFormer (Shen et al., ACL 2021) as the encoder: its parser's P_D gates all layers."""

from torch import Tensor

from synmask.guides import Shape, require_options
from synmask.guides.grammar import GrammarGuide
from synmask.induction.distribution import calibration_margin
from synmask.options.grammar import GrammarOptions
from synmask.options.structformer import StructformerOptions


class StructformerGuide(GrammarGuide):
    """`grammar` in all encoder layers; the parser has no self-attention and no BPE labels.

    As in StructFormer, all sentences of a batch get the largest of their calibration margins, so outputs
    depend on the batch.

    It reads no annotations.

    Args:
        options: `StructformerOptions`.
        shape: the sizes of the guided encoder.
    """

    def __init__(self, options: StructformerOptions, shape: Shape) -> None:
        require_options(self, options)
        parser = {"conv_layers": options.conv_layers, "conv_kernel": options.conv_kernel}
        super().__init__(GrammarOptions(bpe="none", attention="none", layers=shape.layers, **parser), shape)

    def calibrate(self, distance: Tensor, height: Tensor, padding: Tensor) -> Tensor:
        """Calibrated distances (B, n-1)."""
        margin = calibration_margin(distance, height, padding)
        if margin.size(0):  # an empty batch has no largest one
            margin = margin.amax(0, keepdim=True)
        return (distance - margin).to(distance.dtype)
