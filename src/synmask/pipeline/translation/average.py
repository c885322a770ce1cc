"""Average epoch checkpoints into one self-contained model file, for decoding and parsing."""

import os
import re
from pathlib import Path
from typing import Annotated

import torch
from pydantic import Field

from synmask.pipeline.arguments import (
    BY_HAND,
    CountOption,
    Identity,
    Json,
    Source,
    Switch,
    Target,
    Whole,
)
from synmask.pipeline.config.sections import ModelText, RunSettings, Tokens
from synmask.pipeline.files import UserError, read_lines, read_object
from synmask.pipeline.owner import check_owner, training_digest
from synmask.pipeline.text.bpe import frequent, splitter_of
from synmask.pipeline.training.checkpoints import average_file, epoch_model, retire, trained
from synmask.pipeline.training.lock import locked
from synmask.pipeline.training.torch_files import load
from synmask.pipeline.translation.model_file import save_model


def average_run(
    *,
    run: Path,
    last: CountOption,
    data: Path,
    codes: Path,
    vocabulary: Path,
    vocabulary_threshold: Annotated[Whole, Field(ge=0)],
    source: Source,
    target: Target,
    text: Json[Tokens],
    settings: Json[RunSettings],
    output: Path,
    template_model: Path | None = None,
    keep_checkpoints: Switch = 1,
    identity: Identity = BY_HAND,
) -> None:
    """Average the last epochs into one self-contained model file.

    Args:
        run: Folder of the run.
        last: How many epochs.
        data: Folder of binarised data (for its dictionaries).
        codes: The BPE codes.
        vocabulary: The source vocabulary of learn-bpe.
        vocabulary_threshold: As for apply-bpe.
        text: The corpus' tokeniser and case.
        settings: The run's settings.
        output: The model file.
        template_model: The model file that predicts templates, for systems that read them.
        keep_checkpoints: 0: remove the checkpoints afterwards.
    """
    if not keep_checkpoints and output.exists() and not output.is_file():
        raise UserError(f"{output}: no file that could replace the checkpoints; give --keep-checkpoints 1")
    splitter_of(codes)
    words = sorted(frequent(vocabulary, vocabulary_threshold)) if vocabulary_threshold else None
    kwargs = {"source": source, "target": target, "codes": "\n".join(read_lines(codes)), "vocabulary": words}
    model_text = ModelText(**text.plain(), **kwargs)
    with locked(run):
        checkpoints, training = trained(run), None
        if (stamp := checkpoints / "stamp.json").exists():
            stamped = {key: identity[key] for key in ("seed", "settings") if key in identity}
            check_owner(stamp, {"run": read_object(stamp)}, stamped)
            training = training_digest(read_object(stamp))
        state = average(run, last, training)
        save_model(output, state, data, model_text, settings, template_model, identity, training)
        if not keep_checkpoints:
            retire(checkpoints, output, average_file(last))


def average(run: Path, last: int, training: str | None = None) -> dict[str, torch.Tensor]:
    """The mean, in float32, of the models of the last `last` epochs of the training behind a run's outputs.

    If these models were removed after averaging, it is the average that `retire` kept.

    Args:
        training: the `training_digest` of that training, which the average kept by `retire` must carry.

    Raises:
        UserError: neither exists, or a file is damaged or of another training.
    """
    checkpoints, again = trained(run), f"delete {run}/train.json and rerun to train again"
    names = os.listdir(checkpoints) if checkpoints.exists() else []
    numbers = sorted(int(n) for name in names for n in re.findall(r"^epoch(\d+)\.pt$", name))[-last:]
    kept = checkpoints / average_file(last)
    if len(numbers) < last:
        if kept.exists():
            saved = load(kept, again)
            if training != saved.get("training", training):
                raise UserError(f"{kept}: the average of another training; move it away, then {again}")
            return saved["model"]
        raise UserError(f"{checkpoints}: {len(numbers)} epochs there, {last} to average; {again}")
    mean: dict[str, torch.Tensor] = {}
    for number in numbers:
        for name, value in epoch_model(checkpoints / f"epoch{number}.pt", again).items():
            mean[name] = mean.get(name, 0) + value.double() / last
    return {name: value.float() for name, value in mean.items()}
