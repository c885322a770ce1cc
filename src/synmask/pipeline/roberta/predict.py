"""Answers of a fine-tuned RoBERTa."""

from pathlib import Path

import torch

from synmask.pipeline.arguments import Threads, on_gpus
from synmask.pipeline.config.benchmarks import FinetuningSettings
from synmask.pipeline.errors import UserError, machine_fault
from synmask.pipeline.files import json_text, write_all
from synmask.pipeline.record import NO_RUN, RunRecord, check_model, check_start, new_record, run_beside
from synmask.pipeline.roberta.examples import read_examples, read_syntax
from synmask.pipeline.roberta.finetune import build_model, format_answers, model_outputs
from synmask.pipeline.roberta.model import GuidedRoberta
from synmask.pipeline.roberta.sentences import Sentences
from synmask.pipeline.roberta.weights import Weights, load_weights
from synmask.pipeline.tasks import TASKS
from synmask.pipeline.training.torch_files import load_checkpoint


@on_gpus
def predict(*, model: Path, weights: Path, data: Path, output: Path, threads: Threads = 1) -> None:
    """Predict the answers to a task: one label or number per line; beside them, .json says whose they are.

    Args:
        model: best.pt of a fine-tuning. If a train.json is beside it, it must be of that training.
        weights: The weights that its training started from.
        data: PART.npz.
        output: Text, one line per example.
    """
    torch.set_num_threads(threads)
    run = run_beside(model)
    tuned, settings, loaded, saved = load_finetuned(model, weights, run)
    encoded = read_examples(data, loaded, test=True)
    syntax = read_syntax(data, encoded) if settings.system.options_class.reads else None
    tuned.to("cuda" if torch.cuda.is_available() else "cpu")
    outputs = model_outputs(tuned, Sentences(encoded, loaded.dictionary, syntax=syntax))
    text = "".join(f"{line}\n" for line in format_answers(settings.task, outputs))
    training, beside = saved.get("training"), output.with_suffix(".json")
    write_all({output: text, beside: json_text(new_record(beside, run, training, {output: text}))})


def load_finetuned(
    model: Path, weights: Path, run: RunRecord = NO_RUN
) -> tuple[GuidedRoberta, FinetuningSettings, Weights, dict]:
    """The model of a fine-tuning from the folder `weights`, its settings, these weights, its file's rest.

    Raises:
        UserError: it is no such model, belongs to another run or other weights, or is not finite.
    """
    saved, loaded = load_checkpoint(model), load_weights(weights)
    check_model(model, saved, run)
    check_start(weights, loaded.run, run.get("start", {}))
    try:
        settings = FinetuningSettings.model_validate(saved["settings"])
        tuned = build_model(settings, loaded)
        tuned.load_state_dict(saved.pop("model"))
        tuned.scale_outputs(saved.get("unit", 1.0) / TASKS[settings.task].unit)  # of older versions
    except Exception as error:  # the content of another file can raise anything
        if isinstance(error, UserError) or machine_fault(error):
            raise
        raise UserError(f"{model}: not the model of a fine-tuning from {weights}") from None
    if wrong := [name for name, value in tuned.state_dict().items() if not value.isfinite().all()]:
        raise UserError(f"{model}: {wrong[0]} is not finite; train again with a lower lr")
    return tuned, settings, loaded, saved
