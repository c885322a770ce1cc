"""The normal form of a source file, of which digests are made: what it computes, without prose and layout.

For Python, that is the syntax tree without docstrings, comments, types of parameters and returned values,
imports of ignored modules, texts of messages, and descriptions of fields; for C++ and Java, all tokens but
comments; for other files, the whole text. Types of functions that take keywords alone, as verbs do, count.
"""

import ast
import re
from functools import cache
from typing import Any, NamedTuple

# Packages and modules that cannot change a result, including all modules below them, and the reason.
IGNORED = {
    "synmask.__main__": "starts the command line",
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
    "synmask.pipeline.training.board": "shows a training in TensorBoard",
    "synmask.pipeline.training.compat_fairseq": "makes fairseq importable; what it computes stays",
    "synmask.pipeline.training.lock": "excludes other processes",
    "synmask.pipeline.training.progress": "shows a training in its log",
    "synmask.pipeline.training.stopping": "ends a training between updates; it resumes with the same result",
    "synmask.pipeline.training.workers": "starts processes, and ends them",
    "synmask.pipeline.verbs": "names verbs",
    "synmask.pipeline.workflow": "says which jobs run",
}
PACKAGES = frozenset({"synmask", "synmask.pipeline"})  # cannot either, but modules below them can
# Names from these stand in annotations; importing them does nothing else.
FOR_TYPES = frozenset({"collections.abc", "typing"})
LEFT_OUT = frozenset({"ctx", "kind", "type_comment", "type_ignores"})  # parts of nodes
# functions that declare fields → where they describe one
DESCRIBED = {"option": slice(1, None), "key": slice(1)}
TOKEN = re.compile(
    r"""(?P<words>//(?:[^\n\\]|\\.)*|/\*.*?\*/|\s+)  # a backslash continues a line
    | \#(?:[^\n\\]|\\.)*\n       # a directive ends with its line
    | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | [\w.]+
    | <<=|>>=|<=>|\.\.\.|->\*|::|\+\+|--|->|<<|>>|[-+*/%&|^=!<>]=|&&|\|\| | .""",
    re.X | re.S,
)


class Import(NamedTuple):
    """A module that a file imports, or a name from it."""

    line: int
    level: int  # of a relative import
    module: str
    name: str = ""


def is_ignored(module: str) -> bool:
    """Whether a module cannot change a result."""
    return module in PACKAGES or any(module == one or module.startswith(f"{one}.") for one in IGNORED)


@cache
def normalise_python(text: str) -> tuple[tuple[Import, ...], str]:
    """The imports of a Python file, but those for types, and its normal form ("": it computes nothing)."""
    normaliser = Normaliser()
    body = normaliser.visit(ast.parse(text)).body
    return tuple(normaliser.imported), repr(_plain(body)) if body else ""


def normalise_text(text: str, suffix: str) -> str:
    """The normal form of a file that is not Python's; `suffix`: the ending of its name."""
    if suffix not in (".cpp", ".java"):
        return text
    return "\n".join(token[0].strip() for token in TOKEN.finditer(text) if not token["words"])


def _plain(node: Any) -> Any:
    """A syntax tree as tuples, the same in all versions of Python that read the same tree."""
    if isinstance(node, ast.AST):
        parts = [(name, _plain(getattr(node, name, None))) for name in node._fields if name not in LEFT_OUT]
        return (type(node).__name__, *(part for part in parts if part[1] not in (None, [])))
    return [*map(_plain, node)] if isinstance(node, list) else node


class Normaliser(ast.NodeTransformer):
    """Drops from a syntax tree what cannot change a result, and lists what it imports."""

    def __init__(self) -> None:
        self.imported: list[Import] = []

    def visit(self, node: ast.AST) -> Any:
        """Go to statements alone: in an expression, nothing is to be dropped."""
        return node if isinstance(node, ast.expr) else super().visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """Drop docstrings, and the text of what is printed on stderr."""
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str | type(...)):
            return None
        return self.generic_visit(WithoutText().visit(node) if _is_printed_note(node.value) else node)

    def visit_Pass(self, node: ast.Pass) -> None:
        """Drop it: it does as little as a docstring."""

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return self.generic_visit(WithoutText().visit(node))

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        """Drop what is for types alone, which never runs."""
        for_types = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        node.body = [] if for_types else node.body
        node = self.generic_visit(node)
        return node.orelse if for_types else node

    def visit_Import(self, node: ast.Import) -> ast.AST | None:
        """Drop imports of our modules, which count by themselves."""
        self.imported += [Import(node.lineno, 0, name.name) for name in node.names]
        node.names = [name for name in node.names if name.asname or not name.name.startswith("synmask.")]
        return node if node.names else None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        """Drop names of ignored modules, unless they get another name here."""
        module = node.module or ""
        self.imported += [Import(node.lineno, node.level, module, name.name) for name in node.names]
        node.names = [name for name in node.names if name.asname or not is_ignored(f"{module}.{name.name}")]
        return node if node.names and module not in FOR_TYPES else None

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        others = [*node.posonlyargs, *node.args, *filter(None, [node.vararg])]
        for argument in [*others, *node.kwonlyargs, *filter(None, [node.kwarg])] if others else ():
            argument.annotation = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Drop the description of a field; its type may check values."""
        if isinstance(node.value, ast.Call) and (place := DESCRIBED.get(ast.unparse(node.value.func))):
            del node.value.args[place]
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef


class WithoutText(ast.NodeTransformer):
    """Drops the text of a message from a statement."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant("") if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return ast.Constant("")


def _is_printed_note(node: ast.AST) -> bool:
    """Whether it is a call of `print` to stderr."""
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    return called and any(ast.unparse(keyword) == "file=sys.stderr" for keyword in node.keywords)
