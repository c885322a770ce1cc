"""Trees to look at."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from synmask.cli.options import Arguments, add
from synmask.files import UserError

if TYPE_CHECKING:
    from synmask.config import Config
    from synmask.syntax.parses import Parse
    from synmask.syntax.treebank import Tree


def add_verbs(verbs: argparse._SubParsersAction) -> None:
    option = add(
        verbs,
        "tree",
        _tree,
        "Draw the trees that systems induce for one sentence; in the terminal, or with --output as SVG, PDF.",
        'Example: synmask tree --system grammar-nobpe --system grammar --seed 1 "Wie geht es dir?"',
    )
    option("TEXT", "the sentence, as raw text (or give --number)", type=str, nargs="?")
    option("number", "a sentence of the validation set, from 1, with its gold tree", type=int, default=None)
    option(
        "system", "a system of the configuration; may be given again", type=str, action="append", default=[]
    )
    option("seed", "whose run to take", type=int, default=1)
    option("corpus", "default: that of the first experiment", type=str, default=None)
    option("direction", "default: that of the first experiment on the corpus", type=str, default=None)
    option("config", "configuration file", default=Path("config.yaml"))
    option(
        "model", "a model file to take instead of a system; may be given again", action="append", default=[]
    )
    option("output", "prefix of .svg, .pdf and .csv", default=None)

    option = add(verbs, "tree-figure", _tree_figure, "Draw one sentence's gold tree above the induced ones.")
    _common(option)
    option("distribution", "output of `parse`: names the sentence")
    option("output", "prefix of .svg, .pdf and .csv")

    option = add(
        verbs,
        "tree-page",
        _tree_page,
        "Make a page of 20 sentences, short to long, with gold and induced trees side by side.",
    )
    _common(option)
    option("title", "heads the page", type=str)
    option("output", "the page, .html")


def _common(option) -> None:  # noqa: ANN001
    option("gold", "bracketed gold trees, one a line")
    option("trees", "output of `parse`, one file a system", nargs="+")
    option("labels", "what each of them is called, each something else", nargs="+", type=str)


def _tree(a: Arguments) -> None:
    from synmask.reporting.tree_nodes import sentence_of
    from synmask.reporting.tree_text import draw

    if (a.text is None) == (a.number is None):
        raise UserError('give either a sentence ("Wie geht es dir?") or --number N')
    models, gold = _models(a)
    tree = None
    if a.number is None:
        from synmask.cli.syntax import tokeniser_jars
        from synmask.engine.decode import parse_text
        from synmask.syntax.parses import parse_of

        jars = tokeniser_jars(a.config)
        induced = {label: parse_of(parse_text(m, [a.text], jars=jars)[0]) for label, m in models.items()}
    else:
        parses = {label: model.with_name("trees.jsonl") for label, model in models.items()}
        tree, induced = _numbered(a.number, gold, parses)
    try:
        if a.output is not None:
            from synmask.reporting.tree_figure import trees

            trees(tree, induced, a.output)
        else:
            print(draw(sentence_of(tree, induced), induced))
    except ValueError as error:
        raise UserError(
            f"{', '.join(map(str, models.values()))}: {error}; compare systems of one corpus"
        ) from None


def _models(a: Arguments) -> tuple[dict[str, Path], Path | None]:
    """Label → model file of the runs that are asked for, and the gold trees of their validation set."""
    if bool(a.model) == bool(a.system):
        raise UserError("give either --system (with --seed) or --model")
    if a.model:
        return {str(path.parent): path for path in a.model}, None
    from synmask.config import load, read_yaml

    config = load(read_yaml(a.config), [a.config])
    corpus, direction = _experiment(a, config)
    models = {}
    for system in a.system:
        if system not in config.systems:
            raise UserError(f"{a.config}: no {system!r} among the systems: {', '.join(config.systems)}")
        model = Path(f"results/{corpus}/{direction}/{system}/seed{a.seed}/average.pt")
        if not model.exists():
            raise UserError(f"{model}: no such file; make it with: snakemake {model}")
        label = config.label(system)
        models[system if label in models else label] = model
    gold = config.gold_trees(corpus, "valid", direction.split("-")[0])
    return models, Path(gold) if gold and Path(gold).exists() else None


def _experiment(a: Arguments, config: "Config") -> tuple[str, str]:
    """Corpus and direction: those given, or those of the first experiment that fits."""
    if a.corpus is not None and a.corpus not in config.corpora:
        raise UserError(f"{a.config}: no {a.corpus!r} among the corpora: {', '.join(config.corpora)}")
    for experiment in config.plain_experiments.values():
        if a.corpus in (None, experiment.corpus) and a.direction in (None, *experiment.directions):
            return experiment.corpus, a.direction or experiment.directions[0]
    raise UserError(f"{a.config}: no experiment with this corpus and direction; give --model")


def _by_label(a: Arguments) -> dict[str, Path]:
    """Label → parses; trees of one label would hide each other, as would the gold tree."""
    if len({"gold", *a.labels}) != len(a.labels) + 1 or len(a.labels) != len(a.trees):
        raise UserError(f"--labels {' '.join(a.labels)}: give each of --trees one of its own, and not gold")
    return dict(zip(a.labels, a.trees, strict=True))


def _read(gold: Path | None, parses: dict[str, Path]) -> tuple["list[Tree] | None", dict[str, "list[Parse]"]]:
    """Gold trees, if there are some, and parses of the same sentences."""
    from synmask.syntax.parses import check_words, read_parses
    from synmask.syntax.treebank import read_trees

    trees = list(read_trees(gold)) if gold else None
    induced = {label: list(read_parses(path)) for label, path in parses.items()}
    for label, path in parses.items():
        try:
            if trees is not None:
                check_words(trees, induced[label])
        except UserError as error:
            raise UserError(f"{gold}, {path}: {error}") from None
    return trees, induced


def _numbered(
    number: int, gold: Path | None, parses: dict[str, Path]
) -> tuple["Tree | None", dict[str, "Parse"]]:
    """The gold tree, if there are gold trees, and the parses of the sentence with this number."""
    trees, induced = _read(gold, parses)
    return (
        None if trees is None else _nth(number, trees, gold),
        {label: _nth(number, rows, parses[label]) for label, rows in induced.items()},
    )


def _nth(number: int, values: list, path: Path) -> object:
    if not 1 <= number <= len(values):
        raise UserError(f"{path}: no sentence {number}, only {len(values)}")
    return values[number - 1]


def _tree_figure(a: Arguments) -> None:
    from synmask.files import read_json
    from synmask.reporting.tree_figure import trees

    number = read_json(a.distribution)["sentence"]
    tree, induced = _numbered(number, a.gold, _by_label(a))
    trees(tree, induced, a.output)


def _tree_page(a: Arguments) -> None:
    from synmask.files import writing
    from synmask.reporting.tree_page import page, section

    gold, induced = _read(a.gold, _by_label(a))
    with writing(a.output) as handle:
        handle.write(page(a.title, section(gold, induced)))
