"""Templates of sentences, for ST-NMT (Yang et al., ACL 2020): constituency trees, cut at a depth."""

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from synmask.pipeline.files import UserError, all_writing, read_lines, write_json
from synmask.pipeline.syntax.annotations import check_sentence, selected
from synmask.pipeline.syntax.tree import word_starts
from synmask.pipeline.syntax.treebank import UNPARSED, Tree, read_trees

ROOT = "ROOT"  # CoreNLP's label above each sentence


def frontier(tree: Tree, depth: float) -> list[str | int]:
    """The lower edge of a tree when all nodes deeper than `depth` (at least 1) are cut off.

    The constituent of the whole sentence has depth 1, its children 2 and so on; words are nodes, too. A ROOT
    above the sentence does not count.

    Returns:
        from left to right, labels of cut constituents and numbers of words, from 0.
    """
    if tree.label == ROOT and not tree.is_preterminal() and len(tree.children) == 1:
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


def template(tokens: Sequence[str], tree: Tree, ratio: float, least: int, most: int) -> list[str]:
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


def template_file(
    sides: tuple[Path, Path],
    trees: Path,
    output: Path,
    pairs: tuple[Path, Path],
    *,
    kept: Path | None = None,
    ratio: float,
    least: int,
    most: int,
) -> dict[str, int]:
    """Write the templates of the target side of a text in BPE.

    Writes `output`, one template per line, empty without a parse; `pairs`, source sentences and templates of
    parsed sentences, from which a model learns to predict templates; and the returned counts beside `output`
    as .json.

    Args:
        sides: source and target in BPE.
        trees: one bracketed tree of words per target sentence; FLAT or (()) marks an unparsed sentence.
        kept: the lines of `trees` (from 1) that became sentences; None: all.
        ratio, least, most: see `template`.

    Returns:
        The numbers of "sentences", and of those "without_template".

    Raises:
        UserError: trees do not match the sentences (the message names the line), or no sentence has a parse.
    """
    rows = zip_longest(*map(read_lines, sides), selected(read_trees(trees), kept))
    counts = {"sentences": 0, "without_template": 0}
    with all_writing([output, *pairs]) as (everything, sources, templates):
        for number, (source, target, tree) in enumerate(rows, start=1):
            where = f"{sides[1]}, line {number}"
            if source is None or target is None or tree is None:
                raise UserError(
                    f"{where}: not as many sentences as translations and parses; parse the text again"
                )
            tokens = target.split()
            check_sentence(tokens, tree, None, where)
            line = "" if tree.label in UNPARSED else " ".join(template(tokens, tree, ratio, least, most))
            everything.write(f"{line}\n")
            if line:
                sources.write(f"{source}\n")
                templates.write(f"{line}\n")
            counts["sentences"] += 1
            counts["without_template"] += not line
        if counts["without_template"] == counts["sentences"]:
            raise UserError(
                f"{trees}: no sentence has a parse, so there is no template; parse the text again"
            )
    write_json(Path(f"{output}.json"), counts)
    return counts
