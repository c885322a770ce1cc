"""The source files behind a step: a change in one of them runs the step again.

A step is the function of its verb (`verbs.VERBS`). Its source files are this function's module, and all that
this imports in turn, wherever an import stands. That is coarse: some of these files cannot change a result.
But no result is ever stale.

Modules that are loaded by name, such as guides, count for the jobs that load them (`chosen`).
"""

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from synmask.pipeline.files import sha256
from synmask.pipeline.verbs import module_of

ROOT = Path("src/synmask")  # from the Snakefile's folder
# These cannot change a result: they start the command, lock a GPU or a folder, print progress or versions.
PLUMBING = frozenset(
    {
        "synmask",
        "synmask.__main__",
        "synmask.pipeline",
        "synmask.pipeline.gpus",
        "synmask.pipeline.provenance",
        "synmask.pipeline.training.lock",
        "synmask.pipeline.training.progress",
        "synmask.pipeline.verbs",
    }
)
Chosen = frozenset[tuple[str, str]]  # a module that loads others by name, and one that it loads
DATA = re.compile(r"""["']([\w-]+\.(?:cpp|java|html|css|js|txt))["']""")  # files that a module names


@cache
def sources(verb: str, chosen: Chosen = frozenset()) -> tuple[str, ...]:
    """Paths of the source files that a step's results depend on.

    Args:
        chosen: modules that are loaded by name here; they count if the step loads those that load them.

    Raises:
        ValueError: there is no verb or module of this name.
    """
    found: set[str] = set()
    left = {module_of(verb)}
    while left:
        found |= left
        loaded = {module for one in left for module in imports(one)}
        loaded |= {module for loader, module in chosen if loader in left}
        left = loaded - found - PLUMBING
    return tuple(sorted({path for module in found for path in _files(module)}))


@cache
def digest(verb: str, chosen: Chosen = frozenset()) -> str:
    """A checksum of the names and the content of `sources(verb, chosen)`."""
    lines = "\n".join(f"{path} {checksum(path)}" for path in sources(verb, chosen))
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


checksum = cache(sha256)  # each file is a source of many steps


def contents(paths: Iterable[str]) -> str:
    """A checksum of files, and of the files in folders, that exist; empty if there are none."""
    files = [
        file for path in paths for file in sorted(Path(path).rglob("*")) or [Path(path)] if file.is_file()
    ]
    sums = (_unchanged(file, file.stat().st_size, file.stat().st_mtime_ns) for file in files)
    lines = "\n".join(f"{file} {one}" for file, one in zip(files, sums, strict=True))
    return hashlib.sha256(lines.encode()).hexdigest()[:16] if lines else ""


@cache
def _unchanged(file: Path, size: int, modified: int) -> str:
    return sha256(file)


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
def imports(module: str) -> tuple[str, ...]:
    """The modules of synmask that a module imports anywhere but for its types, and its package."""
    tree = ast.parse(path_of(module).read_text(encoding="utf-8"))
    return (module.rpartition(".")[0], *_imported(tree))


def _imported(node: ast.AST) -> Iterator[str]:
    """The modules of synmask that import statements below a node name, without those for types."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return
    if isinstance(node, ast.Import):
        yield from (name.name for name in node.names if name.name.split(".")[0] == "synmask")
    elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "synmask":
        for name in node.names:
            yield _module_of(node.module, name.name)
    for block in ("body", "orelse", "handlers", "finalbody", "cases"):  # where statements stand
        for child in getattr(node, block, None) or ():
            if isinstance(child, ast.AST):
                yield from _imported(child)


def _module_of(module: str, name: str) -> str:
    """`module.name` if that is a module, else `module`, which contains `name`."""
    stem = ROOT.joinpath(*module.split(".")[1:], name)
    return f"{module}.{name}" if stem.with_suffix(".py").is_file() or stem.is_dir() else module
