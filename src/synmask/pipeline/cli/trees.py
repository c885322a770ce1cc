"""The verb that draws the trees of one sentence."""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from synmask.pipeline.arguments import CountOption
from synmask.pipeline.config.data_files import DataFiles
from synmask.pipeline.config.loading import check_named, load_project, tokeniser_jars
from synmask.pipeline.config.schema import Config
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import writing
from synmask.pipeline.languages import split_direction
from synmask.pipeline.paths import RUN, fill
from synmask.pipeline.record import check_part
from synmask.pipeline.reporting.tree_nodes import numbered, sentence_of
from synmask.pipeline.reporting.tree_page import figure
from synmask.pipeline.reporting.tree_text import draw
from synmask.pipeline.syntax.parses import Parse
from synmask.pipeline.syntax.tree import count_ties, slots_of

if TYPE_CHECKING:
    from synmask.pipeline.translation.raw_text import Jars

EACH = Parameter(consume_multiple=False)  # the option is repeated for each value, so that TEXT may follow


def tree(
    text: str | None = None,
    *,
    number: CountOption | None = None,
    system: Annotated[tuple[str, ...], EACH] = (),
    seed: CountOption | None = None,
    corpus: str | None = None,
    direction: str | None = None,
    configfile: Annotated[tuple[Path, ...], EACH] = (),
    model: Annotated[tuple[Path, ...], EACH] = (),
    output: Path | None = None,
) -> None:
    """Draw the trees that systems induce for one sentence, in the terminal or as a figure (--output).

    For example: `synmask tree --system grammar-nobpe --system grammar --seed 1 "Wie geht es dir?"`; the third
    sentence of the validation set, with its gold tree: `synmask tree --system grammar --number 3`; of a model
    file, as a figure: `synmask tree --model average.pt --output tree.svg "Wie geht es dir?"`

    Args:
        text: The sentence, as raw text (or give --number).
        number: A sentence of the validation set of --system, from 1, with its gold tree.
        system: A system of the configuration; may be repeated.
        seed: The seed of the run; default: 1.
        corpus: Default: the corpus of the first experiment, of those in the direction that is given.
        direction: Default: the first direction of the first experiment on the corpus.
        configfile: A file of your own, which overrides config.yaml; may be repeated.
        model: A model file to use instead of a system, or `demo` for the one that is shipped; may be
            repeated.
        output: The figure, .svg.
    """
    if (text is None) == (number is None):
        raise UserError('give either a sentence ("Wie geht es dir?") or --number N')
    if text and os.path.isfile(text):
        raise UserError(f"{text}: a file; give a sentence, or the file to `synmask parse --input`")
    if output and output.suffix.lower() not in ("", ".svg"):
        raise UserError(f"{output}: the figure is an SVG; give a name that ends in .svg")
    if bool(model) == bool(system):
        raise UserError("give either --system (with --seed) or --model")
    if model and {seed, corpus, direction, number} != {None}:
        options = "--seed, --corpus, --direction and --number"
        raise UserError(f"{options} need --system; leave them out with --model")
    jars = tokeniser_jars(configfile)
    models, gold = {_label(path): path for path in model}, None
    if system:
        models, gold = _find_models(configfile, system, seed or 1, corpus, direction)
    if number is None:
        top, induced = None, _induce_trees(text, models, jars)
    else:
        parses = _validation_parses(models, configfile)
        top, induced = numbered(number, gold, parses)
    try:
        sentence = sentence_of(top, induced)
    except ValueError as error:
        files = ", ".join(map(str, models.values()))
        raise UserError(f"{files}: {error}; compare systems of one corpus") from None
    _report_ties(induced)
    if output is None:
        print(draw(sentence, induced))
        return
    with writing(output) as handle:
        handle.write(figure(sentence, induced))


def _induce_trees(text: str, models: Mapping[str, Path], jars: "Jars") -> dict[str, Parse]:
    """Label → the tree that a model induces for raw text."""
    from synmask.pipeline.translation.parse import parse_text  # imported here: torch takes seconds

    lines = [as_utf8(text)]
    return {label: Parse(**parse_text(path, lines, jars=jars)[0]) for label, path in models.items()}


def _validation_parses(models: Mapping[str, Path], configfiles: Sequence[Path]) -> dict[str, Path]:
    """Label → the trees of the validation set, of a run.

    Raises:
        UserError: they do not exist, or are of another run.
    """
    parses = {label: path.with_name("trees.jsonl") for label, path in models.items()}
    for path in parses.values():
        if not path.exists():
            command = _snakemake_command(path, configfiles)
            raise UserError(f"{path}: no such file; make it with: {command}")
        check_part(path)
    return parses


def _report_ties(induced: Mapping[str, Parse]) -> None:
    """Say on stderr how many splits of each tree only the rule for equal distances decides."""
    for label, parse in induced.items():
        if tied := count_ties(slots_of([parse.distances])):
            message = f"{tied} of {len(parse.distances)} splits are ties, decided for the first"
            print(f"{label}: {message}", file=sys.stderr)


def _label(model: Path) -> str:
    """The run's folder, or the file if that says more."""
    return str(model.parent if model.name == "average.pt" and model.parent.name else model)


def as_utf8(text: str) -> str:
    """A command-line argument decoded as UTF-8, like files, in any locale."""
    try:
        return os.fsencode(text).decode("utf-8")
    except UnicodeError:
        if text.isprintable():  # no stray surrogates: the terminal uses the locale's encoding
            return text
        raise UserError("the sentence is not UTF-8; set your terminal to it") from None


def _find_models(
    configfiles: Sequence[Path], systems: Sequence[str], seed: int, corpus: str | None, direction: str | None
) -> tuple[dict[str, Path], Path | None]:
    """Label → model file of the requested runs, and the gold trees of their validation set."""
    config, _, files = load_project(configfiles)
    path = files[-1]
    corpus, direction = _find_experiment(path, config, corpus, direction)
    models = {}
    for system in systems:
        check_named(config, path, "systems", system)
        model = Path(fill(RUN / "average.pt", direction, corpus=corpus, system=system, seed=seed))
        if not model.exists():
            raise UserError(f"{model}: no such file; make it with: {_snakemake_command(model, configfiles)}")
        label = config.label(system)
        models[system if label in models else label] = model
    gold = DataFiles(config).gold_trees(corpus, split_direction(direction)[0])
    return models, Path(gold) if gold and Path(gold).exists() else None


def _snakemake_command(path: Path, files: Sequence[Path]) -> str:
    """The command that makes a file."""
    return shlex.join(["snakemake", str(path), *(["--configfile", *map(str, files)] if files else [])])


def _find_experiment(
    path: Path, config: Config, corpus: str | None, direction: str | None
) -> tuple[str, str]:
    """Corpus and direction: as given, or from the first experiment that fits."""
    if corpus is not None:
        check_named(config, path, "corpora", corpus)
    for experiment in config.plain_experiments.values():
        if corpus in (None, experiment.corpus) and direction in (None, *experiment.directions):
            return experiment.corpus, direction or experiment.directions[0]
    raise UserError(f"{path}: no experiment with this corpus and direction; give --model")
