"""The house rules of src/synmask: imports go downwards only, and fairseq stays in the rooms that train."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src/synmask"
FLOORS = {
    "": 1, "files": 1, "gpus": 1, "config": 1, "provenance": 1, "owner": 1, "kernels": 1, "bf16": 1, "corpora": 1, "text": 1, "syntax": 1, "induction": 1,
    "search": 1,
    "guides": 2, "evaluation": 2, "workflow": 2,
    "training": 3, "reporting": 3,
    "translation": 4,
    "roberta": 5,
    "cli": 6,
}  # fmt: skip
FAIRSEQ = {"training", "translation", "roberta"}
FILES = sorted(ROOT.rglob("*.py"))


def room(path):
    first = path.relative_to(ROOT).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "absolute imports only"
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_downwards(path):
    own = FLOORS[room(path)]
    for name in imports(path):
        if name.startswith("synmask."):
            other = name.split(".")[1]
            if other in FLOORS and other != room(path):
                assert FLOORS[other] < own or (own == 1 and FLOORS[other] == 1), f"{path} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_fairseq_stays_in_the_rooms_that_train(path):
    if room(path) not in FAIRSEQ:
        assert not [name for name in imports(path) if name.split(".")[0] == "fairseq"]


def test_no_circles_among_the_rooms_of_a_floor():
    arrows = {
        (room(path), name.split(".")[1]) for path in FILES for name in imports(path) if "synmask." in name
    }
    arrows = {(a, b) for a, b in arrows if b in FLOORS and a != b}
    rooms = {a for pair in arrows for a in pair}
    while rooms:
        free = {a for a in rooms if not any(b in rooms for other, b in arrows if other == a)}
        assert free, f"circle among {sorted(rooms)}"
        rooms -= free
