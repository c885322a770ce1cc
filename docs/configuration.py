"""Writes the table of all keys in docs/configuration.md, and config/schema.json: `make configuration`.

Both come from the explanations in src/synmask/pipeline/config, by pydantic's JSON schema.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from synmask.pipeline.config.schema import Config

ROOT = Path(__file__).parents[1]
PAGE, SCHEMA = ROOT / "docs/configuration.md", ROOT / "config/schema.json"
BLOCK = re.compile(r"(<!-- keys -->\n).*?(<!-- end -->)", re.DOTALL)
KINDS = {"integer": "whole number", "boolean": "true or false", "string": "text"}
BOUNDS = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
SEVERAL = 4  # keys that a section has in common with an earlier one are then only named

Shape = dict[str, Any]  # a part of a JSON schema


class OfOneFile(GenerateJsonSchema):
    """A file need not have all keys: it is laid over others."""

    def field_is_required(self, field: Any, total: bool) -> bool:
        return False

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schema() -> Shape:
    return Config.model_json_schema(schema_generator=OfOneFile)


def sections(whole: Shape) -> Iterator[tuple[str, Shape]]:
    """The heading and the schema of each section, in the order in which they come up."""
    found: dict[str, list[str]] = {}  # section → where it stands

    def visit(section: Shape, place: str) -> None:
        for key, shape in section["properties"].items():
            for inner, name in _inner(shape, f"{place}.{key}".strip(".")):
                found.setdefault(name, []).append(inner)
                if len(found[name]) == 1:
                    visit(whole["$defs"][name], inner)

    visit(whole, "")
    yield "All files", whole
    for name, places in found.items():
        shape = whole["$defs"][name]
        yield ", ".join(f"`{place}`" for place in places), shape
        for guided in shape.get("allOf", ()):
            guide = guided["if"]["properties"]["guide"]["const"]
            if (options := guided["then"]["properties"]["options"])["properties"]:
                yield f"`{places[0]}.options` of the guide `{guide}`", options


def _inner(shape: Shape, place: str) -> Iterator[tuple[str, str]]:
    """The place and the name of each section in a value."""
    if "$ref" in shape:
        yield place, shape["$ref"].rpartition("/")[2]
    for part in shape.get("anyOf", ()):
        yield from _inner(part, place)
    if isinstance(named := shape.get("additionalProperties"), dict):
        yield from _inner(named, f"{place}.NAME")


def value(shape: Shape) -> str:
    """What a key takes, in words."""
    if "anyOf" in shape:
        parts = [value(part) for part in shape["anyOf"] if part.get("type") != "null"]
        return " or ".join(dict.fromkeys(parts))
    if given := shape.get("enum") or ([shape["const"]] if "const" in shape else []):
        return ", ".join(f"`{word}`" for word in given)
    if "$ref" in shape:
        return "keys"
    kind = shape.get("type", "any")
    if kind == "array":
        items = shape.get("items") or shape["prefixItems"][0]
        return f"list of {value(items)}"
    if kind == "object":
        names = shape.get("propertyNames", {}).get("enum")
        inner = value(named) if isinstance(named := shape.get("additionalProperties"), dict) else "any"
        return f"{', '.join(f'`{name}`' for name in names) if names else 'name'}: {inner}"
    # 2⁶³ and the like are no news
    bounds = [f"{sign} {shape[name]:g}" for name, sign in BOUNDS.items() if shape.get(name, 1e9) < 1e9]
    return KINDS.get(kind, kind) + (f" ({', '.join(bounds)})" if bounds else "")


def table(heading: str, section: Shape, first_at: dict[str, str]) -> str:
    """A section's keys as rows; several that an earlier section explains are only named."""
    rows, keys_as_in = {}, defaultdict(list)
    for key, shape in section["properties"].items():
        default = shape.get("default")
        shown = "" if default in (None, {}, []) else f"`{json.dumps(default, ensure_ascii=False)}`"
        rows[key] = f"| `{key}` | {value(shape)} | {shown} | {shape['description']} |"
        keys_as_in[first_at.setdefault(rows[key], heading)].append(key)
    parts = [f"## {heading}", *([section["description"]] if "description" in section else [])]
    for place, keys in keys_as_in.items():
        if place != heading and len(keys) >= SEVERAL:
            parts.append(f"As in {place.partition(',')[0]}: {', '.join(f'`{key}`' for key in keys)}.")
            rows = {key: row for key, row in rows.items() if key not in keys}
    if rows:
        parts.append("\n".join(["| key | value | default | |", "|---|---|---|---|", *rows.values()]))
    return "\n\n".join(parts)


def page(text: str, whole: Shape) -> str:
    """The page with the tables of all keys."""
    first_at: dict[str, str] = {}  # a row → the section where it stands first
    tables = "\n\n".join(table(*section, first_at) for section in sections(whole))
    return BLOCK.sub(lambda found: f"{found[1]}\n{tables}\n\n{found[2]}", text)


def as_file(whole: Shape) -> str:
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    whole = schema()
    SCHEMA.write_text(as_file(whole), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), whole), encoding="utf-8")
