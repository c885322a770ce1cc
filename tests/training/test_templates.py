"""Templates against literal pruning, and their files."""

import json
import random

import pytest

from synmask.pipeline.errors import UserError
from synmask.pipeline.files import write_lines
from synmask.pipeline.guidance import TemplateCut
from synmask.pipeline.syntax.treebank import Tree, read_trees
from synmask.pipeline.training.templates import cut_template, frontier, write_templates

RUNNING = "(S (NP (EX There)) (VP (VBP are) (NP (NP (DT some) (NNS people)) (VP (VBG running)))) (. .))"
CUT = {"ratio": 0.0, "least": 3, "most": 6}


def tree_of(text, tmp_path):
    write_lines(tmp_path / "tree", [text])
    return next(read_trees(tmp_path / "tree"))


@pytest.mark.parametrize(
    ("depth", "expected"),
    [
        (1, ["S"]),
        (2, ["NP", "VP", "."]),
        (3, ["EX", "VBP", "NP", 4 + 1]),
        (3.9, ["EX", "VBP", "NP", 5]),
        (4, [0, 1, "NP", "VP", 5]),
        (5, [0, 1, "DT", "NNS", "VBG", 5]),
        (6, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_a_tree_cut_by_hand(depth, expected, tmp_path):
    assert frontier(tree_of(RUNNING, tmp_path), depth) == expected
    assert frontier(tree_of(f"(ROOT {RUNNING})", tmp_path), depth) == expected


def random_tree(draw, words):
    """A tree of `words` words with unary chains; a preterminal's word is not looked at."""
    if words == 1 and draw.random() < 0.6:
        return Tree(draw.choice("PQR"), ("w",))
    if words == 1:
        return Tree(draw.choice("ABC"), (random_tree(draw, 1),))
    cuts = sorted(draw.sample(range(1, words), draw.randint(0, min(3, words - 1))))
    if not cuts and draw.random() < 0.7:
        cuts = [1]
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, words], strict=True)]
    return Tree(draw.choice("ABC"), tuple(random_tree(draw, size) for size in sizes))


def literal(tree, depth):
    """All nodes with their depths, words too; the deeper ones taken away; what then has no children, in order."""
    nodes = []  # (path, depth, shown)
    words = 0

    def walk(node, path, level):
        nonlocal words
        if isinstance(node, str):
            nodes.append((path, level, words))
            words += 1
            return
        nodes.append((path, level, node.label))
        for number, child in enumerate(node.children):
            walk(child, (*path, number), level + 1)

    walk(tree, (), 1)
    left = [(path, shown) for path, level, shown in nodes if level <= depth]
    paths = {path for path, _ in left}
    inner = {path[:-1] for path in paths if path}
    return [shown for path, shown in sorted(left) if path not in inner]


def test_cuts_agree_with_literal_pruning():
    draw = random.Random(3)
    for _ in range(300):
        tree = random_tree(draw, draw.randint(1, 12))
        for depth in range(1, 12):
            assert frontier(tree, depth) == literal(tree, depth), (str(tree), depth)


def test_words_stand_as_their_sub_words_and_labels_in_brackets(tmp_path):
    tokens = ["There", "are", "s@@", "ome", "people", "run@@", "n@@", "ing", "."]
    tree = tree_of(RUNNING, tmp_path)
    assert cut_template(tokens, tree, 0.0, 5, 6) == ["There", "are", "[DT]", "[NNS]", "[VBG]", "."]
    assert cut_template(tokens, tree, 0.0, 6, 6) == tokens


@pytest.mark.parametrize(
    ("ratio", "least", "most", "depth"), [(0.5, 1, 9, 3), (0.5, 4, 9, 4), (0.5, 1, 2, 2), (0.75, 1, 9, 4.5)]
)
def test_the_depth_follows_the_number_of_words(ratio, least, most, depth, tmp_path):
    tree = tree_of(RUNNING, tmp_path)  # of 6 words
    words = tree.leaves()
    shown = [part if isinstance(part, str) else words[part] for part in literal(tree, depth)]
    assert [symbol.strip("[]") for symbol in cut_template(words, tree, ratio, least, most)] == shown


@pytest.fixture
def files(tmp_path):
    """As `synmask subwords` and a parser leave them: the second sentence has no parse, the third is empty, the fourth
    line of trees was not kept."""
    trees = [RUNNING, "(FLAT (X b) (X c))", "(FLAT)", "(S (X no))", "(S (NP (PRP It)) (VP (VBZ runs)))"]
    for split in ("train", "valid"):
        write_lines(tmp_path / f"bpe/{split}.de", ["eins", "zwei", "", "vier"])
        write_lines(
            tmp_path / f"bpe/{split}.en", ["There are s@@ ome people running .", "b c", "", "It runs"]
        )
    write_lines(tmp_path / "clean/kept.de-en", ["1", "2", "3", "5"])
    write_lines(tmp_path / "train.trees", trees)
    write_lines(tmp_path / "valid.trees", [tree for tree in trees if "no" not in tree])
    return tmp_path


def make(folder):
    trees = {f"{split}_trees": folder / f"{split}.trees" for split in ("train", "valid")}
    places = {"input": folder, "output": folder / "out", **trees}
    write_templates(source="de", target="en", settings=TemplateCut(**CUT), **places)


@pytest.mark.parametrize("split", ["train", "valid"])
def test_files_of_templates(files, split):
    make(files)
    assert (files / f"out/{split}.en").read_text() == "[EX] [VBP] [NP] .\n\n\n[PRP] [VBZ]\n"
    assert (files / f"out/bpe/{split}.de").read_text() == "eins\nvier\n"
    assert (files / f"out/bpe/{split}.en").read_text() == "[EX] [VBP] [NP] .\n[PRP] [VBZ]\n"
    counts = json.loads((files / f"out/{split}.en.json").read_text())
    assert counts == {"sentences": 4, "without_template": 2}
    assert (files / f"out/bin/{split}.de-en.en.bin").stat().st_size > 0


def test_what_does_not_fit_is_reported_in_one_line(files):
    write_lines(files / "clean/kept.de-en", ["1", "2", "3", "4"])
    with pytest.raises(UserError, match=r"en, line 4: 2 words, not 1 as in its tree; parse the text again"):
        make(files)
    write_lines(files / "clean/kept.de-en", ["1", "2", "3"])
    with pytest.raises(UserError, match=r"en, line 4: not as many sentences as parses"):
        make(files)
    for name, line in (("valid.trees", "(FLAT (X x))"), ("bpe/valid.en", "x")):
        write_lines(files / name, [line] * 4)
    write_lines(files / "clean/kept.de-en", ["1", "2", "3", "5"])
    with pytest.raises(UserError, match=r"valid\.trees: no sentence has a parse, so there is no template"):
        make(files)
    assert not (files / "out").exists()
