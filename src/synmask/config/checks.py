"""Checks across sections: configurations that are well-formed but cannot work."""

import os
from collections.abc import Iterable
from pathlib import Path

from synmask.config.faults import Fault, check_known
from synmask.config.published import Published
from synmask.config.schema import Config
from synmask.config.sections import SPLITS, Corpus
from synmask.config.tables import BASELINES

# Rows of parsing tables and figures beside those of systems.
TRIVIAL = ("gold", "right-branching", "left-branching", "balanced", "random", "oracle")
# Folders beside those of corpora and benchmarks, beside those of systems, and beside the Snakefile.
RESULTS = ("benchmarks", "figures", "logs", "speed", "tables", "weights")
DIRECTION = ("benchmarks", "bin", "bpe", "clean", "logs", "syntax", "text", "tokens")
PROJECT = (
    "benchmarks",
    "build",
    "config",
    "data",
    "docs",
    "downloads",
    "profiles",
    "report",
    "results",
    "site",
    "slurm",
    "src",
    "tests",
    "workflow",
)


def check_folders(config: Config) -> None:
    """Reject names of folders and files that the workflow makes, and a data_dir that contains them."""
    for name in config.corpora:
        if name in RESULTS or name == "corenlp":
            raise Fault(("corpora", name), "a folder of results or downloads has this name; take another")
        if name in config.weights:
            raise Fault(("corpora", name), "weights have this name, and their downloads; take another")
    for name in config.systems:
        if name in DIRECTION or name.removeprefix("seed").isdigit():
            raise Fault(("systems", name), "a folder of results has this name; take another")
    for name in config.experiments:
        if name in PROJECT:
            what = "a file or folder of the project has this name"
            raise Fault(("experiments", name), f"{what}, so that it cannot be a target; take another")
        if name in config.all_tables and name not in config.tables:
            raise Fault(("experiments", name), "a benchmark's table of one task has this name; take another")
    for name, table in config.tables.items():
        for task in config.tasks_of(table) if table.benchmark in config.benchmarks else ():
            if f"{name}-{task}" in config.tables:
                what = f"the table of the task {task} of {name!r} has this name; take another"
                raise Fault(("tables", f"{name}-{task}"), what)
    _check_data(config.data_dir)


def _check_data(folder: str) -> None:
    """Downloads need a folder of their own."""
    here, data = Path.cwd(), Path(os.path.abspath(folder))
    first = data.relative_to(here).parts[:1] if here in data.parents else ()
    if data in (here, *here.parents):
        what = "is the project's folder, or one around it"
    elif first and (first[0].startswith(".") or first[0] in {*PROJECT} - {"data", "downloads"}):
        what = f"lies in {first[0]}/"
    elif os.path.exists(data) and not os.path.isdir(data):
        what = "is no folder"
    else:
        return
    raise Fault(("data_dir",), f"{folder!r} {what}; downloads need a folder of their own")


def check_corpora(config: Config) -> None:
    """A corpus' settings must refer to directions, sentences and downloads that it has."""
    for name, corpus in config.corpora.items():
        path = ("corpora", name)
        for system, directions in corpus.options.items():
            _check_directions(corpus, (*path, "options", system), directions)
        own = corpus.training.mlm_weight
        if isinstance(own, dict) and own != config.training.mlm_weight:
            _check_directions(corpus, (*path, "training", "mlm_weight"), own)
        valid = corpus.generate.valid if corpus.generate else corpus.pairs.get("valid")
        most = valid[1] if isinstance(valid, tuple) else valid
        if corpus.sentence and most and corpus.sentence > most:
            what = f"there is no sentence {corpus.sentence}: the validation set has {most}"
            raise Fault((*path, "sentence"), what)
        _check_sums((*path, "sha256"), corpus.sha256, _downloads(corpus))
    for name, weights in config.weights.items():
        files = config.weights_sources(name) if weights.archive else []
        _check_sums(("weights", name, "sha256"), weights.sha256, map(os.path.basename, files))
    for name, benchmark in config.benchmarks.items():
        files = [url.rpartition("/")[2] for task in benchmark.tasks.values() for url in task.urls]
        _check_sums(("benchmarks", name, "sha256"), benchmark.sha256, files)


def _check_directions(corpus: Corpus, path: tuple, directions: Iterable[str]) -> None:
    known = [f"{a}-{b}" for a in corpus.languages for b in corpus.languages if a != b]
    for direction in directions:
        check_known((*path, direction), "direction", direction, known)


def _downloads(corpus: Corpus) -> list[str]:
    """The base names of a corpus' downloads."""
    if corpus.format:
        return list(corpus.archives)
    if not corpus.url:
        return []
    return [
        corpus.files[split].replace("{language}", language)
        for split in SPLITS
        for language in corpus.languages
    ]


def _check_sums(path: tuple, sums: Iterable[str], files: Iterable[str]) -> None:
    """Reject a checksum of a file that is not downloaded: it would never be compared."""
    files = list(files)
    for name in sums:
        check_known((*path, name), "download", name, files)


def check_runs(config: Config) -> None:
    """Every training of an experiment needs a share of the MLM loss, and enough epochs to average."""
    for name, entry in config.plain_experiments.items():
        path = ("corpora", entry.corpus, "training")
        weight = config.corpora[entry.corpus].training.mlm_weight
        for system in entry.systems:
            training = config.training_of(entry.corpus, system)
            if training.kept > training.max_epochs:
                own = config.systems[system].training.model_fields_set & {"average", "max_epochs"}
                where = ("systems", system, "training") if own else path
                what = f"{training.average} epochs to average, but only {training.max_epochs} trained"
                raise Fault((*where, "average"), what)
            lacking = [d for d in entry.directions if isinstance(weight, dict) and d not in weight]
            if lacking and config.systems[system].mlm_weight == "corpus":
                what = f"no value for {lacking[0]}, which experiment {name!r} needs"
                raise Fault((*path, "mlm_weight"), what)


def check_labels(config: Config, published: Published) -> None:
    """Rows of a table or figure must have different labels."""

    def label(system: str) -> str:
        return config.label(system) if system in config.systems else published.systems[system].label

    for name, entry in config.plain_experiments.items():
        induces = any(config.systems[system].kind.induces for system in entry.systems)
        reserved = TRIVIAL if induces else ()
        _check_different(("experiments", name), [*entry.systems, *entry.peers], label, reserved)
    for name, table in config.tables.items():
        reserved = tuple(BASELINES.values()) if table.benchmark else ()
        for system in (system for system in table.systems if table.benchmark and system in BASELINES):
            raise Fault(("tables", name, "systems"), f"{system!r} is a trivial baseline's name; take another")
        _check_different(("tables", name), table.systems, label, reserved)


def _check_different(path: tuple, systems: Iterable[str], label, reserved: Iterable[str]) -> None:  # noqa: ANN001
    seen = {" ".join(name.split()): None for name in reserved}
    for system in systems:
        shown = " ".join(label(system).split())
        if shown in seen:
            other = f"{seen[shown]!r} is" if seen[shown] else "a row that stands there by itself is"
            what = f"system {system!r} is called {shown!r}, as {other}; give it another label"
            raise Fault((*path, "systems"), what)
        seen[shown] = system


def check_vocabulary(config: Config) -> None:
    """A system with weights of its own must share the vocabulary of its benchmark's weights."""
    for name, table in config.tables.items():
        entry = config.benchmarks[table.benchmark] if table.benchmark else None
        for system in (system for system in table.systems if entry and system in entry.weights_of):
            continued = config.weights[entry.weights_of[system]].continued
            if continued is None or continued.weights != entry.weights:
                what = f"starts from {entry.weights_of[system]!r}, which does not continue {entry.weights!r}"
                advice = f"leave it out, or give others in benchmarks.{table.benchmark}.weights_of"
                raise Fault(("tables", name, "systems"), f"system {system!r} {what}; {advice}")


def check_depth(config: Config) -> None:
    """A RoBERTa that is trained here must have the layers that a system guides."""
    for name, table in config.tables.items():
        if not table.benchmark:
            continue
        weights = config.benchmarks[table.benchmark].weights
        own = config.weights[weights].pretrain
        for system in (system for system in table.systems if own and system in config.systems):
            guided = getattr(config.systems[system].guide_options(), "layers", 0)
            if guided > own.model.layers:
                what = f"guides {guided} layers, weights {weights!r} have {own.model.layers}"
                raise Fault(("tables", name, "systems"), f"system {system!r} {what}")
