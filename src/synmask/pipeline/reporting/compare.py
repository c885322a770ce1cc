"""Compare the translations of any systems, one file per seed, from any toolkit."""

import csv
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter
from jinja2 import Environment, PackageLoader, StrictUndefined

from synmask.pipeline.config.base import Language
from synmask.pipeline.evaluation.bleu import bleu, bleu_of_counts, read_texts, score
from synmask.pipeline.evaluation.significance import LEVEL, holm, over_seeds, seeds_needed
from synmask.pipeline.evaluation.significance import compare as certainty
from synmask.pipeline.files import UserError, all_writing, read_lines
from synmask.pipeline.options import Lowercase
from synmask.pipeline.reporting.examples import Example, examples
from synmask.pipeline.reporting.html import policy
from synmask.pipeline.reporting.layout import pipes, signed

LENGTHS = (1, 6, 11, 16, 21, 31, 41)  # the first of each group of reference lengths
RARE = 2  # a word is rare if the text has it so often at most
HEADS = (
    "system",
    "seeds",
    "BLEU",
    "sd",
    "chrF",
    "difference",
    "95% interval",
    "p",
    "p test set",
    "p seeds",
    "needed",
)


def _by_option(_: Any, tokens: Sequence[Any]) -> tuple[tuple[str, ...], ...]:
    """The words behind each `--system`."""
    found: list[list[str]] = []
    for token in tokens:
        if token.index == 0:
            found.append([])
        found[-1].append(token.value)
    return tuple(map(tuple, found))


Systems = Annotated[tuple[tuple[str, ...], ...], Parameter(converter=_by_option, name="--system")]


@dataclass(frozen=True)
class System:
    """A system's translations: of each seed's file its `bleu.COUNTS` by sentence (N, 10), BLEU and chrF."""

    name: str
    files: list[Path]
    counts: list[np.ndarray]
    bleu: list[float]
    chrf: list[float]
    signatures: dict[str, str]

    def of(self, rows: np.ndarray) -> float:
        """The mean BLEU of some sentences."""
        return fmean(float(bleu_of_counts(table[rows].sum(axis=0))) for table in self.counts)


def compare(
    reference: Path,
    /,
    *,
    systems: Systems,
    language: Language = "en",
    lowercase: Lowercase = False,
    source: Path | None = None,
    train: Path | None = None,
    gain: float = 0.5,
    output: Path | None = None,
) -> None:
    """Compare any systems' translations with the first system's, over test sentences and seeds.

    For example: `synmask compare test.en --system Base base.1 base.2 --system Ours ours.1 ours.2`

    Args:
        reference: Reference translations, plain text, one sentence per line.
        systems: A name and the files of its translations, one per seed; again for each system.
        language: The references' language (see `score`).
        source: The source sentences, for the page.
        train: Text in which rare words are counted; default: the references.
        gain: A difference in BLEU; "needed" is the fewest seeds per side that find it four times out of five.
        output: A prefix: writes OUTPUT.csv and the page OUTPUT.html, too.

    Raises:
        UserError: there are fewer than two systems, one without a name of its own or without a file, or a
            file does not have a line per reference.
    """
    names = [name for name, *_ in systems]
    if len(systems) < 2 or len({*names}) < len(names) or not all(files for _, *files in systems):
        raise UserError(
            "give --system NAME FILE… twice or more, each with a name of its own and a file per seed"
        )
    how = {"language": language, "lowercase": lowercase}
    read = [_read(name, [*map(Path, files)], reference, **how) for name, *files in systems]
    rows = _rows(read, gain)
    lines = pipes(HEADS, "l" + "r" * (len(HEADS) - 1), rows)
    signed_by = [f"{name}: {signature}" for name, signature in read[0].signatures.items()]
    print("\n".join([*lines, "", *signed_by]))
    if output is None:
        return
    groups = _groups([*read_lines(reference)], train)
    hypotheses = {(one.name, seed): path for one in read for seed, path in enumerate(one.files, start=1)}
    shown = examples(source or reference, reference, hypotheses, lowercase=lowercase)
    with all_writing([f"{output}.csv", f"{output}.html"]) as (table, page):
        plain = [[cell.replace("−", "-") for cell in row] for row in rows]
        csv.writer(table, lineterminator="\n").writerows([HEADS, *plain])
        page.write(_page(read, rows, groups, shown, with_source=source is not None))


def _read(name: str, files: list[Path], reference: Path, **how: Any) -> System:
    metric = bleu("sacrebleu", **how)
    metric.effective_order = True  # does not affect counts; avoids a warning per sentence
    counts, scores = [], []
    for path in files:
        texts = read_texts(path, reference)
        found = [metric.sentence_score(line, [expected]) for line, expected in zip(*texts, strict=True)]
        counts.append(np.array([[*one.counts, *one.totals, one.sys_len, one.ref_len] for one in found]))
        scores.append(score(texts, None, **how))
    of = {metric: [one["scores"][metric] for one in scores] for metric in ("sacrebleu", "chrf")}
    return System(name, files, counts, of["sacrebleu"], of["chrf"], scores[0]["signatures"])


def _rows(systems: Sequence[System], gain: float) -> list[list[str]]:
    """A row per system, as `HEADS`; p is corrected for the number of rivals of the first (Holm 1979)."""
    base, *rivals = systems
    tables = {one.name: [list(table.T) for table in one.counts] for one in systems}
    found = [
        certainty(one.bleu, base.bleu, tables[one.name], tables[base.name], score=bleu_of_counts)
        for one in rivals
    ]
    corrected = holm([one.p for one in found])
    rows = [[*_scores(base), *[""] * 6]]
    for one, tested, p in zip(rivals, found, corrected, strict=True):
        size = over_seeds(one.bleu, base.bleu)
        interval = f"{signed(size.low)} to {signed(size.high)}" if math.isfinite(size.low) else "one seed"
        needed = seeds_needed(one.bleu, base.bleu, gain, LEVEL / len(rivals))
        seeds = "" if tested.p_seeds is None else f"{tested.p_seeds:.3f}"
        tests = [f"{p:.3f}", f"{tested.p_test_set:.3f}", seeds, "" if needed is None else str(needed)]
        rows.append([*_scores(one), signed(size.difference), interval, *tests])
    return rows


def _scores(system: System) -> list[str]:
    spread = f"{stdev(system.bleu):.2f}" if len(system.bleu) > 1 else ""
    return [
        system.name,
        str(len(system.bleu)),
        f"{fmean(system.bleu):.2f}",
        spread,
        f"{fmean(system.chrf):.2f}",
    ]


def _groups(references: list[str], train: Path | None) -> dict[str, dict[str, np.ndarray]]:
    """Groups of sentences, as the numbers of their lines from 0: by length, and by their rare words."""
    words = [line.split() for line in references]
    counted = Counter(word for line in (read_lines(train) if train else references) for word in line.split())
    lengths = np.array([len(line) for line in words])
    rare = np.array([sum(counted[word] <= RARE for word in line) for line in words])
    ends = [*(low - 1 for low in LENGTHS[1:]), math.inf]
    by_length = {
        f"{low}–{high}" if high < math.inf else f"{low}+": np.flatnonzero(
            (lengths >= low) & (lengths <= high)
        )
        for low, high in zip(LENGTHS, ends, strict=True)
    }
    by_rare = {str(n): np.flatnonzero(rare == n) for n in range(3)} | {"3+": np.flatnonzero(rare > 2)}
    found = {"words in the reference": by_length, f"words seen at most {RARE} times": by_rare}
    return {head: {name: rows for name, rows in each.items() if len(rows)} for head, each in found.items()}


def _page(
    systems: Sequence[System],
    rows: list[list[str]],
    groups: dict[str, dict[str, np.ndarray]],
    shown: Sequence[Example],
    with_source: bool,
) -> str:
    loader = PackageLoader("synmask.pipeline.reporting", "page")
    environment = Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    by_group = {
        head: [
            (name, len(lines), [f"{one.of(lines):.2f}" for one in systems]) for name, lines in each.items()
        ]
        for head, each in groups.items()
    }
    names = [f"{one.name} {seed}" for one in systems for seed in range(1, len(one.files) + 1)]
    texts = {"systems": systems, "heads": HEADS, "rows": rows, "groups": by_group, "names": names}
    page = environment.get_template("compare.html")
    return page.render(policy=policy(), examples=shown, with_source=with_source, **texts)
