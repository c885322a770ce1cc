"""The source files behind a step: a change of code in one of them runs the step again.

A step's digest is the code of the modules that its verb imports (`verbs.VERBS`), and of what these import in
turn, without those in `normalise.IGNORED`, which only check, print or plan. Some imports (`OPTIONAL`), and
modules that are loaded by name (`BY_NAME`), count for the jobs that use them.

Where an import stands has no effect. tests/workflow/test_sources.py runs the steps and records the functions
that they enter: each must stand in a source, or in a module of `IGNORED`. It edits those of `IGNORED`, and a
step's result must stay.

To say which files have changed, results/logs/sources keeps the files and checksums behind each digest, in a
JSON file named by it.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from synmask.pipeline.config.base import module_file
from synmask.pipeline.disk import sha256
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import write_json
from synmask.pipeline.paths import LOGS
from synmask.pipeline.verbs import module_of
from synmask.pipeline.workflow.normalise import PACKAGES, Import, is_ignored, normalise_python, normalise_text

ROOT = Path("src/synmask")  # from the Snakefile's folder
RECORDS = LOGS / "sources"
DIGITS = 16  # of a digest
_sums: dict[str, Mapping[str, str]] = {}  # digest → file → checksum
_keeping = False  # whether they are written
ANNOTATED = {
    "synmask.pipeline.syntax.annotations",  # for guides that read a parser's heads or distances
    "synmask.pipeline.translation.st_nmt",  # for systems that read templates of the target
}
# Importing module → those of its imports that count only for jobs that use them (`Jobs.optional_modules`).
OPTIONAL = {
    "synmask.pipeline.text.tokenise": {"synmask.pipeline.text.segment"},  # tokenisers that are programs
    "synmask.pipeline.translation.dataset": {
        "synmask.pipeline.text.labels",  # for guides that read BPE labels
        "synmask.pipeline.training.losses",  # masks, for systems that mask
    },
    "synmask.pipeline.translation.decode": ANNOTATED,
    # for corpora with `sentencepiece`:
    "synmask.pipeline.syntax.annotations": {"synmask.pipeline.text.spm"},
    "synmask.pipeline.training.subwords": {"synmask.pipeline.training.sentencepiece"},
    "synmask.pipeline.translation.raw_text": {"synmask.pipeline.text.spm"},
    "synmask.pipeline.translation.task": ANNOTATED,
    "synmask.pipeline.translation.train": {"synmask.pipeline.translation.valid_bleu"},  # validation by BLEU
}
# Modules that load others by name → the package of these, which count for the jobs that use them.
BY_NAME = {
    "synmask.guides": "synmask.guides",
    "synmask.options": "synmask.options",
    "synmask.pipeline.corpora.prepare": "synmask.pipeline.corpora",
    "synmask.pipeline.evaluation.measure": "",  # a user's: `digest_of_function`
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
    modules: set[str] = set()
    left = {module_of(verb)}
    while left:
        modules |= left
        left = {module for one in left for module in _loaded(one, optional)} - modules
    return tuple(sorted({path for module in modules for path in _files(module)}))


@cache
def digest(verb: str, optional: Modules = frozenset()) -> str:
    """A checksum of the names of `sources(verb, optional)` and of what they compute."""
    return _digest({path: checksum(path) for path in sources(verb, optional)})


def digest_of_function(function: str) -> str:
    """The same of the file with a user's function, whose imports do not count; "" for another metric."""
    path = module_file(function) if "." in function else None
    return _digest({path: checksum(path)}) if path else ""


@cache  # each file is a source of many steps
def checksum(path: str) -> str:
    """A checksum of what a source file computes (workflow/normalise.py)."""
    return hashlib.sha256(_read(Path(path))[1].encode()).hexdigest()


def contents(paths: Iterable[str]) -> str:
    """A checksum of files, and of the files in folders, that exist; empty if there are none."""
    files = [
        file for path in paths for file in sorted(Path(path).rglob("*")) or [Path(path)] if file.is_file()
    ]
    sums = {str(file): _unchanged(file, file.stat().st_size, file.stat().st_mtime_ns) for file in files}
    return _digest(sums) if sums else ""


def _digest(sums: Mapping[str, str]) -> str:
    lines = "\n".join(f"{file} {checksum}" for file, checksum in sums.items())
    digest = hashlib.sha256(lines.encode()).hexdigest()[:DIGITS]
    if digest not in _sums:
        _sums[digest] = sums
        if _keeping:
            _keep(digest)
    return digest


def keep_records() -> None:
    """Write the files behind all digests, known ones now and later ones as they come; a plan writes none."""
    global _keeping
    _keeping = True
    for digest in _sums:
        _keep(digest)


def files_behind(digest: str) -> Mapping[str, str] | None:
    """File → checksum behind a digest, of this call or of an earlier one; None: there is no record."""
    if digest in _sums:
        return _sums[digest]
    try:
        return json.loads(Path(RECORDS, f"{digest}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _keep(digest: str) -> None:
    if not (path := Path(RECORDS, f"{digest}.json")).exists():
        write_json(path, dict(_sums[digest]))


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


def _loaded(module: str, optional: Modules) -> Iterator[str]:
    """The modules that count because this one does."""
    unused = OPTIONAL.get(module, set()) - optional
    yield from (name for name in imports(module) if name not in unused and not is_ignored(name))
    if package := BY_NAME.get(module):
        yield from (name for name in optional if name.rpartition(".")[0] == package)


@cache
def _files(module: str) -> tuple[str, ...]:
    """The file of a module and the files that it names, unless they compute nothing."""
    path = path_of(module)
    return tuple(str(file) for file in (path, *_data(path)) if _read(file)[1])


def _data(path: Path) -> Iterator[Path]:
    """Files beside a module or in its folder `page` that it names, and the files that these name."""
    for name in DATA.findall(path.read_text(encoding="utf-8")):
        for file in (path.with_name(name), path.parent / "page" / name):
            if file.is_file():
                yield from (file, *_data(file))


@cache
def _read(path: Path) -> tuple[tuple[str, ...], str]:
    """The modules of synmask that a file imports, if it is ours, and its normal form."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return (), normalise_text(text, path.suffix)
    imported, form = normalise_python(text)
    return tuple(_modules(imported, path) if ROOT in path.parents else ()), form


def imports(module: str) -> tuple[str, ...]:
    """The modules of synmask that a module imports anywhere but for its types, and its package."""
    return module.rpartition(".")[0], *_read(path_of(module))[0]


def _modules(imported: Iterable[Import], path: Path) -> Iterator[str]:
    """The modules of synmask among what a file imports.

    Raises:
        UserError: a form of import that hides which module counts.
    """
    for line, level, package, name in imported:
        if level:
            advice = "a relative import; write `from synmask.… import …`"
            raise UserError(f"{path}, line {line}: {advice}")
        if package.split(".")[0] == "synmask":
            module = f"{package}.{name}" if name and _exists(f"{package}.{name}") else package
            if name and module in PACKAGES and name != "__version__":
                advice = f"import {name} from the module where it stands"
                raise UserError(f"{path}, line {line}: {advice}")
            if module != "synmask" or name:
                yield module


def _exists(module: str) -> bool:
    stem = ROOT.joinpath(*module.split(".")[1:])
    return stem.with_suffix(".py").is_file() or stem.is_dir()
