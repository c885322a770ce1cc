"""The guides as the configuration knows them: each guide's options as a section."""

from dataclasses import fields
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, create_model, model_validator

from synmask import options as method_options
from synmask.pipeline.config.base import Count, Rate, Section, Weight, key, number


class GuideOptions(Section):
    """A section with the fields and the properties of a guide's options (`synmask.options`)."""

    options: ClassVar[type[method_options.GuideOptions]] = method_options.GuideOptions
    reads: ClassVar[frozenset[str]] = frozenset()
    parses_itself: ClassVar[bool] = False
    induces: ClassVar[frozenset[str]] = frozenset()
    templates: ClassVar[bool] = False  # whether it reads templates of the target, which a model predicts
    roberta: ClassVar[bool] = False

    @property
    def needs(self) -> frozenset[str]:
        """All annotations it reads, including those computed from the tokens."""
        return self._typed().needs

    def _typed(self) -> method_options.GuideOptions:
        return self.options(**self.model_dump(include={*self.options.__dataclass_fields__}))

    @property
    def fits_roberta(self) -> bool:
        """Whether RoBERTa's tasks give it all that it reads."""
        return self.roberta and not self.needs - {"words"}

    def mixes(self, left_pads: bool) -> bool:
        """Whether the other sentences of a batch, padded on this side, affect a sentence's attention."""
        return self._typed().mixes(left_pads)

    @model_validator(mode="after")
    def _own_check(self) -> "GuideOptions":
        self._typed()  # its checks across options
        return self


class NoOptions(GuideOptions):
    """Systems without a guide have no options."""

    roberta = True


class TemplateCut(Section):
    """How a tree is cut to a template: at the depth min(max(ratio · words, least), most)."""

    ratio: Weight = key("depth of a template per word", 0.15)
    least: Count = key("least depth", 3)
    most: Count = key("greatest depth", 6)

    @model_validator(mode="after")
    def _ordered(self) -> "TemplateCut":
        if self.least > self.most:
            raise ValueError("least must not be above most")
        return self


class TemplatesOptions(TemplateCut, GuideOptions):
    """Options of the guide `templates`, which guides translation itself: translation/st_nmt.py."""

    templates = True

    without: Rate = key("share of training pairs that are translated without a template", 0.5)


def _section(options: type[method_options.GuideOptions]) -> type[GuideOptions]:
    """A guide's options as a section."""
    keys: dict[str, Any] = {
        option.name: (
            Annotated[option.type, BeforeValidator(number)],
            Field(option.default, **option.metadata),
        )
        for option in fields(options)
    }
    section = create_model(options.__name__, __base__=GuideOptions, __module__=__name__, **keys)
    section.options, section.reads, section.induces = options, options.reads, options.induces
    section.parses_itself, section.roberta = options.parses_itself, options.roberta
    return section


GUIDES: dict[str, type[GuideOptions]] = {
    "none": NoOptions,
    **{name: _section(method_options.options_of(name)) for name in method_options.guide_names()},
    "templates": TemplatesOptions,
}

_PLAIN = ", ".join(f"`{name}`" for name, kind in GUIDES.items() if kind.roberta and name != "grammar")
ROBERTAS = f"guide {_PLAIN}, or `grammar` with bpe: none"  # for messages


def options_by_guide(schema: dict[str, Any]) -> None:
    """Say in the JSON schema of systems which options each guide has."""
    schema["allOf"] = [
        {
            "if": {"properties": {"guide": {"const": name}}, "required": ["guide"]},
            "then": {"properties": {"options": kind.model_json_schema()}},
        }
        for name, kind in GUIDES.items()
    ]
