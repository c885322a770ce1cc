"""From YAML to a checked `Config`, or one line that names file, key and the nearest valid name."""

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from synmask.config.guides import GUIDES
from synmask.config.published import Published
from synmask.config.schema import Config
from synmask.config.sections import Corpus, Experiment
from synmask.corpora.tasks import GENERATED, GLUE
from synmask.files import UserError


class _UniqueKeys(yaml.SafeLoader):
    """YAML that refuses a key given twice, which YAML itself lets pass in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=deep)
            if key in seen:
                line = key_node.start_mark.line + 1
                raise UserError(f"line {line}: the key {key!r} is given twice")
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: str | Path) -> dict:
    """Read one YAML file.

    Raises:
        UserError: no such file, not YAML, a key given twice, or not a mapping.
    """
    try:
        with open(path, encoding="utf-8") as handle:
            value = yaml.load(handle, _UniqueKeys)
    except UserError as error:
        raise UserError(f"{path}, {error}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise UserError(f"{path}{where}: not YAML ({getattr(error, 'problem', error)})") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    if not isinstance(value or {}, dict):
        raise UserError(f"{path}: expected keys and values, found a {type(value).__name__}")
    return value or {}


def merge(base: Mapping, over: Mapping) -> dict:
    """`base` with the keys of `over` laid over it, mapping by mapping."""
    merged = dict(base)
    for key, value in over.items():
        inner = merged.get(key)
        merged[key] = (
            merge(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
        )
    return merged


def load(values: Mapping[str, Any], files: Iterable[str | Path] = ("config.yaml",)) -> Config:
    """Check the merged configuration `values`; `files` are read again only to say where a fault stands.

    Raises:
        UserError: an unknown key, a wrong type, an unknown name or an inconsistent entry (one line).
    """
    sources = {str(path): read_yaml(path) for path in files}
    try:
        config = Config.model_validate(_inherit(values))
        _check_options(config, sources)
        _check_names(config)
        _check_tables(config)
        _check_benchmarks(config)
    except ValidationError as error:
        raise UserError(_first_fault(error, sources)) from None
    except _Fault as fault:
        raise UserError(f"{_where(fault.path, sources)}: {fault}") from None
    return config


def read_published(path: str | Path) -> Published:
    """Read and check published.yaml.

    Raises:
        UserError: no such file, an unknown key, a number that is none, or one given twice (one line).
    """
    values = read_yaml(path)
    try:
        return Published.model_validate(values)
    except ValidationError as error:
        raise UserError(_first_fault(error, {str(path): values}, section=Published)) from None


class _Fault(Exception):
    """What is wrong with the value at `path`."""

    def __init__(self, path: tuple, what: str) -> None:
        self.path = path
        super().__init__(what)


class _NameFault(_Fault):
    def __init__(self, path: tuple, kind: str, name: object, known: Iterable[str]) -> None:
        super().__init__(path, f"unknown {kind} {name!r}{_nearest(str(name), known)}")


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
    common = {
        key: values[key]
        for key in ("training", "decoding", "resources")
        if isinstance(values.get(key), Mapping)
    }
    full: dict[str, Any] = {}

    def resolve(name: str, chain: tuple[str, ...]) -> Any:
        entry = corpora[name]
        if not isinstance(entry, Mapping):
            return entry
        base = entry.get("based_on")
        if base is None:
            return merge({**common, "download": name}, entry)
        if base in chain or base == name:
            raise _NameFault(("corpora", name, "based_on"), "base (a circle)", base, [])
        if base not in corpora:
            raise _NameFault(("corpora", name, "based_on"), "corpus", base, corpora)
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


def _known(path: tuple, kind: str, name: str, names: Iterable[str]) -> None:
    if name not in names:
        raise _NameFault(path, kind, name, names)


def _check_options(config: Config, sources: Mapping[str, Any]) -> None:
    """Every system's guide must exist and have its options, and those that a corpus lays over them."""
    for name, system in config.systems.items():
        if system.guide not in GUIDES:
            raise _NameFault(("systems", name, "guide"), "guide", system.guide, GUIDES)
    for corpus, entry in config.corpora.items():
        for name in entry.options:
            if name not in config.systems:
                raise _NameFault(("corpora", corpus, "options", name), "system", name, config.systems)
    places = [(("systems", name, "options"), system, {}) for name, system in config.systems.items()] + [
        (("corpora", corpus, "options", name, direction), config.systems[name], options)
        for corpus, entry in config.corpora.items()
        for name, directions in entry.options.items()
        for direction, options in directions.items()
    ]
    for path, system, options in places:
        try:
            system.guide_options(options)
        except ValidationError as error:
            raise UserError(_first_fault(error, sources, path, GUIDES[system.guide])) from None


def _check_names(config: Config) -> None:
    """Every name that an entry mentions must exist."""

    for position, target in enumerate(config.targets):
        _known(("targets", position), "experiment", target, {**config.experiments, **config.all_tables})
    for name in config.mirrors:
        downloads = {c.download for c in config.corpora.values() if c.url or c.format} | {"corenlp"}
        downloads |= {*config.downloaded_nlu}
        _known(("mirrors", name), "download", name, downloads)
    for name, experiment in config.experiments.items():
        path = ("experiments", name)
        if isinstance(experiment, list):
            for member in experiment:
                _known(path, "experiment", member, {**config.experiments, **config.tables})
                if isinstance(config.experiments.get(member), list):
                    raise _NameFault(path, "experiment (a group)", member, config.plain_experiments)
            continue
        _known((*path, "corpus"), "corpus", experiment.corpus, config.corpora)
        languages = config.corpora[experiment.corpus].languages
        for system in experiment.systems:
            _known((*path, "systems"), "system", system, config.systems)
            _check_system(config, path, experiment, system)
        for direction in experiment.directions:
            source, target = direction.split("-")
            _known((*path, "directions"), "language", source, languages)
            _known((*path, "directions"), "language", target, set(languages) - {source})
        if "parsing" in experiment.tables:
            if not any(GUIDES[config.systems[name].guide].induces for name in experiment.systems):
                raise _NameFault((*path, "tables"), "table (no system here induces trees)", "parsing", [])
            for source in (direction.split("-")[0] for direction in experiment.directions):
                if config.gold_trees(experiment.corpus, "valid", source) is None:
                    kind = f"table (corpus {experiment.corpus} has no `trees` for {source})"
                    raise _NameFault((*path, "tables"), kind, "parsing", [])


def _check_system(config: Config, path: tuple, experiment: Experiment, system: str) -> None:
    """The corpus must have what the guide reads, and the model the heads and layers that it guides."""
    reads = GUIDES[config.systems[system].guide].reads
    model = config.corpora[experiment.corpus].model
    for direction in experiment.directions:
        there = config.parses(experiment.corpus, "train", direction.split("-")[0])
        if reads and not there:
            what = f"{' and '.join(sorted(reads))} of a parser; corpus {experiment.corpus!r} has none"
            raise _Fault((*path, "systems"), f"system {system!r} reads {what}, leave it out")
        options = config.options(experiment.corpus, direction, system)
        for key, there in (("heads", model.heads), ("layers", model.encoder_layers)):
            if (getattr(options, key, None) or 0) > there:
                what = f"{getattr(options, key)} {key}, the model of corpus {experiment.corpus!r} has {there}"
                raise _Fault((*path, "systems"), f"system {system!r} guides {what}")


def _check_tables(config: Config) -> None:
    """Tables have names of their own, and rows and columns that something fills."""
    published = read_published(config.published)
    for name, entry in config.plain_experiments.items():
        for peer in entry.peers:
            path = ("experiments", name, "peers")
            _known(path, "published system", peer, published.systems)
            if peer in entry.systems:
                raise _NameFault(path, "published system (it is among the systems)", peer, [])
    taken = {*config.experiments, *(f"{name}-parsing" for name in config.experiments)}
    for name, table in config.tables.items():
        path = ("tables", name)
        if name in taken:
            raise _NameFault(path, "table (an experiment has this name)", name, [])
        for experiment in table.experiments:
            _known((*path, "experiments"), "experiment", experiment, config.plain_experiments)
        for system in table.systems:
            _known((*path, "systems"), "system", system, {**config.systems, **published.systems})
        if table.benchmark:
            _known((*path, "benchmark"), "benchmark", table.benchmark, config.benchmarks)
            for task in table.tasks or ():
                _known((*path, "tasks"), "task", task, config.benchmarks[table.benchmark].tasks)
            for system in (system for system in table.systems if system in config.systems):
                _check_roberta(config, (*path, "systems"), system)


def _check_roberta(config: Config, path: tuple, system: str) -> None:
    """Only what needs no more than RoBERTa's own tokens can guide it."""
    entry = config.systems[system]
    if entry.guide not in ("none", "grammar") or entry.guide_options().needs:
        what = "guide `none` or `grammar` with bpe: none"
        raise _Fault(path, f"system {system!r} cannot be a RoBERTa, which takes {what}; leave it out")
    if entry.mlm_weight == "corpus":
        raise _Fault(path, f"system {system!r} has mlm_weight: corpus; a benchmark has none, give a number")


def _check_benchmarks(config: Config) -> None:
    """Benchmarks have names of their own, weights, and tasks that are known and come from somewhere."""
    for name, entry in config.benchmarks.items():
        path = ("benchmarks", name)
        if name in {*config.corpora, *config.weights, "tables", "figures", "weights", "logs", "benchmarks"}:
            raise _Fault(path, "a corpus, weights or a folder of results has this name; take another")
        _known((*path, "weights"), "weights", entry.weights, config.weights)
        for task, values in entry.tasks.items():
            known = GLUE if entry.generate is None else GENERATED
            if task not in known:
                raise _NameFault((*path, "tasks", task), "task", task, known)
            if known is GLUE and entry.folder is None and not values.urls:
                raise _Fault((*path, "tasks", task), "give `urls`, or the benchmark's `folder`")
            if "train" not in values.rows:
                raise _Fault((*path, "tasks", task, "rows"), "no number of rows for train")


def _nearest(name: str, known: Iterable[str]) -> str:
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; known: {', '.join(known)}" if known else ""


def _where(path: tuple, sources: Mapping[str, Any]) -> str:
    """The key's dotted path behind the last file that holds it (or --config, if none does)."""
    dotted = ".".join(str(part) for part in path)
    for file in reversed(sources):
        node = sources[file]
        for part in path:
            if (isinstance(node, Mapping) and part in node) or (
                isinstance(node, list) and isinstance(part, int) and part < len(node)
            ):
                node = node[part]
            else:
                break
        else:
            return f"{file}: {dotted}"
    missing_parent = sources and any(path[0] in values for values in sources.values())
    return f"{next(reversed(sources)) if missing_parent else '--config'}: {dotted}"


def _section_of(annotation: Any) -> type[BaseModel] | None:
    """The section that a field's annotation holds, however deep in a union or a dict."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_section_of, get_args(annotation))), None)


def _known_keys(path: tuple, section: type[BaseModel]) -> set[str]:
    """The keys that the section at `path` inside `section` may hold."""
    for part in path:  # a part that is no field is the user's own name for an entry: same section
        if field := section.model_fields.get(str(part)):
            section = _section_of(field.annotation) or section
    keys = set(section.model_fields) - {"download"}
    return keys | {"based_on"} if section is Corpus else keys


def _first_fault(
    error: ValidationError, sources: Mapping[str, Any], at: tuple = (), section: type[BaseModel] = Config
) -> str:
    """One line for the first fault that pydantic found in the section that stands at the path `at`."""
    faults = error.errors()
    unknown = [fault for fault in faults if fault["type"] == "extra_forbidden"]
    fault = (unknown or faults)[0]
    path = tuple(
        part
        for part in fault["loc"]
        if part != "[key]" and not str(part).startswith(("list[", "dict[", "literal["))
    )
    path = tuple(part for part in path if part != "Experiment")
    where = _where((*at, *path), sources)
    if fault["type"] == "extra_forbidden":
        return f"{where}: unknown key {path[-1]!r}{_nearest(str(path[-1]), _known_keys(path[:-1], section))}"
    message = fault["msg"].removeprefix("Value error, ")
    given = fault["input"]
    shown = "" if isinstance(given, Mapping) or fault["type"] == "missing" else f" (given: {given!r})"
    return f"{where}: {message}{shown}"
