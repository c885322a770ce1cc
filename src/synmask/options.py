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


def number(default: float | None, **bounds: float) -> Any:
    """A field with this default, and bounds by the names in `BOUNDS`."""
    return field(default=default, metadata=bounds)


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
        for option in fields(self):
            value = getattr(self, option.name)
            known = get_args(option.type) if get_origin(option.type) is Literal else None
            if known and value not in known:
                raise ValueError(f"{option.name} must be one of {', '.join(known)}, not {value!r}")
            for name, bound in option.metadata.items():
                words, within = BOUNDS[name]
                if value is not None and not within(value, bound):
                    raise ValueError(f"{option.name} must be {words} {bound}, not {value!r}")

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

    heads: int | None = number(None, gt=0, lt=2**63)


@dataclass(frozen=True)
class GrammarOptions(GuideOptions):
    induces = frozenset({"distances", "heads"})
    roberta = True  # with bpe: none

    bpe: Literal["none", "add", "concatenate"] = "add"
    bpe_dim: int = number(256, gt=0, le=65536)
    conv_layers: int = number(3, ge=0, lt=1024)
    conv_kernel: int = number(9, gt=0, lt=1024)  # tokens; a sentence has no more sub-words
    attention: Literal["none", "published", "residual"] = "published"
    layers: int = number(1, gt=0, lt=2**63)
    relations: tuple[Literal["parent", "child"], ...] = ("parent", "child")
    activation: Literal["sigmoid", "softmax"] = "sigmoid"
    calibration: Literal["masked", "as-published"] = "masked"

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

    conv_layers: int = number(3, ge=0, lt=1024)
    conv_kernel: int = number(9, gt=0, lt=1024)

    def mixes(self, left_pads: bool) -> bool:
        return True  # by their common margin


@dataclass(frozen=True)
class PascalOptions(HeadOptions):
    reads = frozenset({"heads"})

    sigma: float = number(1.0, gt=0)
    ignore: float = number(0.0, ge=0, lt=1)


@dataclass(frozen=True)
class LisaOptions(GuideOptions):
    reads = frozenset({"heads"})
    parses_itself = True

    parse_weight: float = number(1.0, ge=0)


@dataclass(frozen=True)
class DistanceOptions(HeadOptions):
    reads = frozenset({"distances"})

    temperature: float = number(10.0, gt=0)


@dataclass(frozen=True)
class LpsiOptions(HeadOptions):
    induces = frozenset({"distances"})

    temperature: float = number(10.0, gt=0)
    sync: Literal["none", "rank"] = "none"
    sync_weight: float = number(0.005, ge=0)
    sync_margin: float = number(0.1, ge=0)


@dataclass(frozen=True)
class SlaOptions(GuideOptions):
    reads = frozenset({"words"})
    roberta = True

    edges: int = number(3, gt=0, lt=2**63)
    start: float = number(0.01, gt=0, lt=1)


@dataclass(frozen=True)
class SyntaxOptions(GuideOptions):
    reads = frozenset({"words"})
    roberta = True

    distance: int = number(4, gt=0, lt=2**63)
    start: float = number(0.01, gt=0, lt=1)


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
