"""Test claims: contrasts between runs, their tests, a table of verdicts and a figure of effects."""

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median_high, stdev

import numpy as np
import pandas as pd

from synmask.pipeline.config import read_claims
from synmask.pipeline.config.base import DIRECTION
from synmask.pipeline.config.claims import OF_HEADS, OF_TRANSLATIONS, Claims, Contrast
from synmask.pipeline.evaluation.bootstrap import Counts, f1
from synmask.pipeline.evaluation.contrasts import LEVEL, claim_verdict, effect, holm, seeds_needed, verdict
from synmask.pipeline.evaluation.run_scores import PROBABILITY, perplexity
from synmask.pipeline.evaluation.sentences import OF_SENTENCES, read_sentences
from synmask.pipeline.evaluation.significance import compare
from synmask.pipeline.files import UserError, read_json, write_lines
from synmask.pipeline.reporting.layout import arrow, pipes, plain, signed, write_csv
from synmask.pipeline.reporting.metrics import METRICS
from synmask.pipeline.reporting.runs import (
    RUN,
    check_alike,
    read_counts,
    read_head_scores,
    read_history,
    read_parse_scores,
    read_recalls,
    read_scores,
)
from synmask.pipeline.reporting.style import COLOURS, DARK, GREY, in_style, panels, save

TITLES = {
    "sacrebleu": METRICS["sacrebleu"].label,
    "perplexity": "Perplexity of the test set (lower is better)",
    "f1_words": "F1 of trees (words)",
    "f1_paper": "F1 of trees (the paper's count)",
    "attachment": "Undirected heads, percentage of words",
    "probe": "Heads found by a linear probe, percentage of words",
}
SMALL = 5.0  # a relevant gain in F1 or words, if a claim names none
SMALL_OF = {"sacrebleu": 0.5, "perplexity": -0.1}
UNITS = {"sacrebleu": "", "perplexity": " perplexity"} | dict.fromkeys(OF_HEADS, " points")  # else F1
LABELS = 5  # kinds of constituents in the table of recalls
SHOWN = {
    "valid_sacrebleu": f"{METRICS['sacrebleu'].label}, validation",
    "sacrebleu": f"{METRICS['sacrebleu'].label}, test",
    "chrf": f"{METRICS['chrf'].label}, test",
}
OF_SETS = ("sacrebleu", "chrf")
OF_RUN = ["device", "commit", "valid_perplexity", "valid_sacrebleu", "sacrebleu", "f1_words"]
OF_RUN += ["minutes", "tokens_per_second"]
AXES = {
    "sacrebleu": "Difference in sacreBLEU (test set)",
    "perplexity": "Difference in perplexity (test set)",
}
SAMPLES = 10_000  # of a test: Holm's correction asks for small p
VERDICTS = {"holds": COLOURS[2], "does not hold": COLOURS[1], "cannot tell": GREY}


@dataclass
class Found:
    """One contrast in one direction: the scores of its seeds and the results of the tests."""

    claim: str
    direction: str
    system: str
    rival: str
    metric: str
    seeds: int  # of the system
    rival_seeds: int  # 0: trivial trees
    mean: float
    rival_mean: float
    difference: float
    low: float
    high: float
    p_test_set: float
    p_seeds: float
    gain: float | None
    p_gain_test_set: float | None  # of a difference as large as the gain
    p_gain_seeds: float | None
    needed: int | None = None  # seeds per side, by the test over the seeds
    p: float = 1.0  # the larger p, adjusted for the number of contrasts
    p_gain: float | None = None  # likewise, for the number of contrasts with a gain; 1 if it is reached
    verdict: str = ""

    @property
    def sign(self) -> int:
        """-1 if lower is better."""
        return -1 if self.metric == "perplexity" else 1


class Runs:
    """The results of the runs in a folder: all of them, or those with these `scores`."""

    def __init__(self, folder: Path, corpus: str, scores: Sequence[Path] | None = None) -> None:
        self.folder = folder / corpus
        self.chosen = None if scores is None else {path.parent.parts[-4:] for path in scores}
        if not self.folder.is_dir():
            raise UserError(f"{self.folder}: no such folder; give the folder that holds the runs' corpora")

    def seeds(self, direction: str, system: str, name: str) -> dict[int, Path]:
        """Seed → its file of this name, if it exists."""
        paths = self.files(name, direction, system)
        return dict(sorted((int(path.parent.name.removeprefix("seed")), path) for path in paths))

    def files(self, name: str, direction: str = "*", system: str = "*") -> list[Path]:
        """The files of this name of the runs, in the order of their paths."""
        paths = sorted(self.folder.glob(f"{direction}/{system}/seed*/{name}"))
        paths = [path for path in paths if re.fullmatch(r"seed\d+", path.parent.name)]
        return [path for path in paths if self.chosen is None or path.parent.parts[-4:] in self.chosen]

    def directions(self) -> list[str]:
        names = (path.name for path in self.folder.iterdir() if path.is_dir())
        return sorted(name for name in names if re.fullmatch(DIRECTION, name))

    def systems(self, direction: str) -> list[str]:
        return sorted(path.name for path in (self.folder / direction).iterdir() if path.is_dir())

    def scores(self, direction: str, system: str) -> pd.DataFrame:
        """One row per seed; empty if there are none."""
        paths = self.seeds(direction, system, "scores.json")
        if not paths:
            return pd.DataFrame(columns=SHOWN)
        scores = read_scores(paths.values())
        check_alike(scores)
        return scores

    def bleu(self, direction: str, system: str) -> list[float]:
        """sacreBLEU of the test set per seed."""
        return [*self.scores(direction, system)["sacrebleu"]]

    def sentences(self, direction: str, system: str, columns: Sequence[str]) -> list[np.ndarray]:
        """These D columns (D, N) of the N test sentences per seed: BLEU's counts, or log-probabilities.

        Raises:
            UserError: a run has none, or they are damaged.
        """
        paths = [
            path.with_name("sentences.csv") for path in self.seeds(direction, system, "scores.json").values()
        ]
        tables = [read_sentences(path) for path in paths]
        for path, table in zip(paths, tables, strict=True):
            if lacking := {*columns} - {*table.columns}:
                raise UserError(f"{path}: no column {', '.join(sorted(lacking))}; decode and score it again")
        return [table[[*columns]].to_numpy().T for table in tables]

    def test_perplexities(self, direction: str, system: str) -> list[float]:
        """Of the test set's references, per seed."""
        sums = [run.sum(axis=1) for run in self.sentences(direction, system, PROBABILITY)]
        return [float(perplexity(one)) for one in sums]

    def perplexities(self, direction: str, system: str) -> list[float]:
        """Of the validation set after the last epoch, per scored seed: not yet of averaged checkpoints."""
        paths = self.seeds(direction, system, "scores.json").values()
        return [found for path in paths if (found := _perplexity(path)) is not None]

    def percentages(self, direction: str, system: str, metric: str, row: str = "induced") -> list[float]:
        """F1 of trees, or percentage of heads, per seed."""
        if metric in OF_HEADS:
            paths = self.seeds(direction, system, "heads.json").values()
            return [found[metric][row][0] for found in read_head_scores(paths)]
        paths = self.seeds(direction, system, "parse.json").values()
        return [*read_parse_scores(paths, metric.removeprefix("f1_"), row)["f1"]]

    def counts(self, direction: str, system: str, metric: str, row: str = "induced") -> list[Counts]:
        """Counts of spans or of heads per seed."""
        if metric in OF_HEADS:
            paths = self.seeds(direction, system, "heads.json").values()
            return [found[metric][row][1] for found in read_head_scores(paths)]
        scored = self.seeds(direction, system, "parse.json").values()
        paths = [path.with_name("parse_counts.json") for path in scored]  # a missing one is an error
        protocol = metric.removeprefix("f1_")
        counts = read_counts(paths)
        return [trees[row] for (*_, name), trees in counts.items() if name == protocol and row in trees]


def verdict_on(*, claims: Path, results: Path, output: Path, scores: tuple[Path, ...] | None = None) -> None:
    """Test claims on runs: differences, significance, and how many seeds are needed.

    Args:
        claims: claims.yaml.
        results: The folder with the runs, such as results/.
        output: Prefix of .md, .csv, .runs.csv, .svg and .pdf.
        scores: Of the runs to read, their scores.json; by default all runs in the folder.
    """
    write_verdict(read_claims(claims), results, output, scores)


def write_verdict(claims: Claims, results: Path, output: Path, scores: Sequence[Path] | None = None) -> None:
    """Write `output`.md, the verdicts and all contrasts; .csv, .svg and .pdf, the effects; .runs.csv, runs.

    Args:
        results: the folder with the runs, CORPUS/DIRECTION/SYSTEM/seedN/ with scores.json and, where they
            exist, history.csv, sentences.csv, parse.json, parse_counts.json and heads.json.
        scores: scores.json of the runs to read; None: of all runs in the folder.
    Raises:
        UserError: a file is missing or damaged.
    """
    runs = Runs(results, claims.corpus, scores)
    found = contrasts(claims, runs)
    if not found:
        raise UserError(f"{runs.folder}: no runs of any contrast; run them first")
    parts = (_summary(claims, found), _details(found), _systems(runs), _sets(runs))
    parts += (_heads(runs), _labels(runs))
    write_lines(Path(f"{output}.md"), itertools.chain.from_iterable(parts))
    _draw(found, output)
    write_csv(f"{output}.runs", _table(runs))


def contrasts(claims: Claims, runs: Runs) -> list[Found]:
    """All contrasts in all directions that have runs of both sides, with their verdicts."""
    found, sides = [], []
    for claim in claims.claims:
        for contrast, direction in itertools.product(claim.contrasts, runs.directions()):
            ours, theirs = scores_of(contrast, direction, runs)
            if ours and theirs != []:
                found.append(_contrast(claim.name, contrast, direction, ours, theirs, runs))
                sides.append((ours, theirs))
    _adjust(found)
    for one, scores in zip(found, sides, strict=True):
        one.verdict = verdict(one.sign * one.difference, one.p, one.p_gain)
        wanted = one.gain or SMALL_OF.get(one.metric, SMALL)
        one.needed = seeds_needed(*scores, wanted, LEVEL / len(found))
    return found


def _adjust(found: Sequence[Found]) -> None:
    """Holm's correction, over all tests of no difference and over all tests of a claimed gain."""
    for one, p in zip(found, holm([max(one.p_test_set, one.p_seeds) for one in found]), strict=True):
        one.p = p
    claimed = [one for one in found if one.gain is not None]
    smaller = [
        max(one.p_gain_test_set, one.p_gain_seeds) if one.sign * (one.difference - one.gain) < 0 else 1.0
        for one in claimed
    ]
    for one, p in zip(claimed, holm(smaller), strict=True):
        one.p_gain = p


def _counts(contrast: Contrast, direction: str, runs: Runs) -> tuple[tuple[list, list], Callable]:
    """The counts per sentence of both sides' runs, and the score that follows from their sums."""
    system, rival, metric = contrast.system, contrast.rival, contrast.metric
    if metric in OF_SENTENCES:
        columns, score = OF_SENTENCES[metric]
        return tuple(runs.sentences(direction, side, columns) for side in (system, rival)), score
    ours = runs.counts(direction, system, metric, contrast.own_row)
    if contrast.trivial:  # alike for all runs of the system
        return (ours, runs.counts(direction, system, metric, rival)[:1]), f1
    return (ours, runs.counts(direction, rival, metric)), f1


def scores_of(contrast: Contrast, direction: str, runs: Runs) -> tuple[list[float], list[float] | float]:
    """The scores per seed of both sides; what needs no parser has one number."""
    system, rival, metric = contrast.system, contrast.rival, contrast.metric
    if metric == "sacrebleu":
        return runs.bleu(direction, system), runs.bleu(direction, rival)
    if metric == "perplexity":
        return runs.test_perplexities(direction, system), runs.test_perplexities(direction, rival)
    ours = runs.percentages(direction, system, metric, contrast.own_row)
    if contrast.trivial and ours:
        return ours, fmean(runs.percentages(direction, system, metric, rival))
    return ours, runs.percentages(direction, rival, metric)


def _contrast(
    claim: str,
    contrast: Contrast,
    direction: str,
    ours: list[float],
    theirs: list[float] | float,
    runs: Runs,
) -> Found:
    gain = contrast.gain.get(direction)
    tested = (contrast, direction, ours, theirs, runs)
    return Found(
        claim,
        direction,
        contrast.system,
        contrast.rival,
        contrast.metric,
        len(ours),
        len(theirs) if isinstance(theirs, list) else 0,
        fmean(ours),
        fmean(theirs) if isinstance(theirs, list) else theirs,
        *effect(ours, theirs),
        *_tests(*tested),
        gain,
        *((None, None) if gain is None else _tests(*tested, gain)),
    )


def _tests(
    contrast: Contrast,
    direction: str,
    ours: list[float],
    theirs: list[float] | float,
    runs: Runs,
    gain: float = 0.0,
) -> tuple[float, float]:
    """p over the sentences and p over the seeds of a difference of `gain`; 1 with too few seeds to test."""
    sides, score = _counts(contrast, direction, runs)
    try:
        test = compare(ours, theirs, *sides, score=score, gain=gain, samples=SAMPLES)
    except ValueError as error:
        names = f"{direction}, {contrast.system} and {contrast.rival}"
        raise UserError(f"{names}: not scored on the same sentences ({error}); score them again") from None
    return test.p_test_set, 1.0 if test.p_seeds is None else test.p_seeds


def _summary(claims: Claims, found: Sequence[Found]) -> list[str]:
    rows = []
    for claim in claims.claims:
        parts = [one for one in found if one.claim == claim.name]
        if not parts:
            rows.append((f"**{plain(claim.name)}**", "not tested", "no runs"))
            continue
        there = {(one.system, one.rival, one.metric) for one in parts}
        absent = [c for c in claim.contrasts if (c.system, c.rival, c.metric) not in there]
        told = "; ".join([*map(_told, parts), *(f"no runs of `{c.system}` − `{c.rival}`" for c in absent)])
        decided = claim_verdict([one.verdict for one in parts])
        said = f"**{plain(claim.name)}**. {plain(claim.claim)} *Refuted by:* {plain(claim.refuted)}"
        rows.append((said, decided, told))
    return pipes(("Claim", "Verdict", "Measured"), "lll", rows)


def _told(one: Found) -> str:
    what = UNITS.get(one.metric, " F1")
    return f"{arrow(one.direction)} `{one.system}` − `{one.rival}` {signed(one.difference)}{what}"


def _details(found: Sequence[Found]) -> Iterator[str]:
    yield ""
    heads = ["Contrast", "Direction", "Seeds", "Means", "Difference, 95% interval", "Paper's gain"]
    heads += ["p sentences", "p seeds", "p, Holm", "p of the gain, Holm", "Verdict", "Seeds needed"]
    for metric, title in TITLES.items():
        rows = [one for one in found if one.metric == metric]
        if rows:
            yield from (f"**{title}**", "", *pipes(heads, "lllrrrrrrrlr", map(_detail, rows)), "")


def _detail(one: Found) -> list[str]:
    interval = f"[{signed(one.low)}, {signed(one.high)}]" if math.isfinite(one.low) else "(one seed)"
    return [
        f"`{one.system}` − `{one.rival}`",
        arrow(one.direction),
        f"{one.seeds}, {one.rival_seeds or '–'}",
        f"{one.mean:.2f}, {one.rival_mean:.2f}",
        f"{signed(one.difference)} {interval}",
        "–" if one.gain is None else signed(one.gain),
        *map(_p, (one.p_test_set, one.p_seeds, one.p, one.p_gain)),
        one.verdict,
        "–" if 1 in (one.seeds, one.rival_seeds) else "> 10,000" if one.needed is None else f"{one.needed:,}",
    ]


def _p(p: float | None) -> str:
    return "–" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def _systems(runs: Runs) -> Iterator[str]:
    """All systems that were run, best validation score first: mean and sample deviation over seeds."""
    heads = ["Perplexity, validation", *SHOWN.values(), TITLES["f1_words"], TITLES["f1_paper"]]
    for direction in runs.directions():
        scores = {system: runs.scores(direction, system) for system in runs.systems(direction)}
        scores = {system: found for system, found in scores.items() if len(found)}
        if not scores:
            continue
        rows = []
        for system in sorted(scores, key=lambda name: -scores[name]["valid_sacrebleu"].mean()):
            columns = [runs.perplexities(direction, system)]
            columns += [[*scores[system][column]] for column in SHOWN]
            columns += [runs.percentages(direction, system, metric) for metric in ("f1_words", "f1_paper")]
            rows.append((f"`{system}`", str(len(scores[system])), *map(_spread, columns)))
        table = pipes(("System", "Seeds", *heads), "lr" + "r" * len(heads), rows)
        yield from (f"**{arrow(direction)}, all runs**", "", *table, "")


def _sets(runs: Runs) -> Iterator[str]:
    """The scores on each test set, if there are several, of all systems that were run."""
    heads = [
        "Test set",
        "Sentences",
        "System",
        "Seeds",
        *(METRICS[name].label for name in OF_SETS),
        "Perplexity",
    ]
    for direction in runs.directions():
        rows: dict[str, list[tuple[str, ...]]] = {}
        for system in runs.systems(direction):
            found = [*map(_of_sets, runs.seeds(direction, system, "scores.json").values())]
            for name in found[0] if found else ():
                sets = [one[name] for one in found if name in one]
                columns = (_spread([one[key] for one in sets]) for key in (*OF_SETS, "perplexity"))
                size = f"{sets[0]['sentences']:,}"
                rows.setdefault(name, []).append((name, size, f"`{system}`", str(len(sets)), *columns))
        if rows:
            table = pipes(heads, "lrlr" + "r" * (len(heads) - 4), itertools.chain(*rows.values()))
            yield from (f"**{arrow(direction)}, by test set**", "", *table, "")


def _of_sets(path: Path) -> dict[str, dict[str, float]]:
    """Test set → its number of sentences and scores, the last of all together; {} if there is only one."""
    run = read_json(path)
    if not (sets := run.get("test_sets")):
        return {}
    whole = {"sentences": sum(one["sentences"] for one in sets.values())}
    whole |= run["scores"]["test"] | {"perplexity": run["perplexity"]["test"]}
    return sets | {"together": whole}


def _table(runs: Runs) -> pd.DataFrame:
    """All scored runs, one row each; `commit` is that of the scores."""
    paths = runs.files("scores.json")
    if not paths:
        return pd.DataFrame(columns=[*RUN, *OF_RUN])
    parses = filter(Path.exists, (path.with_name("parse.json") for path in paths))
    trees = read_parse_scores(parses, "words").set_index(RUN)["f1"].to_dict()
    table = read_scores(paths)
    table["f1_words"] = [trees.get(run) for run in table[RUN].itertuples(index=False, name=None)]
    table["valid_perplexity"] = [*map(_perplexity, paths)]
    table["minutes"] = table["train_seconds"] / 60
    columns, more = [*RUN, *OF_RUN], [*map(read_json, paths)]
    if any("perplexity" in run for run in more):  # else made before it was stored
        table["perplexity"] = [run.get("perplexity", {}).get("test") for run in more]
        table["processor"] = [run.get("processor") for run in more]
        columns += ["perplexity", "processor"]
    return table[columns]


def _perplexity(scores: Path) -> float | None:
    """Of the validation set after the last epoch of the run with this scores.json; None without a history."""
    path = scores.with_name("history.csv")
    if not path.exists():
        return None
    epochs = read_history(path, "valid_ppl")["valid_ppl"]
    if epochs.empty:
        raise UserError(f"{path}: no epoch; train again")
    return float(epochs.iloc[-1])


def _heads(runs: Runs) -> Iterator[str]:
    """The scores of all systems' heads, best probe first, and the scores without a parser."""
    pairs = [(metric, rival, own) for metric, rows in OF_HEADS.items() for rival, own in rows.items()]
    titles = ["Undirected heads", "Probe: position", "Probe: position and length"]
    for direction in runs.directions():
        found = {
            system: [runs.percentages(direction, system, metric, own) for metric, _, own in pairs]
            for system in runs.systems(direction)
            if runs.seeds(direction, system, "heads.json")
        }
        if not found:
            continue
        some = next(iter(found))
        without = [runs.percentages(direction, some, metric, rival)[:1] for metric, rival, _ in pairs]
        rows = [("none (the first column: the best rule)", "–", *map(_spread, without))]
        for system in sorted(found, key=lambda name: -fmean(found[name][1])):
            rows.append((f"`{system}`", str(len(found[system][0])), *map(_spread, found[system])))
        table = pipes(("Parser", "Seeds", *titles), "lr" + "r" * len(titles), rows)
        yield from (f"**{arrow(direction)}, heads**", "", *table, "")


def _labels(runs: Runs) -> Iterator[str]:
    """The share of the most frequent kinds of constituents that trees have, in percent."""
    for direction in runs.directions():
        found = {
            system: [read_recalls(path) for path in runs.seeds(direction, system, "parse.json").values()]
            for system in runs.systems(direction)
        }
        found = {system: recalls for system, recalls in found.items() if recalls}
        if not found:
            continue
        some = next(iter(found.values()))[0]
        labels = sorted(some, key=lambda label: -some[label]["gold"])[:LABELS]
        heads = [f"{label} ({some[label]['gold']:,})" for label in labels]
        rows = [
            (name, *(_spread([some[label][name]]) for label in labels))
            for name in ("right-branching", "balanced")
        ]
        for system, recalls in found.items():
            cells = (_spread([one[label]["induced"] for one in recalls]) for label in labels)
            rows.append((f"`{system}`", *cells))
        table = pipes(("Trees", *heads), "l" + "r" * len(labels), rows)
        yield from (f"**{arrow(direction)}, recall by label**", "", *table, "")


def _spread(values: Sequence[float]) -> str:
    """40.00 ± 0.49, or a dash without values."""
    if not values:
        return "–"
    return f"{fmean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


@in_style
def _draw(found: Sequence[Found], output: Path) -> None:
    """One row per contrast: its interval, the paper's gain as a diamond, the verdict as colour."""
    kinds = [[one for one in found if one.metric == metric] for metric in OF_TRANSLATIONS]
    kinds.append([one for one in found if one.metric not in OF_TRANSLATIONS])
    kinds = [rows for rows in kinds if rows]
    figure, axes = panels(1, len(kinds), width=7.2, height=1.4 + 0.27 * max(map(len, kinds)))
    for panel, rows in zip(axes[0], kinds, strict=True):
        for place, one in enumerate(rows):
            colour = VERDICTS[one.verdict]
            reach = np.clip([[one.difference - one.low], [one.high - one.difference]], 0, 1e3)
            panel.errorbar(one.difference, place, xerr=reach, color=colour, fmt="o", capsize=2)
            if one.gain is not None:
                panel.plot(one.gain, place, "D", color="none", mec=DARK, markersize=5)
        names = [f"{one.system} − {one.rival}, {arrow(one.direction)}" for one in rows]
        panel.set(yticks=range(len(rows)), yticklabels=names, ylim=(len(rows) - 0.5, -0.5))
        panel.axvline(0, color=DARK, linewidth=0.8)
        panel.grid(visible=False, axis="y")
        panel.set_xlabel(AXES.get(rows[0].metric, "Difference in F1 of trees, or in heads (%)"))
        most = max(abs(x) for one in rows for x in (one.difference, one.gain or 0))
        ends = [max(-one.low, one.high) for one in rows if math.isfinite(one.low)]
        limit = max(2 * most, 1.1 * median_high(ends or [0.0]))  # half of the intervals end inside
        panel.set_xlim(-limit, limit)
    marks = [axes[0][0].plot([], [], "o-", color=colour, label=name)[0] for name, colour in VERDICTS.items()]
    if any(one.gain is not None for one in found):
        marks += axes[0][0].plot([], [], "D", color="none", mec=DARK, label="gain that the paper reports")
    figure.legend(handles=marks, loc="outside lower center", ncols=len(marks))
    save(figure, output, pd.DataFrame([asdict(one) for one in found]))
