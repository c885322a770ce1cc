"""Every name that an entry of the configuration mentions must exist, and what it names must fit."""

from pydantic import ValidationError

from synmask.config.checks import RESULTS
from synmask.config.faults import Fault, check_known, first_fault
from synmask.config.guides import GUIDES
from synmask.config.published import Published
from synmask.config.schema import PARSED, Config
from synmask.config.sections import Experiment, Model
from synmask.corpora.tasks import GENERATED, GLUE


def check_options(config: Config) -> None:
    """Every system's guide must exist and have its options, and those that a corpus lays over them."""
    for name, system in config.systems.items():
        check_known(("systems", name, "guide"), "guide", system.guide, GUIDES)
    for corpus, entry in config.corpora.items():
        for name in entry.options:
            check_known(("corpora", corpus, "options", name), "system", name, config.systems)
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


def check_names(config: Config) -> None:
    """The names of targets, mirrors, experiments and what these run must exist."""
    for position, target in enumerate(config.targets):
        check_known(("targets", position), "experiment", target, config.named_targets)
    for name in config.mirrors:
        check_known(("mirrors", name), "download", name, config.downloaded | {"corenlp"})
    for name, experiment in config.experiments.items():
        path = ("experiments", name)
        if isinstance(experiment, list):
            for member in experiment:
                check_known(path, "experiment", member, {**config.experiments, **config.tables})
                if isinstance(config.experiments.get(member), list):
                    raise Fault(path, f"{member!r} is a list itself; name its experiments")
        else:
            _check_experiment(config, path, experiment)


def _check_experiment(config: Config, path: tuple, experiment: Experiment) -> None:
    """The corpus, systems and languages of an experiment must exist, and the trees that its tables need."""
    check_known((*path, "corpus"), "corpus", experiment.corpus, config.corpora)
    languages = config.corpora[experiment.corpus].languages
    for system in experiment.systems:
        check_known((*path, "systems"), "system", system, config.systems)
        _check_system(config, path, experiment, system)
    for direction in experiment.directions:
        source, target = direction.split("-")
        check_known((*path, "directions"), "language", source, languages)
        check_known((*path, "directions"), "language", target, languages)
        if source == target:
            raise Fault((*path, "directions"), f"from {source} to {target}: give two languages")
    if "parsing" in experiment.tables:
        if not any(config.systems[name].kind.induces for name in experiment.systems):
            raise Fault((*path, "tables"), "no system here induces trees; leave 'parsing' out")
        for source in (direction.split("-")[0] for direction in experiment.directions):
            if config.gold_trees(experiment.corpus, "valid", source) is None:
                lacks = f"corpus {experiment.corpus!r} has no `trees` of {source}"
                raise Fault((*path, "tables"), f"{lacks}; give it some, or leave 'parsing' out")


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


def check_tables(config: Config, published: Published) -> None:
    """Tables have names of their own, and rows and columns that something fills."""
    for name, entry in config.plain_experiments.items():
        for peer in entry.peers:
            path = ("experiments", name, "peers")
            check_known(path, "published system", peer, published.systems)
            if peer in entry.systems:
                raise Fault(path, f"{peer!r} is among the systems; leave it out of one of them")
    taken = {*config.experiments, *(f"{name}-parsing" for name in config.experiments)}
    for name, table in config.tables.items():
        path = ("tables", name)
        if name in taken:
            raise Fault(path, "an experiment has this name, or its table of trees; take another")
        for experiment in table.experiments:
            check_known((*path, "experiments"), "experiment", experiment, config.plain_experiments)
        run = {system for name in table.experiments for system in config.plain_experiments[name].systems}
        for system in table.systems:
            check_known((*path, "systems"), "system", system, {**config.systems, **published.systems})
            if table.experiments and system not in {*run, *published.systems}:
                what = f"system {system!r} is in none of the table's experiments, nor in {config.published}"
                raise Fault((*path, "systems"), f"{what}; leave it out")
        if table.benchmark:
            check_known((*path, "benchmark"), "benchmark", table.benchmark, config.benchmarks)
            for task in table.tasks or ():
                check_known((*path, "tasks"), "task", task, config.benchmarks[table.benchmark].tasks)
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


def check_weights(config: Config) -> None:
    """Weights that are trained further must not start from weights that are, so there is no circle."""
    for name, entry in config.weights.items():
        if entry.continued is not None:
            path, other = ("weights", name, "continued", "weights"), entry.continued.weights
            check_known(path, "weights", other, config.weights)
            if config.weights[other].continued is not None:
                raise Fault(path, f"weights {other!r} are `continued` themselves; start from those before")


def check_benchmarks(config: Config) -> None:
    """Benchmarks have names of their own, weights, and tasks that are known and come from somewhere."""
    for name, entry in config.benchmarks.items():
        path = ("benchmarks", name)
        if name in {*config.corpora, *config.weights, *RESULTS}:
            raise Fault(path, "a corpus, weights or a folder of results has this name; take another")
        check_known((*path, "weights"), "weights", entry.weights, config.weights)
        for system, weights in entry.weights_of.items():
            check_known((*path, "weights_of"), "system", system, config.systems)
            check_known((*path, "weights_of", system), "weights", weights, config.weights)
        columns: dict[str, str] = {}
        for task, values in entry.tasks.items():
            known = GLUE if entry.generate is None else GENERATED
            check_known((*path, "tasks", task), "task", task, known)
            if known is GLUE and entry.folder is None and not values.urls:
                raise Fault((*path, "tasks", task), "give `urls`, or the benchmark's `folder`")
            if "train" not in values.rows:
                raise Fault((*path, "tasks", task, "rows"), "no number of rows for train")
            if (other := columns.setdefault(values.column, task)) != task:
                what = f"{values.column!r} is that of {other!r}; give it its own"
                raise Fault((*path, "tasks", task, "column"), what)
