"""Each guide's options, and what it reads and induces.

They stand here, and not beside the guides, because a configuration is checked without loading PyTorch. The
guide NAME is the class NameGuide in guides/NAME.py and its options here, listed in `GUIDES`.
"""

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, get_args, get_origin

BOUNDS = {
    "gt": ("above", lambda value, bound: value > bound),
    "ge": ("at least", lambda value, bound: value >= bound),
    "lt": ("below", lambda value, bound: value < bound),
    "le": ("at most", lambda value, bound: value <= bound),
}


def option(default: Any, description: str = "", **bounds: float) -> Any:
    """A field with this default, what it means, and bounds by the names in `BOUNDS`."""
    return field(default=default, metadata={"description": description, **bounds})


@dataclass(frozen=True)
class GuideOptions:
    """Options of a guide, and its properties.

    Attributes:
        reads: the annotations it takes from a parser (docs/systems.md): "heads" or "distances" for
            translation, "words" for RoBERTa's tasks.
        parses_itself: whether it reads them for its training loss alone.
        induces: the syntax that it induces, "distances" or "heads".
        roberta: whether it guides a RoBERTa, too.

    Raises:
        ValueError: an option has a wrong value.
    """

    reads: ClassVar[frozenset[str]] = frozenset()
    parses_itself: ClassVar[bool] = False
    induces: ClassVar[frozenset[str]] = frozenset()
    roberta: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for given in fields(self):
            value = getattr(self, given.name)
            known = get_args(given.type) if get_origin(given.type) is Literal else None
            if known and value not in known:
                raise ValueError(f"{given.name} must be one of {', '.join(known)}, not {value!r}")
            for name in BOUNDS.keys() & given.metadata.keys() if value is not None else ():
                (words, within), bound = BOUNDS[name], given.metadata[name]
                if not within(value, bound):
                    raise ValueError(f"{given.name} must be {words} {bound}, not {value!r}")

    @property
    def needs(self) -> frozenset[str]:
        """All annotations it reads, including those computed from the tokens."""
        return self.reads

    def mixes(self, left_pads: bool) -> bool:
        """Whether the other sentences of a batch, padded on this side, affect a sentence's attention."""
        return False


@dataclass(frozen=True)
class HeadOptions(GuideOptions):
    """Options of a guide that acts on some attention heads, from the first; None: on all."""

    heads: int | None = option(
        None, "how many heads are guided, from the first; default: all", gt=0, lt=2**63
    )


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
            raise ValueError(f"relations must be parent, child or both, not {self.relations}")
        if len({*self.relations}) < len(self.relations):
            raise ValueError("relations must be one or two different ones")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset() if self.bpe == "none" else frozenset({"bpe_labels"})

    def mixes(self, left_pads: bool) -> bool:
        return left_pads and self.calibration == "as-published"


@dataclass(frozen=True)
class StructformerOptions(GuideOptions):
    induces = GrammarOptions.induces

    conv_layers: int = option(3, "convolutions of the parser", ge=0, lt=1024)
    conv_kernel: int = option(9, "tokens that each sees", gt=0, lt=1024)

    def mixes(self, left_pads: bool) -> bool:
        return True  # by their common margin


@dataclass(frozen=True)
class PascalOptions(HeadOptions):
    reads = frozenset({"heads"})

    sigma: float = option(1.0, "standard deviation of the Gaussian around the parent, in sub-words", gt=0)
    ignore: float = option(0.0, "share of rows that are left unguided in training", ge=0, lt=1)


@dataclass(frozen=True)
class LisaOptions(GuideOptions):
    reads = frozenset({"heads"})
    parses_itself = True

    parse_weight: float = option(
        1.0, "weight of the loss of the attention head that learns to point to the parent", ge=0
    )


@dataclass(frozen=True)
class DistanceOptions(HeadOptions):
    reads = frozenset({"distances"})

    temperature: float = option(10.0, "of the gates: differences of distances are divided by it", gt=0)


@dataclass(frozen=True)
class LpsiOptions(HeadOptions):
    induces = frozenset({"distances"})

    temperature: float = option(10.0, "of the gates: differences of distances are multiplied by it", gt=0)
    sync: Literal["none", "rank"] = option("none", "loss that aligns distances of source and target")
    sync_weight: float = option(0.005, "its weight", ge=0)
    sync_margin: float = option(0.1, "the margin of rank", ge=0)


@dataclass(frozen=True)
class SlaOptions(GuideOptions):
    reads = frozenset({"words"})
    roberta = True

    edges: int = option(3, "edges of the dependency tree that the local attention reaches", gt=0, lt=2**63)
    start: float = option(0.01, "share of the local attention at the start, in all layers", gt=0, lt=1)


@dataclass(frozen=True)
class SyntaxOptions(GuideOptions):
    reads = frozenset({"words"})
    roberta = True

    distance: int = option(
        4, "masks for parents and children up to so many steps, for siblings at one edge more", gt=0, lt=2**63
    )
    start: float = option(0.01, "share at the start of all masks but the one that allows all", gt=0, lt=1)


GUIDES: dict[str, type[GuideOptions]] = {
    "grammar": GrammarOptions,
    "pascal": PascalOptions,
    "lisa": LisaOptions,
    "distance": DistanceOptions,
    "lpsi": LpsiOptions,
    "structformer": StructformerOptions,
    "sla": SlaOptions,
    "syntax": SyntaxOptions,
}
