"""Checks of language understanding across sections: weights, benchmarks and their tables."""

from synmask.pipeline.config.faults import Fault, check_known
from synmask.pipeline.config.guides import ROBERTAS
from synmask.pipeline.config.schema import PARSED, Config
from synmask.pipeline.config.sections import Table
from synmask.pipeline.config.table_plan import BASELINES
from synmask.pipeline.tasks import GENERATED, GLUE


def check_weights(config: Config) -> None:
    """Weights that are trained further must not start from weights that are, so there is no circle."""
    for name, entry in config.weights.items():
        if entry.continued is not None:
            path, other = ("weights", name, "continued", "weights"), entry.continued.weights
            check_known(path, "weights", other, config.weights)
            if config.weights[other].continued is not None:
                raise Fault(path, f"weights {other!r} are `continued` themselves; start from those before")


def check_benchmarks(config: Config) -> None:
    """Benchmarks have weights, and tasks that are known and come from somewhere."""
    for name, entry in config.benchmarks.items():
        path = ("benchmarks", name)
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


def check_benchmark_table(config: Config, path: tuple, table: Table) -> None:
    """A benchmark's table has its tasks, and systems that can be fine-tuned from its weights."""
    check_known((*path, "benchmark"), "benchmark", table.benchmark, config.benchmarks)
    benchmark = config.benchmarks[table.benchmark]
    for task in table.tasks or ():
        check_known((*path, "tasks"), "task", task, benchmark.tasks)
    path = (*path, "systems")
    for system in table.systems:
        if system in config.systems:
            _check_roberta(config, path, system, table.benchmark)
        if system in BASELINES:
            raise Fault(path, f"{system!r} is a trivial baseline's name; take another")
    if config.reads_words(table) and benchmark.generate is None and PARSED not in config.corenlp.languages:
        what = f"a system here reads a parser's words, and corenlp.languages has no {PARSED!r}"
        raise Fault(path, f"{what}; leave it out, or say how to parse")


def _check_roberta(config: Config, path: tuple, name: str, benchmark: str) -> None:
    """A system of a benchmark needs no more than RoBERTa's own tokens, or the parses of its tasks.

    RoBERTa must have the layers that it guides, and weights of its own the vocabulary of the benchmark's.
    """
    system, entry = config.systems[name], config.benchmarks[benchmark]
    options, pretrain = system.guide_options, config.weights[entry.weights].pretrain
    unread = "which fine-tuning does not read; leave it out"
    for wrong, words in (
        (not options.fits_roberta, f"cannot be a RoBERTa, which takes {ROBERTAS}; leave it out"),
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
