"""The demo corpus: German-like source, English-like target, gold trees and heads, from one grammar.

A sentence is drawn (`grammar`) as abstract syntax (`abstract`), without word order. Two linearisers
(`german`, `english`) turn it into phrases with a head child (`phrases`). The text, the constituency tree and
the dependency heads of a side are derived from the same phrase, so they always agree.

The translation follows from the source sentence alone. To translate, a model must know that:
- the verb stands last in subordinate clauses, and after its objects next to an auxiliary;
- a particle at the end of the clause decides the verb (`nimmt … an` accepts, `nimmt … mit` takes);
- case decides who does what (`Den Arzt sieht die Frau`), and whether `in` is "in" or "into";
- the verb's number, far away, decides whether `sie` is "she" or "they", and who acts in `die Frau, die
  die Kinder sehen`;
- the verb decides where a phrase attaches: `sieht die Frau mit der Kamera` is "through", `kennt die Frau
  mit der Kamera` is "with".

Dependency heads: the finite verb heads its clause, an auxiliary its verb, a preposition its noun, the first
conjunct the others; commas depend on the head of the clause that they set off, the full stop on the root.
Every arc is projective.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from synmask.pipeline.config.sections import Generate
from synmask.pipeline.corpora.demo import english, german
from synmask.pipeline.corpora.demo.abstract import Clause
from synmask.pipeline.corpora.demo.phrases import Side, side_of
from synmask.pipeline.corpora.demo.sampling import Grammar
from synmask.pipeline.files import UserError, write_lines
from synmask.pipeline.options import Json

SPLITS = ("train", "valid", "test")
LENGTHS = range(4, 31)  # tokens per side, including the full stop


@dataclass(frozen=True)
class Sentence:
    source: Side
    target: Side


def linearise(clauses: Sequence[tuple[tuple[str, str], Clause]]) -> Sentence:
    """Both sides of one main clause or two, each with the conjunction (German, English) before it."""
    return Sentence(side_of(german.sentence(clauses)), side_of(english.sentence(clauses)))


def generate(sizes: Mapping[str, int], seed: int) -> Iterator[tuple[str, Sentence]]:
    """Yield (split, sentence), `sizes[split]` of each split; no source sentence occurs twice.

    The same sizes and seed give the same sentences; each side has 4 to 30 tokens.

    Raises:
        UserError: `sizes` does not give a positive whole number for each of train, valid and test.
    """
    if set(sizes) != set(SPLITS) or any(type(size) is not int or size < 1 for size in sizes.values()):
        raise UserError(
            f"demo corpus: sizes {dict(sizes)}; give train, valid and test a positive whole number each"
        )
    grammar = Grammar(random.Random(seed))
    seen = set()
    for split in SPLITS:
        done = 0
        while done < sizes[split]:
            sentence = linearise(grammar.sentence())
            fits = all(len(side.heads) in LENGTHS for side in (sentence.source, sentence.target))
            if fits and sentence.source.text not in seen:
                seen.add(sentence.source.text)
                done += 1
                yield split, sentence


def write_corpus(*, output: Path, settings: Json[Generate]) -> None:
    """Generate the demo corpus with its gold trees and heads.

    A line of .trees is a bracketed tree of the line's Moses tokens, a line of .heads their heads (from 1, 0 =
    root), separated by spaces.

    Args:
        output: Folder for {train,valid,test}.{de,en}, .trees and .heads.
        settings: Sizes and seed: '{"seed": 1, "train": 8000, "valid": 400, "test": 400}'.

    Raises:
        UserError: as for `generate`.
    """
    splits: dict[str, list[Sentence]] = {split: [] for split in SPLITS}
    for split, sentence in generate(settings.model_dump(exclude={"seed"}), settings.seed):
        splits[split].append(sentence)
    for split, sentences in splits.items():
        for language, sides in (("de", [s.source for s in sentences]), ("en", [s.target for s in sentences])):
            write_lines(output / f"{split}.{language}", (side.text for side in sides))
            write_lines(output / f"{split}.{language}.trees", (str(side.tree) for side in sides))
            write_lines(
                output / f"{split}.{language}.heads", (" ".join(map(str, side.heads)) for side in sides)
            )
