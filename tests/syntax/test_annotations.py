"""Annotations of sub-words against slow rules, and their files."""

import json
import os
import random
from functools import partial
from itertools import count

import numpy as np
import pytest

from synmask.pipeline.disk import PatientFile
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import write_lines
from synmask.pipeline.syntax.annotations import Annotations, annotate_file, annotate_sentence, open_memmap
from synmask.pipeline.syntax.tree import tree_distances
from synmask.pipeline.syntax.treebank import Tree, read_trees


def tree_of(text, tmp_path):
    write_lines(tmp_path / "tree", [text])
    return next(read_trees(tmp_path / "tree"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(S (A a))", []),
        ("(S (X (Y (A a))) (B b))", [1]),  # a chain of unary nodes is one
        ("(S (A a) (B b) (C c) (D d))", [3, 2, 1]),  # made binary from the right
        ("(S (NP (A a) (B b)) (VP (C c) (NP (D d) (E e))))", [1, 3, 2, 1]),
        ("(S (NP (A a) (X (B b) (C c))) (. .))", [2, 1, 3]),
    ],
)
def test_tree_distances_by_hand(text, expected, tmp_path):
    assert tree_distances(tree_of(text, tmp_path)) == expected


def random_tree(draw, words):
    if words == 1:
        return Tree("T", ("w",)) if draw.random() < 0.7 else Tree("U", (Tree("T", ("w",)),))
    cuts = sorted(draw.sample(range(1, words), draw.randint(1, min(3, words - 1))))
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, words], strict=True)]
    return Tree("X", tuple(random_tree(draw, size) for size in sizes))


def literal_distances(tree):
    """Depth and distances by recursion on the binary tree."""

    def binary(nodes):
        if len(nodes) > 1:
            left, right = binary(nodes[:1]), binary(nodes[1:])
            higher = max(left[0], right[0])
            return 1 + higher, [*left[1], higher, *right[1]]
        children = nodes[0].children
        return (1, []) if isinstance(children[0], str) else binary(children)

    return binary([tree])[1]


def test_tree_distances_agree_with_recursion():
    draw = random.Random(5)
    for _ in range(200):
        tree = random_tree(draw, draw.randint(1, 12))
        assert tree_distances(tree) == literal_distances(tree)


def test_trees_of_any_depth():
    tree = Tree("T", ("w",))
    for _ in range(3000):
        tree = Tree("X", (Tree("T", ("w",)), tree))
    assert tree_distances(tree)[:2] == [3000, 2999]


def literal_annotation(tokens, heads, tree):
    """Token by token, with the words spelt out."""
    words, word = [], []
    for position, token in enumerate(tokens):
        word.append(position)
        if not token.endswith("@@"):
            words.append(word)
            word = []
    end = len(tokens)
    rows = []
    for position in range(end):
        number = next(w for w, pieces in enumerate(words) if position in pieces)
        parent = words[heads[number] - 1] if heads[number] else words[number]
        if position + 1 == end:
            distance = 2000
        elif position + 1 in words[number]:
            distance = 1
        else:
            distance = literal_distances(tree)[number] + 1
        rows.append([parent[0], parent[-1], distance])
    return [*rows, [end, end, -1]]


def test_annotations_agree_with_the_rules():
    draw = random.Random(6)
    for _ in range(100):
        m = draw.randint(1, 8)
        tokens = [
            piece for _ in range(m) for piece in draw.choice([["a"], ["b@@", "c"], ["d@@", "e@@", "f"]])
        ]
        heads = [draw.randint(0, m) for _ in range(m)]
        tree = random_tree(draw, m)
        found = annotate_sentence(tokens, heads, tree)
        assert found.dtype == np.int16
        assert found.tolist() == literal_annotation(tokens, heads, tree)
        assert (annotate_sentence(tokens, None, tree)[:, :2] == -1).all()
        assert (annotate_sentence(tokens, heads, None)[:, 2] == -1).all()
    assert annotate_sentence([], [], None).tolist() == [[0, 0, -1]]


BPE = ["Der Hu@@ nd bellt", "&apos;s re@@ gnet", "Hallo", "Na ja"]
TREES = [
    "(S (NP (D der) (N hund)) (V bellt))",
    "(S (P 's) (V regnet))",
    "(FLAT (X Hallo))",
    "(FLAT (X Na) (X ja))",
]
HEADS = ["2 3 0", "2 0", "0", ""]


def files(folder, bpe=BPE, trees=TREES, heads=HEADS):
    for name, lines in (("bpe", bpe), ("trees", trees), ("heads", heads)):
        write_lines(folder / name, lines)
    return {"trees": folder / "trees", "heads": folder / "heads"}


def test_a_file_and_its_counts(tmp_path):
    counts = annotate_file(subwords=tmp_path / "bpe", output=tmp_path / "a.npy", **files(tmp_path))
    assert counts == {"sentences": 4, "without_heads": 2, "without_distances": 2}
    assert json.loads((tmp_path / "a.json").read_text()) == counts
    sizes = [len(line.split()) + 1 for line in BPE]
    read = Annotations(tmp_path / "a.npy", sizes)
    assert isinstance(read.table, np.memmap)
    assert read[0].tolist() == [[1, 2, 2], [3, 3, 1], [3, 3, 3], [3, 3, 2000], [4, 4, -1]]
    assert read[1].tolist() == [[1, 2, 2], [1, 2, 1], [1, 2, 2000], [3, 3, -1]]
    assert read[2].tolist() == [[-1, -1, -1]] * 2
    assert read[3].tolist() == [[-1, -1, -1]] * 3
    assert len(read) == 4
    with pytest.raises(UserError, match="annotations of another text"):
        Annotations(tmp_path / "a.npy", [*sizes[:-1], 9])
    (tmp_path / "b.npy").write_bytes(b"no array")
    np.save(tmp_path / "objects.npy", np.array([[None] * 3] * sum(sizes)), allow_pickle=True)
    for name in ("b.npy", "objects.npy"):
        with pytest.raises(UserError, match=rf"{name}: damaged"):
            Annotations(tmp_path / name, sizes)


def test_a_read_that_would_block_is_no_damage(tmp_path, monkeypatch):
    annotate_file(subwords=tmp_path / "bpe", output=tmp_path / "a.npy", **files(tmp_path))
    calls = count()

    def read(file, buffer):
        return None if next(calls) % 2 == 0 else os.readv(file.fileno(), [memoryview(buffer)[:7]])

    monkeypatch.setattr(PatientFile, "readinto", lambda file, buffer: file._wait(partial(read, file), buffer))
    assert open_memmap(tmp_path / "a.npy", "").shape == (sum(len(line.split()) + 1 for line in BPE), 3)
    assert next(calls) > 2


def test_a_failed_parse_is_no_annotation(tmp_path):
    annotate_file(subwords=tmp_path / "bpe", output=tmp_path / "a.npy", **files(tmp_path))
    failed = files(tmp_path, trees=[*TREES[:2], "(())", "( () )"])
    counts = annotate_file(subwords=tmp_path / "bpe", output=tmp_path / "b.npy", **failed)
    assert counts == {"sentences": 4, "without_heads": 2, "without_distances": 2}
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()


def test_only_the_kept_lines_count(tmp_path):
    paths = files(tmp_path, bpe=[BPE[1], BPE[3]])
    write_lines(tmp_path / "kept", ["2", "4"])
    counts = annotate_file(
        subwords=tmp_path / "bpe", output=tmp_path / "a.npy", **paths, kept=tmp_path / "kept"
    )
    assert counts == {"sentences": 2, "without_heads": 1, "without_distances": 1}
    assert Annotations(tmp_path / "a.npy", [4, 3])[0].tolist()[0] == [1, 2, 2]


def test_a_text_without_sentences_and_kept_lines_without_numbers(tmp_path):
    paths = files(tmp_path, bpe=[], heads=[])
    with pytest.raises(UserError, match="bpe: empty; give a text in BPE"):
        annotate_file(subwords=tmp_path / "bpe", output=tmp_path / "a.npy", trees=None, heads=paths["heads"])
    assert not (tmp_path / "a.npy").exists()
    write_lines(tmp_path / "kept", ["1", "one"])
    with pytest.raises(UserError, match="kept: not the line numbers that `synmask text` writes; give these"):
        annotate_file(subwords=tmp_path / "bpe", output=tmp_path / "a.npy", **paths, kept=tmp_path / "kept")


def test_one_kind_alone(tmp_path):
    paths = files(tmp_path)
    for name, missing in (("heads", "without_distances"), ("trees", "without_heads")):
        counts = annotate_file(
            subwords=tmp_path / "bpe",
            output=tmp_path / "a.npy",
            **{"heads": None, "trees": None, name: paths[name]},
        )
        assert counts[missing] == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trees": [TREES[0], "(S (P 's) (V schneit))", *TREES[2:]]}, 'line 2: word 2 is "regnet", not "schneit" as in its tree'),
        ({"heads": ["2 3 0", "2 0 1", "0", ""]}, "line 2: heads of 3 words, up to 2, for 2 words"),
        ({"heads": ["2 3 4", *HEADS[1:]]}, "line 1: heads of 3 words, up to 4, for 3 words"),
        ({"heads": ["2 3 0", "2 x", "0", ""]}, r"heads, line 2: heads are numbers"),
        ({"trees": TREES[:3]}, "line 4: not as many sentences as parses"),
        ({"heads": [*HEADS, "0"]}, "line 5: not as many sentences as parses"),
    ],
)  # fmt: skip
def test_parses_that_do_not_fit_are_one_line(tmp_path, change, message):
    with pytest.raises(UserError, match=message) as error:
        annotate_file(subwords=tmp_path / "bpe", output=tmp_path / "a.npy", **files(tmp_path, **change))
    assert "\n" not in str(error.value)
    assert not (tmp_path / "a.npy").exists()
