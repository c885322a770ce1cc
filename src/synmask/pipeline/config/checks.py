"""Checks across sections: names that an entry mentions must exist, and what they name must fit together."""

import os
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from pydantic import ValidationError

from synmask.pipeline.config.base import looks, sides
from synmask.pipeline.config.faults import Fault, check_known, first_fault, validated
from synmask.pipeline.config.guides import GUIDES
from synmask.pipeline.config.nlu_checks import check_benchmark_table, check_benchmarks, check_weights
from synmask.pipeline.config.published import Published
from synmask.pipeline.config.schema import Config
from synmask.pipeline.config.sections import Corpus, Experiment
from synmask.pipeline.config.table_plan import BASELINES, label_of
from synmask.pipeline.languages import known_as

# Folders beside those of corpora and benchmarks, beside those of systems, and beside the Snakefile.
# Rows of tables and figures beside those of systems.
BY_THEMSELVES = (
    "gold", "right-branching", "left-branching", "balanced", "random", "oracle", *BASELINES.values(),
)  # fmt: skip
RESULTS = {"benchmarks", "figures", "logs", "tables", "weights"}
DIRECTION = {"benchmarks", "bin", "bpe", "clean", "logs", "syntax", "text", "tokens"}
PROJECT = {
    *("benchmarks", "build", "config", "data", "docs", "downloads", "profiles", "report", "results", "site"),
    *("slurm", "src", "studies", "tests", "workflow"),
}
RESERVED = {
    "corpora": RESULTS | {"corenlp"},  # also a folder of downloads
    "benchmarks": RESULTS,
    "systems": DIRECTION,
    "experiments": PROJECT,
}


def check(config: Config, published: Published) -> None:
    """Check everything that no section can check by itself; later checks rely on those before them.

    Raises:
        Fault: the first entry that cannot work.
    """
    check_options(config)
    check_names(config)
    check_weights(config)
    check_benchmarks(config)
    check_tables(config, published)
    check_folders(config)
    check_corpora(config)
    check_runs(config)
    check_labels(config, published)


def check_options(config: Config) -> None:
    """Every system's guide must exist and have its options, and those that a corpus lays over them."""
    for name, system in config.systems.items():
        check_known(("systems", name, "guide"), "guide", system.guide, GUIDES)
        validated(system.kind, system.options, ("systems", name, "options"))
    for corpus, entry in config.corpora.items():
        for name, directions in entry.options.items():
            path = ("corpora", corpus, "options", name)
            check_known(path, "system", name, config.systems)
            for direction, options in directions.items():
                system = config.systems[name]
                validated(system.kind, {**system.options, **options}, (*path, direction))


def check_names(config: Config) -> None:
    """The names of targets, mirrors, experiments and what these run must exist."""
    for position, target in enumerate(config.targets):
        check_known(("targets", position), "experiment", target, config.named_targets)
    for name in config.mirrors:
        check_known(("mirrors", name), "download", name, config.downloaded)
    for name, experiment in config.experiments.items():
        path = ("experiments", name)
        if isinstance(experiment, Experiment):
            _check_experiment(config, path, experiment)
            continue
        for member in experiment:
            check_known(path, "experiment", member, {**config.experiments, **config.tables})
            if isinstance(config.experiments.get(member), list):
                raise Fault(path, f"{member!r} is a list itself; name its experiments")


def _check_experiment(config: Config, path: tuple, experiment: Experiment) -> None:
    """The corpus, systems and languages of an experiment must exist, and the trees that its tables need."""
    check_known((*path, "corpus"), "corpus", experiment.corpus, config.corpora)
    languages = config.corpora[experiment.corpus].languages
    for system in experiment.systems:
        check_known((*path, "systems"), "system", system, config.systems)
        _check_system(config, path, experiment, system)
    for direction in experiment.directions:
        source, target = sides(direction)
        check_known((*path, "directions"), "language", source, languages)
        check_known((*path, "directions"), "language", target, languages)
        if source == target:
            raise Fault((*path, "directions"), f"from {source} to {target}: give two languages")
        if known_as(target, ["ko"]) and not find_spec("mecab_ko"):
            what = f"sacreBLEU lacks its tokeniser of {target}; pip install sacrebleu[ko]"
            raise Fault((*path, "directions"), what)
    if "parsing" in experiment.tables:
        if not config.inducing(experiment.systems):
            raise Fault((*path, "tables"), "no system here induces trees; leave 'parsing' out")
        for source in (sides(direction)[0] for direction in experiment.directions):
            if config.gold_trees(experiment.corpus, "valid", source) is None:
                lacks = f"corpus {experiment.corpus!r} has no `trees` of {source}"
                raise Fault((*path, "tables"), f"{lacks}; give it some, or leave 'parsing' out")


def _check_system(config: Config, path: tuple, experiment: Experiment, system: str) -> None:
    """The corpus must have what the guide reads, and the model the heads and layers that it guides."""
    corpus, guide = experiment.corpus, config.systems[system].kind
    try:
        model = config.model_of(corpus, system)
    except ValidationError as error:
        what = first_fault(error, {})
        raise Fault(("systems", system, "model"), f"on corpus {corpus!r}: {what}") from None
    path = (*path, "systems")
    if "words" in guide.reads:
        what = f"guide `{config.systems[system].guide}` is made for RoBERTa"
        raise Fault(path, f"system {system!r} cannot translate, {what}; leave it out")
    for direction in experiment.directions:
        source, target = sides(direction)
        if guide.templates and not config.parses(corpus, "train", target):
            lacks = f"corpus {corpus!r} has no trees of {target}, leave it out"
            raise Fault(path, f"system {system!r} reads templates of the target; {lacks}")
        if guide.reads and not config.parses(corpus, "train", source):
            what = f"{' and '.join(sorted(guide.reads))} of a parser"
            lacks = f"corpus {corpus!r} has none of {source}, leave it out"
            raise Fault(path, f"system {system!r} reads {what}; {lacks}")
        options = config.options(corpus, direction, system)
        for key, there in (("heads", model.heads), ("layers", model.encoder_layers)):
            guided = getattr(options, key, None) or 0
            if guided > there:
                what = f"{guided} {key}, the model of corpus {corpus!r} has {there}"
                raise Fault(path, f"system {system!r} guides {what}")


def check_tables(config: Config, published: Published) -> None:
    """Tables have names of their own, and rows and columns that something fills."""
    for name, entry in config.plain_experiments.items():
        path = ("experiments", name, "peers")
        for peer in entry.peers:
            check_known(path, "published system", peer, published.systems)
            if peer in entry.systems:
                raise Fault(path, f"{peer!r} is among the systems; leave it out of one of them")
    for name, table in config.tables.items():
        path = ("tables", name)
        for experiment in table.experiments:
            check_known((*path, "experiments"), "experiment", experiment, config.plain_experiments)
        run = {system for name in table.experiments for system in config.plain_experiments[name].systems}
        for system in table.systems:
            check_known((*path, "systems"), "system", system, {**config.systems, **published.systems})
            if table.experiments and system not in {*run, *published.systems}:
                what = f"system {system!r} is in none of the table's experiments, nor in {config.published}"
                raise Fault((*path, "systems"), f"{what}; leave it out")
        if table.benchmark:
            check_benchmark_table(config, path, table)


def check_folders(config: Config) -> None:
    """Reject names of folders, names given twice, and a data_dir that contains other files."""
    for section, reserved in RESERVED.items():
        for name in getattr(config, section):
            if name in reserved or (section == "systems" and name.removeprefix("seed").isdigit()):
                raise Fault(
                    (section, name), "a folder has this name, of results or the project; take another"
                )
    sources = [
        (section, name)
        for section in ("weights", "corpora", "benchmarks")
        for name in getattr(config, section)
    ]
    _check_taken("weights, a corpus or a benchmark", [(path, path[1]) for path in sources])
    made = [(("experiments", name), f"{name}-parsing") for name in config.experiments]
    tables = {name: table for name, table in config.tables.items() if table.benchmark}
    made += [(("tables",), f"{n}-{task}") for n, table in tables.items() for task in config.tasks_of(table)]
    made += [
        ((section, name), name) for section in ("experiments", "tables") for name in getattr(config, section)
    ]
    _check_taken("another target, or the table of its trees or of one task,", made)
    here, data = Path.cwd(), Path(os.path.abspath(config.data_dir))
    first = data.relative_to(here).parts[:1] if here in data.parents else ()
    taken = first and (first[0].startswith(".") or first[0] in PROJECT - {"data", "downloads"})
    if taken or data in (here, *here.parents) or (os.path.exists(data) and not os.path.isdir(data)):
        raise Fault(("data_dir",), f"{config.data_dir!r} cannot be a folder of downloads alone; give another")


def _check_taken(what: str, named: Iterable[tuple[tuple, str]]) -> None:
    """Reject a name that an earlier entry has, or makes."""
    seen = set()
    for path, name in named:
        if name in seen:
            raise Fault(path, f"{what} has this name; take another")
        seen.add(name)


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
        # also files of the corpus it is based on, whose checksums it has
        sharing = [(n, c) for n, c in config.corpora.items() if c.download == corpus.download]
        files = [file for n, one in sharing for file in config.downloads(n, one.languages)]
        _check_sums((*path, "sha256"), corpus.sha256, files)
    for name, weights in config.weights.items():
        _check_sums(("weights", name, "sha256"), weights.sha256, config.weights_sources(name))
    for name, benchmark in config.benchmarks.items():
        urls = [url for task in benchmark.tasks.values() for url in task.urls]
        _check_sums(("benchmarks", name, "sha256"), benchmark.sha256, urls)


def _check_directions(corpus: Corpus, path: tuple, directions: Iterable[str]) -> None:
    known = [f"{a}-{b}" for a in corpus.languages for b in corpus.languages if a != b]
    for direction in directions:
        check_known((*path, direction), "direction", direction, known)


def _check_sums(path: tuple, sums: Iterable[str], downloads: Iterable[str]) -> None:
    """Reject a checksum of a file that is not among these paths or URLs: it would never be compared."""
    files = [*map(os.path.basename, downloads)]
    for name in sums:
        check_known((*path, name), "download", name, files)


def check_runs(config: Config) -> None:
    """Every training of an experiment needs a share of the MLM loss, and the epochs that make its model."""
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
            if training.checkpoint == "best-bleu" and not training.validate_bleu:
                own = "checkpoint" in config.systems[system].training.model_fields_set
                where = ("systems", system, "training") if own else path
                raise Fault((*where, "checkpoint"), "best-bleu needs a validate_bleu above 0")
            lacking = [d for d in entry.directions if isinstance(weight, dict) and d not in weight]
            if lacking and config.systems[system].mlm_weight == "corpus":
                what = f"no value for {lacking[0]}, which experiment {name!r} needs"
                raise Fault((*path, "mlm_weight"), what)


def check_labels(config: Config, published: Published) -> None:
    """Rows of a table or figure must have different labels."""
    rows = {
        ("experiments", n): (*entry.systems, *entry.peers) for n, entry in config.plain_experiments.items()
    }
    rows |= {("tables", name): table.systems for name, table in config.tables.items()}
    for path, systems in rows.items():
        seen = {looks(row): "a row that stands there by itself" for row in BY_THEMSELVES}
        for system in systems:
            label = " ".join(label_of(config, published, system).split())
            if looks(label) in seen:
                what = f"system {system!r} is called {label!r}, as {seen[looks(label)]} is"
                raise Fault((*path, "systems"), f"{what}; give it another label")
            seen[looks(label)] = repr(system)
