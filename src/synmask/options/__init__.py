"""Each guide's options, and what it reads and induces: NameOptions in options/NAME.py.

They stand here, and not beside the class NameGuide in guides/NAME.py, because a configuration is checked
without loading PyTorch. A file per guide is all that there is: no list names the guides, so a new one changes
no file that another one's training depends on.
"""

from dataclasses import dataclass, field, fields
from importlib import import_module
from pkgutil import iter_modules
from textwrap import wrap
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, get_args, get_origin

NO_TOKEN = -1  # in annotations: the position of a head or word, or a distance, that a token does not have
BOUNDS = {
    "gt": ("above", lambda value, bound: value > bound),
    "ge": ("at least", lambda value, bound: value >= bound),
    "lt": ("below", lambda value, bound: value < bound),
    "le": ("at most", lambda value, bound: value <= bound),
}


def option(default: Any, description: str = "", **bounds: float) -> Any:
    """A field with this default and description, and bounds by the names in `BOUNDS`."""
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
        for option in fields(self):
            value = getattr(self, option.name)
            if words := _mismatch(option.type, value):
                raise ValueError(f"{option.name} must be {words}, not {value!r}")
            for name in BOUNDS.keys() & option.metadata.keys() if value is not None else ():
                (words, within), bound = BOUNDS[name], option.metadata[name]
                if not within(value, bound):
                    raise ValueError(f"{option.name} must be {words} {bound}, not {value!r}")

    @property
    def needs(self) -> frozenset[str]:
        """All annotations it reads, including those computed from the tokens."""
        return self.reads

    def mixes(self, left_pads: bool) -> bool:
        """Whether the other sentences of a batch, padded on this side, affect a sentence's attention."""
        return False


def _mismatch(type_: Any, value: Any) -> str | None:
    """The words for a value of this type; None if it is one."""
    if get_origin(type_) is Literal:
        return None if value in get_args(type_) else f"one of {', '.join(map(str, get_args(type_)))}"
    if get_origin(type_) is UnionType:  # X | None
        (type_,) = {*get_args(type_)} - {NoneType}
        return None if value is None else _mismatch(type_, value)
    if get_origin(type_) is tuple:
        return None if isinstance(value, tuple | list) else "a list"
    if type_ in (int, float) and (isinstance(value, bool) or not isinstance(value, int | type_)):
        return "a whole number" if type_ is int else "a number"
    return None


@dataclass(frozen=True)
class HeadOptions(GuideOptions):
    """Options of a guide that acts on some attention heads, from the first; None: on all."""

    heads: int | None = option(
        None, "how many heads are guided, from the first; default: all", gt=0, lt=2**63
    )


def documented(options: type[GuideOptions]) -> type[GuideOptions]:
    """Add the type, range, default and description of each option to the docstring."""
    lines = [f"Options of the guide `{options.__module__.rpartition('.')[2]}`.", "", "Attributes:"]
    for option in fields(options):
        bounds = {name: option.metadata[name] for name in BOUNDS.keys() & option.metadata.keys()}
        facts = [option.type.__name__ if isinstance(option.type, type) else str(option.type)]
        facts += [f"{BOUNDS[name][0]} {bound}" for name, bound in sorted(bounds.items()) if bound < 2**63]
        facts += [f"default {option.default!r}"]
        lines += [f"    {option.name} ({', '.join(facts).replace('typing.', '')}):"]
        lines += wrap(option.metadata["description"], 90, initial_indent=8 * " ", subsequent_indent=8 * " ")
    options.__doc__ = "\n".join(lines)
    return options


def guide_names() -> list[str]:
    """The names of all guides that have options here."""
    return sorted(module.name for module in iter_modules(__path__))


def options_of(guide: str) -> type[GuideOptions]:
    """The options of a guide of `guide_names`."""
    return getattr(import_module(f"{__name__}.{guide}"), f"{guide.capitalize()}Options")
