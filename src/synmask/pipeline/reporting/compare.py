"""Compare the translations of any systems, one file per seed, from any toolkit."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from cyclopts import Parameter

from synmask.pipeline.arguments import Lowercase
from synmask.pipeline.config.base import Language, Measured, Positive
from synmask.pipeline.display import isolate, text_table
from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation.bleu import ChrF, read_texts, words_of
from synmask.pipeline.evaluation.measure import metric_counts
from synmask.pipeline.evaluation.significance import LEVEL, holm, seeds_needed
from synmask.pipeline.evaluation.significance import compare as difference
from synmask.pipeline.files import csv_text, read_lines, write_all
from synmask.pipeline.reporting.cells import signed
from synmask.pipeline.reporting.examples import examples
from synmask.pipeline.reporting.html import render
from synmask.pipeline.reporting.metrics import METRICS
from synmask.pipeline.reporting.results import score_of

LENGTHS = {"1–5": 5, "6–10": 10, "11–15": 15, "16–20": 20, "21–30": 30, "31–40": 40, "41+": math.inf}
SEVERAL = {"0": 0, "1": 1, "2": 2, "3+": math.inf}  # words that are rare
ONE_SEED = "one seed: test set only"
RARE = 2  # a word is rare if the text has it so often at most


def _by_option(_: Any, tokens: Sequence[Any]) -> tuple[tuple[str, ...], ...]:
    """The words behind each `--system`."""
    starts = [place for place, token in enumerate(tokens) if token.index == 0]
    groups = pairwise([*starts, len(tokens)])
    return tuple(tuple(token.value for token in tokens[start:end]) for start, end in groups)


Systems = Annotated[tuple[tuple[str, ...], ...], Parameter(converter=_by_option, name="--system")]


@dataclass(frozen=True)
class System:
    """A system's translations: of each seed the N lines, their counts (N, D), and chrF.

    The metric follows from sums of counts (`metric_counts`).
    """

    name: str
    texts: Sequence[list[str]]
    score: Callable[[np.ndarray], np.ndarray]
    counts: Sequence[np.ndarray]
    chrf: list[float]
    signatures: dict[str, str]  # by metric

    def scores(self, rows: np.ndarray | slice = slice(None)) -> list[float]:
        """The score of each seed, perhaps of some sentences."""
        return [float(self.score(table[rows].sum(axis=0))) for table in self.counts]


def compare(
    reference: Path,
    /,
    *,
    systems: Systems,
    language: Language = "en",
    lowercase: Lowercase = False,
    metric: Literal["sacrebleu"] | Measured = "sacrebleu",
    source: Path | None = None,
    train: Path | None = None,
    gain: Positive = 0.5,
    output: Path | None = None,
) -> None:
    """Compare any systems' translations with the first system's, over test sentences and seeds.

    For example: `synmask compare test.en --system Base base.1 base.2 --system Ours ours.1 ours.2`

    Args:
        reference: Reference translations, plain text, one sentence per line.
        systems: A name and the files of its translations, one per seed; again for each system.
        language: The references' language (see `score`).
        metric: sacrebleu, ter, or a function of yours by its dotted name (docs/tables.md).
        source: The source sentences, for the page and for a function of yours.
        train: Text in which rare words are counted; default: the references.
        gain: A difference in this metric; "needed" is the fewest seeds per side that find it four times out
            of five.
        output: A prefix: writes OUTPUT.csv and the page OUTPUT.html, too.

    Raises:
        UserError: there are fewer than two systems, one without a name of its own or without a file, or a
            file is given twice or does not have a line per reference.
    """
    _check(systems)
    if train and not output:
        raise UserError("--train: rare words are on the page alone; give --output, too")
    if output and output.is_dir():
        raise UserError(f"{output}: a folder; give what the names of the two files begin with")
    first, *others = dict.fromkeys(file for _, *files in systems for file in files)  # once: one may be a pipe
    text, references, *rest = read_texts(first, reference, *others, *([source] if source else []))
    sources, kwargs = rest.pop() if source else None, {"language": language, "lowercase": lowercase}
    lines_of = dict(zip([first, *others], [text, *rest], strict=True))
    scored = [
        _scored(name, [lines_of[file] for file in files], references, sources, metric, **kwargs)
        for name, *files in systems
    ]
    label = "BLEU" if metric == "sacrebleu" else METRICS[metric].label
    rows = _rows(scored, label, gain)
    heads = [*rows[-1]]
    cells = [[row.get(head, "") for head in heads] for row in rows]
    print(text_table(heads, cells), end="\n\n")
    notes = [f"{metric}: {signature}" for metric, signature in scored[0].signatures.items()]
    notes += _notes(scored, label, gain)
    print("\n".join(notes))
    if output is None:
        return
    by_group = {
        heading: [
            (name, len(lines), [f"{fmean(system.scores(lines)):.2f}" for system in scored])
            for name, lines in groups.items()
        ]
        for heading, groups in _groups(references, train, **kwargs).items()
    }
    runs = [(system.name, seed) for system in scored for seed in range(1, len(system.counts) + 1)]
    translations = [lines for system in scored for lines in system.texts]
    sides = [sources or references, references, *translations]
    page = render(
        "compare.html", [],
        systems=[isolate(system.name) for system in scored],
        notes=notes,
        heads=heads,
        metric=label,
        rows=cells,
        groups=by_group,
        runs=[f"{isolate(name)} {seed}" for name, seed in runs],
        examples=examples(sides, runs, **kwargs),
        with_source=source is not None,
    )  # fmt: skip
    numbers = [[row[0], *(cell.replace("−", "-") for cell in row[1:])] for row in cells]
    write_all({Path(f"{output}.csv"): csv_text([heads, *numbers]), Path(f"{output}.html"): page})


def _check(systems: Systems) -> None:
    """Check the names and files behind each `--system`."""
    names = [name for name, *_ in systems]
    if len(systems) < 2 or len({*names}) < len(names) or not all(files for _, *files in systems):
        raise UserError(
            "give --system NAME FILE… twice or more, each with a name of its own and a file per seed"
        )
    for name, *files in systems:
        if twice := [file for place, file in enumerate(files) if file in files[:place]]:
            raise UserError(f"{twice[0]}: given twice for {name}; give a file per seed, each once")


def _scored(
    name: str,
    texts: Sequence[list[str]],
    references: list[str],
    sources: list[str] | None,
    metric: str,
    **kwargs: Any,
) -> System:
    """A system with the scores of its translations; `kwargs`: as for `metric_counts`."""
    chrf = ChrF(lowercase=kwargs["lowercase"])
    counted = [metric_counts(metric, lines, references, sources, **kwargs) for lines in texts]
    chrfs = [chrf.corpus_score(lines, [references]).score for lines in texts]
    signatures = {metric: counted[0][1], "chrf": str(chrf.get_signature())}
    return System(name, texts, score_of(metric), [counts for counts, _ in counted], chrfs, signatures)


def _rows(systems: Sequence[System], label: str, gain: float) -> list[dict[str, str]]:
    """A row per system; p is corrected for the number of rivals of the first (Holm 1979)."""
    scores = [system.scores() for system in systems]
    rows = [
        {
            "system": system.name,
            "seeds": str(len(of_seeds)),
            label: f"{fmean(of_seeds):.2f}",
            "sd": f"{stdev(of_seeds):.2f}" if len(of_seeds) > 1 else "",
            "chrF": f"{fmean(system.chrf):.2f}",
        }
        for system, of_seeds in zip(systems, scores, strict=True)
    ]
    (first, *rivals), (baseline, *others) = systems, scores
    tests = [
        difference(
            own,
            baseline,
            system.counts,
            first.counts,
            names=f"{system.name}, {first.name}",
            score=system.score,
        )
        for system, own in zip(rivals, others, strict=True)
    ]
    corrected = holm([test.p for test in tests])
    for row, rival, test, p in zip(rows[1:], scores[1:], tests, corrected, strict=True):
        needed = seeds_needed(rival, scores[0], gain, LEVEL / len(tests))
        several = math.isfinite(test.low)
        row |= {
            "difference": signed(test.difference),
            "95% interval": f"{signed(test.low)} to {signed(test.high)}" if several else ONE_SEED,
            "p": f"{p:.3f}",
            "p test set": f"{test.p_test_set:.3f}",
            "p seeds": "" if test.p_seeds is None else f"{test.p_seeds:.3f}",
            "needed": "" if needed is None else str(needed),
        }
    return rows


def _notes(systems: Sequence[System], label: str, gain: float) -> list[str]:
    """The meaning of the columns of `_rows`."""
    rivals = len(systems) - 1
    corrected = f", corrected for {rivals} systems (Holm)" if rivals > 1 else ""
    return [
        f"difference: of {label} from {systems[0].name}'s; its 95% interval is over seeds",
        "p test set: how often chance gives such a difference (paired bootstrap over sentences and seeds)",
        "p seeds: the same by Welch's test over seeds; empty with one seed: p says nothing of others then",
        f"p: the larger of the two{corrected}: judge by it; below {LEVEL}, the difference is significant",
        "needed: the fewest seeds per side that find "
        f"a difference of {gain:g} {label} four times out of five",
    ]


def _groups(
    references: list[str], train: Path | None, language: str, lowercase: bool
) -> dict[str, dict[str, np.ndarray]]:
    """Groups of sentences, as the numbers of their lines from 0: by length, and by their rare words."""
    split = words_of(language)

    def words_in(line: str) -> list[str]:
        return split(line.lower() if lowercase else line)

    words = [words_in(line) for line in references]
    counting = "all references" if train is None else "the training text"
    counted = Counter(
        word for line in (read_lines(train) if train else references) for word in words_in(line)
    )
    numbers = {
        "number of words in the reference": ([*map(len, words)], 0, LENGTHS),
        f"number of rare words in the reference, seen at most {RARE} times in {counting}": (
            [sum(counted[word] <= RARE for word in line) for line in words], -1, SEVERAL,
        ),
    }  # fmt: skip
    groups = {}
    for heading, (values, low, ends) in numbers.items():
        names = pd.cut(values, [low, *ends.values()], labels=[*ends])
        groups[heading] = pd.Series(values).groupby(names, observed=True).indices
    return groups
