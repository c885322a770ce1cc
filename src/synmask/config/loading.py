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
from synmask.config.guides import GUIDES
from synmask.config.published import Published
from synmask.config.schema import PARSED, Config
from synmask.config.sections import Experiment, Model
from synmask.config.sources import COMMON, Source, where
from synmask.config.sweeps import expand_sweeps
from synmask.corpora.tasks import GENERATED, GLUE
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
    _check_options(config)
    _check_names(config)
    if not os.path.isfile(config.published):
        raise Fault(("published",), f"{config.published}: no such file")
    published = read_published(config.published)
    _check_tables(config, published)
    _check_weights(config)
    _check_benchmarks(config)
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
            raise NameFault(("corpora", name, "based_on"), "base (a circle)", base, [])
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


def _known(path: tuple, kind: str, name: str, names: Iterable[str]) -> None:
    if name not in names:
        raise NameFault(path, kind, name, names)


def _check_options(config: Config) -> None:
    """Every system's guide must exist and have its options, and those that a corpus lays over them."""
    for name, system in config.systems.items():
        if system.guide not in GUIDES:
            raise NameFault(("systems", name, "guide"), "guide", system.guide, GUIDES)
    for corpus, entry in config.corpora.items():
        for name in entry.options:
            if name not in config.systems:
                raise NameFault(("corpora", corpus, "options", name), "system", name, config.systems)
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
            raise first_fault(error, {**system.options, **options}, system.kind, path) from None


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
                    raise NameFault(path, "experiment (a group)", member, config.plain_experiments)
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
            if not any(config.systems[name].kind.induces for name in experiment.systems):
                raise NameFault((*path, "tables"), "table (no system here induces trees)", "parsing", [])
            for source in (direction.split("-")[0] for direction in experiment.directions):
                if config.gold_trees(experiment.corpus, "valid", source) is None:
                    kind = f"table (corpus {experiment.corpus} has no `trees` for {source})"
                    raise NameFault((*path, "tables"), kind, "parsing", [])


def _check_system(config: Config, path: tuple, experiment: Experiment, system: str) -> None:
    """The corpus must have what the guide reads, and the model the heads and layers that it guides."""
    guide = config.systems[system].kind
    reads, templated = guide.reads, guide.templates
    try:
        model = config.model_of(experiment.corpus, system)
    except ValidationError as error:
        what = first_fault(error, {}, Model)
        raise Fault(("systems", system, "model"), f"on corpus {experiment.corpus!r}: {what}") from None
    if "words" in reads:
        what = f"guide `{config.systems[system].guide}` is made for RoBERTa"
        raise Fault((*path, "systems"), f"system {system!r} cannot translate, {what}; leave it out")
    for direction in experiment.directions:
        source, target = direction.split("-")
        if templated and not config.parses(experiment.corpus, "train", target):
            lacks = f"corpus {experiment.corpus!r} has no trees of {target}, leave it out"
            raise Fault((*path, "systems"), f"system {system!r} reads templates of the target; {lacks}")
        if reads and not config.parses(experiment.corpus, "train", source):
            what = f"{' and '.join(sorted(reads))} of a parser"
            lacks = f"corpus {experiment.corpus!r} has none of {source}, leave it out"
            raise Fault((*path, "systems"), f"system {system!r} reads {what}; {lacks}")
        options = config.options(experiment.corpus, direction, system)
        for key, there in (("heads", model.heads), ("layers", model.encoder_layers)):
            if (getattr(options, key, None) or 0) > there:
                what = f"{getattr(options, key)} {key}, the model of corpus {experiment.corpus!r} has {there}"
                raise Fault((*path, "systems"), f"system {system!r} guides {what}")


def _check_tables(config: Config, published: Published) -> None:
    """Tables have names of their own, and rows and columns that something fills."""
    for name, entry in config.plain_experiments.items():
        for peer in entry.peers:
            path = ("experiments", name, "peers")
            _known(path, "published system", peer, published.systems)
            if peer in entry.systems:
                raise NameFault(path, "published system (it is among the systems)", peer, [])
    taken = {*config.experiments, *(f"{name}-parsing" for name in config.experiments)}
    for name, table in config.tables.items():
        path = ("tables", name)
        if name in taken:
            raise NameFault(path, "table (an experiment has this name)", name, [])
        for experiment in table.experiments:
            _known((*path, "experiments"), "experiment", experiment, config.plain_experiments)
        run = {system for name in table.experiments for system in config.plain_experiments[name].systems}
        for system in table.systems:
            _known((*path, "systems"), "system", system, {**config.systems, **published.systems})
            if table.experiments and system not in {*run, *published.systems}:
                what = f"system {system!r} is in none of the table's experiments, nor in {config.published}"
                raise Fault((*path, "systems"), f"{what}; leave it out")
        if table.benchmark:
            _known((*path, "benchmark"), "benchmark", table.benchmark, config.benchmarks)
            for task in table.tasks or ():
                _known((*path, "tasks"), "task", task, config.benchmarks[table.benchmark].tasks)
            for system in (system for system in table.systems if system in config.systems):
                _check_roberta(config, (*path, "systems"), system)
            generated = config.benchmarks[table.benchmark].generate is not None
            if config.reads_words(table) and not generated and PARSED not in config.corenlp.languages:
                what = f"a system here reads a parser's words, and corenlp.languages has no {PARSED!r}"
                raise Fault((*path, "systems"), f"{what}; leave it out, or say how to parse")


def _check_roberta(config: Config, path: tuple, system: str) -> None:
    """Only what needs no more than RoBERTa's own tokens, or the parses of its tasks, can guide it."""
    entry = config.systems[system]
    needs = entry.guide_options().needs
    if entry.guide not in ("none", "grammar", "sla", "syntax") or needs - {"words"}:
        what = "guide `none`, `sla`, `syntax`, or `grammar` with bpe: none"
        raise Fault(path, f"system {system!r} cannot be a RoBERTa, which takes {what}; leave it out")
    if entry.mlm_weight == "corpus":
        raise Fault(path, f"system {system!r} has mlm_weight: corpus; a benchmark has none, give a number")
    if entry.training.model_fields_set:
        raise Fault(path, f"system {system!r} has `training`, which fine-tuning does not read; leave it out")
    if entry.model.model_fields_set:
        raise Fault(path, f"system {system!r} has `model`, but its weights have their sizes; leave it out")


def _check_weights(config: Config) -> None:
    """Weights that are trained further must not start from weights that are, so there is no circle."""
    for name, entry in config.weights.items():
        if entry.continued is not None:
            path, other = ("weights", name, "continued", "weights"), entry.continued.weights
            _known(path, "weights", other, config.weights)
            if config.weights[other].continued is not None:
                raise Fault(path, f"weights {other!r} are `continued` themselves; start from those before")


def _check_benchmarks(config: Config) -> None:
    """Benchmarks have names of their own, weights, and tasks that are known and come from somewhere."""
    for name, entry in config.benchmarks.items():
        path = ("benchmarks", name)
        if name in {*config.corpora, *config.weights, "tables", "figures", "weights", "logs", "benchmarks"}:
            raise Fault(path, "a corpus, weights or a folder of results has this name; take another")
        _known((*path, "weights"), "weights", entry.weights, config.weights)
        for system, weights in entry.weights_of.items():
            _known((*path, "weights_of"), "system", system, config.systems)
            _known((*path, "weights_of", system), "weights", weights, config.weights)
        columns: dict[str, str] = {}
        for task, values in entry.tasks.items():
            known = GLUE if entry.generate is None else GENERATED
            if task not in known:
                raise NameFault((*path, "tasks", task), "task", task, known)
            if known is GLUE and entry.folder is None and not values.urls:
                raise Fault((*path, "tasks", task), "give `urls`, or the benchmark's `folder`")
            if "train" not in values.rows:
                raise Fault((*path, "tasks", task, "rows"), "no number of rows for train")
            if (other := columns.setdefault(values.column, task)) != task:
                what = f"{values.column!r} is that of {other!r}; give it its own"
                raise Fault((*path, "tasks", task, "column"), what)
