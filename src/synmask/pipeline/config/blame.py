"""Which of the user's keys causes a fault that shows at a key of the project's files."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from synmask.pipeline.config.faults import Fault
from synmask.pipeline.config.yaml_source import at, holds


def cause(
    found: Fault, values: Mapping[str, Any], project: Mapping[str, Any], check: Callable[[Mapping], object]
) -> tuple:
    """The deepest key that takes the fault away when put back, or brings it when set alone; () if none.

    Args:
        found: what `check` raises for `values`.
        project: the values without the user's.
    """
    path: tuple = ()
    while True:
        for key in _changed(values, project, path):
            without, alone = _with(values, key, project), _with(project, key, values)
            if _fault(without, check) is None or _fault(alone, check) == (found.path, str(found)):
                path = key
                break
        else:
            return path


def _changed(values: Mapping[str, Any], project: Mapping[str, Any], path: tuple) -> Iterator[tuple]:
    """The keys right below `path` that the project lacks, or has with another value."""
    inner, before = at(values, path), at(project, path) if not path or holds(project, path) else {}
    before = before if isinstance(before, Mapping) else {}
    if isinstance(inner, Mapping):
        yield from ((*path, key) for key in inner if key not in before or before[key] != inner[key])


def _with(values: Any, path: tuple, other: Any) -> dict[str, Any]:
    """`values` with what `other` has at `path`, or with nothing there if it has nothing."""
    values, other = (one if isinstance(one, Mapping) else {} for one in (values, other))
    key, rest = path[0], path[1:]
    if rest:
        return {**values, key: _with(values.get(key), rest, other.get(key))}
    return {**values, key: other[key]} if key in other else {k: v for k, v in values.items() if k != key}


def _fault(values: Mapping[str, Any], check: Callable[[Mapping], object]) -> tuple | None:
    """Place and words of the fault of these values, if any."""
    try:
        check(values)
    except Fault as found:
        return found.path, str(found)
    return None
