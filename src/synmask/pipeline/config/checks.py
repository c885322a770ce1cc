"""Checks across sections: names that an entry mentions must exist, and what they name must fit together."""

import os
from collections.abc import Iterable
from itertools import product

from synmask.pipeline.config.base import Fault, at, check_known, looks
from synmask.pipeline.config.benchmarks import BASELINES, ROBERTAS
from synmask.pipeline.config.data_files import DataFiles
from synmask.pipeline.config.schema import Config
from synmask.pipeline.config.sections import Experiment, Table
from synmask.pipeline.config.sweeps import complete
from synmask.pipeline.files import SPLITS
from synmask.pipeline.languages import split_direction
from synmask.pipeline.published import Published
from synmask.pipeline.tasks import TASK_LANGUAGE

# Rows of tables and figures that are not systems.
FIXED_ROWS = (
    "gold", "right-branching", "left-branching", "balanced", "random", "oracle", *BASELINES.values(),
)  # fmt: skip


def check(config: Config, published: Published) -> None:
    """Complete a configuration, and check all that no section can check by itself.

    Later checks rely on those before them.

    Raises:
        Fault: the first entry that cannot work.
    """
    _check_corpora(config)
    complete(config)
    for position, target in enumerate(config.targets):
        check_known(("targets", position), "experiment", config.named_targets, target)
    for name in config.mirrors:
        check_known(("mirrors", name), "download", DataFiles(config).origins, name)
    for name, entry in config.experiments.items():
        if isinstance(entry, list):
            check_known(("experiments", name), "experiment", config.named_targets, *entry)
        else:
            _check_experiment(config, published, ("experiments", name), entry)
    for name in config.benchmarks:
        _check_benchmark(config, name)
    for name, table in config.tables.items():
        _check_table(config, published, ("tables", name), table)
    _check_duplicates(config)
    _check_checksums(config)


def _require(fits: object, path: tuple, fault: str) -> None:
    if not fits:
        raise Fault(path, fault)


def _check_corpora(config: Config) -> None:
    """A system's guide must have the options that a corpus overrides, shares of the MLM loss directions."""
    for corpus, entry in config.corpora.items():
        for name, directions in entry.options.items():
            path = ("corpora", corpus, "options", name)
            check_known(path, "system", config.systems, name)
            for direction in directions:
                with at(*path, direction):
                    config.options(corpus, direction, name)
        weight = entry.training.mlm_weight
        for direction in weight if isinstance(weight, dict) and weight != config.training.mlm_weight else ():
            path = ("corpora", corpus, "training", "mlm_weight", direction)
            check_known(path, "direction", entry.possible_directions, direction)


def _check_experiment(config: Config, published: Published, path: tuple, experiment: Experiment) -> None:
    """The corpus, systems and languages of an experiment must exist, and the trees that its tables need."""
    check_known((*path, "corpus"), "corpus", config.corpora, experiment.corpus)
    languages = config.corpora[experiment.corpus].languages
    check_known((*path, "systems"), "system", config.systems, *experiment.systems)
    check_known((*path, "peers"), "published system", published.systems, *experiment.peers)
    for system, direction in product(experiment.systems, experiment.directions):
        check_run(config, (*path, "systems"), experiment.corpus, direction, system)
    induced = any(config.systems[name].options_class.induces for name in experiment.systems)
    for source, target in map(split_direction, experiment.directions):
        check_known((*path, "directions"), "language", languages, source, target)
        if "parsing" in experiment.tables:
            _require(induced, (*path, "tables"), "no system here induces trees; leave 'parsing' out")
            lacks = f"corpus {experiment.corpus!r} has no `trees` of {source}"
            gold = DataFiles(config).gold_trees(experiment.corpus, source)
            _require(gold, (*path, "tables"), f"{lacks}; give it some, or leave 'parsing' out")
    _check_labels(config, published, path, (*experiment.systems, *experiment.peers))


def check_run(config: Config, path: tuple, corpus: str, direction: str, name: str) -> None:
    """The corpus must have what a system's guide reads, and the settings of a run must fit each other."""
    system = config.systems[name]
    try:
        config.run_settings(corpus, direction, name)
    except Fault as fault:
        raise Fault(fault.path or path, f"system {name!r} on corpus {corpus!r}: {fault}") from None
    source, target = split_direction(direction)
    reads = system.options_class.reads
    read = f"{' and '.join(sorted(reads))} of a parser"
    for reader, language, parse, what in (
        (system.templated, target, "trees", "templates of the target"),
        (reads, source, "heads" if "heads" in reads else "trees", read),
    ):
        there = all(parse in DataFiles(config).parses(corpus, split, language) for split in SPLITS)
        lacks = f"corpus {corpus!r} has no {parse} of {language}, leave it out"
        _require(there or not reader, path, f"system {name!r} reads {what}; {lacks}")
    what = f"reads templates, which are made of BPE; corpus {corpus!r} has sentencepiece, leave it out"
    pieces = system.templated and config.corpora[corpus].sentencepiece
    _require(not pieces, path, f"system {name!r} {what}")


def _check_benchmark(config: Config, name: str) -> None:
    """A benchmark has weights, which are not pre-trained on sentences that its systems are scored on."""
    path, entry, files = ("benchmarks", name), config.benchmarks[name], DataFiles(config)
    check_known((*path, "weights"), "weights", config.weights, entry.weights)
    check_known((*path, "weights_of"), "system", config.systems, *entry.weights_of)
    for system, weights in entry.weights_of.items():
        check_known((*path, "weights_of", system), "weights", config.weights, weights)
    parts = [(task, part) for task, row in entry.tasks.items() for part in (*row.parts, *row.test_rows)]
    scored = {prefix for place in parts for prefix in files.task_parses(name, *place)}
    for weights in (entry.weights, *entry.weights_of.values()):
        continued = config.weights[weights].continued
        for prefix in continued.parses["train"] if continued else ():
            what = f"{prefix}: its systems are scored on these sentences, in benchmark {name!r}"
            path, fits = ("weights", weights, "continued", "parses"), os.path.relpath(prefix) not in scored
            _require(fits, path, f"{what}; give those of training sets")


def _check_table(config: Config, published: Published, path: tuple, table: Table) -> None:
    """A table needs rows and columns with numbers in them."""
    if table.benchmark:
        check_known((*path, "benchmark"), "benchmark", config.benchmarks, table.benchmark)
        check_known((*path, "tasks"), "task", config.benchmarks[table.benchmark].tasks, *table.tasks or ())
    check_known((*path, "experiments"), "experiment", config.plain_experiments, *table.experiments)
    rows, runs = (*path, "systems"), [config.plain_experiments[name].systems for name in table.experiments]
    check_known(rows, "system", {**config.systems, **published.systems}, *table.systems)
    for system in table.systems:
        what = f"system {system!r} is in none of the table's experiments, nor in {config.published}"
        _require(not runs or system in {*published.systems}.union(*runs), rows, f"{what}; leave it out")
        if table.benchmark:
            _require(system not in BASELINES, rows, f"{system!r} is a trivial baseline's name; take another")
            check_roberta(config, rows, system, table.benchmark)
    parsed = table.benchmark and not config.benchmarks[table.benchmark].parsed
    lacks = parsed and config.reads_words(table) and TASK_LANGUAGE not in config.corenlp.languages
    what = f"a system here reads a parser's words, and corenlp.languages has no {TASK_LANGUAGE!r}"
    _require(not lacks, rows, f"{what}; leave it out, or say how to parse")
    _check_labels(config, published, path, table.systems)


def check_roberta(config: Config, path: tuple, name: str, benchmark: str) -> None:
    """A system of a benchmark may read only RoBERTa's tokens and the parses of the tasks.

    RoBERTa must have the layers that it guides; weights of the system's own must continue the benchmark's.
    """
    if name not in config.systems:
        return  # published alone
    system, entry = config.systems[name], config.benchmarks[benchmark]
    pretrain, own = config.weights[entry.weights].pretrain, entry.weights_of.get(name, entry.weights)
    guided, layers = getattr(system.guide_options, "layers", 0), pretrain and pretrain.model.layers
    continued = config.weights[own].continued
    unread = "which fine-tuning does not read; leave it out"
    advice = f"leave it out, or give others in benchmarks.{benchmark}.weights_of"
    for wrong, words in (
        (not system.fits_roberta, f"cannot be a RoBERTa, which takes {ROBERTAS}; leave it out"),
        (system.mlm_weight == "corpus", "has mlm_weight: corpus; a benchmark has none, give a number"),
        (system.left_pad_source, f"has `left_pad_source`, {unread}"),
        (system.training.model_fields_set, f"has `training`, {unread}"),
        (system.model.model_fields_set, "has `model`, but its weights have their sizes; leave it out"),
        (pretrain and guided > layers, f"guides {guided} layers, weights {entry.weights!r} have {layers}"),
        (
            name in entry.weights_of and (continued is None or continued.weights != entry.weights),
            f"starts from {own!r}, which does not continue {entry.weights!r}; {advice}",
        ),
    ):
        _require(not wrong, path, f"system {name!r} {words}")


def _check_labels(config: Config, published: Published, path: tuple, systems: Iterable[str]) -> None:
    """Rows of a table or figure must have different labels."""
    seen = {looks(row): "a row that stands there by itself" for row in FIXED_ROWS}
    for system in systems:
        label = " ".join(config.label(system, published.systems).split())
        what = f"system {system!r} is called {label!r}, as {seen.get(looks(label))} is"
        _require(looks(label) not in seen, (*path, "systems"), f"{what}; give it another label")
        seen[looks(label)] = repr(system)


def _check_duplicates(config: Config) -> None:
    """Reject names that two targets, or two folders of results, would have."""
    derived = {*config.single_tables, *(f"{name}-parsing" for name in config.experiments)}
    for what, seen, *sections in (
        ("weights, a corpus or a benchmark", set(), "weights", "corpora", "benchmarks"),
        ("another target, or the table of its trees or of one task,", derived, "experiments", "tables"),
    ):
        for section in sections:
            for name in getattr(config, section):
                _require(name not in seen, (section, name), f"{what} has this name; take another")
                seen.add(name)


def _check_checksums(config: Config) -> None:
    """Reject a checksum of a file that is not downloaded: it would never be compared."""
    for section in ("corpora", "weights", "benchmarks"):
        for name, entry in getattr(config, section).items():
            files = DataFiles(config).origins.get(entry.download if section == "corpora" else name, {})
            for file in entry.sha256:
                check_known((section, name, "sha256", file), "download", files, file)
