"""Errors in a configuration, as one line in the user's terms."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticCustomError

from synmask.pipeline.files import without_passwords

S = TypeVar("S", bound=BaseModel)

# pydantic's type of error → the message.
MESSAGES = {
    "missing": "this key is missing",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number of less than 19 digits",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be text",
    "literal_error": "must be {expected}",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be keys and values",
    "model_type": "must be keys and values",
    "greater_than": "must be above {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than": "must be below {lt:g}",
    "less_than_equal": "must be at most {le:g}",
    "too_short": "must have at least {min_length}",
    "too_long": "must have at most {max_length}",
    "invalid_key": "a key must be text; put it in quotes",
    "value_error": "{error}",
}
UNKNOWN = "unknown_key"
MISSING = object()
MISMATCH = ("model_type", "dict_type", "list_type", "tuple_type", "int_type", "float_type", "string_type")


class Fault(Exception):
    """An error in the value at `path`."""

    def __init__(self, path: tuple, what: str) -> None:
        self.path = path
        super().__init__(what)


def check_known(path: tuple, kind: str, name: object, known: Iterable[str]) -> None:
    """Raise a Fault with the nearest known name unless `name`, of a `kind`, is known."""
    if name not in (known := [*known]):
        raise Fault(path, f"unknown {kind} {name!r}{nearest(str(name), known)}")


def value_at(values: Any, path: Iterable) -> Any:
    """The value at `path` in nested mappings and lists; `MISSING` if there is none."""
    for part in path:
        there = range(len(values)) if isinstance(values, list | tuple) else values
        if not isinstance(there, range | Mapping) or part not in there:
            return MISSING
        values = values[part]
    return values


def nearest(name: str, known: Iterable[str]) -> str:
    """The nearest known name as a suggestion, or all known names."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; known: {', '.join(known)}" if known else ""


def validated(kind: type[S], values: Any, at: tuple = ()) -> S:
    """These values as a section of this kind.

    Args:
        at: their place in the configuration.

    Raises:
        Fault: the `first_fault` that pydantic found.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise first_fault(error, values, at) from None


def one_line(error: ValidationError, values: Any) -> str:
    """`first_fault` as one line that begins with the keys that lead to it."""
    found = first_fault(error, values)
    return f"{'.'.join(map(str, found.path))}: {found}" if found.path else str(found)


def first_fault(error: ValidationError, values: Any, at: tuple = ()) -> Fault:
    """The first unknown key that pydantic found, or else the most deeply nested fault.

    Args:
        values: the values that were checked.
        at: their place in the configuration.
    """
    details = [(_path(detail, values), detail) for detail in error.errors()]
    for path, detail in details:
        if detail["type"] == UNKNOWN:
            return Fault((*at, *path, detail["ctx"]["key"]), detail["msg"])
    details = [one for one in details if _of_key(one[1])] or details
    path = max((path for path, _ in details), key=len)  # the branch of a union that fits best
    here = [detail for other, detail in details if other == path]
    fitting = [detail for detail in here if detail["type"] not in MISMATCH]
    if any(detail["type"] != "literal_error" for detail in fitting):  # the right type, but a wrong value
        here = fitting
    messages = list(dict.fromkeys(map(_words, here)))
    message = messages[0] + "".join(f" or {text.removeprefix('must be ')}" for text in messages[1:])
    given = here[0]["input"]
    shown = "" if isinstance(given, Mapping) or here[0]["type"] == "missing" else f" (given: {_shown(given)})"
    if isinstance(given, bool) and any(detail["type"] == "string_type" for detail in here):
        shown += "; YAML reads no, off, yes and on as true or false: put the word in quotes"
    return Fault((*at, *path), message + shown)


def check_keys(values: Any, known: Iterable[str]) -> None:
    """Refuse a key that is not known, while a section is validated."""
    for key in values if isinstance(values, Mapping) else ():
        if isinstance(key, str) and key not in known:
            context = {"message": f"unknown key {key!r}{nearest(key, known)}", "key": key}
            raise PydanticCustomError(UNKNOWN, "{message}", context)


def _path(detail: Mapping[str, Any], values: Any) -> tuple:
    """Where a fault lies, without pydantic's own names for branches of a union and for keys."""
    path: tuple = ()
    for part in detail["loc"][: -2 if _of_key(detail) else None]:  # the section that has the key
        if value_at(values, (*path, part)) is not MISSING:
            path = (*path, part)
    return (*path, detail["loc"][-1]) if detail["type"] == "missing" else path


def _of_key(detail: Mapping[str, Any]) -> bool:
    """Whether a key is no text, such as YAML's `no`."""
    return detail["loc"][-1:] == ("[key]",) and detail["type"] == "string_type"


def _words(detail: Mapping[str, Any]) -> str:
    context = detail.get("ctx", {})
    if _of_key(detail):
        return MESSAGES["invalid_key"]
    return MESSAGES[detail["type"]].format(**context) if detail["type"] in MESSAGES else detail["msg"]


def _shown(value: Any) -> str:
    """A value as YAML writes it, truncated."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = without_passwords(repr(value))  # before it is cut, which might split one
    return text if len(text) <= 80 else f"{text[:79]}…"
