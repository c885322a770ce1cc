"""YAML files as read, and the file and line of each key."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from synmask.pipeline.files import UserError, endless

COMMON = ("training", "decoding", "resources")  # sections that every corpus can override
DEEPEST = 50  # levels of nesting; config.yaml has 6
# Numbers in base 8 and in base 60: what is meant may be 10 by 010, and a duration or a name by 1:30.
MISTAKABLE = re.compile(r"[-+]?(0[0-7_]+|[0-9_]+(:[0-5]?[0-9])+(\.[0-9_]*)?)")
MERGE = "tag:yaml.org,2002:merge"  # the key <<


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # ten times as fast, if libyaml is there
    """YAML that refuses a key given twice, which YAML itself lets pass, and says in which line."""

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
        if node.tag.endswith((":int", ":float")) and MISTAKABLE.fullmatch(node.value):
            what = f"{node.value} is {super().construct_object(node, deep):g} in YAML"
            raise UserError(f"{_line(node)}: {what}; write that number, or put it in quotes if it is text")
        try:
            return super().construct_object(node, deep)
        except (ValueError, AttributeError, KeyError):  # a date such as 2001-99-99, a number of 5000 digits
            kind = node.tag.rpartition(":")[2]
            raise UserError(f"{_line(node)}: not a valid {kind}; put it in quotes if it is text") from None


class Source:
    """One YAML file.

    Attributes:
        values: its keys and values.

    Raises:
        UserError: no such file, not UTF-8, not YAML, a key given twice, or not a mapping.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        if endless(path):
            raise UserError(f"{path}: a device that never ends; give a file")
        try:
            text = Path(path).read_bytes().decode("utf-8-sig")
            self.values = self._parse(text) or {}
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            raise UserError(f"{path}, line {line}: not UTF-8; convert the file") from None
        except UserError as error:
            raise UserError(f"{path}, {error}") from None
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            where = f", line {mark.line + 1}" if mark else ""
            raise UserError(f"{path}{where}: not YAML ({getattr(error, 'problem', error)})") from None
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}") from None
        if not isinstance(self.values, dict):
            kind = "a list" if isinstance(self.values, list) else repr(self.values)[:40]
            raise UserError(f"{path}: expected keys and values, found {kind}")

    def _parse(self, text: str) -> Any:
        if wrong := yaml.reader.Reader.NON_PRINTABLE.search(text):
            line = text.count("\n", 0, wrong.start()) + 1
            raise UserError(f"line {line}: a character that YAML does not allow ({wrong[0]!r}); delete it")
        _check_depth(text)
        if "\t" in text:  # Snakemake's reader refuses some tabs that libyaml takes
            yaml.compose(text, yaml.SafeLoader)
        loader = _Loader(text)
        try:
            self.root = loader.get_single_node()
            return loader.construct_document(self.root) if self.root is not None else {}
        finally:
            loader.dispose()

    def line(self, path: Sequence) -> int:
        """The line of the last key of `path`, which `values` has."""
        node, found = self.root, 1
        for part in path:
            found, node = _child(node, part, found)
        return found


def read_yaml(path: str | Path) -> dict:
    """The keys and values of one YAML file.

    Raises:
        UserError: as `Source`.
    """
    return Source(path).values


def _check_depth(text: str) -> None:
    """libyaml builds its tree by recursion, without a limit."""
    depth = 0
    for event in yaml.parse(text, _Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise UserError(f"line {event.start_mark.line + 1}: nested more than {DEEPEST} levels deep")


def _line(node: yaml.Node) -> str:
    return f"line {node.start_mark.line + 1}"


def _child(node: yaml.Node | None, part: Any, line: int) -> tuple[int, yaml.Node | None]:
    """The line and the value of one key or place; of a merged key (<<) those where it was first written."""
    if isinstance(node, yaml.SequenceNode):
        return node.value[part].start_mark.line + 1, node.value[part]
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    found = ((key, value) for key, value in reversed(pairs) if key.value == str(part))  # merged come first
    return next(((key.start_mark.line + 1, value) for key, value in found), (line, None))


def at(values: Any, path: Sequence) -> Any:
    """The value at `path` in nested mappings and lists.

    Raises:
        LookupError: they have none.
    """
    for part in path:
        indexed = isinstance(values, list | tuple) and isinstance(part, int)
        if not indexed and not isinstance(values, Mapping):
            raise LookupError(part)
        values = values[part]
    return values


def holds(values: Any, path: Sequence) -> bool:
    """Whether nested mappings and lists have a value at `path`."""
    try:
        at(values, path)
    except LookupError:
        return False
    return bool(path)


def where(path: Sequence, values: Mapping[str, Any], sources: Sequence[Source]) -> str:
    """File, line and dotted path of the key at `path`, or of the key that it is inherited from.

    Args:
        values: the configuration as given: the files in order, overridden by --config.
        sources: the files; each overrides those before it.

    A key that no file has with this value comes from --config. For a missing key, the file and line are those
    of the section that lacks it.
    """
    place = inherited_from(path, values)
    dotted, there = ".".join(map(str, place)), _held(place, values)
    source = origin(path, values, sources)
    if source is None:
        return f"--config: {dotted}"
    return f"{source.path}, line {source.line(there)}: {dotted}" if there else f"{source.path}: {dotted}"


def origin(path: Sequence, values: Mapping[str, Any], sources: Sequence[Source]) -> Source | None:
    """The file that `where` names; None: --config."""
    there = _held(inherited_from(path, values), values)
    if not there:  # no file has it: the one that people change
        return next(iter(sources), None)
    for source in reversed(sources):
        if holds(source.values, there):
            value, given = at(source.values, there), at(values, there)
            if isinstance(given, Mapping) or value == given or repr(value) == repr(given):
                return source
    return None


def inherited_from(path: Sequence, values: Mapping[str, Any]) -> tuple:
    """The key that the value at `path` is inherited from: `path` itself, if it is there."""
    for place in _origins(path, values):
        # of an item that a list lacks, the list
        if holds(values, place) or (place and isinstance(place[-1], int) and holds(values, place[:-1])):
            return place
    return tuple(path)


def _held(path: tuple, values: Mapping[str, Any]) -> tuple:
    """As much of `path` as there is."""
    while path and not holds(values, path):
        path = path[:-1]
    return path


def _origins(path: Sequence, values: Mapping[str, Any]) -> Iterator[tuple]:
    """The places where a value can come from, the nearest first (see `loading._inherit`)."""
    path = tuple(path)
    yield path
    kind, name, rest = path[:1], path[1:2], path[2:]
    seen = set()
    while kind == ("corpora",) and rest and name[0] not in seen:
        seen.add(name[0])
        entry = at(values, (*kind, *name)) if holds(values, (*kind, *name)) else {}
        base = entry.get("based_on") if isinstance(entry, Mapping) else None
        if not isinstance(base, str):
            break
        name = (base,)
        yield (*kind, *name, *rest)
    if kind == ("benchmarks",) and rest[:1] == ("tasks",) and len(rest) > 2:
        yield (*kind, *name, "finetuning", *rest[2:])
    if kind in (("corpora",), ("benchmarks",)) and rest[:1] and rest[0] in COMMON:
        yield rest
