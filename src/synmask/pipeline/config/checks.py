"""Checks across sections: names that an entry mentions must exist, and what they name must fit together."""

import os
from collections.abc import Iterable
from importlib.util import find_spec

from pydantic import ValidationError

from synmask.pipeline.config.base import Fault, at, check_known, looks, sides
from synmask.pipeline.config.benchmarks import BASELINES
from synmask.pipeline.config.data_files import DataFiles, module_file
from synmask.pipeline.config.faults import first_fault
from synmask.pipeline.config.guides import ROBERTAS, options_from
from synmask.pipeline.config.published import Published, label_of
from synmask.pipeline.config.schema import TASK_LANGUAGE, Config
from synmask.pipeline.config.sections import Experiment, Table
from synmask.pipeline.config.sweeps import complete
from synmask.pipeline.languages import known_as

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
    _check_options(config)
    complete(config)
    _check_names(config)
    for name, entry in config.plain_experiments.items():
        _check_experiment(config, published, ("experiments", name), entry)
    _check_language_understanding(config)
    for name, table in config.tables.items():
        _check_table(config, published, ("tables", name), table)
    _check_duplicates(config)
    _check_corpora(config)
    _check_checksums(config)
    _check_trainings(config)
    _check_labels(config, published)


def _check_options(config: Config) -> None:
    """A system's guide must have the options that a corpus overrides."""
    for corpus, entry in config.corpora.items():
        for name, directions in entry.options.items():
            path = ("corpora", corpus, "options", name)
            check_known(path, "system", name, config.systems)
            for direction, overrides in directions.items():
                system = config.systems[name]
                with at(*path, direction):
                    options_from(system.kind, {**system.options, **overrides})


def _check_names(config: Config) -> None:
    """The names of targets, mirrors, and members of groups must exist."""
    for position, target in enumerate(config.targets):
        check_known(("targets", position), "experiment", target, config.named_targets)
    for name in config.mirrors:
        check_known(("mirrors", name), "download", name, DataFiles(config).downloaded)
    for name, group in config.experiments.items():
        for member in group if isinstance(group, list) else ():
            check_known(("experiments", name), "experiment", member, {**config.experiments, **config.tables})
            if isinstance(config.experiments.get(member), list):
                raise Fault(("experiments", name), f"{member!r} is a list itself; name its experiments")


def _check_experiment(config: Config, published: Published, path: tuple, experiment: Experiment) -> None:
    """The corpus, systems and languages of an experiment must exist, and the trees that its tables need."""
    check_known((*path, "corpus"), "corpus", experiment.corpus, config.corpora)
    languages = config.corpora[experiment.corpus].languages
    for system in experiment.systems:
        check_known((*path, "systems"), "system", system, config.systems)
        _check_system(config, path, experiment, system)
    for direction in experiment.directions:
        source, target = sides(direction)
        for language in (source, target):
            check_known((*path, "directions"), "language", language, languages)
        if known_as(target, ["ko"]) and not find_spec("mecab_ko"):
            what = f"sacreBLEU lacks its tokeniser of {target}; pip install sacrebleu[ko]"
            raise Fault((*path, "directions"), what)
    if "parsing" in experiment.tables:
        if not any(config.systems[name].kind.induces for name in experiment.systems):
            raise Fault((*path, "tables"), "no system here induces trees; leave 'parsing' out")
        for source in (sides(direction)[0] for direction in experiment.directions):
            if DataFiles(config).gold_trees(experiment.corpus, "valid", source) is None:
                lacks = f"corpus {experiment.corpus!r} has no `trees` of {source}"
                raise Fault((*path, "tables"), f"{lacks}; give it some, or leave 'parsing' out")
    for peer in experiment.peers:
        check_known((*path, "peers"), "published system", peer, published.systems)


def _check_system(config: Config, path: tuple, experiment: Experiment, system: str) -> None:
    """The corpus must have what the guide reads, and the model the heads and layers that it guides."""
    corpus, row = experiment.corpus, config.systems[system]
    guide = row.kind
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
        if row.templated and not DataFiles(config).parses(corpus, "train", target):
            lacks = f"corpus {corpus!r} has no trees of {target}, leave it out"
            raise Fault(path, f"system {system!r} reads templates of the target; {lacks}")
        if guide.reads and not DataFiles(config).parses(corpus, "train", source):
            what = f"{' and '.join(sorted(guide.reads))} of a parser"
            lacks = f"corpus {corpus!r} has none of {source}, leave it out"
            raise Fault(path, f"system {system!r} reads {what}; {lacks}")
        options = config.options(corpus, direction, system)
        for key, there in (("heads", model.heads), ("layers", model.encoder_layers)):
            if (guided := getattr(options, key, None) or 0) > there:
                what = f"{guided} {key}, the model of corpus {corpus!r} has {there}"
                raise Fault(path, f"system {system!r} guides {what}")


def _check_language_understanding(config: Config) -> None:
    """Benchmarks have weights, which are not made from what they score."""
    for name, entry in config.benchmarks.items():
        path = ("benchmarks", name)
        check_known((*path, "weights"), "weights", entry.weights, config.weights)
        for system, weights in entry.weights_of.items():
            check_known((*path, "weights_of"), "system", system, config.systems)
            check_known((*path, "weights_of", system), "weights", weights, config.weights)
        _check_continued(config, [entry.weights, *entry.weights_of.values()], name)


def _check_continued(config: Config, weights: Iterable[str], benchmark: str) -> None:
    """A benchmark's weights must not be pre-trained on sentences that its systems are scored on."""
    tasks = config.benchmarks[benchmark].tasks
    scored = {
        prefix
        for task, entry in tasks.items()
        for part in (*entry.parts, *entry.test_rows)
        for prefix in DataFiles(config).task_parses(benchmark, task, part)
    }
    for name in weights:
        continued = config.weights[name].continued
        for prefix in continued.parses["train"] if continued else ():
            if os.path.relpath(prefix) in scored:
                what = f"{prefix}: its systems are scored on these sentences, in benchmark {benchmark!r}"
                raise Fault(("weights", name, "continued", "parses"), f"{what}; give those of training sets")


def _check_table(config: Config, published: Published, path: tuple, table: Table) -> None:
    """A table needs rows and columns with numbers in them."""
    if table.benchmark:
        check_known((*path, "benchmark"), "benchmark", table.benchmark, config.benchmarks)
        for task in table.tasks or ():
            check_known((*path, "tasks"), "task", task, config.benchmarks[table.benchmark].tasks)
    for experiment in table.experiments:
        check_known((*path, "experiments"), "experiment", experiment, config.plain_experiments)
    for place, metric in enumerate(table.metrics):
        try:
            if "." in metric:
                module_file(metric)
        except ValueError as error:
            raise Fault((*path, "metrics", place), f"{metric}: {error}") from None
    path, runs = (*path, "systems"), [config.plain_experiments[name].systems for name in table.experiments]
    for system in table.systems:
        check_known(path, "system", system, {**config.systems, **published.systems})
        if runs and system not in {*published.systems}.union(*runs):
            what = f"system {system!r} is in none of the table's experiments, nor in {config.published}"
            raise Fault(path, f"{what}; leave it out")
        if table.benchmark and system in config.systems:
            _check_roberta(config, path, system, table.benchmark)
        if table.benchmark and system in BASELINES:
            raise Fault(path, f"{system!r} is a trivial baseline's name; take another")
    parsed = table.benchmark and config.benchmarks[table.benchmark].generate is None
    if parsed and config.reads_words(table) and TASK_LANGUAGE not in config.corenlp.languages:
        what = f"a system here reads a parser's words, and corenlp.languages has no {TASK_LANGUAGE!r}"
        raise Fault(path, f"{what}; leave it out, or say how to parse")


def _check_roberta(config: Config, path: tuple, name: str, benchmark: str) -> None:
    """A system of a benchmark may read only RoBERTa's tokens and the parses of the tasks.

    RoBERTa must have the layers that it guides; weights of the system's own must continue the benchmark's.
    """
    system, entry = config.systems[name], config.benchmarks[benchmark]
    options, pretrain = system.guide_options, config.weights[entry.weights].pretrain
    unread = "which fine-tuning does not read; leave it out"
    for wrong, words in (
        (not system.fits_roberta, f"cannot be a RoBERTa, which takes {ROBERTAS}; leave it out"),
        (system.mlm_weight == "corpus", "has mlm_weight: corpus; a benchmark has none, give a number"),
        (system.left_pad_source, f"has `left_pad_source`, {unread}"),
        (system.training.model_fields_set, f"has `training`, {unread}"),
        (system.model.model_fields_set, "has `model`, but its weights have their sizes; leave it out"),
    ):
        if wrong:
            raise Fault(path, f"system {name!r} {words}")
    guided = getattr(options, "layers", 0)
    if pretrain and guided > pretrain.model.layers:
        what = f"guides {guided} layers, weights {entry.weights!r} have {pretrain.model.layers}"
        raise Fault(path, f"system {name!r} {what}")
    if name in entry.weights_of:
        continued = config.weights[entry.weights_of[name]].continued
        if continued is None or continued.weights != entry.weights:
            what = f"starts from {entry.weights_of[name]!r}, which does not continue {entry.weights!r}"
            advice = f"leave it out, or give others in benchmarks.{benchmark}.weights_of"
            raise Fault(path, f"system {name!r} {what}; {advice}")


def _check_duplicates(config: Config) -> None:
    """Reject names that two targets, or two folders of results, would have."""

    def named(*sections: str) -> list[tuple[tuple, str]]:
        return [((section, name), name) for section in sections for name in getattr(config, section)]

    _check_taken("weights, a corpus or a benchmark", named("weights", "corpora", "benchmarks"))
    made = [(("experiments", name), f"{name}-parsing") for name in config.experiments]
    made += [(("tables",), name) for name in config.single_tables]
    made += named("experiments", "tables")
    _check_taken("another target, or the table of its trees or of one task,", made)


def _check_taken(what: str, named: Iterable[tuple[tuple, str]]) -> None:
    """Reject a name that an earlier entry has or generates."""
    seen = set()
    for path, name in named:
        if name in seen:
            raise Fault(path, f"{what} has this name; take another")
        seen.add(name)


def _check_corpora(config: Config) -> None:
    """A corpus' own shares of the MLM loss must be of its directions."""
    for name, corpus in config.corpora.items():
        weight = corpus.training.mlm_weight
        for direction in weight if isinstance(weight, dict) and weight != config.training.mlm_weight else ():
            path = ("corpora", name, "training", "mlm_weight", direction)
            check_known(path, "direction", direction, corpus.possible_directions)


def _check_checksums(config: Config) -> None:
    """Reject a checksum of a file that is not downloaded: it would never be compared."""
    for section in ("corpora", "weights", "benchmarks"):
        for name, entry in getattr(config, section).items():
            files = DataFiles(config).origins.get(entry.download if section == "corpora" else name, {})
            for file in entry.sha256:
                check_known((section, name, "sha256", file), "download", file, files)


def _check_trainings(config: Config) -> None:
    """Every training of an experiment needs a share of the MLM loss, and the epochs that make its model."""
    for name, entry in config.plain_experiments.items():
        corpus = ("corpora", entry.corpus, "training")
        weight = config.corpora[entry.corpus].training.mlm_weight
        for system in entry.systems:
            training, row = config.training_of(entry.corpus, system), config.systems[system]
            system_path = ("systems", system, "training")
            if training.kept > training.max_epochs:
                path = system_path if row.training.model_fields_set & {"average", "max_epochs"} else corpus
                what = f"{training.average} epochs to average, but only {training.max_epochs} trained"
                raise Fault((*path, "average"), what)
            if training.checkpoint == "best-bleu" and not training.validate_bleu:
                path = system_path if "checkpoint" in row.training.model_fields_set else corpus
                raise Fault((*path, "checkpoint"), "best-bleu needs a validate_bleu above 0")
            lacking = [one for one in entry.directions if isinstance(weight, dict) and one not in weight]
            if lacking and row.mlm_weight == "corpus":
                what = f"no value for {lacking[0]}, which experiment {name!r} needs"
                raise Fault((*corpus, "mlm_weight"), what)


def _check_labels(config: Config, published: Published) -> None:
    """Rows of a table or figure must have different labels."""
    rows = [
        *((("experiments", n), (*one.systems, *one.peers)) for n, one in config.plain_experiments.items()),
        *((("tables", name), table.systems) for name, table in config.tables.items()),
    ]
    for path, systems in rows:
        seen = {looks(row): "a row that stands there by itself" for row in FIXED_ROWS}
        for system in systems:
            label = " ".join(label_of(config, published, system).split())
            if looks(label) in seen:
                what = f"system {system!r} is called {label!r}, as {seen[looks(label)]} is"
                raise Fault((*path, "systems"), f"{what}; give it another label")
            seen[looks(label)] = repr(system)
