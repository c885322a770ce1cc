"""YAML files as read: by YAML 1.2, with the place of each key."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from synmask.pipeline.errors import UserError

# Its core schema (§10.3.2), and << of 1.1. PyYAML's own is 1.1's: there 010 is 8, 1:30 is 90, `no` is false.
SCHEMA = {
    "null": "~|null|Null|NULL|",
    "bool": "true|True|TRUE|false|False|FALSE",
    "int": "[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
    "float": r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
    "merge": "<<",
}
TAG = "tag:yaml.org,2002:"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # ten times as fast, if libyaml is there
    yaml_implicit_resolvers: dict = {}


for name, pattern in SCHEMA.items():
    _Loader.add_implicit_resolver(TAG + name, re.compile(f"(?:{pattern})$"), None)
_Loader.add_constructor(
    f"{TAG}int", lambda _, node: int(node.value, 0 if node.value[1:2] in ("o", "x") else 10)
)


class Key(str):
    """A key that knows where it stands.

    Attributes:
        place: "FILE, line N", or "--config".
        path: the keys that lead to it, and itself.
    """

    place: str
    path: tuple

    @classmethod
    def at(cls, place: str, path: tuple) -> "Key":
        key = cls(path[-1])
        key.place, key.path = place, path
        return key


yaml.SafeDumper.add_representer(Key, yaml.SafeDumper.represent_str)


def read_yaml(path: str | Path) -> dict:
    """The keys and values of one YAML file; text as a key is a `Key`.

    Raises:
        UserError: no such file, not UTF-8, not YAML, a key given twice, or not a mapping.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
        if "\t" in text:  # Snakemake's reader refuses some tabs that libyaml takes
            yaml.compose(text, yaml.SafeLoader)
        loader = _Loader(text)
        node = loader.get_single_node()
        values = {} if node is None else _value(loader, node, str(path), ())
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UserError(f"{path}, line {line}: not UTF-8; convert the file") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        reason = getattr(error, "problem", None) or getattr(error, "reason", error)
        raise UserError(f"{path}{line}: not YAML ({reason})") from None
    except RecursionError:
        raise UserError(f"{path}: an alias (*name) stands inside what it names") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        content = "a list" if isinstance(values, list) else repr(values)[:40]
        raise UserError(f"{path}: expected keys and values, found {content}")
    return values


def command_line_values(values: Mapping, path: tuple = ()) -> dict:
    """The values of --config; text as a key is a `Key`."""
    return {
        Key.at("--config", (*path, key)): command_line_values(value, (*path, key))
        if isinstance(value, Mapping)
        else value
        for key, value in values.items()
    }


def place(path: Iterable, values: Mapping) -> tuple[str, str]:
    """The place of the key that sets the value at `path`, and its own path with dots.

    If none does, the place of the section around it; of all of them the file.
    """
    first = next((key for key in values if isinstance(key, Key)), None)
    where = first.place.partition(", line ")[0] if first else "--config"
    written: tuple = ()
    inner: Any = values
    for part in path:
        written = (*written, part)
        if isinstance(inner, Mapping) and part in inner:
            key = next(key for key in inner if key == part)
            where, written = getattr(key, "place", "--config"), getattr(key, "path", written)
            inner = inner[part]
        else:
            inner = inner[part] if isinstance(inner, list) and part in range(len(inner)) else None
    return where, ".".join(map(str, written))


def _value(loader: _Loader, node: yaml.Node, file: str, path: tuple) -> Any:
    """The value of a node at this path of a file."""
    if node.tag == f"{TAG}seq":
        return [_value(loader, item, file, (*path, number)) for number, item in enumerate(node.value)]
    if node.tag == f"{TAG}map":
        return _mapping(loader, node, file, path)
    try:
        return loader.construct_object(node, deep=True)
    except (ValueError, AttributeError, KeyError):  # `!!bool x`, a number of 5000 digits
        message = f"not a valid {node.tag.rpartition(':')[2]}; put it in quotes if it is text"
        raise UserError(f"{file}, {_line(node)}: {message}") from None


def _mapping(loader: _Loader, node: yaml.MappingNode, file: str, path: tuple) -> dict:
    values: dict = {}
    inherited: dict = {}  # from `<<`: the keys beside it win
    for key_node, value_node in node.value:
        if key_node.tag == f"{TAG}merge":
            merged = _value(loader, value_node, file, path)
            for other in reversed(merged if isinstance(merged, list) else [merged]):
                if not isinstance(other, dict):
                    raise UserError(f"{file}, {_line(key_node)}: << takes keys and values")
                inherited |= other
            continue
        if not isinstance(key_node, yaml.ScalarNode):
            raise UserError(f"{file}, {_line(key_node)}: a key must be a word or a number")
        if (key := _value(loader, key_node, file, path)) in values:
            raise UserError(f"{file}, {_line(key_node)}: the key {key!r} is given twice")
        inner = (*path, key)
        key = Key.at(f"{file}, {_line(key_node)}", inner) if isinstance(key, str) else key
        values[key] = _value(loader, value_node, file, inner)
    return {**inherited, **values}


def _line(node: yaml.Node) -> str:
    return f"line {node.start_mark.line + 1}"
