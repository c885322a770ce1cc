"""YAML files as read."""

from pathlib import Path
from typing import Any

import yaml

from synmask.pipeline.files import UserError, endless

MERGE = "tag:yaml.org,2002:merge"  # the key <<


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # ten times as fast, if libyaml is there
    """A loader that refuses a key given twice, which PyYAML accepts, and names the line."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == MERGE:
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                raise UserError(f"{_line(key_node)}: a key must be a word or a number")
            if (key := self.construct_object(key_node, deep=deep)) in seen:
                raise UserError(f"{_line(key_node)}: the key {key!r} is given twice")
            seen.add(key)
        return super().construct_mapping(node, deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, AttributeError, KeyError):  # a date such as 2001-99-99, a number of 5000 digits
            kind = node.tag.rpartition(":")[2]
            raise UserError(f"{_line(node)}: not a valid {kind}; put it in quotes if it is text") from None


def read_yaml(path: str | Path) -> dict:
    """The keys and values of one YAML file.

    Raises:
        UserError: no such file, not UTF-8, not YAML, a key given twice, or not a mapping.
    """
    if endless(path):
        raise UserError(f"{path}: a device that never ends; give a file")
    try:
        values = _parse(Path(path).read_bytes().decode("utf-8-sig")) or {}
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UserError(f"{path}, line {line}: not UTF-8; convert the file") from None
    except UserError as error:
        raise UserError(f"{path}, {error}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        why = getattr(error, "problem", None) or getattr(error, "reason", error)
        raise UserError(f"{path}{line}: not YAML ({why})") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    if not isinstance(values, dict):
        kind = "a list" if isinstance(values, list) else repr(values)[:40]
        raise UserError(f"{path}: expected keys and values, found {kind}")
    return values


def _parse(text: str) -> Any:
    if "\t" in text:  # Snakemake's reader refuses some tabs that libyaml takes
        yaml.compose(text, yaml.SafeLoader)
    return yaml.load(text, _Loader)


def _line(node: yaml.Node) -> str:
    return f"line {node.start_mark.line + 1}"
