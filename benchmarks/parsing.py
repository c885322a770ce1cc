"""CPU time of scoring parses, beside the same counts with Python sets, at the size of IWSLT14's dev set.

python benchmarks/parsing.py --seeds 5
"""

import argparse
import itertools
import time
from collections.abc import Sequence

import numpy as np

import machine
from synmask.pipeline.evaluation.parseval import evaluate
from synmask.pipeline.evaluation.protocols import ParsedCorpus
from synmask.pipeline.syntax.parses import Parse
from synmask.pipeline.syntax.tree import counted_words, spans_of_distances
from synmask.pipeline.syntax.treebank import Tree


def tree_of(rng: np.random.Generator, start: int, end: int) -> Tree:
    """A random tree of two or three children a constituent, one word in ten punctuation."""
    if end - start == 1:
        return Tree("," if rng.random() < 0.1 else "NN", (f"w{start}",))
    cuts = np.unique(rng.integers(start + 1, end, 2)).tolist()
    borders = [start, *cuts, end]
    children = (tree_of(rng, one, other) for one, other in itertools.pairwise(borders))
    return Tree("NP", tuple(children))


def corpus(sentences: int, seed: int) -> tuple[list[Tree], list[Parse]]:
    """Trees of 1 to 45 words, 23 on average, and random parses of them; one word in five is split."""
    rng = np.random.default_rng(seed)
    trees, parses = [], []
    for words in rng.integers(1, 46, sentences).tolist():
        trees.append(tree_of(rng, 0, words))
        split = rng.random(words) < 0.2
        tokens = [
            piece for word in range(words) for piece in (["w@@", f"{word}"] if split[word] else [f"w{word}"])
        ]
        parses.append(Parse(tokens, rng.random(len(tokens) - 1).tolist(), 2.0))
    return trees, parses


def with_sets(trees: Sequence[Tree], parses: Sequence[Parse]) -> float:
    """F1 of the induced trees alone by the protocol `words`, sentence by sentence with sets of tuples."""
    matched = both = 0
    for tree, parse in zip(trees, parses, strict=True):
        keep = counted_words(tree)
        before = [0, *np.cumsum(keep).tolist()]

        def counted(spans: list, before: list[int] = before) -> set:
            kept = {(before[start], before[end]) for start, end in spans}
            return {(start, end) for start, end in kept if 1 < end - start < before[-1]}

        if before[-1] > 1:
            gaps = zip(parse.tokens, [*parse.distances, 0], strict=True)
            distances = [gap for token, gap in gaps if not token.endswith("@@")][:-1]
            gold = counted([span[:2] for span in tree.spans()])
            found = counted(spans_of_distances(distances).tolist())
            matched += len(gold & found)
            both += len(gold) + len(found)
    return 200 * matched / both


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=7283)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    ours, sets = [], []
    for seed in range(arguments.seeds):
        trees, parses = corpus(arguments.sentences, seed)
        start = time.process_time()
        result, _ = evaluate(ParsedCorpus(trees, parses))
        middle = time.process_time()
        f1 = with_sets(trees, parses)
        ours.append(middle - start)
        sets.append(time.process_time() - middle)
        assert abs(f1 - result["protocols"]["words"]["rows"]["induced"]["f1"]) < 1e-9
    kinds = sum(
        4 + len(protocol["rows"]) for protocol in result["protocols"].values()
    )  # "random" stands for 5 kinds of trees
    print(machine.described("numpy"))
    print(f"{arguments.sentences} sentences, {arguments.seeds} runs, CPU time: the fastest, and all together")
    print(f"{kinds} kinds of trees and protocols, by arrays: {min(ours):.2f} s, {sum(ours):.1f} s")
    print(f"1 kind of tree, 1 protocol, with sets: {min(sets):.2f} s, {sum(sets):.1f} s")
    print(f"a kind of tree: {min(sets) / (min(ours) / kinds):.1f} times faster")


if __name__ == "__main__":
    main()
