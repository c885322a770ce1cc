"""Templates of sentences, for ST-NMT (Yang et al., ACL 2020): constituency trees, cut at a depth."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_aligned
from synmask.pipeline.guidance import TemplateCut
from synmask.pipeline.syntax.annotations import read_parsed_sentences
from synmask.pipeline.syntax.tree import word_starts
from synmask.pipeline.syntax.treebank import Tree

ROOTS = ("ROOT", "")  # labels above each sentence: CoreNLP's, the Penn treebank's


def frontier(tree: Tree, depth: float) -> list[str | int]:
    """The lower edge of a tree when all nodes deeper than `depth` (at least 1) are cut off.

    The constituent of the whole sentence has depth 1, its children 2 and so on; words are nodes, too. A ROOT
    above the sentence does not count.

    Returns:
        from left to right, labels of cut constituents and numbers of words, from 0.
    """
    if tree.label in ROOTS and not tree.is_preterminal() and len(tree.children) == 1:
        tree = tree.children[0]
    edge: list[str | int] = []
    stack, word = [(tree, 1)], 0
    while stack:
        node, level = stack.pop()
        if level + 1 > depth:
            edge.append(node.label)
            word += len(node.leaves())
        elif node.is_preterminal():
            edge.append(word)
            word += 1
        else:
            stack.extend((child, level + 1) for child in reversed(node.children))
    return edge


def cut_template(tokens: Sequence[str], tree: Tree, ratio: float, least: int, most: int) -> list[str]:
    """The template of a sentence: its words' sub-words and, in square brackets, labels.

    The tree is cut at the depth min(max(ratio · words, least), most).

    Args:
        tokens: the sub-words.
        tree: of the words.
    """
    pieces: list[list[str]] = []
    for token, begins in zip(tokens, word_starts(tokens), strict=True):
        if begins:
            pieces.append([])
        pieces[-1].append(token)
    depth = min(max(ratio * len(pieces), least), most)
    parts = ([f"[{part}]"] if isinstance(part, str) else pieces[part] for part in frontier(tree, depth))
    return [symbol for part in parts for symbol in part]


def cut_templates(
    source: Path, target: Path, trees: Path, kept: Path | None, cut: TemplateCut
) -> list[tuple[str, str]]:
    """Source sentences in BPE, each with the template of its target sentence, "" without a parse.

    Args:
        trees: a bracketed tree of each target sentence's words; FLAT or (()) marks an unparsed sentence.
        kept: clean/kept.* of `synmask text`: which lines of trees became sentences; None: all.

    Raises:
        UserError: trees do not match the sentences (the message names the line), or no sentence has a parse.
    """
    sources, _ = read_aligned([source, target], "make both again")
    parsed = read_parsed_sentences(target, trees, None, kept)
    rows = [
        (sentence, " ".join(cut_template(tokens, tree, **asdict(cut))) if tree else "")
        for sentence, (tokens, tree, _) in zip(sources, parsed, strict=True)
    ]
    if not any(line for _, line in rows):
        raise UserError(f"{trees}: no sentence has a parse, so there is no template; parse the text again")
    return rows
