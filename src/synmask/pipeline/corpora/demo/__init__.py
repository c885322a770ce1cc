"""The demo corpus: German source, English target, gold trees and heads, from one synchronous grammar.

`rules` are the grammar and the tasks, `lexicon` the words; `inflection` makes their forms, and `derivation`
draws sentences with both.

The translation follows from the source sentence alone. To translate, a model must know that:
- the verb stands last in subordinate clauses, and after its objects next to an auxiliary;
- a particle at the end of the clause decides the verb (`nimmt … an` accepts, `nimmt … mit` takes);
- case decides who does what (`Den Arzt sieht die Frau`), and whether `in` is "in" or "into";
- the verb's number, far away, decides whether `sie` is "she" or "they", and who acts in `die Frau, die
  die Kinder sehen`;
- the verb decides where a phrase attaches: `sieht die Frau mit der Kamera` is "through", `besucht die Frau
  mit der Kamera` is "with".

Dependency heads: the finite verb heads its clause, an auxiliary its verb, a preposition its noun, the first
conjunct the others; commas depend on the head of the clause that they set off, the full stop on the root.
Every arc is projective.
"""

import random
from collections.abc import Iterator, Mapping
from pathlib import Path

from synmask.pipeline.corpora.demo.derivation import Side, sentence
from synmask.pipeline.files import UserError, write_lines

SPLITS = ("train", "valid", "test")
LENGTHS = range(4, 31)  # tokens per side, including the full stop


def generate(sizes: Mapping[str, int], seed: int) -> Iterator[tuple[str, tuple[Side, Side]]]:
    """Yield (split, (German, English)), `sizes[split]` of each split; no German sentence occurs twice.

    The same sizes and seed give the same sentences; each side has 4 to 30 tokens.

    Raises:
        UserError: `sizes` does not give a positive whole number for each of train, valid and test.
    """
    if set(sizes) != set(SPLITS) or any(type(size) is not int or size < 1 for size in sizes.values()):
        raise UserError(
            f"demo corpus: sizes {dict(sizes)}; give train, valid and test a positive whole number each"
        )
    rng = random.Random(seed)
    seen = set()
    for split in SPLITS:
        done = 0
        while done < sizes[split]:
            pair = sentence(rng)
            fits = all(len(side.heads) in LENGTHS for side in pair)
            if fits and pair[0].text not in seen:
                seen.add(pair[0].text)
                done += 1
                yield split, pair


def write_corpus(folder: Path, sizes: Mapping[str, int], seed: int) -> None:
    """Write {train,valid,test}.{de,en}, one raw sentence per line, and beside each its .trees and .heads.

    A line of .trees is a bracketed tree of the line's Moses tokens, a line of .heads their heads (from 1, 0 =
    root), separated by spaces.

    Raises:
        UserError: as for `generate`.
    """
    drawn = list(generate(sizes, seed))
    for split in SPLITS:
        for number, language in enumerate(("de", "en")):
            sides = [pair[number] for name, pair in drawn if name == split]
            path = folder / f"{split}.{language}"
            write_lines(path, (side.text for side in sides))
            write_lines(f"{path}.trees", (str(side.tree) for side in sides))
            write_lines(f"{path}.heads", (" ".join(map(str, side.heads)) for side in sides))
