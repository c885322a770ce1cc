"""How syntax guides a system: its guide, with the dataclass of the guide's options."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar

from pydantic import TypeAdapter, ValidationError, ValidationInfo, field_validator

from synmask.options import GuideOptions, guide_names, option, options_of
from synmask.pipeline.config.base import Fault, Rate, Section, check_known, key
from synmask.pipeline.config.faults import first_fault


@dataclass(frozen=True)
class NoOptions(GuideOptions):
    """Systems without a guide have no options."""

    roberta = True


@dataclass(frozen=True)
class TemplateCut(GuideOptions):
    """How a tree is cut to a template: at the depth min(max(ratio · words, least), most)."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    ratio: float = option(0.15, "depth of a template per word", ge=0)
    least: int = option(3, "least depth", gt=0, lt=2**63)
    most: int = option(6, "greatest depth", gt=0, lt=2**63)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.least > self.most:
            raise ValueError("least must not be above most")


@dataclass(frozen=True)
class TemplatesOptions(TemplateCut):
    """Options of the guide `templates`, which guides translation itself: translation/st_nmt.py."""

    without: float = option(0.5, "share of training pairs that are translated without a template", ge=0, lt=1)


GUIDES: dict[str, type[GuideOptions]] = {
    "none": NoOptions,
    **{name: options_of(name) for name in guide_names()},
    "templates": TemplatesOptions,
}
adapter = cache(TypeAdapter)


@cache
def option_names(options_class: type[GuideOptions]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(options_class))


def options_from(options_class: type[GuideOptions], values: Mapping[str, Any]) -> GuideOptions:
    """Options of this class with these values, the others by default.

    Raises:
        Fault: an unknown key or a wrong value.
    """
    for name, value in values.items():
        check_known((name,), "key", option_names(options_class), name)
        if isinstance(value, bool):  # which Python takes for 1 and 0
            raise Fault((name,), "must not be true or false")
    try:
        return adapter(options_class).validate_python(values)
    except ValidationError as error:
        raise first_fault(error, values) from None


def option_values(options: GuideOptions) -> dict[str, Any]:
    """All options as JSON values."""
    return adapter(type(options)).dump_python(options, mode="json")


class Guidance(Section):
    """How syntax guides the encoder, and the training objective: all that a run depends on of its system."""

    guide: str = key(
        "how syntax guides attention (docs/systems.md)", "none", json_schema_extra={"enum": [*GUIDES]}
    )
    options: dict[str, Any] = key("the guide's own keys", {})
    mask_rate: Rate = key("share of source tokens that are masked in training", 0.0)
    mlm_weight: Rate = key("share of the masked-language-model (MLM) loss", 0.0)
    left_pad_source: bool = key("pad source batches on the left, as the authors' code does", False)

    @field_validator("guide")
    @classmethod
    def _known_guide(cls, guide: str) -> str:
        check_known((), "guide", GUIDES, guide)
        return guide

    @field_validator("options")
    @classmethod
    def _of_this_guide(cls, options: dict[str, Any], others: ValidationInfo) -> dict[str, Any]:
        if others.data.get("guide") == "none" and options:
            raise ValueError("options need a guide")
        if "guide" in others.data:
            options_from(GUIDES[others.data["guide"]], options)
        return options

    @property
    def options_class(self) -> type[GuideOptions]:
        """The options class of the guide: what it reads and induces."""
        return GUIDES[self.guide]

    @property
    def guide_options(self) -> GuideOptions:
        """The guide's options, those that are not given by default."""
        return options_from(self.options_class, self.options)

    @property
    def templated(self) -> bool:
        """Whether it reads templates of the target, which a model predicts."""
        return self.guide == "templates"

    @property
    def fits_roberta(self) -> bool:
        """Whether RoBERTa's tasks give it all that it reads."""
        return self.options_class.roberta and not self.guide_options.needs - {"words"}

    @property
    def mixes(self) -> bool:
        """Whether the other sentences of a batch affect a sentence's attention."""
        return self.guide_options.mixes(self.left_pad_source)
