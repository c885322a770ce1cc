"""YAML files as read."""

from pathlib import Path

import yaml

from synmask.pipeline.files import UserError

MERGE = "tag:yaml.org,2002:merge"  # the key <<


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # ten times as fast, if libyaml is there
    """A loader that refuses a key given twice, which PyYAML accepts."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        seen = set()
        for key_node, _ in node.value:
            key = (key_node.tag, str(key_node.value))
            if key in seen and key_node.tag != MERGE:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key_node.value!r} is given twice", problem_mark=key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: str | Path) -> dict:
    """The keys and values of one YAML file.

    Raises:
        UserError: no such file, not UTF-8, not YAML, a key given twice, or not a mapping.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
        if "\t" in text:  # Snakemake's reader refuses some tabs that libyaml takes
            yaml.compose(text, yaml.SafeLoader)
        values = yaml.load(text, _Loader) or {}
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UserError(f"{path}, line {line}: not UTF-8; convert the file") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date such as 2001-99-99
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
