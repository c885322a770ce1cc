"""The guides as the configuration knows them: the dataclass of each guide's options."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from synmask.options import GuideOptions, guide_names, option, options_of
from synmask.pipeline.config.base import Fault, check_known
from synmask.pipeline.config.faults import first_fault


@dataclass(frozen=True)
class NoOptions(GuideOptions):
    """Systems without a guide have no options."""

    roberta = True


@dataclass(frozen=True)
class TemplateCut(GuideOptions):
    """How a tree is cut to a template: at the depth min(max(ratio · words, least), most)."""

    __pydantic_config__ = {"extra": "forbid"}

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

_PLAIN = ", ".join(f"`{name}`" for name, kind in GUIDES.items() if kind.roberta and name != "grammar")
ROBERTAS = f"guide {_PLAIN}, or `grammar` with bpe: none"  # for messages


def option_names(kind: type[GuideOptions]) -> list[str]:
    return [field.name for field in fields(kind)]


def options_from(kind: type[GuideOptions], values: Mapping[str, Any]) -> GuideOptions:
    """Options of this kind with these values, the others by default.

    Raises:
        Fault: an unknown key or a wrong value.
    """
    for key, value in values.items():
        check_known((key,), "key", key, option_names(kind))
        if isinstance(value, bool):  # which Python takes for 1 and 0
            raise Fault((key,), "must not be true or false")
    try:
        return adapter(kind).validate_python(values)
    except ValidationError as error:
        raise first_fault(error, values) from None


def option_values(options: GuideOptions) -> dict[str, Any]:
    """All options as JSON values."""
    return adapter(type(options)).dump_python(options, mode="json")


def options_by_guide(schema: dict[str, Any]) -> None:
    """Say in the JSON schema of systems which options each guide has."""
    schema["allOf"] = []
    for name, kind in GUIDES.items():
        options = adapter(kind).json_schema() | {"additionalProperties": False}
        options.pop("description", None)  # the docstring, which says of each key what the key says itself
        condition = {"properties": {"guide": {"const": name}}, "required": ["guide"]}
        schema["allOf"].append({"if": condition, "then": {"properties": {"options": options}}})
