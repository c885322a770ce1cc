"""From YAML to a checked `Config`, or one line that names file, key and the nearest valid name."""

import glob
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from synmask.pipeline.config.base import WITH_JARS, Fault, check_known, merge, nearest
from synmask.pipeline.config.checks import check
from synmask.pipeline.config.data_files import DataFiles
from synmask.pipeline.config.faults import S, validate
from synmask.pipeline.config.schema import Config
from synmask.pipeline.config.yaml_source import command_line_values, place, read_yaml
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import SPLITS
from synmask.pipeline.published import Published

NO_KEY = object()

COMMON = ("training", "decoding", "resources")  # sections that every corpus can override
# Keys that define a corpus' text; a corpus with a text of its own inherits none of them.
TEXT = ("files", "format", "archives", "url", "sha256", "pairs", "sentence", "heads")


def project_files(folder: str | Path = "") -> list[str]:
    """The files of the project's configuration; each overrides those before it.

    config.yaml, which users edit, overrides config/*.yaml. It also comes first, so that lists of names begin
    with its entries.
    """
    main_file = os.path.join(folder, "config.yaml")
    return [main_file, *sorted(glob.glob(os.path.join(folder, "config/*.yaml"))), main_file]


def read_all(files: Iterable[str | Path]) -> dict[str, Any]:
    """The values of these files; each overrides those before it.

    Raises:
        UserError: as `read_yaml`.
    """
    values: dict[str, Any] = {}
    for file in files:
        values = merge(values, read_yaml(file))
    return values


def load(values: Mapping[str, Any]) -> Config:
    """Check the configuration `values`, which were read and merged.

    Raises:
        UserError: an unknown key, a wrong type, an unknown name or an inconsistent entry: one line that
            names the file that sets the key last.
    """
    inherited = values
    try:
        inherited = inherit(values)
        config = validate(Config, inherited)
        if not os.path.isfile(config.published):
            raise Fault(("published",), f"{config.published}: no such file")
        check(config, read_published(config.published))
    except Fault as fault:
        raise user_error(fault, inherited) from None
    return config


def user_error(fault: Fault, values: Mapping[str, Any]) -> UserError:
    """The one line that says what is wrong, and in which file and key."""
    return UserError(": ".join(filter(None, (*place(fault.path, values), str(fault)))))


def key_in_file(path: Sequence[str], values: Mapping[str, Any]) -> str:
    """Where the value at `path` is set, or inherited from: "`KEY` in FILE, line N"."""
    where, key = place(path, inherit(values))
    return f"`{key}` in {where}"


def origin(paths: Iterable[Sequence[str]], values: Mapping[str, Any]) -> str:
    """Where the first of these paths that has a value gets it from: "FILE, line N: KEY"; none: "default"."""
    for path in paths:
        section: Any = values
        for key in path:
            section = section.get(key, NO_KEY) if isinstance(section, Mapping) else NO_KEY
        if section is not NO_KEY:
            return ": ".join(place(path, values))
    return "default"


def load_project(
    user_files: Iterable[Path], command_line: Mapping[str, Any] = MappingProxyType({})
) -> tuple[Config, dict[str, Any], list[Path]]:
    """The configuration of the project here: checked, its values, and the files that set them.

    The project's files come first, then `user_files`, then the values of --config; later ones override.

    Raises:
        UserError: a file cannot be read, or the configuration is wrong.
    """
    if not Path("config.yaml").exists():
        raise UserError(
            f"{Path.cwd()}: no config.yaml here; cd into the top folder of your checkout of synmask"
        )
    files = [*map(Path, project_files()), *user_files]
    values = merge(read_all(files), command_line_values(command_line))
    return load(values), values, files


def tokeniser_jars(configfile: Iterable[Path]) -> Callable[[str], list[Path]]:
    """A function from tokeniser to the jars it needs; reads the whole configuration only for some.

    Raises:
        UserError: one of these files cannot be read.
    """
    read_all(configfile)

    def jars(tokeniser: str) -> list[Path]:
        if tokeniser not in WITH_JARS:
            return []
        return [Path(jar) for jar in DataFiles(load_project(configfile)[0]).tokeniser_jars(tokeniser)]

    return jars


def check_named(config: Config, path: Path, section: str, name: str) -> None:
    """Raise a UserError that begins with `path` unless this section of the configuration has `name`."""
    if name not in (known := getattr(config, section)):
        raise UserError(f"{path}: no {name!r} among the {section}{nearest(name, known)}")


def read_published(path: str | Path) -> Published:
    """Read and check published.yaml: see `read_section`."""
    return read_section(path, Published)


def read_section(path: str | Path, section: type[S]) -> S:
    """A YAML file as this section.

    Raises:
        UserError: no such file, an unknown key, or a wrong or repeated value (one line).
    """
    values = read_yaml(path)
    try:
        return validate(section, values)
    except Fault as fault:
        raise user_error(fault, values) from None


def _mapping(value: Any) -> Mapping[str, Any]:
    """`value` if it is a mapping, otherwise {}: validation reports the fault with its place."""
    return value if isinstance(value, Mapping) else {}


def inherit(values: Mapping[str, Any]) -> dict:
    """Let each corpus inherit from its `based_on`, and that from the common training and decoding.

    Likewise benchmarks, and tasks from their benchmark.
    """
    common = {key: _mapping(values[key]) for key in values if key in COMMON}
    benchmarks, corpora = _mapping(values.get("benchmarks")), _mapping(values.get("corpora"))
    shared = {key: section for key, section in common.items() if key == "resources"}
    tasks = {name: _inherit_tasks(entry, shared) for name, entry in benchmarks.items()}
    whole = {name: _inherit_corpus(name, corpora, common, ()) for name in corpora}
    return {**values, **({"benchmarks": tasks} if tasks else {}), **({"corpora": whole} if whole else {})}


def _inherit_corpus(name: str, corpora: Mapping, common: Mapping, chain: tuple[str, ...]) -> Any:
    """A corpus with all that it inherits; `chain`: the corpora that inherit from it."""
    entry = corpora[name]
    if not isinstance(entry, Mapping):
        return entry
    base = entry.get("based_on")
    if base is None:
        return merge({**common, "download": name}, entry)
    path = ("corpora", name, "based_on")
    if base in (*chain, name):
        raise Fault(path, f"{base!r} is itself based on {name!r}; break the circle")
    check_known(path, "corpus", map(str, corpora), base)
    if not isinstance(corpora[base], Mapping):
        raise Fault(("corpora", base), "must be keys and values")
    inherited = dict(_inherit_corpus(base, corpora, common, (*chain, name)))
    files = _mapping(entry.get("files"))
    if {*files} >= {*SPLITS}:  # a text of its own; `corenlp` says how to parse any text
        dropped = {*TEXT, "text"} | ({"trees"} if inherited.get("trees") != "corenlp" else set())
        inherited = {key: value for key, value in inherited.items() if key not in dropped}
        inherited["download"] = name
    elif entry.get("url") not in (None, inherited.get("url")):  # other files, kept apart
        inherited |= {"download": name, "sha256": {}}
    if entry.get("trees") == "corenlp":  # which makes heads, too
        inherited.pop("heads", None)
    for key in ("files", "pairs", "trees", "heads"):  # neither the base's files nor their sizes and trees
        if isinstance(inherited.get(key), Mapping):
            inherited[key] = {split: value for split, value in inherited[key].items() if split not in files}
    return merge(inherited, entry)


def _inherit_tasks(entry: Any, shared: Mapping[str, Any]) -> Any:
    """A benchmark that inherits `shared`, and whose tasks inherit its `finetuning`."""
    if not isinstance(entry, Mapping):
        return entry
    below, tasks = _mapping(entry.get("finetuning")), entry.get("tasks")
    if isinstance(tasks, Mapping):
        full = {n: merge(below, task) if isinstance(task, Mapping) else task for n, task in tasks.items()}
        entry = {**entry, "tasks": full}
    return merge(shared, entry)
