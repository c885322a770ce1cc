"""Checks of this machine against the configuration: the user's files, memory and disk."""

import os
import re
import shutil
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from synmask.pipeline.config.base import LANGUAGE, sides
from synmask.pipeline.config.benchmarks import RobertaSize
from synmask.pipeline.config.faults import Fault
from synmask.pipeline.config.schema import Config
from synmask.pipeline.config.sections import SPLITS, Model, Resources
from synmask.pipeline.languages import known_as
from synmask.pipeline.paths import PAIR, RESULTS, as_regex, filled

BYTES = 4  # per parameter
TRAINED = 4  # values per parameter in training: itself, its gradient, Adam's two moments
RESUME = 3  # of them in a checkpoint to resume from: all but the gradient
RESUMED = 3 * RESUME  # of last.pt, previous.pt and one that is being written: docs/reliability.md

Pair = tuple[str, str]  # a corpus and a direction


def check_machine(config: Config, words: Iterable[str]) -> None:
    """Stop before any job starts if this machine lacks something that the targets need.

    Args:
        words: Snakemake's command line; without a target in it, those of the configuration count.

    Raises:
        Fault: a file or folder of the user's own is missing, or the tokeniser that scores a language, or
            (without `force`) a training does not fit.
    """
    words = list(words)
    targets = [word for word in words if word in config.named_targets]
    pairs = _pairs(config, words, targets)
    if not targets and not pairs:
        targets = list(config.targets)
        pairs = _pairs(config, (), targets)
    names = {config.corpora[corpus].download for corpus, _ in pairs}
    for benchmark in (table.benchmark for target in targets for table in config.benchmark_tables(target)):
        names |= {benchmark, config.benchmarks[benchmark].weights}
        _check_benchmark(config, benchmark)
    if any(config.corpora[corpus].trees == "corenlp" for corpus, _ in pairs):
        names.add("corenlp")
    _check_mirrors(config, names)
    for corpus, direction in pairs:
        _check_texts(config, corpus, direction)
        _check_scorer(corpus, direction)
    if not config.force:
        check_sizes(config, targets)


def _pairs(config: Config, words: Iterable[str], targets: Iterable[str]) -> dict[Pair, None]:
    """Corpora and directions of paths such as results/demo/de-en/…, and of the targets' experiments."""
    pair = as_regex(f"{PAIR}/", source=LANGUAGE, target=LANGUAGE)
    paths = (re.match(pair, word) for word in words)
    pairs = dict.fromkeys(
        (path["corpus"], f"{path['source']}-{path['target']}")
        for path in paths
        if path and path["corpus"] in config.corpora
    )
    for name in (name for target in targets for name in config.members(target)):
        entry = config.plain_experiments[name]
        pairs |= dict.fromkeys((entry.corpus, direction) for direction in entry.directions)
    return pairs


def _check_mirrors(config: Config, names: Iterable[str]) -> None:
    for name in sorted({*config.mirrors} & {*names}):
        folder = config.mirrors[name]
        there = "://" in folder or os.path.isdir(folder)
        if not there and not os.path.exists(f"{config.data_dir}/{name}"):
            raise Fault(("mirrors", name), f"{folder}: no such folder")


def _check_texts(config: Config, corpus: str, direction: str) -> None:
    """The user's own files of a corpus must exist, unless the files made from them do."""
    entry = config.corpora[corpus]
    for split in SPLITS if entry.files and not entry.url else ():
        for language in sides(direction):
            made = filled(f"{PAIR}/text/{split}.{language}", direction, corpus=corpus)
            for path in config.raw_files(corpus, split, language):
                if not os.path.exists(path) and not os.path.exists(made):
                    raise Fault(("corpora", corpus, "files", split), f"{path}: no such file")
    for split in entry.trees if isinstance(entry.trees, dict) else ():
        path = config.gold_trees(corpus, split, sides(direction)[0])
        if not os.path.exists(path):
            raise Fault(("corpora", corpus, "trees", split), f"{path}: no such file")


def _check_scorer(corpus: str, direction: str) -> None:
    """sacreBLEU's tokeniser of the target must be installed; that of Korean is an extra."""
    target = sides(direction)[1]
    if known_as(target, ["ko"]) and not find_spec("mecab_ko"):
        what = f"sacreBLEU lacks its tokeniser of {target}; pip install sacrebleu[ko]"
        raise Fault(("corpora", corpus, "languages"), what)


def _check_benchmark(config: Config, benchmark: str) -> None:
    """The user's own folders and files of a benchmark and its weights must exist."""
    entry = config.benchmarks[benchmark]
    weights, source = ("weights", entry.weights), config.weights[entry.weights]
    own = [
        (("benchmarks", benchmark, "folder"), entry.folder),
        ((*weights, "huggingface"), source.huggingface),
    ]
    made = (f"{RESULTS}/", f"{config.data_dir}/")  # by the workflow
    for split, paths in source.pretrain.text.items() if source.pretrain else ():
        own += [((*weights, "pretrain", "text", split), path) for path in paths if not path.startswith(made)]
    for key, path in own:
        if path is not None and not os.path.exists(path):
            raise Fault(key, f"{path}: no such file or folder")


def least_parameters(model: Model, source: int, target: int) -> int:
    """Parameters of the Transformer without biases, norms and guide, with vocabularies of these sizes."""
    width, ffn = model.embed_dim, 2 * model.embed_dim * model.ffn_dim
    encoder, decoder = 4 * width**2 + ffn, 8 * width**2 + ffn  # self-attention; and to the source
    return (source + target) * width + model.encoder_layers * encoder + model.decoder_layers * decoder


def least_roberta(model: RobertaSize, vocabulary: int) -> int:
    """Parameters of a RoBERTa without biases, norms and positions."""
    width = model.embed_dim
    return vocabulary * width + model.layers * (4 * width**2 + 2 * width * model.ffn_dim)


def check_sizes(config: Config, targets: Iterable[str]) -> None:
    """Reject trainings of these targets that cannot fit into the memory they request, or onto the disk."""
    for target in targets:
        for experiment in config.members(target):
            check_size(config, experiment)
        for table in config.benchmark_tables(target):
            check_pretraining(config, table.benchmark)


def check_size(config: Config, experiment: str) -> None:
    """Reject an experiment whose trainings cannot fit.

    A vocabulary is assumed to have as many sub-words as there are merge operations (see `translation.plan`).
    """
    asked = config.plain_experiments[experiment]
    entry = config.corpora[asked.corpus]
    models = (config.model_of(asked.corpus, system) for system in asked.systems)
    count = max(least_parameters(model, entry.bpe.merges, entry.bpe.merges) for model in models)
    _check_fits(("corpora", asked.corpus), count, entry.training.kept, entry.resources)


def check_pretraining(config: Config, benchmark: str) -> None:
    """Reject a benchmark whose weights' pre-training cannot fit; see `check_size`."""
    weights = config.benchmarks[benchmark].weights
    if own := config.weights[weights].pretrain:
        count = least_roberta(own.model, own.merges)
        _check_fits(("weights", weights, "pretrain"), count, 1, own.resources)


def free_bytes(results: Path) -> int:
    """The space left on the disk of a folder that need not exist yet."""
    return shutil.disk_usage(next(p for p in (results, *results.resolve().parents) if p.exists())).free


def _check_fits(path: tuple, count: int, kept: int, resources: Resources) -> None:
    """Whether `count` parameters can be trained in this memory, and the models of `kept` epochs stored."""
    memory, disk = BYTES * TRAINED * count, BYTES * count * (kept + RESUMED)
    free = free_bytes(Path("results"))
    key = "model, merges" if path[0] == "weights" else "model, bpe.merges"
    what = f"a model of {count:.3g} parameters or more ({key}) takes at least"
    advice = "make it smaller, or override with --config force=true"
    if memory > resources.mem_mb * 1e6:
        memory_asked = f"resources.mem_mb asks for {resources.mem_mb / 1000:,g} GB"
        raise Fault(path, f"{what} {memory / 1e9:,.3g} GB of memory, {memory_asked}; {advice}")
    if disk > free:
        where = f"results/ has {free / 1e9:,.3g} GB left"
        raise Fault(path, f"{what} {disk / 1e9:,.3g} GB of disk in training, {where}; {advice}")
