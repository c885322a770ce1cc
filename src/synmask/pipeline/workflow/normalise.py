"""The normal form of a source file, of which digests are made: what it computes, without prose and layout.

For Python, that is the syntax tree without docstrings, comments, types of parameters and returned values,
imports of ignored modules, texts of messages, and descriptions of fields; for C++ and Java, all tokens but
comments; for other files, the whole text. Types of functions that take keywords alone, as verbs do, count.
"""

import ast
import re
from collections.abc import Callable, Iterator
from typing import Any

# Names from these stand in annotations; importing them does nothing else.
FOR_TYPES = frozenset({"collections.abc", "typing"})
LEFT_OUT = frozenset({"ctx", "kind", "type_comment", "type_ignores"})  # parts of nodes
DESCRIBED = {
    "option": slice(1, None),
    "key": slice(1),
}  # functions that declare fields → where they describe one
TOKEN = re.compile(
    r"""(?P<words>//(?:[^\n\\]|\\.)*|/\*.*?\*/|\s+)  # a backslash continues a line
    | \#(?:[^\n\\]|\\.)*\n       # a directive ends with its line
    | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | [\w.]+
    | <<=|>>=|<=>|\.\.\.|->\*|::|\+\+|--|->|<<|>>|[-+*/%&|^=!<>]=|&&|\|\| | .""",
    re.X | re.S,
)


def normalise_python(tree: ast.Module, is_ignored: Callable[[str], bool]) -> str:
    """The normal form of a Python file by its syntax tree, which is changed; empty if it computes nothing.

    Args:
        is_ignored: whether a module of this name cannot change a result.
    """
    body = Normaliser(is_ignored).visit(tree).body
    return repr(_plain(body)) if body else ""


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
    """Drops from a syntax tree what cannot change a result."""

    def __init__(self, is_ignored: Callable[[str], bool]) -> None:
        self.is_ignored = is_ignored

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
        node = self.generic_visit(node)
        return node.orelse if is_type_checking(node) else node

    def visit_Import(self, node: ast.Import) -> ast.AST | None:
        """Drop imports of our modules, which count by themselves."""
        node.names = [name for name in node.names if name.asname or not name.name.startswith("synmask.")]
        return node if node.names else None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        """Drop names of ignored modules, unless they get another name here."""
        node.names = [
            name
            for name in node.names
            if name.asname or not self._is_ours_and_ignored(f"{node.module}.{name.name}")
        ]
        return node if node.names and node.module not in FOR_TYPES else None

    def _is_ours_and_ignored(self, name: str) -> bool:
        return name.startswith("synmask.") and self.is_ignored(name)

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


def is_type_checking(node: ast.AST) -> bool:
    """Whether this is `if TYPE_CHECKING`, whose body never runs."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def running(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it, without expressions and what never runs."""
    yield node
    for child in node.orelse if is_type_checking(node) else ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield from running(child)


def _is_printed_note(node: ast.AST) -> bool:
    """Whether it is a call of `print` to stderr."""
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    return called and any(ast.unparse(keyword) == "file=sys.stderr" for keyword in node.keywords)
