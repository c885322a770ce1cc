"""Each guide's options, and the properties that configuration and rules need without loading PyTorch.

The guide NAME is the class NameGuide in guides/NAME.py and its options here, listed in `GUIDES`.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from synmask.pipeline.config.base import Count, Positive, Rate, Section, Share, Weight

Kernel = Annotated[int, Field(gt=0, lt=1024)]  # tokens; a sentence has no more sub-words


class GuideOptions(Section):
    """Options of a guide, and its properties.

    Attributes:
        reads: the annotations it takes from a parser (docs/systems.md): "heads" or "distances" for
            translation, "words" for RoBERTa's tasks.
        induces: the syntax that it induces, "distances" or "heads".
        templates: whether it reads templates of the target, which a model of its own predicts.
        roberta: whether it guides a RoBERTa, too.
    """

    reads: ClassVar[frozenset[str]] = frozenset()
    induces: ClassVar[frozenset[str]] = frozenset()
    templates: ClassVar[bool] = False
    roberta: ClassVar[bool] = False

    @property
    def needs(self) -> frozenset[str]:
        """All annotations it reads, including those computed from the tokens."""
        return self.reads

    @property
    def fits_roberta(self) -> bool:
        """Whether RoBERTa's tasks give it all that it reads."""
        return self.roberta and not self.needs - {"words"}

    def mixes(self, left_pads: bool) -> bool:
        """Whether the other sentences of a batch, padded on this side, affect a sentence's attention."""
        return False


class HeadOptions(GuideOptions):
    """Options of a guide that acts on some attention heads."""

    heads: Count | None = None


class GrammarOptions(GuideOptions):
    induces = frozenset({"distances", "heads"})
    roberta = True  # with bpe: none

    bpe: Literal["none", "add", "concatenate", "input"] = "add"
    bpe_dim: Annotated[int, Field(gt=0, le=65536)] = 256
    conv_layers: Annotated[int, Field(ge=0, lt=1024)] = 3
    conv_kernel: Kernel = 9
    attention: Literal["none", "published", "residual"] = "published"
    layers: Count = 1
    relations: tuple[Literal["parent", "child"], ...] = Field(("parent", "child"), min_length=1)
    activation: Literal["sigmoid", "softmax"] = "sigmoid"
    normalise: bool = False
    gates: bool = False
    height_scale: Positive = 1.0
    calibration: Literal["masked", "as-published"] = "masked"

    @field_validator("relations")
    @classmethod
    def _different(cls, relations: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(relations)) < len(relations):
            raise ValueError("must be one or two different ones")
        return relations

    @model_validator(mode="after")
    def _normalised(self) -> "GrammarOptions":
        if self.normalise and self.activation != "softmax":
            raise ValueError("normalise needs activation: softmax")
        return self

    @property
    def needs(self) -> frozenset[str]:
        return frozenset() if self.bpe == "none" else frozenset({"bpe_labels"})

    def mixes(self, left_pads: bool) -> bool:
        return left_pads and self.calibration == "as-published"


class StructformerOptions(GuideOptions):
    induces = GrammarOptions.induces

    conv_layers: Annotated[int, Field(ge=0, lt=1024)] = 3
    conv_kernel: Kernel = 9
    margin: Literal["batch", "sentence"] = "batch"

    def mixes(self, left_pads: bool) -> bool:
        return self.margin == "batch"


class PascalOptions(HeadOptions):
    reads = frozenset({"heads"})

    sigma: Positive = 1.0
    ignore: Rate = 0.0


class LisaOptions(GuideOptions):
    reads = frozenset({"heads"})

    parse_weight: Weight = 1.0


class DistanceOptions(HeadOptions):
    reads = frozenset({"distances"})

    temperature: Positive = 10.0


class LpsiOptions(HeadOptions):
    induces = frozenset({"distances"})

    temperature: Positive = 10.0
    sync: Literal["none", "mse", "rank"] = "none"
    sync_weight: Weight = 0.005
    sync_margin: Weight = 0.1


class SlaOptions(GuideOptions):
    reads = frozenset({"words"})
    roberta = True

    edges: Count = 3
    start: Share = 0.01


class SyntaxOptions(GuideOptions):
    reads = frozenset({"words"})
    roberta = True

    distance: Count = 4
    aggregation: Literal["sum", "topical"] = "topical"
    start: Share = 0.01


class TemplateCut(Section):
    """How a tree is cut to a template: at the depth min(max(ratio · words, least), most)."""

    ratio: Annotated[float, Field(ge=0)] = 0.15
    least: Count = 3
    most: Count = 6

    @model_validator(mode="after")
    def _ordered(self) -> "TemplateCut":
        if self.least > self.most:
            raise ValueError("least must not be above most")
        return self


class TemplatesOptions(TemplateCut, GuideOptions):
    """Options of the guide `templates`, which guides translation itself: translation/st_nmt.py."""

    templates = True

    without: Rate = 0.5


class NoOptions(GuideOptions):
    """Systems without a guide have no options."""

    roberta = True


GUIDES: dict[str, type[GuideOptions]] = {
    "none": NoOptions,
    "grammar": GrammarOptions,
    "pascal": PascalOptions,
    "lisa": LisaOptions,
    "distance": DistanceOptions,
    "lpsi": LpsiOptions,
    "structformer": StructformerOptions,
    "sla": SlaOptions,
    "syntax": SyntaxOptions,
    "templates": TemplatesOptions,
}

_PLAIN = ", ".join(f"`{name}`" for name, kind in GUIDES.items() if kind.roberta and name != "grammar")
ROBERTAS = f"guide {_PLAIN}, or `grammar` with bpe: none"  # for messages
