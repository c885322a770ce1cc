"""The grammar behind demo/: German source, English target, gold trees and heads, from synchronous rules.

`grammar.txt` has words and rules, `table` reads it, `inflection` makes forms, `derivation` draws sentences.
The translation follows from the German sentence alone. A model must know that:
- the verb stands last in subordinate clauses, and after its objects next to an auxiliary;
- a particle at the end decides the verb (`nimmt … an` accepts, `nimmt … mit` takes);
- case decides who does what (`Den Arzt sieht die Frau`), and whether `in` is "in" or "into";
- a verb's number decides whether `sie` is "she" or "they", and who acts in `die Frau, die die Kinder sehen`;
- the verb decides what `mit` means: `sieht die Frau mit der Kamera` is "through", `besucht …` "with".

Dependency heads: the finite verb heads its clause, an auxiliary its verb, a preposition its noun, the first
conjunct the others; commas depend on the head of their clause, the full stop on the root. Arcs never cross.

`PYTHONPATH=tools python -m demo_grammar demo` writes demo/ again, with the same bytes once they are unpacked.
"""

import random
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

from demo_grammar.derivation import Side, sentence
from synmask.pipeline.files import write_lines

SIZES = {"train": 6000, "valid": 400, "test": 400}


def distinct(sizes: Mapping[str, int], draw: Callable[[], Any], key: Callable[[Any], Hashable]) -> Iterator:
    """Yield (part, what was drawn), `sizes[part]` of each part; no key occurs twice."""
    seen = set()
    for part, size in sizes.items():
        end = len(seen) + size
        while len(seen) < end:
            drawn = draw()
            if key(drawn) not in seen:
                seen.add(key(drawn))
                yield part, drawn


def generate(sizes: Mapping[str, int], seed: int = 1) -> Iterator[tuple[str, tuple[Side, Side]]]:
    """Yield (split, (German, English)), `sizes[split]` of each split; no German sentence occurs twice.

    The same sizes and seed give the same sentences.
    """
    rng = random.Random(seed)
    return distinct(sizes, draw=lambda: sentence(rng), key=lambda pair: pair[0].text)


def parsed_files(prefix: Path, sides: Collection[Side], packed: str, text: str = "") -> dict[Path, list[str]]:
    """File → its lines: the text, PREFIX and `text`, and its trees and heads; `packed`: ".gz" or ""."""
    lines = {
        text: [side.text for side in sides],
        ".trees": [str(side.tree) for side in sides],
        ".heads": [" ".join(map(str, side.heads)) for side in sides],
    }
    return {Path(f"{prefix}{ending}{packed}"): found for ending, found in lines.items()}


def write_corpus(folder: Path, sizes: Mapping[str, int] = SIZES, seed: int = 1, packed: str = ".gz") -> None:
    """Write {train,valid,test}.{de,en} and their gold .trees and .heads, each one line per sentence.

    A line of .trees is a bracketed tree of the line's Moses tokens, a line of .heads their heads (from 1, 0 =
    root), separated by spaces.
    """
    drawn = list(generate(sizes, seed))
    for split in sizes:
        for number, language in enumerate(("de", "en")):
            sides = [pair[number] for name, pair in drawn if name == split]
            for path, lines in parsed_files(folder / f"{split}.{language}", sides, packed).items():
                write_lines(path, lines)
