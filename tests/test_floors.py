"""The house rules of src/synmask: the method needs PyTorch alone, imports go downwards only, fairseq stays where it is used."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src/synmask"
PIPELINE = {  # the floors of its rooms
    "": 1, "files": 1, "cpu": 1, "paths": 1, "gpus": 1, "config": 1, "runs": 1, "provenance": 1, "record": 1, "corpora": 1, "text": 1, "syntax": 1, "search": 1,
    "evaluation": 2, "workflow": 2,
    "training": 3, "reporting": 3, "export": 3,
    "translation": 4,
    "roberta": 5,
    "cli": 6,
}  # fmt: skip
METHOD = {
    "": 0,
    "checks": 0,
    "kernels": 0,
    "options": 0,
    "induction": 1,
    "guides": 2,
    "encoder": 3,
}
FAIRSEQ = {"training", "translation", "roberta"}
FILES = sorted(ROOT.rglob("*.py"))


def room(parts):
    """The room of a module or file by its names below synmask, and the floors that it is counted among."""
    floors = METHOD
    if parts[:1] == ("pipeline",):
        parts, floors = parts[1:], PIPELINE
    first = parts[0].removesuffix(".py") if parts else ""
    return ("" if first not in floors else first), floors


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "absolute imports only"
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def place_of(path):
    return room(path.relative_to(ROOT).parts)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_downwards(path):
    here, floors = place_of(path)
    for name in imports(path):
        if name.startswith("synmask."):
            other, theirs = room(tuple(name.split(".")[1:]))
            if theirs is floors and other != here:
                assert floors[other] < floors[here] or floors[here] == floors[other] <= 1, (
                    f"{path} imports {name}"
                )


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if place_of(path)[1] is METHOD and path.stem != "__main__"],
    ids=lambda path: path.stem,
)
def test_the_method_imports_pytorch_alone(path):
    for name in imports(path):
        top = name.split(".")[0]
        allowed = {"torch", "synmask"} | ({"triton"} if path.stem == "in_triton" else set())
        assert top in sys.stdlib_module_names or top in allowed, name
        assert not name.startswith("synmask.pipeline"), name


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_fairseq_stays_in_the_rooms_that_train(path):
    if place_of(path)[0] not in FAIRSEQ:
        assert not [name for name in imports(path) if name.split(".")[0] == "fairseq"]


@pytest.mark.parametrize("floors", [METHOD, PIPELINE], ids=["method", "pipeline"])
def test_no_circles_among_the_rooms(floors):
    arrows = set()
    for path in FILES:
        here, mine = place_of(path)
        for name in imports(path) if mine is floors else ():
            other, theirs = room(tuple(name.split(".")[1:]))
            if name.startswith("synmask.") and theirs is floors and other not in ("", here):
                arrows.add((here, other))
    rooms = {a for pair in arrows for a in pair}
    while rooms:
        free = {a for a in rooms if not any(b in rooms for other, b in arrows if other == a)}
        assert free, f"circle among {sorted(rooms)}"
        rooms -= free
