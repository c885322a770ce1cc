"""The source files behind a step, read from imports: a change in one of them runs the step again.

A step is the function in `synmask.pipeline.cli` with its verb's name. Its source files are the modules that this
function imports, and the modules that Python loads with these. Imports inside other functions do not count:
they are choices made while the step runs, and callers that know the choice name the module (`chosen`).
"""

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from synmask.pipeline.files import sha256

ROOT = Path("src/synmask")  # from the Snakefile's folder
# Modules (with submodules) that decide how a step runs or fails, but not what it makes.
PLUMBING = frozenset(
    {
        "synmask",  # only the version
        "synmask.pipeline.cli",  # command lines: they are part of the rule
        "synmask.pipeline.config",  # settings: a rule's parameters include those that it depends on
        "synmask.pipeline.files",  # writes whole files or none; errors
        "synmask.pipeline.gpus",  # reserves GPUs
        "synmask.kernels",  # loads C++ operators, if they were built
        "synmask.pipeline.reporting.page_plan",  # types of command line arguments
        "synmask.pipeline.provenance",  # the commit and versions in a score file
        "synmask.pipeline.training.lock",  # one training at a time in a folder
        "synmask.pipeline.training.progress",  # lines for logs
        "synmask.pipeline.training.stopping",  # signals
    }
)
Chosen = frozenset[tuple[str, str]]  # a module that loads others by name, and one that it loads
DATA = re.compile(r"""["']([\w-]+\.(?:cpp|java|html|css|js))["']""")  # files that a module names


@cache
def sources(verb: str, chosen: Chosen = frozenset()) -> tuple[str, ...]:
    """Paths of the source files that a step's results depend on.

    Args:
        chosen: modules that are loaded by name here; they count if the step loads those that load them.

    Raises:
        ValueError: there is no verb or module of this name.
    """
    found: set[str] = set()
    left = {*_imports_of_verb(verb)}
    while left:
        found |= left
        loaded = {module for one in left for module in loaded_with(one)}
        loaded |= {module for loader, module in chosen if loader in left}
        left = {module for module in loaded - found if not _is_plumbing(module)}
    return tuple(sorted({path for module in found if not _is_plumbing(module) for path in _files(module)}))


@cache
def digest(verb: str, chosen: Chosen = frozenset()) -> str:
    """A checksum of the names and the content of `sources(verb, chosen)`."""
    lines = "\n".join(f"{path} {checksum(path)}" for path in sources(verb, chosen))
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


checksum = cache(sha256)  # each file is a source of many steps


def _is_plumbing(module: str) -> bool:
    if module == "synmask.pipeline.config.published":  # published numbers: data of tables, not settings
        return False
    return module in PLUMBING or any(f"{module}.".startswith(f"{name}.") for name in PLUMBING - {"synmask"})


def path_of(module: str) -> Path:
    """The file of a module, or the __init__.py of a package."""
    stem = ROOT.joinpath(*module.split(".")[1:])
    for path in (stem.with_suffix(".py"), stem / "__init__.py"):
        if path.is_file():
            return path
    raise ValueError(f"{module}: no such module in {ROOT}")


@cache
def _files(module: str) -> tuple[str, ...]:
    """The file of a module and the files that it names, unless they are empty."""
    path = path_of(module)
    return tuple(str(one) for one in (path, *_data(path)) if one.stat().st_size)


def _data(path: Path) -> Iterator[Path]:
    """Files beside a module or in its folder `page` that it names, and the files that these name."""
    for name in DATA.findall(path.read_text(encoding="utf-8")):
        for other in (path.with_name(name), path.parent / "page" / name):
            if other.is_file():
                yield from (other, *_data(other))


@cache
def loaded_with(module: str) -> tuple[str, ...]:
    """The modules that Python loads with a module: its package, and imports outside of functions."""
    tree = ast.parse(path_of(module).read_text(encoding="utf-8"))
    package = module.rpartition(".")[0]
    return (*([package] if package else []), *_imported(_outside_functions(tree)))


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) or _for_types(child):
            continue
        yield child
        yield from _outside_functions(child)


def _for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The modules of synmask that import statements name."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.split(".")[0] == "synmask")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "synmask":
            for name in node.names:
                yield _module_of(node.module, name.name)


def _module_of(module: str, name: str) -> str:
    """`module.name` if that is a module, else `module`, which contains `name`."""
    stem = ROOT.joinpath(*module.split(".")[1:], name)
    return f"{module}.{name}" if stem.with_suffix(".py").is_file() or stem.is_dir() else module


@cache
def _imports_of_verb(verb: str) -> frozenset[str]:
    """The imports of a verb's function and of the functions of its file that it calls."""
    name = verb.replace("-", "_")
    for path in sorted((ROOT / "cli").glob("*.py")):
        functions = _functions(path)
        found = [name] if name in functions else []
        for function in found:  # the list grows
            found += [other for other in _called(functions[function]) & {*functions} if other not in found]
        if found:
            return frozenset(_imported(node for each in found for node in ast.walk(functions[each])))
    raise ValueError(f"{verb}: no function of this name in {ROOT}/cli")


@cache
def _functions(path: Path) -> dict[str, ast.FunctionDef]:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def _called(function: ast.FunctionDef) -> set[str]:
    """The names that a function reads from its file: not its own variables or imports."""
    read, own = set(), set()
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else own).add(node.id)
        elif isinstance(node, ast.arg):
            own.add(node.arg)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            own |= {name.asname or name.name for name in node.names}
    return read - own
