"""The model card of an exported model: README.md with the header that Hugging Face's hub reads.

All numbers come from the run's folder, where the model file is; what is missing there is left out. A model
that was copied may have scores of another run beside it: they do not count.
"""

import ast
import csv
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import yaml

from synmask.pipeline.display import escape_markdown, markdown_table, printable
from synmask.pipeline.evaluation.bleu import bleu_of_counts
from synmask.pipeline.evaluation.sentences import counts_of
from synmask.pipeline.evaluation.significance import compare
from synmask.pipeline.paths import existing
from synmask.pipeline.record import read_record, read_training_digest

BASELINE = "transformer"
EXPERIMENT_KEYS = ("corpus", "direction", "task")  # what the scores of comparable runs have in common
SCORE_KEYS = (*EXPERIMENT_KEYS, "system", "seed")
FRONT_MATTER = "---\n# license: yours to fill in before you publish this model\n"
UNSCORED = "## Results\n\nUnknown: no `scores.json` of this run was beside {} when it was exported."


def model_card(
    path: Path,
    header: dict[str, Any],
    system: Any,
    usage: str,
    limits: Sequence[str],
    origin: Mapping[str, Any],
) -> str:
    """The card of the model in the file `path`.

    Args:
        header: the hub's keys, such as `pipeline_tag`.
        system: the part of its settings that says how syntax guides it (`Guidance`).
        usage: Python code that loads the folder "exported".
        limits: sentences on what it cannot do.
        origin: the run that the model file carries, which names it and whose scores count.
    """
    run = path.resolve().parent
    scores = _read_scores(run, origin, SCORE_KEYS)
    title = _title(origin or scores) or path.stem
    tags = ["synmask", *([] if system.guide == "none" else [system.guide, "grammar-induction"])]
    fields = {"library_name": "transformers", "tags": tags} | header
    head = FRONT_MATTER + yaml.safe_dump(fields, sort_keys=False)
    parts = [f"{head}---\n\n# {_escape(title)}", _method_text(system)]
    parts += (
        [*_results_text(run, scores), *_training_text(run, scores)]
        if scores
        else [UNSCORED.format(path.name)]
    )
    parts += [
        f"## Use\n\n```python\n{usage}```",
        "## Limits\n\n" + "\n".join(f"- {limit}" for limit in limits),
    ]
    return "\n\n".join(parts) + "\n"


def _escape(value: Any) -> str:
    """A value of a file as text in Markdown, in one line."""
    return escape_markdown(printable(str(value)))


def _title(run: Mapping[str, Any]) -> str | None:
    if not {"system", "corpus", "seed"} <= run.keys():
        return None
    where = run.get("direction", run.get("task"))
    return f"{run['system']}, {run['corpus']} {where}, seed {run['seed']}"


def _method_text(system: Any) -> str:
    if system.guide == "none":
        return "Self-attention is not guided by syntax."
    source = Path(find_spec(f"synmask.guides.{system.guide}").origin)
    summary = ast.get_docstring(ast.parse(source.read_bytes())).splitlines()[0]  # python -OO drops __doc__
    options = ", ".join(f"{name} {_escape(value)}" for name, value in system.options.items())
    return f"{summary}\n\nOptions: {options}. The code of the method lies in this folder (`synmask_*.py`)."


def _read_scores(run: Path, of: Mapping[str, Any], parts: Sequence[str]) -> dict[str, Any]:
    """The scores in a run's folder; none if there are none, or if they differ from `of` in these parts."""
    path, train = run / "scores.json", run / "train.json"
    scores = read_record(path, [run / "sentences.csv"], read_training_digest(run)) if path.exists() else {}
    if train.exists():
        read_record(train, [run / "history.csv"])
    return scores if all(scores.get(part) == of[part] for part in parts if part in of) else {}


def _results_text(run: Path, scores: dict[str, Any]) -> list[str]:
    """A table of the run's scores, beside the mean and the standard deviation of the system's seeds."""
    same = _seed_folders(run.parent, scores, *EXPERIMENT_KEYS, "system")
    seeds = [_read_scores(folder, scores, ()) for folder in same] or [scores]
    heads, rows = ["set", "score", "this model", "mean of seeds", "seeds"], []
    for part, values in scores["scores"].items():
        for name, value in values.items():
            all_seeds = [run_scores["scores"][part][name] for run_scores in seeds]
            spread = f" ± {stdev(all_seeds):.2f}" if len(seeds) > 1 else ""
            mean = f"{fmean(all_seeds):z.2f}{spread}"
            rows.append([_escape(part), _escape(name), f"{value:z.2f}", mean, str(len(seeds))])
    signed = [f"{name}: `{signature}`" for name, signature in scores.get("signatures", {}).items()]
    notes = ["Signatures: " + "; ".join(signed)] if signed else []
    return ["## Results", markdown_table(heads, "lllll", rows), *notes, *_baseline_text(run, scores)]


def _seed_folders(system: Path, of: Mapping[str, Any], *parts: str) -> list[Path]:
    """The folders of a system's runs whose scores are their own, and `of`'s in these parts."""
    seeds = {run: int(run.name.removeprefix("seed")) for run in existing("seed{seed}", system)}
    return [run for run, seed in seeds.items() if _read_scores(run, {**of, "seed": seed}, (*parts, "seed"))]


def _baseline_text(run: Path, scores: Mapping[str, Any]) -> list[str]:
    """The difference of sacreBLEU from the plain Transformer of the same corpus, and its certainty."""
    baseline = run.parent.parent / BASELINE
    if scores.get("system") == BASELINE:
        return []
    sides = [
        _seed_folders(run.parent, scores, *EXPERIMENT_KEYS, "system"),
        _seed_folders(baseline, scores, *EXPERIMENT_KEYS),
    ]
    files = [
        [folder / "sentences.csv" for folder in side if (folder / "sentences.csv").exists()] for side in sides
    ]
    if not all(files):
        return []
    counts = [[counts_of(path, "sacrebleu") for path in side] for side in files]
    bleu = [[float(bleu_of_counts(table.sum(axis=0))) for table in side] for side in counts]
    test = compare(*bleu, *counts, names=f"{run.parent.name} and {BASELINE}", score=bleu_of_counts)
    seeds = "one seed" if test.p_seeds is None else f"95% interval {test.low:+z.2f} to {test.high:+z.2f}"
    difference = f"test sacreBLEU {test.difference:+z.2f} ({seeds}; p = {test.p:.3f}"
    return [f"Against `{BASELINE}` with {len(files[1])} seeds: {difference} over sentences and seeds)."]


def _training_text(run: Path, scores: dict[str, Any]) -> list[str]:
    plain = {name: _escape(scores[name]) for name in ("corpus", "commit", "device")}
    lines = [
        "- Corpus: {corpus}; {parameters:,} parameters; commit {commit}".format(**scores | plain),
        "- {epochs} epochs, {updates} updates, {train_seconds:.0f} s on {device}".format(**scores | plain),
    ]
    if (run / "history.csv").exists():
        last = [*csv.DictReader((run / "history.csv").read_text("utf-8").splitlines())][-1]
        values = (f"{name} {_escape(value)}" for name, value in last.items() if value)
        lines.append(f"- Last epoch: {', '.join(values)}")
    return ["## Training", "\n".join(lines)]
