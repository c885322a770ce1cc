"""Scores by the protocol `paper` with the gold trees of the authors' script, beside those that a corpus has.

The script has CoreNLP 3.9.2 parse the parts of each line, lower-cased. Its jars, and then both sides:

    for classifier in "" :models :models-german; do
      mvn dependency:copy -DoutputDirectory=/data/corenlp-3.9.2 \\
          -Dartifact=edu.stanford.nlp:stanford-corenlp:3.9.2:jar$classifier
    done
    PAIR=results/multi30k-small/de-en
    python studies/multi30k/published_trees.py --jars /data/corenlp-3.9.2 --language de \\
        --subwords $PAIR/bpe/valid.de --trees $PAIR/syntax/valid.de.trees
"""

import argparse
import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from synmask.pipeline.evaluation.parseval import evaluate
from synmask.pipeline.evaluation.protocols import SENTENCE_ENDS, ParsedCorpus, keys_of, paper
from synmask.pipeline.files import read_lines
from synmask.pipeline.syntax.parses import Parse
from synmask.pipeline.syntax.treebank import Tree, read_trees

LAST = {",", ";", "--", ":", "-", "...", ".."}  # a line's last word that becomes a full stop for the parser
PROPERTIES = {"de": ["-props", "StanfordCoreNLP-german.properties"], "en": []}


def parts_of(words: list[str]) -> list[list[str]]:
    """The parts of a line, as the script gives them to CoreNLP."""
    parts: list[list[str]] = [[]]
    for word in [*words[:-1], "." if words[-1] in LAST else words[-1]]:
        parts[-1].append(word)
        if word in SENTENCE_ENDS:
            parts.append([])
    return [part for part in parts if part]


def parsed(parts: list[list[str]], language: str, jars: Path, folder: Path) -> Iterator[Tree]:
    """CoreNLP's trees of the parts of two words or more."""
    text, output = folder / "parts.txt", folder / "parts.txt.json"
    if not output.exists():
        text.write_text("".join(f"{' '.join(part)}\n" for part in parts if part[1:]), encoding="utf-8")
        command = ["java", "-Xmx5g", "-cp", f"{jars}/*", "edu.stanford.nlp.pipeline.StanfordCoreNLP"]
        command += [
            *PROPERTIES[language],
            "-annotators",
            "tokenize,ssplit,pos,parse",
            "-ssplit.eolonly",
            "true",
        ]
        command += ["-file", str(text), "-outputFormat", "json", "-outputDirectory", str(folder)]
        subprocess.run([*command, "-encoding", "UTF-8"], check=True)
    sentences = json.loads(output.read_text(encoding="utf-8"))["sentences"]
    bracketed = folder / "parts.trees"
    bracketed.write_text("".join(f"{' '.join(s['parse'].split())}\n" for s in sentences), encoding="utf-8")
    return read_trees(bracketed)


def joined(parts: list[list[str]], trees: Iterator[Tree]) -> Tree | None:
    """The tree of a line from the next trees, of its parts; None where CoreNLP has made other words."""
    children = [next(trees) if part[1:] else Tree("X", (part[0],)) for part in parts]
    tree = Tree("ROOT", tuple(children))
    return tree if tree.leaves() == [word for part in parts for word in part] else None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jars", type=Path, required=True)
    parser.add_argument("--language", choices=PROPERTIES, required=True)
    parser.add_argument("--subwords", type=Path, required=True)
    parser.add_argument("--trees", type=Path, required=True)
    parser.add_argument("--work", type=Path, help="folder that keeps CoreNLP's output, or has it")
    arguments = parser.parse_args()
    gold, parses, lines = [], [], []
    for tree, line in zip(read_trees(arguments.trees), read_lines(arguments.subwords), strict=True):
        if "&" not in line:
            tokens = line.split()
            gold.append(tree)
            parses.append(Parse(tokens, [0.0] * (len(tokens) - 1), 0.0))
            lines.append(parts_of(line.replace("@@ ", "").split()))
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.work or Path(temporary)
        parts = [part for line in lines for part in line]
        trees = parsed(parts, arguments.language, arguments.jars, folder)
        theirs = [joined(line, trees) for line in lines]
    rows = [row for row in zip(gold, theirs, parses, strict=True) if row[1] is not None]
    gold, theirs, parses = zip(*rows, strict=True)
    corpora = [ParsedCorpus(gold, parses), ParsedCorpus(theirs, parses)]
    print(f"{len(rows)} lines that have no Moses' escapes and that CoreNLP tokenises alike")
    for name, corpus in zip(("the corpus' own", "as published"), corpora, strict=True):
        rows = evaluate(corpus)[0]["protocols"]["paper"]["rows"]
        print(name, {tree: round(row["f1"], 2) for tree, row in rows.items() if tree != "induced"})
    ours, published = (np.unique(keys_of(paper(corpus).spans)) for corpus in corpora)
    common = np.intersect1d(ours, published).size
    print(f"spans of one that the other has, too: {100 * common / len(ours):.1f}%")


if __name__ == "__main__":
    main()
