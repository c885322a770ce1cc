"""ST-NMT's templates (Yang et al., ACL 2020): the target's trees, cut at a depth; data to learn them from."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from synmask.pipeline.arguments import Json, Source, Target
from synmask.pipeline.disk import whole_folder
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_aligned, write_json, write_lines
from synmask.pipeline.guidance import TemplateCut
from synmask.pipeline.syntax.annotations import read_parsed_sentences
from synmask.pipeline.syntax.treebank import Tree
from synmask.pipeline.text.notation import word_starts
from synmask.pipeline.training.binarise import binarise

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


def write_templates(
    *,
    input: Path,
    source: Source,
    target: Target,
    train_trees: Path,
    valid_trees: Path,
    settings: Json[TemplateCut],
    output: Path,
) -> None:
    """Write templates of the training and validation set, and the data to learn them from.

    Writes OUTPUT/SPLIT.TARGET, the templates, with counts in a .json file beside each; OUTPUT/bpe/, pairs of
    a source sentence and its template, where there is one; OUTPUT/bin/, the same for fairseq
    (`binarise.binarise`).

    Args:
        input: The output of `synmask text` and `synmask subwords`.
        train_trees: A bracketed tree of each target sentence; FLAT or (()) marks an unparsed one.
        valid_trees: Likewise.
        settings: The depth is min(max(ratio · words, least), most): '{"ratio": 0.15, "least": 3, "most": 6}'.
        output: Folder of the templates.

    Raises:
        UserError: trees do not match the sentences (the message names the line), or no sentence has a parse.
    """
    with whole_folder(output, "templates") as folder:
        for split, trees in (("train", train_trees), ("valid", valid_trees)):
            pair = [input / f"bpe/{split}.{language}" for language in (source, target)]
            kept = input / f"clean/kept.{source}-{target}" if split == "train" else None
            sentences, _ = read_aligned(pair, "make both again")
            parsed = read_parsed_sentences(pair[1], trees, None, kept)
            templates = [
                " ".join(cut_template(tokens, tree, **asdict(settings))) if tree else ""
                for tokens, tree, _ in parsed
            ]
            known = [row for row in zip(sentences, templates, strict=True) if row[1]]
            if not known:
                fault = "no sentence has a parse, so there is no template; parse the text again"
                raise UserError(f"{trees}: {fault}")
            write_lines(folder / f"{split}.{target}", templates)
            write_lines(folder / f"bpe/{split}.{source}", (sentence for sentence, _ in known))
            write_lines(folder / f"bpe/{split}.{target}", (template for _, template in known))
            counts = {"sentences": len(templates), "without_template": len(templates) - len(known)}
            write_json(folder / f"{split}.{target}.json", counts)
        binarise(text=folder / "bpe", output=folder / "bin", source=source, target=target)
