"""BLEU sentence by sentence, and confidence intervals.

BLEU of a set of sentences follows from sums over them (matching and all n-grams, lengths). One file per run
holds these ten counts for each test sentence, of sacreBLEU and of tokenised BLEU, the length and number of
split words of its source, how probable the model finds its reference, and the name of its set, if there are
several.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from synmask.pipeline.evaluation.bleu import COUNTS, SOURCE, TOKENISED, bleu_of_counts
from synmask.pipeline.evaluation.run_scores import PROBABILITY, SET, perplexity
from synmask.pipeline.files import UserError

SAMPLES = 1000
OF_SENTENCES = {  # metric → the columns from whose sums it follows, and how
    "sacrebleu": (COUNTS, bleu_of_counts),
    "bleu_tokenised": (TOKENISED, bleu_of_counts),
    "perplexity": (PROBABILITY, perplexity),
}
_KINDS = dict.fromkeys([*COUNTS, *TOKENISED, *SOURCE, "tokens"], np.int64)
_KINDS |= {"log_probability": np.float64, SET: str}


class Run(NamedTuple):
    direction: str
    system: str
    seed: int


def read_sentences(path: Path) -> pd.DataFrame:
    """Read a run's sentences.csv: `COUNTS` and `SOURCE` of each sentence; and, if known, the other columns.

    Files of older versions lack `TOKENISED` and perhaps `PROBABILITY`; `SET` needs several test sets.

    Raises:
        UserError: no such file, or of another kind.
    """
    try:
        rows = pd.read_csv(path, dtype=_KINDS, keep_default_na=False)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; decode and score this run first") from None
    except ValueError as error:
        raise UserError(f"{path}: not a table of counts ({error}); delete it and rerun") from None
    least = [*COUNTS, *SOURCE]
    now = [*COUNTS, *TOKENISED, *SOURCE, *PROBABILITY]
    known = (least, [*least, *PROBABILITY], [*least, *PROBABILITY, SET], now, [*now, SET])
    if list(rows.columns) not in known or rows.empty:
        raise UserError(f"{path}: not a table of counts; delete it and rerun")
    return rows


def intervals(runs: Mapping[Run, Path]) -> pd.DataFrame:
    """sacreBLEU of each run, and each system's mean over seeds with a 95% interval.

    The interval is a percentile bootstrap over the test sentences: all seeds of a system are scored on the
    same resampled sentences, and their scores averaged. It shows how much the score depends on the choice of
    test sentences, not on the seed; the single runs show the latter.

    Returns:
        one row per run: direction, system, seed, sentences, bleu; mean, low, high of its system.
    """
    systems: dict[tuple[str, str], dict[int, pd.DataFrame]] = {}
    for run, path in runs.items():
        systems.setdefault((run.direction, run.system), {})[run.seed] = read_sentences(path)
    results = []
    for (direction, system), seeds in systems.items():
        first = next(iter(seeds.values()))
        if any(not table[SOURCE].equals(first[SOURCE]) for table in seeds.values()):
            raise UserError(
                f"{system} {direction}: its seeds have different test sentences; decode all again"
            )
        counts = [table[COUNTS].to_numpy() for table in seeds.values()]
        scores = [float(bleu_of_counts(table.sum(axis=0))) for table in counts]
        low, high = _interval(counts)
        for seed, bleu in zip(seeds, scores, strict=True):
            results.append((direction, system, seed, len(first), bleu, np.mean(scores), low, high))
    columns = ["direction", "system", "seed", "sentences", "bleu", "mean", "low", "high"]
    return pd.DataFrame(results, columns=columns)


def _interval(tables: list[np.ndarray]) -> tuple[float, float]:
    """95% interval of the mean BLEU of seeds, each (sentences, 10); the same resamples for all of them."""
    size = len(tables[0])
    weights = np.random.default_rng(1).multinomial(size, np.full(size, 1 / size), SAMPLES)  # (samples, size)
    samples = np.mean([bleu_of_counts(weights @ table) for table in tables], axis=0)
    low, high = np.percentile(samples, [2.5, 97.5])
    return float(low), float(high)
