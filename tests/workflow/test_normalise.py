"""The normal form of a source: what it computes, without words and layout."""

import ast
from pathlib import Path

import pytest

from synmask.pipeline.workflow.normalise import normalise_python, normalise_text

PROJECT = Path(__file__).parents[2]
FILES = sorted(path.relative_to(PROJECT) for path in PROJECT.glob("src/synmask/**/*.py"))


def of(text):
    return normalise_python(text)[1]


def test_imports_for_types_alone_are_none():
    text = "import synmask.a\nif TYPE_CHECKING:\n    import synmask.b\nelse:\n    from synmask import c"
    assert normalise_python(text)[0] == ((1, 0, "synmask.a", ""), (5, 0, "synmask", "c"))


@pytest.mark.parametrize("file", FILES, ids=str)
def test_words_and_layout_are_no_code(file):
    """Of each file: `ast.unparse` writes it without comments and in another layout."""
    tree = ast.parse((PROJECT / file).read_text())
    before = of((PROJECT / file).read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            node.body[0].value.value += " And more."
        if isinstance(node, ast.arguments) and node.args and node.args[0].annotation:
            node.args[0].annotation = ast.Name("object")
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            for word in node.exc.args:
                if isinstance(word, ast.Constant) and isinstance(word.value, str):
                    word.value = "reworded"
    assert of(ast.unparse(tree)) == before


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('"""Doc."""\nx = 1', "x = 1  # a comment"),
        ("def f(a: int) -> str:\n    return a", "def f(a):\n    return (\n        a\n    )"),
        ("from typing import Any\nx = 1", "x = 1"),
        ("from synmask.pipeline.errors import TryAgain, UserError", "from synmask.pipeline.errors import UserError"),
        ("if TYPE_CHECKING:\n    import pandas\nx = 1", "x = 1"),
        ('def f(x):\n    raise UserError(f"{x}: bad")', 'def f(x):\n    raise UserError("no")'),
        ('class A:\n    x: int = option(1, "one", gt=0)', 'class A:\n    x: int = option(1, "other words", gt=0)'),
        ('class A(Section):\n    x: int = key("one", 1, gt=0)', 'class A(Section):\n    x: int = key("other words", 1, gt=0)'),
        ('print("one", file=sys.stderr)', 'print(f"another {1}", file=sys.stderr)'),
        ("class A(E):\n    pass", 'class A(E):\n    """An error."""'),
        ("if TYPE_CHECKING:\n    x = 1\nelse:\n    y = 2", "y = 2"),
        ("def f(a: int, *, b: int): pass", "def f(a: str, *, b: str): pass"),
    ],
)  # fmt: skip
def test_what_is_equal(one, other):
    assert of(one) == of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "x = 2"),
        ("x = a + b", "x = a - b"),
        ("x = 'a'", "x = 'b'"),
        ("x = f'{a}'", "x = f'{a!r}'"),
        ("from synmask.pipeline.cpu.bf16 import lacking as a", "from synmask.pipeline.cpu.bf16 import product as a"),
        ("def f(a, b=1): return a", "def f(a, b=2): return a"),
        ("print('one')", "print('two')"),
        ("class A:\n    x: ClassVar[int] = 1", "class A:\n    x: int = 1"),
        ('class A:\n    x: "ClassVar[int]" = 1', 'class A:\n    x: "int" = 1'),
        ("class A(BaseModel):\n    x: int", "class A(BaseModel):\n    x: float"),
        ("def verb(*, a: int): pass", "def verb(*, a: float): pass"),
        ("from synmask.pipeline.files import read_json as read", "from synmask.pipeline.files import read_lines as read"),
        ("import synmask.pipeline.files as x", "import synmask.pipeline.stamps as x"),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    x = 1", "if TYPE_CHECKING:\n    pass\nelse:\n    x = 2"),
        ("class A:\n    x: int\n    y: int", "class A:\n    y: int\n    x: int"),
        ('class A:\n    x: int = option(1, "one", gt=0)', 'class A:\n    x: int = option(1, "one", gt=1)'),
        ('class A:\n    x: int = option(1, "one")', 'class A:\n    x: int = option(2, "one")'),
        ('class A(Section):\n    x: int = key("one", 1)', 'class A(Section):\n    x: int = key("one", 2)'),
        ('def f(x):\n    y = "a" if x else "b"\n    return y', 'def f(x):\n    y = "a" if x else "c"\n    return y'),
        ("def f():\n    global x\n    x = 'a'", "def f():\n    global x\n    x = 'b'"),
        ("def f():\n    class A:\n        x = 'a'\n    return A", "def f():\n    class A:\n        x = 'b'\n    return A"),
        ("raise E(1)", "raise E(2)"),
        ("x = None", "x = True"),
        ("f(*a)", "f(**a)"),
        ("x = -1", "x = 1"),
    ],
)  # fmt: skip
def test_what_is_different(one, other):
    assert of(one) != of(other)


def test_comments_and_layout_of_other_languages_are_no_code():
    one = normalise_text(
        '#include <a>\n#define X 1\nint f(int a) { return a+1; } // one\nauto s = "a // b";\n', ".cpp"
    )
    other = (
        '#include <a>\n#define X 1\n/* two\n*/ int f( int a )\n{\n  return a + 1;\n}\nauto s = "a // b";\n'
    )
    assert normalise_text(other, ".cpp") == one
    assert normalise_text(other.replace("a + 1", "a - 1"), ".cpp") != one
    assert normalise_text(other.replace("a // b", "a // c"), ".cpp") != one
    assert normalise_text(other.replace("X 1\n", "X 1 "), ".cpp") != one  # a directive ends with its line
    assert normalise_text("a\n", ".txt") != normalise_text("a\n\n", ".txt")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("// note \\\nx = 1;\n", "// note\nx = 1;\n"),  # the first comments the second line out
        ("  #define X 1\nint a;\n", "  #define X 1 int a;\n"),
        ("#if A\n  # define X \\\n 1\n#endif\n", "#if A\n  # define X\n 1\n#endif\n"),
    ],
)
def test_lines_that_end_in_a_backslash_and_indented_directives_count(one, other):
    assert normalise_text(one, ".cpp") != normalise_text(other, ".cpp")


def test_no_raw_strings_in_cpp():
    """normalise.TOKEN does not know them."""
    assert not [path for path in PROJECT.glob("src/**/*.cpp") if 'R"' in path.read_text()]
