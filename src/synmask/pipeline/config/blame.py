"""The file and key to name for a wrong value: where it is written, or the user's key that causes it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from synmask.pipeline.config.base import merge
from synmask.pipeline.config.faults import MISSING, Fault, value_at
from synmask.pipeline.config.yaml_source import read_yaml
from synmask.pipeline.files import UserError

COMMON = ("training", "decoding", "resources")  # sections that every corpus can override

Values = Mapping[str, Any]


def user_error(
    found: Fault, values: Values, files: Iterable[str | Path], check: Callable[[Values], object] | None = None
) -> UserError:
    """The one line that says what is wrong, and in which file and key.

    Args:
        values: the configuration as given: the files in order, overridden by --config.
        check: raises the fault. If given, a fault in the project's files names the user's key that causes it.
            The project's files end where the first one comes last (`loading.project_files`).
    """
    files = [*map(str, files)]
    sources = {file: read_yaml(file) for file in files}
    key = _written(found.path, values)
    place = f"{_file_of(key, values, sources)}: {_dotted(key)}"
    project = files[: max((n for n, file in enumerate(files) if file == files[0]), default=-1) + 1]
    if check and _file_of(key, values, sources) in project:
        project_values: Values = {}
        for file in project:
            project_values = merge(project_values, sources[file])
        cause = _cause(found, values, project_values, check)
        file = _file_of(cause, values, sources)
        if cause and cause[: len(key)] == key:  # the fault is that of a section
            place = f"{file}: {_dotted(key)}"
        elif cause:
            place = f"{file}: {_dotted(cause)}, against {place}"
    return UserError(f"{place}: {found}")


def place(path: tuple, values: Values, files: Iterable[str | Path]) -> str:
    """Where the value at `path` is set, or inherited from: "`KEY` in FILE"."""
    key = _written(path, values)
    return f"`{_dotted(key)}` in {_file_of(key, values, {str(file): read_yaml(file) for file in files})}"


def _dotted(path: tuple) -> str:
    return ".".join(map(str, path))


def _file_of(path: tuple, values: Values, sources: Mapping[str, Values]) -> str:
    """The last file that has the value in force at `path`, or else its section; "--config" if none has it."""
    while path and value_at(values, path) is MISSING:
        path = path[:-1]
    if not path:  # no file sets it: name the one that users edit
        return next(iter(sources), "--config")
    given = value_at(values, path)
    for file, values_of_file in reversed(sources.items()):
        there = value_at(values_of_file, path)
        if repr(there) == repr(given) or (isinstance(given, Mapping) and there is not MISSING):
            return file
    return "--config"


def _written(path: tuple, values: Values) -> tuple:
    """The key that the value at `path` is inherited from: `path` itself, if it is there."""
    for place in _origins(path, values):
        # for a missing item of a list, the list
        item = len(place) > 1 and isinstance(place[-1], int)
        if value_at(values, place[:-1] if item else place) is not MISSING:
            return place
    return path


def _origins(path: tuple, values: Values) -> Iterator[tuple]:
    """The places where a value can come from, the nearest first (see `loading._inherit`)."""
    yield path
    kind, names, rest = path[:1], path[1:2], path[2:]
    base, seen = (*kind, *names, "based_on"), set()
    while rest and base not in seen and isinstance(name := value_at(values, base), str):
        seen.add(base)
        yield (*kind, name, *rest)
        base = (*kind, name, "based_on")
    if kind == ("benchmarks",) and rest[:1] == ("tasks",):
        yield (*kind, *names, "finetuning", *rest[2:])
    if kind in (("corpora",), ("benchmarks",)) and rest[:1] and rest[0] in COMMON:
        yield rest


def _cause(found: Fault, values: Values, project: Values, check: Callable[[Values], object]) -> tuple:
    """The user's key without which `check` no longer raises `found`; () if there is none."""
    for path, without in _without_one(values, project):
        try:
            check(without)
        except Fault as other:
            if (other.path, str(other)) == (found.path, str(found)):
                continue
        return path
    return ()


def _without_one(values: Values, project: Values) -> Iterator[tuple[tuple, dict]]:
    """Each key that the user adds or changes, and the values without this change."""
    for key, value in values.items():
        rest = {name: other for name, other in values.items() if name != key}
        if key not in project:
            yield (key,), rest
        elif isinstance(value, Mapping) and isinstance(project[key], Mapping):
            for path, inner in _without_one(value, project[key]):
                yield (key, *path), {**values, key: inner}
        elif value != project[key]:
            yield (key,), {**values, key: project[key]}
