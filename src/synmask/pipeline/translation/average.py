"""Average epoch checkpoints into one self-contained model file, for decoding and parsing."""

import io
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import torch
from fairseq.data import Dictionary
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
from synmask.pipeline.files import UserError, machine_fault, named_reads, read_lines, read_object
from synmask.pipeline.owner import check_owner, owned, training_digest
from synmask.pipeline.text.bpe import frequent, splitter_of
from synmask.pipeline.training.checkpoints import average_file, epoch_model, load, retire, save, trained
from synmask.pipeline.training.lock import locked
from synmask.pipeline.translation.task import GuidedTranslation, task_config, transformer_config
from synmask.pipeline.translation.transformer import GuidedTransformer

ZIP = b"PK\x03\x04"  # how each file of torch.save begins


class Loaded(NamedTuple):
    """A model in evaluation mode (on the GPU if there is one), its task, and how text becomes its input."""

    model: GuidedTransformer
    task: GuidedTranslation
    text: ModelText


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


def save_model(
    path: Path,
    state: dict[str, torch.Tensor],
    data: Path,
    text: ModelText,
    settings: RunSettings,
    template_model: Path | None = None,
    run: Mapping[str, Any] = BY_HAND,
    training: str | None = None,
) -> None:
    """Write `state` with all that its use requires: settings, dictionaries, BPE codes and text settings.

    Args:
        data: folder of binarised data (for its dictionaries).
        template_model: for a system that reads templates, the file of the model that predicts them; its
            contents are included.
        run, training: the model's run, and its `training_digest`; they are recorded in the file.
    Raises:
        UserError: `state` does not fit the dictionaries or settings; the template model belongs to another
            run.
    """
    sides = {"source": text.source, "target": text.target}
    paths = {side: data / f"dict.{language}.txt" for side, language in sides.items()}
    dictionaries = {side: "".join(f"{line}\n" for line in read_lines(path)) for side, path in paths.items()}
    saved = {
        "model": state,
        "dictionaries": dictionaries,
        "text": text.plain(),
        "settings": settings.plain(),
        **owned(run),
        **({"training": training} if training else {}),
    }
    if template_model is not None:
        saved["template_model"] = load(template_model)
        check_owner(template_model, saved["template_model"], run, "settings")  # it has settings of its own
    _built(saved, f"{data}: not what the model was trained on")
    save(path, saved)


def load_model(path: Path, run: Mapping[str, Any] = BY_HAND) -> Loaded:
    """The model of a model file, for a step of `run`.

    Raises:
        UserError: it is no model file, is damaged, belongs to another run, or has weights that are not
            finite.
    """
    saved = read_model(path)
    check_owner(path, saved, run)
    return ready(saved, path)


def read_model(path: Path) -> dict[str, Any]:
    """The contents of a model file; errors as of `load_model`."""
    if path.is_file():
        with named_reads(path), path.open("rb") as handle:
            start = handle.read(len(ZIP))
        if start.strip(b"\0") and start != ZIP:  # empty files and zeros are damage
            raise UserError(f"{path}: no model file; give an average.pt that `synmask average` wrote")
    return load(path)


def load_template_model(path: Path) -> Loaded:
    """Like `load_model`, but for the template model that is included in a model file."""
    return ready(load(path)["template_model"], path)


def ready(saved: dict[str, Any], path: Path) -> Loaded:
    """The model in the contents of the model file `path`; errors as of `load_model`."""
    model, task, text = _built(saved, f"{path}: not a whole model file of `synmask average`")
    for name, value in model.named_parameters():  # fairseq's buffers can be uninitialised memory
        if not value.isfinite().all():
            raise UserError(f"{path}: {name} is not finite; train again with a lower training.lr")
    if (guide := model.encoder.guide) is not None and guide.options.parses_itself:
        task.needs -= guide.options.reads  # read in training alone
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
        cfg, templates = task_config(Path(), text.source, text.target), None
        if settings.system.kind.templates:
            templates = Dictionary.load(io.StringIO(saved["template_model"]["dictionaries"]["target"]))
        task = GuidedTranslation(cfg, *dictionaries, settings, template_dictionary=templates)
        model = task.build_model(transformer_config(settings))
        model.load_state_dict({**saved["model"]})  # a copy, since fairseq adds keys
    except Exception as error:  # another file's contents can raise anything
        if machine_fault(error):
            raise
        message = " ".join(str(error).split())[:200]
        raise UserError(f"{fault} ({type(error).__name__}: {message})") from None
    return Loaded(model, task, text)
