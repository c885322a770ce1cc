"""Average epoch checkpoints into one self-contained model file, for decoding and parsing."""

import codecs
import io
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import torch
from fairseq.data import Dictionary

from synmask.pipeline.config.sections import ModelText, RunSettings
from synmask.pipeline.files import UserError, machine_fault, read_lines
from synmask.pipeline.training.checkpoints import average_file, load, save
from synmask.pipeline.translation.task import GuidedTranslation, translation_arguments
from synmask.pipeline.translation.transformer import GuidedTransformer


class Loaded(NamedTuple):
    """A model in evaluation mode (on the GPU if there is one), its task, and how text becomes its input."""

    model: GuidedTransformer
    task: GuidedTranslation
    text: ModelText


def average(checkpoints: Path, last: int) -> dict[str, torch.Tensor]:
    """The mean, in float32, of the models of the last `last` epochs in the folder `checkpoints`.

    If these models were removed after averaging, it is the average that `retire` kept.

    Raises:
        UserError: neither exists, or a file is damaged.
    """
    names = os.listdir(checkpoints) if checkpoints.exists() else []
    matches = (re.fullmatch(r"epoch(\d+)\.pt", name) for name in names)
    epochs = sorted((int(match[1]), checkpoints / match[0]) for match in matches if match)[-last:]
    kept = checkpoints / average_file(last)
    again = f"delete {checkpoints.parent}/train.json and rerun to train again"
    if len(epochs) < last:
        if kept.exists():
            if "model" in (saved := load(kept, again)):
                return saved["model"]
            raise UserError(f"{kept}: not a model file of `synmask average`; delete it and rerun")
        raise UserError(f"{checkpoints}: {len(epochs)} epochs there, {last} to average; {again}")
    mean: dict[str, torch.Tensor] = {}
    for _, path in epochs:
        try:
            for name, value in load(path, again).items():
                mean[name] = mean.get(name, 0) + value.double() / last
        except (AttributeError, RuntimeError) as error:
            if machine_fault(error):
                raise
            raise UserError(
                f"{path}: not the model of an epoch like the others; delete it and rerun"
            ) from None
    return {name: value.float() for name, value in mean.items()}


def save_model(
    path: Path,
    state: dict[str, torch.Tensor],
    data: Path,
    text: ModelText,
    settings: RunSettings,
    template_model: Path | None = None,
) -> None:
    """Write `state` with all that its use requires: settings, dictionaries, BPE codes and text settings.

    Args:
        data: folder of binarised data (for its dictionaries).
        template_model: for a system that reads templates, the file of the model that predicts them; its
            contents are included.
    Raises:
        UserError: `state` does not fit the dictionaries or settings.
    """
    sides = {"source": text.source, "target": text.target}
    paths = {side: data / f"dict.{language}.txt" for side, language in sides.items()}
    dictionaries = {side: "".join(f"{line}\n" for line in read_lines(path)) for side, path in paths.items()}
    saved = {
        "model": state,
        "dictionaries": dictionaries,
        "text": text.plain(),
        "settings": settings.plain(),
    }
    if template_model is not None:
        saved["template_model"] = load(template_model)
    _built(saved, f"{data}: not what the model was trained on")
    save(path, saved)


def load_model(path: Path) -> Loaded:
    """The model of a model file.

    Raises:
        UserError: it is no model file, is damaged, or has weights that are not finite.
    """
    return _ready(_saved(path), path)


def load_template_model(path: Path) -> Loaded:
    """Like `load_model`, but for the template model that is included in a model file."""
    return _ready(load(path)["template_model"], path)


def _saved(path: Path) -> dict[str, Any]:
    """The contents of a model file.

    Raises:
        UserError: it is no model file; the message names what it is instead.
    """
    advice = "give the average.pt that `synmask average` made of a training"
    if path.exists() and (kind := _other_kind(path)):
        raise UserError(f"{path}: {kind}, not a model file; {advice}")
    saved = load(path)
    if "extra_state" in saved:
        raise UserError(f"{path}: a checkpoint to resume training from, not a model file; {advice}")
    if saved and all(isinstance(value, torch.Tensor) for value in saved.values()):
        raise UserError(f"{path}: the weights of one epoch, not a whole model file; {advice}")
    return saved


def _other_kind(path: Path) -> str | None:
    """The kind of a file that torch cannot have written (torch writes zip files); else None."""
    if path.is_dir():
        return "a folder"
    with open(path, "rb") as handle:
        start = handle.read(4096)
    if not start:
        return "an empty file"
    if start.startswith(b"PK"):
        return None
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)  # the last character may be cut
    except UnicodeDecodeError:
        return "no file of torch"
    return "text"


def _ready(saved: dict[str, Any], path: Path) -> Loaded:
    model, task, text = _built(saved, f"{path}: not a whole model file of `synmask average`")
    for name, value in model.named_parameters():  # fairseq's buffers can be uninitialised memory
        if not value.isfinite().all():
            raise UserError(f"{path}: {name} is not finite; train again with a lower training.lr")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return Loaded(model.to(device).eval(), task, text)


def _built(saved: dict[str, Any], fault: str) -> Loaded:
    """The model, task and text settings in a model file's contents; a UserError begins with `fault`."""
    try:
        text = ModelText.model_validate(saved["text"])
        settings = RunSettings.model_validate(saved["settings"])
        dictionaries = [
            Dictionary.load(io.StringIO(saved["dictionaries"][side])) for side in ("source", "target")
        ]
        args = translation_arguments(Path(), Path(), text.source, text.target, settings, seed=1)
        templates = None
        if settings.system.kind.templates:
            templates = Dictionary.load(io.StringIO(saved["template_model"]["dictionaries"]["target"]))
        task = GuidedTranslation(args, *dictionaries, settings, template_dictionary=templates)
        model = task.build_model(args)
        model.load_state_dict({**saved["model"]})  # a copy, since fairseq adds keys
    except Exception as error:  # another file's contents can raise anything
        if machine_fault(error):
            raise
        told = " ".join(str(error).split())[:200]
        raise UserError(f"{fault} ({type(error).__name__}: {told})") from None
    return Loaded(model, task, text)
