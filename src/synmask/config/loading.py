"""From YAML to a checked `Config`, or one line that names file, key and the nearest valid name."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from synmask.config.base import Section, merge
from synmask.config.checks import (
    check_corpora,
    check_depth,
    check_folders,
    check_labels,
    check_runs,
    check_vocabulary,
)
from synmask.config.claims import Claims
from synmask.config.faults import Fault, NameFault, first_fault
from synmask.config.names import check_benchmarks, check_names, check_options, check_tables, check_weights
from synmask.config.published import Published
from synmask.config.schema import Config
from synmask.config.sources import COMMON, Source, where
from synmask.config.sweeps import expand_sweeps
from synmask.files import UserError

S = TypeVar("S", bound=Section)


def load(values: Mapping[str, Any], files: Iterable[str | Path] = ("config.yaml",)) -> Config:
    """Check the merged configuration `values`.

    Args:
        files: what it was read from, each file laid over those before it; they are read again to say in which
            line a fault stands.

    Raises:
        UserError: an unknown key, a wrong type, an unknown name or an inconsistent entry (one line).
    """
    files = list(files)
    try:
        return _checked(values)
    except Fault as found:
        raise fault(found.path, str(found), values, files) from None
    except RecursionError:
        raise UserError(
            f"{', '.join(map(str, files))}: an alias (*name) stands inside what it names"
        ) from None


def fault(path: tuple, what: str, values: Mapping[str, Any], files: Iterable[str | Path]) -> UserError:
    """The one line that says what is wrong with the value at `path`, and in which line of which file."""
    return UserError(f"{where(path, values, [Source(file) for file in files])}: {what}")


def _checked(values: Mapping[str, Any]) -> Config:
    full = _inherit(expand_sweeps(values))
    try:
        config = Config.model_validate(full)
    except ValidationError as error:
        raise first_fault(error, full, Config) from None
    check_options(config)
    check_names(config)
    if not os.path.isfile(config.published):
        raise Fault(("published",), f"{config.published}: no such file")
    published = read_published(config.published)
    check_tables(config, published)
    check_weights(config)
    check_benchmarks(config)
    check_folders(config)
    check_corpora(config)
    check_runs(config)
    check_depth(config)
    check_vocabulary(config)
    check_labels(config, published)
    return config


def read_published(path: str | Path) -> Published:
    """Read and check published.yaml: see `_read`."""
    return _read(path, Published)


def read_claims(path: str | Path) -> Claims:
    """Read and check claims.yaml: see `_read`."""
    return _read(path, Claims)


def _read(path: str | Path, kind: type[S]) -> S:
    """A YAML file of this kind.

    Raises:
        UserError: no such file, an unknown key, or a wrong or repeated value (one line).
    """
    source = Source(path)
    try:
        return kind.model_validate(source.values)
    except ValidationError as error:
        fault = first_fault(error, source.values, kind)
        raise UserError(f"{where(fault.path, source.values, [source])}: {fault}") from None


def _inherit(values: Mapping[str, Any]) -> dict:
    """Lay each corpus over the corpus it is `based_on`, and that over the common training and decoding.

    Likewise benchmarks, and their tasks over what these share.
    """
    values = dict(values)
    if isinstance(values.get("benchmarks"), Mapping):
        values["benchmarks"] = {
            name: _inherit_tasks(entry, values.get("resources"))
            for name, entry in values["benchmarks"].items()
        }
    corpora = values.get("corpora")
    if not isinstance(corpora, Mapping):
        return values
    common = {key: values[key] for key in COMMON if isinstance(values.get(key), Mapping)}
    full: dict[str, Any] = {}

    def resolve(name: str, chain: tuple[str, ...]) -> Any:
        entry = corpora[name]
        if not isinstance(entry, Mapping):
            return entry
        base = entry.get("based_on")
        if base is None:
            return merge({**common, "download": name}, entry)
        if base in (*chain, name):
            what = f"{base!r} is itself based on {name!r}; break the circle"
            raise Fault(("corpora", name, "based_on"), what)
        if not isinstance(base, str) or base not in corpora:
            raise NameFault(("corpora", name, "based_on"), "corpus", base, map(str, corpora))
        if not isinstance(corpora[base], Mapping):
            raise Fault(("corpora", base), "must be keys and values")
        return merge(resolve(base, (*chain, name)), {k: v for k, v in entry.items() if k != "based_on"})

    for name in corpora:
        full[name] = resolve(name, ())
    values["corpora"] = full
    return values


def _inherit_tasks(entry: Any, resources: Any) -> Any:
    """A benchmark whose tasks have its `finetuning` below them."""
    if not isinstance(entry, Mapping):
        return entry
    shared, tasks = entry.get("finetuning", {}), entry.get("tasks")
    if isinstance(shared, Mapping) and isinstance(tasks, Mapping):
        full = {
            name: merge(shared, task) if isinstance(task, Mapping) else task for name, task in tasks.items()
        }
        entry = {**entry, "tasks": full}
    return merge({"resources": resources} if isinstance(resources, Mapping) else {}, entry)
