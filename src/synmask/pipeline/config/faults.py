"""Pydantic's findings, as one line in the user's terms."""

import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from synmask.pipeline.config.base import Fault, nearest
from synmask.pipeline.errors import without_passwords

S = TypeVar("S", bound=BaseModel)

NUMBER, LIST, SECTION = "must be a whole number", "must be a list", "must be keys and values"
# The beginning of pydantic's type of error → the message; the first that fits.
MESSAGES = {
    "value_error": "{error}", "missing": "this key is missing", "key": "a key must be text; put it in quotes",
    "literal_error": "must be {expected}", "string": "must be text", "bool": "must be true or false",
    "int_parsing_size": f"{NUMBER} of less than 19 digits", "int": NUMBER, "float": "must be a number",
    "finite": "must be a finite number", "tuple": LIST, "list": LIST, "dict": SECTION, "model": SECTION,
    "dataclass": SECTION, "greater_than_equal": "must be at least {ge:g}", "unexpected": "unknown key",
    "less_than_equal": "must be at most {le:g}", "greater_than": "must be above {gt:g}",
    "less_than": "must be below {lt:g}", "too_short": "must have at least {min_length}",
    "too_long": "must have at most {max_length}",
}  # fmt: skip


def validate(section: type[S], values: Any) -> S:
    """These values as a section; or the `first_fault`."""
    try:
        return section.model_validate(values)
    except ValidationError as error:
        raise first_fault(error, values) from None


def first_fault(error: ValidationError, values: Any) -> Fault:
    """The most deeply nested fault in these values: of a union, that of the branch that fits best."""
    details = [_placed(detail, values) for detail in error.errors()]
    path = max(details, key=lambda detail: (detail["type"] == "key", len(detail["path"])))["path"]
    details = [detail for detail in details if detail["path"] == path]
    right_types = [detail for detail in details if not detail["type"].endswith("_type")]
    if any(detail["type"] != "literal_error" for detail in right_types):
        details = right_types
    messages = [*dict.fromkeys(detail["message"] for detail in details)]
    message = " or ".join([messages[0], *(text.removeprefix("must be ") for text in messages[1:])])
    value, choices = details[0]["input"], details[0]["ctx"].get("expected", "")
    if isinstance(value, Mapping | BaseModel) or details[0]["type"] == "missing":
        return Fault(path, message)
    text = json.dumps(value) if isinstance(value, bool | None) else without_passwords(repr(value))
    near = nearest(str(value), re.findall("'(.+?)'", choices), others=False)
    return Fault(path, f"{message} (given: {text if len(text) <= 80 else f'{text[:79]}…'}){near}")


def _placed(detail: Mapping[str, Any], values: Any) -> dict[str, Any]:
    """An error with message and path, without pydantic's names for branches of a union and for keys."""
    detail = {"ctx": {}, **detail}
    path, loc = (), detail["loc"]
    if loc[-1:] == ("[key]",) and detail["type"] == "string_type":
        detail["type"], loc = "key", loc[:-2]
    for part in loc:
        inner = dict(enumerate(values)) if isinstance(values, list | tuple) else values
        if isinstance(inner, Mapping) and part in inner:
            path, values = (*path, part), inner[part]
    missing = loc[-1:] if detail["type"] == "missing" else ()
    texts = (text for start, text in MESSAGES.items() if detail["type"].startswith(start))
    message = next(texts, detail["msg"]).format(**detail["ctx"])
    path = (*path, *missing, *getattr(detail["ctx"].get("error"), "path", ()))
    return {**detail, "message": message, "path": path}
