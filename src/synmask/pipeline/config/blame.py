"""Which of the user's keys causes a fault that shows at a key of the project's files."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from synmask.pipeline.config.faults import Fault, NameFault
from synmask.pipeline.config.yaml_source import at, holds


def cause(
    found: Fault, values: Mapping[str, Any], project: Mapping[str, Any], check: Callable[[Mapping], object]
) -> tuple:
    """The deepest key that, put back to the project's value, takes the fault away; () if none does.

    Args:
        found: what `check` raises for `values`; `project`: the values without the user's.
    """
    path: tuple = ()
    while True:
        left = {key: _left(_put_back(values, project, key), check) for key in _changed(values, project, path)}
        gone = [key for key, other in left.items() if other is None]
        gone += [key for key, other in left.items() if other and _is_another(other, found, key)]
        if not gone:
            return path
        path = gone[0]


def _changed(values: Mapping[str, Any], project: Mapping[str, Any], path: tuple) -> Iterator[tuple]:
    """The keys right below `path` that the project lacks, or has with another value."""
    inner, before = at(values, path), at(project, path) if not path or holds(project, path) else {}
    before = before if isinstance(before, Mapping) else {}
    if isinstance(inner, Mapping):
        yield from ((*path, key) for key in inner if key not in before or before[key] != inner[key])


def _put_back(values: Mapping[str, Any], project: Any, path: tuple) -> dict[str, Any]:
    """`values` with the project's value at `path`, or without any if it has none."""
    key, rest = path[0], path[1:]
    there = isinstance(project, Mapping) and key in project
    if rest:
        return {**values, key: _put_back(values[key], project[key] if there else {}, rest)}
    return {**values, key: project[key]} if there else {k: v for k, v in values.items() if k != key}


def _left(values: Mapping[str, Any], check: Callable[[Mapping], object]) -> Fault | None:
    """The fault of these values, if any."""
    try:
        check(values)
    except Fault as other:
        return other
    return None


def _is_another(other: Fault, found: Fault, path: tuple) -> bool:
    """Whether `other` is no consequence of the change at `path` (an entry cut short, a name taken away)."""
    if isinstance(other, NameFault) or (other.path, str(other)) == (found.path, str(found)):
        return False
    shared = min(len(path), len(other.path))
    return other.path[:shared] != path[:shared]
