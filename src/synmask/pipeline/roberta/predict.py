"""Answers of a fine-tuned RoBERTa; of several seeds, of the one that is best on the development set."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from synmask.pipeline.arguments import OneOrMore, Threads, on_gpus
from synmask.pipeline.config.benchmarks import FinetuningSettings
from synmask.pipeline.errors import UserError, machine_fault
from synmask.pipeline.files import json_text, read_object, together, write_all
from synmask.pipeline.record import (
    NO_RUN,
    Run,
    check_model,
    check_owner,
    check_start,
    identity,
    record,
    run_beside,
)
from synmask.pipeline.roberta.encoded import read_fitting, read_syntax
from synmask.pipeline.roberta.finetune import answered, model_outputs, new_model
from synmask.pipeline.roberta.labelled import Sentences
from synmask.pipeline.roberta.model import GuidedRoberta
from synmask.pipeline.roberta.weights import Weights, load_weights
from synmask.pipeline.tasks import TASKS
from synmask.pipeline.training.torch_files import load


@on_gpus
def predict(
    *,
    model: OneOrMore[Path],
    weights: Path,
    data: Path,
    output: Path,
    scores: tuple[Path, ...] = (),
    valid: str = "dev",
    chosen: Path | None = None,
    threads: Threads = 1,
) -> None:
    """Predict the answers to a task: one label or number per line.

    Of several seeds of one system, the one that is best on the development set predicts.

    Args:
        model: best.pt of a fine-tuning, or of each seed. If a train.json is beside it, it must be of that
            training.
        weights: The weights that its training started from.
        data: PART.npz.
        output: Text, one line per example.
        scores: scores.json of each seed.
        valid: The part whose scores choose the seed.
        chosen: Output: the run of the answers, and of several models the scores of all, as JSON; default:
            .json beside --output.
    """
    torch.set_num_threads(threads)
    path, best = model[0], {}
    if scores or len(model) > 1:
        path, best = best_seed(valid, together(model=model, scores=scores))
    run = run_beside(path)
    tuned, settings, loaded, training = read_tuned(path, weights, run)
    if best.get("task", settings.task) != settings.task:
        raise UserError(f"{path}: a model of {settings.task}, --scores are of {best['task']}")
    encoded = read_fitting(data, loaded, test=True)
    syntax = read_syntax(data, encoded) if settings.system.kind.reads else None
    tuned.to("cuda" if torch.cuda.is_available() else "cpu")
    outputs = model_outputs(tuned, Sentences(encoded, loaded.dictionary, syntax=syntax))
    text = "".join(f"{line}\n" for line in answered(settings.task, outputs))
    beside = chosen or output.with_suffix(".json")
    whose = best | record(beside, run, training, {output: text})
    write_all({output: text, beside: json_text(whose)})


def best_seed(part: str, runs: Sequence[tuple[Path, Path]]) -> tuple[Path, dict[str, Any]]:
    """The model with the best score on a part of its task, the first of equal ones.

    Args:
        runs: the model and scores.json of each seed of one system.

    Returns:
        the model; {"task", "seed", "metric", "scores": seed → score in percent}.

    Raises:
        UserError: a file is missing, is not a run's scores of this part, or is another run's; or they are of
            several tasks.
    """
    scores, seeds, tasks, first = [], [], [], {}
    for _, path in runs:
        run = read_object(path)
        check_owner(path, {"run": run}, identity(run_beside(path)))
        first = first or {key: value for key, value in identity(run).items() if key not in ("seed", "task")}
        check_owner(path, {"run": run}, first)
        try:
            tasks.append(run["task"])
            seeds.append(int(run["seed"]))
            scores.append(float(run["scores"][part][TASKS[run["task"]].metrics[0]]))
        except (KeyError, TypeError, ValueError):
            raise UserError(f"{path}: no seed with a score of its task's {part}; score it again") from None
        if tasks[0] != tasks[-1]:
            raise UserError(f"{path}: scores of {tasks[-1]}, not of {tasks[0]}")
    place, metric = scores.index(max(scores)), TASKS[tasks[0]].metrics[0]
    facts = {"seed": seeds[place], "metric": metric, "scores": dict(zip(seeds, scores, strict=True))}
    return runs[place][0], {"task": tasks[0]} | facts


def read_tuned(
    model: Path, weights: Path, run: Run = NO_RUN
) -> tuple[GuidedRoberta, FinetuningSettings, Weights, str | None]:
    """The model of a fine-tuning from the folder `weights`, its settings, these weights, and which training
    it is of (`record.training_digest`).

    Raises:
        UserError: it is no such model, belongs to another run or other weights, or is not finite.
    """
    saved, loaded = load(model), load_weights(weights)
    check_model(model, saved, run)
    check_start(weights, loaded.run, run.get("start", {}))
    try:
        settings = FinetuningSettings.model_validate(saved["settings"])
        tuned = new_model(settings, loaded)
        tuned.load_state_dict({**saved["model"]})
        tuned.scale_outputs(saved.get("unit", 1.0) / TASKS[settings.task].unit)  # of older versions
    except Exception as error:  # the content of another file can raise anything
        if isinstance(error, UserError) or machine_fault(error):
            raise
        raise UserError(f"{model}: not the model of a fine-tuning from {weights}") from None
    if wrong := [name for name, value in tuned.state_dict().items() if not value.isfinite().all()]:
        raise UserError(f"{model}: {wrong[0]} is not finite; train again with a lower lr")
    return tuned, settings, loaded, saved.get("training")
