"""Which of the user's keys causes a fault that shows at a key of the project's files."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from synmask.pipeline.config.faults import Fault


def cause(
    found: Fault, values: Mapping[str, Any], project: Mapping[str, Any], check: Callable[[Mapping], object]
) -> tuple:
    """The key without which `check` raises something else than `found`, or nothing; () if there is none.

    Args:
        project: the values without the user's.
    """
    for path, without in _without_one(values, project):
        try:
            check(without)
        except Fault as other:
            if (other.path, str(other)) == (found.path, str(found)):
                continue
        return path
    return ()


def _without_one(values: Mapping[str, Any], project: Mapping[str, Any]) -> Iterator[tuple[tuple, dict]]:
    """Each key that the project lacks or has with another value, and the values as the project has it."""
    for key, value in values.items():
        rest = {name: other for name, other in values.items() if name != key}
        if key not in project:
            yield (key,), rest
        elif isinstance(value, Mapping) and isinstance(project[key], Mapping):
            for path, inner in _without_one(value, project[key]):
                yield (key, *path), {**values, key: inner}
        elif value != project[key]:
            yield (key,), {**values, key: project[key]}
