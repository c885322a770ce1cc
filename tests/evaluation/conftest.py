"""Gold trees from text, parses, and random corpora of both."""

import numpy as np
import pytest

from synmask.pipeline.evaluation.protocols import ParsedCorpus
from synmask.pipeline.syntax.parses import Parse
from synmask.pipeline.syntax.treebank import Tree, read_trees


@pytest.fixture
def gold(tmp_path):
    def read(*trees):
        (tmp_path / "gold.mrg").write_text("\n".join(trees), encoding="utf-8")
        return list(read_trees(tmp_path / "gold.mrg"))

    return read


@pytest.fixture
def parse():
    return lambda text, *distances, eos=100.0, heads=None: Parse(text.split(), list(distances), eos, heads)


@pytest.fixture
def corpus(gold):
    """Bracketed trees and a parse of each → a corpus."""
    return lambda trees, parses: ParsedCorpus(gold(*trees), parses)


def random_tree(rng, size):
    """With unary chains, flat and deep constituents, punctuation, currency signs and Moses' escapes anywhere."""
    if size == 1 and rng.random() < 0.8:
        tag = str(rng.choice(["NN"] * 9 + [",", ".", "$,", "$", "#"]))
        return Tree(tag, (str(rng.choice(["word"] * 7 + ["&quot;", "x&amp;", ".", "!"])),))
    cuts = rng.choice(np.arange(1, size), int(rng.integers(0, size)), replace=False) if size > 1 else []
    sizes = np.diff(np.concatenate(([0], np.sort(cuts), [size]))).astype(int)
    children = tuple(random_tree(rng, int(part)) for part in sizes)
    return Tree(str(rng.choice(["NP", "VP", "ROOT", "TOP"])), children)


@pytest.fixture(scope="session")
def random_sentences():
    """150 trees of 1 to 9 words, and parses with split words and many equal distances."""
    rng = np.random.default_rng(0)
    trees, parses = [], []
    for size in rng.integers(1, 10, 150).tolist():
        trees.append(random_tree(rng, size))
        tokens = []
        for word in trees[-1].leaves():
            cut = int(rng.choice([0, 0, 1, 2])) if len(word) > 1 else 0
            tokens += [f"{piece}@@" for piece in word[:cut]] + [word[cut:]]
        distances = rng.integers(-2, 5, len(tokens)).astype(float).tolist()
        parses.append(Parse(tokens, distances[1:], distances[0]))
    return trees, parses
