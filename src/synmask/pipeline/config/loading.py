"""From YAML to a checked `Config`, or one line that names file, key and the nearest valid name."""

import glob
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from synmask.pipeline.config.base import Section, merge
from synmask.pipeline.config.blame import cause
from synmask.pipeline.config.checks import check
from synmask.pipeline.config.claims import Claims
from synmask.pipeline.config.faults import Fault, NameFault, nearest, validated
from synmask.pipeline.config.published import Published
from synmask.pipeline.config.schema import Config
from synmask.pipeline.config.sections import SPLITS
from synmask.pipeline.config.sweeps import expand_sweeps
from synmask.pipeline.config.yaml_source import COMMON, Source, inherited_from, origin, read_yaml, where
from synmask.pipeline.files import UserError

S = TypeVar("S", bound=Section)


# Keys that say what a corpus' text is; all go when a corpus in `based_on` brings a text of its own.
TEXT = ("generate", "files", "format", "archives", "url", "sha256", "pairs", "sentence")


def project_files(folder: str | Path = "") -> list[str]:
    """The files of the project's configuration, each laid over those before it.

    config.yaml, which people change, lies over config/*.yaml. It also comes first, so that lists of names
    begin with its own.
    """
    own = os.path.join(folder, "config.yaml")
    return [own, *sorted(glob.glob(os.path.join(folder, "config/*.yaml"))), own]


def read_all(files: Iterable[str | Path]) -> dict[str, Any]:
    """The values of these files, each laid over those before it.

    Raises:
        UserError: as `read_yaml`.
    """
    values: dict[str, Any] = {}
    for file in files:
        values = merge(values, read_yaml(file))
    return values


def load(values: Mapping[str, Any], files: Iterable[str | Path] = ("config.yaml",)) -> Config:
    """Check the merged configuration `values`.

    Args:
        files: what it was read from, each file laid over those before it; they are read again to say in which
            line a fault stands. The project's end where the first of them comes last (`project_files`).

    Raises:
        UserError: an unknown key, a wrong type, an unknown name or an inconsistent entry (one line).
    """
    files = list(files)
    try:
        return _checked(values)
    except Fault as found:
        raise _blamed(found, values, [Source(file) for file in files]) from None
    except RecursionError:
        names = ", ".join(map(str, files))
        raise UserError(f"{names}: an alias (*name) stands inside what it names") from None


def laid_over(own: Iterable[Path]) -> tuple[Config, dict[str, Any], list[Path]]:
    """The configuration of the project and of `own` files, each over those before it; its values; all files.

    Raises:
        UserError: a file cannot be read, or the configuration is wrong.
    """
    files = [*map(Path, project_files()), *own]
    if not Path("config.yaml").exists():
        raise UserError(
            f"{Path.cwd()}: no config.yaml here; cd into the top folder of your checkout of synmask"
        )
    values = read_all(files)
    return load(values, files), values, files


def check_named(config: Config, path: Path, kind: str, name: str) -> None:
    """Raise a UserError that begins with `path` unless this section of the configuration has `name`."""
    if name in (known := getattr(config, kind)):
        return
    near = nearest(name, known)
    if "did you mean" not in near and len(known) > 12:
        near = f"; config/{kind}.yaml has all {len(known)}"
    raise UserError(f"{path}: no {name!r} among the {kind}{near}")


def _checked(values: Mapping[str, Any]) -> Config:
    """The configuration of these values.

    Raises:
        Fault: the first that was found.
    """
    config = validated(Config, _inherit(expand_sweeps(values)))
    if not os.path.isfile(config.published):
        raise Fault(("published",), f"{config.published}: no such file")
    check(config, read_published(config.published))
    return config


def _blamed(found: Fault, values: Mapping[str, Any], sources: Sequence[Source]) -> UserError:
    """A fault with its place, and that of the user's key that causes it if the project's files show it."""
    place = where(found.path, values, sources)
    last = max((n for n, one in enumerate(sources) if one.path == sources[0].path), default=-1)
    ours = sources[: last + 1]
    if origin(found.path, values, sources) in ours:
        project: dict[str, Any] = {}
        for source in ours:
            project = merge(project, source.values)
        if key := cause(found, values, project, _checked):
            at, theirs = where(key, values, sources), inherited_from(found.path, values)
            dotted = ".".join(map(str, theirs))
            if key[: len(theirs)] == theirs:  # the fault is that of a section
                return UserError(f"{at.removesuffix('.'.join(map(str, key)))}{dotted}: {found}")
            return UserError(f"{at}, against {place}: {found}")
    return UserError(f"{place}: {found}")


def fault(path: tuple, what: str, values: Mapping[str, Any], files: Iterable[str | Path]) -> UserError:
    """The one line that says what is wrong with the value at `path`, and in which line of which file."""
    return UserError(f"{where(path, values, [Source(file) for file in files])}: {what}")


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
    values = read_yaml(path)
    try:
        return validated(kind, values)
    except Fault as found:
        raise fault(found.path, str(found), values, [path]) from None


def _inherit(values: Mapping[str, Any]) -> dict:
    """Lay each corpus over the corpus it is `based_on`, and that over the common training and decoding.

    Likewise benchmarks, and their tasks over what these share.
    """
    values = dict(values)
    common = {key: values[key] for key in COMMON if isinstance(values.get(key), Mapping)}
    if isinstance(values.get("benchmarks"), Mapping):
        values["benchmarks"] = {
            name: _inherit_tasks(entry, common.get("resources", {}))
            for name, entry in values["benchmarks"].items()
        }
    corpora = values.get("corpora")
    if not isinstance(corpora, Mapping):
        return values

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
        inherited, own = resolve(base, (*chain, name)), entry.get("url")
        own_files = entry.get("files") if isinstance(entry.get("files"), Mapping) else {}
        if {*own_files} >= {*SPLITS} or entry.get("generate"):
            others = (
                {*TEXT, "trees"} if entry.get("generate") or inherited.get("trees") != "corenlp" else TEXT
            )
            inherited = {key: said for key, said in inherited.items() if key not in others}
            inherited["download"] = name
        elif own and own != inherited.get("url"):  # other files: kept apart, without the base's checksums
            inherited = {**inherited, "download": name, "sha256": {}}
        for key in ("files", "pairs", "trees"):  # neither the base's files nor their sizes and trees
            if isinstance(inherited.get(key), Mapping):
                kept = {split: said for split, said in inherited[key].items() if split not in own_files}
                inherited = {**inherited, key: kept}
        return merge(inherited, {k: v for k, v in entry.items() if k != "based_on"})

    values["corpora"] = {name: resolve(name, ()) for name in corpora}
    return values


def _inherit_tasks(entry: Any, resources: Mapping[str, Any]) -> Any:
    """A benchmark with these resources below its own, whose tasks have its `finetuning` below them."""
    if not isinstance(entry, Mapping):
        return entry
    shared, tasks = entry.get("finetuning", {}), entry.get("tasks")
    if isinstance(shared, Mapping) and isinstance(tasks, Mapping):
        full = {n: merge(shared, task) if isinstance(task, Mapping) else task for n, task in tasks.items()}
        entry = {**entry, "tasks": full}
    return merge({"resources": resources}, entry)
