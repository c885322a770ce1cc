"""The options of the guide `grammar`."""

from dataclasses import dataclass
from typing import Literal

from synmask.options import GuideOptions, documented, option


@documented
@dataclass(frozen=True)
class GrammarOptions(GuideOptions):
    induces = frozenset({"distances", "heads"})
    roberta = True  # with bpe: none

    bpe: Literal["none", "add", "concatenate"] = option(
        "add", "how BPE labels enter the parser, after its convolutions"
    )
    bpe_dim: int = option(256, "width of the embedding of BPE labels", gt=0, le=65536)
    conv_layers: int = option(3, "convolutions of the parser", ge=0, lt=1024)
    conv_kernel: int = option(
        9, "tokens that each sees; an even number has one more after a token than before it", gt=0, lt=1024
    )
    attention: Literal["none", "published", "residual"] = option(
        "published",
        "the parser's self-attention with one head: its output replaces the states (published), or is added "
        "to them (residual)",
    )
    layers: int = option(1, "how many encoder layers are guided, from the first", gt=0, lt=2**63)
    relations: tuple[Literal["parent", "child"], ...] = option(
        ("parent", "child"), "both, as in the authors' code; parent alone, as in the paper's formula"
    )
    activation: Literal["sigmoid", "softmax"] = option(
        "sigmoid", "sigmoid(scores) · P_D, or softmax(scores) · (P_D + 1)"
    )
    calibration: Literal["masked", "as-published"] = option(
        "masked", "as-published keeps the authors' defect (docs/method.md)"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "relations", tuple(self.relations))
        if not self.relations or not {*self.relations} <= {"parent", "child"}:
            raise ValueError(f"relations must be a list of parent, child or both, not {self.relations}")
        if len({*self.relations}) < len(self.relations):
            raise ValueError("relations must be one or two different ones")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset() if self.bpe == "none" else frozenset({"bpe_labels"})

    def mixes(self, left_pads: bool) -> bool:
        return left_pads and self.calibration == "as-published"
