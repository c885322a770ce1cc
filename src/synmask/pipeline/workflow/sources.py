"""The source files behind a step: a change of code in one of them runs the step again.

A step is the function of its verb (`verbs.VERBS`). Its sources are this function's module and all that this
imports in turn, but for modules that cannot change a result (`IGNORED`), of which only some functions count
(`COUNTED`). Parts that only some jobs use count for those jobs alone: some imports (`OPTIONAL`), and modules
that are loaded by name (`BY_NAME`).

Where an import stands has no effect. tests/workflow/test_sources.py runs the steps and records the functions
that they enter: each must stand in a source, or in a module of `IGNORED`. It edits functions of these that
do not count, and a step's result must stay.
"""

import ast
import hashlib
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from synmask.pipeline.disk import sha256
from synmask.pipeline.errors import UserError
from synmask.pipeline.verbs import VERBS, module_of
from synmask.pipeline.workflow import normalise
from synmask.pipeline.workflow.records import note

ROOT = Path("src/synmask")  # from the Snakefile's folder
# Packages and modules that cannot change a result, including all modules below them, and the reason. From
# modules that can, they import only names and types.
IGNORED = {
    "synmask.__main__": "starts the command line",
    "synmask.checks": "refuses wrong arguments",
    "synmask.pipeline.cli": "the command line, and verbs for people",
    "synmask.pipeline.config": "checks settings, which reach a job whole, with defaults, as its parameters",
    "synmask.pipeline.disk": "passes on bytes as they are; tests/test_files.py has them",
    "synmask.pipeline.errors": "words errors",
    "synmask.pipeline.gpus": "reserves devices",
    "synmask.pipeline.arguments": "reads the words of a command",
    "synmask.pipeline.record": "refuses files of another run, and records the run of new ones",
    "synmask.pipeline.paths": "names files, which are inputs and outputs of rules",
    "synmask.pipeline.provenance": "versions and commits: notes on a result",
    "synmask.pipeline.runs": "lists runs, which reach a job as parameters",
    "synmask.pipeline.stamps": "names the folders of checkpoints",
    "synmask.pipeline.training.board": "shows a training in TensorBoard",
    "synmask.pipeline.training.compat_fairseq": "makes fairseq importable; what it computes stays",
    "synmask.pipeline.training.lock": "excludes other processes",
    "synmask.pipeline.training.progress": "shows a training in its log",
    "synmask.pipeline.training.stopping": "ends a training between updates; it resumes with the same result",
    "synmask.pipeline.training.torch_files": "passes on tensors as they are",
    "synmask.pipeline.training.workers": "starts processes, and ends them",
    "synmask.pipeline.verbs": "names verbs",
    "synmask.pipeline.workflow": "says which jobs run",
}
# Module of `IGNORED` → its functions and values that do change results; they count where a source imports
# anything of the module.
COUNTED = {
    "synmask.checks": {"transformed"},
    "synmask.pipeline.arguments": {"labels_of", "together"},
    "synmask.pipeline.config.base": {
        *("Parsing", "Section.plain", "Split", "TESTED", "Translation", "Validation", "arrow"),
        *("is_measured", "sides"),
    },
    "synmask.pipeline.config.guides": {"options_from"},
    "synmask.pipeline.config.published": {
        *("Number.mean", "Published.cite", "Published.columns", "Published.notes", "Published.numbers"),
        "Result.rows",
    },
    "synmask.pipeline.config.schema": {"TASK_LANGUAGE", "flat"},
    "synmask.pipeline.config.sections": {
        *("Guidance.guide_options", "Guidance.kind", "Guidance.mixes", "Guidance.templated"),
        *("RunSettings.plain", "SPLITS", "Tokens.tokeniser_of"),
    },
    "synmask.pipeline.gpus": {"workers"},
    "synmask.pipeline.runs": {"AVERAGE", "expected_runs"},
    "synmask.pipeline.stamps": {"Training.epochs"},
    "synmask.pipeline.training.torch_files": {"load", "read", "save"},
}
PACKAGES = frozenset({"synmask", "synmask.pipeline"})  # cannot either, but modules below them can
# Importing module → those of its imports that count only for jobs that use them (`Jobs.optional_modules`).
OPTIONAL = {
    "synmask.pipeline.text.tokenise": {
        "synmask.pipeline.text.segment",  # tokenisers that are external programs
    },
    "synmask.pipeline.translation.dataset": {
        "synmask.pipeline.text.labels",  # for guides that read BPE labels
        "synmask.pipeline.training.losses",  # masks, for systems that mask
    },
    "synmask.pipeline.translation.decode": {
        "synmask.pipeline.syntax.annotations",  # for guides that read a parser's heads or distances
        "synmask.pipeline.translation.st_nmt",  # for systems that read templates of the target
    },
    "synmask.pipeline.translation.task": {
        "synmask.pipeline.syntax.annotations",
        "synmask.pipeline.translation.st_nmt",
    },
    "synmask.pipeline.translation.train": {
        "synmask.pipeline.translation.valid_bleu",  # for trainings that validate by BLEU
    },
}
# Modules that load others by name → the package of these, which count for the jobs that use them.
BY_NAME = {
    "synmask.guides": "synmask.guides",
    "synmask.options": "synmask.options",
    "synmask.pipeline.corpora.prepare": "synmask.pipeline.corpora",
    "synmask.pipeline.evaluation.measure": "",  # a user's: `digest_of_file`
}
Modules = frozenset[str]  # the optional modules that a job uses
DATA = re.compile(r"""["']([\w-]+\.(?:cpp|java|html|css|js|txt))["']""")  # files that a module names


@cache
def sources(verb: str, optional: Modules = frozenset()) -> tuple[str, ...]:
    """Paths of the source files that a step's results depend on.

    Args:
        optional: modules that the job uses; they count if the step reaches what imports or loads them.

    Raises:
        ValueError: there is no verb or module of this name.
    """
    found: set[str] = set()
    left = {module_of(verb)}
    while left:
        found |= left
        left = {module for one in left for module in _loaded(one, optional)} - found
    return tuple(sorted({path for module in found for path in _files(module)}))


@cache
def digest(verb: str, optional: Modules = frozenset()) -> str:
    """A checksum of the names of `sources(verb, optional)` and of what they compute."""
    return _digest({path: checksum(path) for path in sources(verb, optional)})


def digest_of_file(path: str) -> str:
    """The same of a file of the user's, whose imports do not count."""
    return _digest({path: checksum(path)})


@cache  # each file is a source of many steps
def checksum(path: str) -> str:
    """A checksum of what a source file computes (workflow/normalise.py)."""
    return hashlib.sha256(_normal_form(Path(path)).encode()).hexdigest()


def contents(paths: Iterable[str]) -> str:
    """A checksum of files, and of the files in folders, that exist; empty if there are none."""
    files = [
        file for path in paths for file in sorted(Path(path).rglob("*")) or [Path(path)] if file.is_file()
    ]
    sums = {str(file): _unchanged(file, file.stat().st_size, file.stat().st_mtime_ns) for file in files}
    return _digest(sums) if sums else ""


def _digest(sums: dict[str, str]) -> str:
    lines = "\n".join(f"{file} {one}" for file, one in sums.items())
    return note(hashlib.sha256(lines.encode()).hexdigest()[:16], sums)


@cache
def _unchanged(file: Path, size: int, modified: int) -> str:
    return sha256(file)


def is_ignored(module: str) -> bool:
    """Whether a module cannot change a result."""
    return module in PACKAGES or any(module == one or module.startswith(f"{one}.") for one in IGNORED)


def path_of(module: str) -> Path:
    """The file of a module, or the __init__.py of a package."""
    stem = ROOT.joinpath(*module.split(".")[1:])
    for path in (stem.with_suffix(".py"), stem / "__init__.py"):
        if path.is_file():
            return path
    raise ValueError(f"{module}: no such module in {ROOT}")


def _loaded(module: str, optional: Modules) -> Iterator[str]:
    """The modules that count because this one does."""
    for imported in imports(module):
        counts = imported in COUNTED or not (is_ignored(module) or is_ignored(imported))
        if counts and (imported in optional or imported not in OPTIONAL.get(module, ())):
            yield imported
    if package := BY_NAME.get(module):
        yield from (name for name in optional if name.rpartition(".")[0] == package)


@cache
def _files(module: str) -> tuple[str, ...]:
    """The file of a module and the files that it names, unless they compute nothing."""
    path = path_of(module)
    return tuple(str(one) for one in (path, *_data(path)) if _normal_form(one))


def _normal_form(path: Path) -> str:
    if path.suffix == ".py" and ROOT not in path.parents:  # a user's
        return normalise.normalise_python(ast.parse(path.read_text(encoding="utf-8")), is_ignored)
    if path.suffix == ".py":
        return _read(path)[1]
    return normalise.normalise_text(path.read_text(encoding="utf-8"), path.suffix)


@cache
def _read(path: Path) -> tuple[tuple[str, ...], str]:
    """The modules that a Python file imports, and its normal form."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    module = ".".join((ROOT.name, *path.relative_to(ROOT).with_suffix("").parts))
    if names := COUNTED.get(module):
        tree.body = _only(names, tree.body)
    try:
        imported = (*_imported(tree),)
    except ValueError as error:
        raise UserError(f"{path}, {error}") from None
    return imported, normalise.normalise_python(tree, is_ignored, _verbs_in(module))


def _only(names: Container[str], statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The definitions of these names, and imports of what they use."""
    counted = [node for name, node in definitions(statements) if name in names]
    used = {part.id for node in counted for part in ast.walk(node) if isinstance(part, ast.Name)}
    imports = [node for node in statements if isinstance(node, ast.ImportFrom)]
    for node in imports:
        node.names = [name for name in node.names if name.name in used]
    return [*imports, *counted]


def definitions(statements: Iterable[ast.stmt], outer: str = "") -> Iterator[tuple[str, ast.stmt]]:
    """The functions, classes and values that statements define, by their names: "NAME", "CLASS.NAME"."""
    for node in statements:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield f"{outer}{node.name}", node
        if isinstance(node, ast.ClassDef):
            yield from definitions(node.body, f"{outer}{node.name}.")
        if isinstance(node, ast.Assign):
            yield f"{outer}{ast.unparse(node.targets[0])}", node


def _verbs_in(module: str) -> set[str]:
    """The names of the functions in a module that are verbs."""
    places = (place.split(":") for place in VERBS.values())
    return {function for name, function in places if f"synmask.pipeline.{name}" == module}


def _data(path: Path) -> Iterator[Path]:
    """Files beside a module or in its folder `page` that it names, and the files that these name."""
    for name in DATA.findall(path.read_text(encoding="utf-8")):
        for other in (path.with_name(name), path.parent / "page" / name):
            if other.is_file():
                yield from (other, *_data(other))


def imports(module: str) -> tuple[str, ...]:
    """The modules of synmask that a module imports anywhere but for its types, and its package."""
    return module.rpartition(".")[0], *_read(path_of(module))[0]


def _imported(node: ast.AST) -> Iterator[str]:
    """The modules of synmask that import statements below a node name, without those for types.

    Raises:
        ValueError: a form of import that hides which module counts.
    """
    if isinstance(node, ast.Import):
        yield from (name.name for name in node.names if name.name.split(".")[0] == "synmask")
    elif isinstance(node, ast.ImportFrom):
        if node.level:
            raise ValueError(f"line {node.lineno}: a relative import; write `from synmask.… import …`")
        if (node.module or "").split(".")[0] == "synmask":
            for name in node.names:
                module = _module_of(node.module, name.name)
                if module in PACKAGES and name.name != "__version__":
                    raise ValueError(
                        f"line {node.lineno}: import {name.name} from the module where it stands"
                    )
                yield module
    blocks = ("body", "orelse", "handlers", "finalbody", "cases")  # where statements stand
    for block in blocks[1:] if normalise.is_type_checking(node) else blocks:
        for child in getattr(node, block, None) or ():
            if isinstance(child, ast.AST):
                yield from _imported(child)


def _module_of(module: str, name: str) -> str:
    """`module.name` if that is a module, else `module`, which contains `name`."""
    stem = ROOT.joinpath(*module.split(".")[1:], name)
    return f"{module}.{name}" if stem.with_suffix(".py").is_file() or stem.is_dir() else module
