"""A model file: a model with all that its use requires."""

import io
from pathlib import Path
from typing import Any, NamedTuple

import torch
from fairseq.data import Dictionary

from synmask.pipeline.disk import open_to_read
from synmask.pipeline.errors import UserError, machine_fault
from synmask.pipeline.files import read_lines
from synmask.pipeline.record import NO_RUN, RunRecord, check_model, check_owner, model_identity, run_names
from synmask.pipeline.run_settings import RunSettings
from synmask.pipeline.tokens import ModelText
from synmask.pipeline.training.torch_files import load_checkpoint, save_checkpoint
from synmask.pipeline.translation.raw_text import Jars, TextProcessor, no_jars
from synmask.pipeline.translation.task import GuidedTranslation
from synmask.pipeline.translation.transformer import GuidedTransformer

ZIP = b"PK\x03\x04"  # how each file of torch.save begins
DEMO_MODEL = Path(__file__).with_name("demo.pt")  # `make demo-model`; its card is demo.md


class LoadedModel(NamedTuple):
    """A model in evaluation mode (on the GPU if there is one), its task, how text becomes its input, and the
    contents of its file besides the weights ("run", "training", "template_model")."""

    model: GuidedTransformer
    task: GuidedTranslation
    text: TextProcessor
    saved: dict[str, Any]


def save_model(
    path: Path,
    state: dict[str, torch.Tensor],
    data: Path,
    text: ModelText,
    settings: RunSettings,
    template_model: Path | None = None,
    run: RunRecord = NO_RUN,
) -> None:
    """Write `state` with all that its use requires: settings, dictionaries, BPE codes and text settings.

    Args:
        data: folder of binarised data (for its dictionaries).
        template_model: for a system that reads templates, the file of the model that predicts them; its
            contents are included.
        run: the record of the model's run; what identifies it is recorded in the file.
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
        **model_identity(run),
    }
    if template_model is not None:
        saved["template_model"] = load_checkpoint(template_model)
        check_owner(template_model, saved["template_model"], run_names(run))  # it has settings of its own
    _build(saved, f"{data}: not what the model was trained on")
    save_checkpoint(path, saved)


def load_model(path: Path, run: RunRecord = NO_RUN, jars: Jars = no_jars) -> LoadedModel:
    """The model of a model file, `demo` for the one that is shipped.

    Args:
        run: the run that reads it, whose model it must be.
        jars: for its `TextProcessor`.

    Raises:
        UserError: it is no model file, is damaged, another run's, or has weights that are not finite.
    """
    if path == Path("demo") and not path.is_file():
        path = DEMO_MODEL
    if path.is_file():
        with open_to_read(path) as handle:
            start = handle.read(len(ZIP))
        if start.strip(b"\0") and start != ZIP:  # empty files and zeros are damage
            raise UserError(f"{path}: no model file; give an average.pt that `synmask average` wrote")
    saved = load_checkpoint(path)
    if "epoch" in saved and "text" not in saved:
        advice = "give it to `synmask predict` or `export`, with --weights"
        raise UserError(f"{path}: a fine-tuned RoBERTa; {advice}")
    check_model(path, saved, run)
    loaded = _for_inference(saved, path)
    loaded.text.jars = jars
    return loaded


def load_template_model(loaded: LoadedModel, path: Path) -> LoadedModel:
    """The model that predicts templates, which is included in the model file `path`; as of `load_model`."""
    return _for_inference(loaded.saved["template_model"], path)


def _for_inference(saved: dict[str, Any], path: Path) -> LoadedModel:
    loaded = _build(saved, f"{path}: not a whole model file of `synmask average`")
    model, task = loaded.model, loaded.task
    for name, value in model.named_parameters():  # fairseq's buffers can be uninitialised memory
        if not value.isfinite().all():
            raise UserError(f"{path}: {name} is not finite; train again with a lower training.lr")
    if (guide := model.encoder.guide) is not None and guide.options.parses_itself:
        task.needs -= guide.options.reads  # read in training alone
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return loaded._replace(model=model.to(device).eval())


def _build(saved: dict[str, Any], fault: str) -> LoadedModel:
    """The model, task and text settings in a model file's contents; a UserError begins with `fault`."""
    try:
        text = TextProcessor(ModelText.model_validate(saved["text"]))
        settings = RunSettings.model_validate(saved["settings"])
        dictionaries = [
            Dictionary.load(io.StringIO(saved["dictionaries"][side])) for side in ("source", "target")
        ]
        templates = None
        if settings.system.templated:
            templates = Dictionary.load(io.StringIO(saved["template_model"]["dictionaries"]["target"]))
        task = GuidedTranslation(*dictionaries, settings, template_dictionary=templates)
        model = task.build_model()
        model.load_state_dict({**saved["model"]})  # a copy, since fairseq adds keys
    except Exception as error:  # another file's contents can raise anything
        if machine_fault(error):
            raise
        message = " ".join(str(error).split())[:200]
        raise UserError(f"{fault} ({type(error).__name__}: {message})") from None
    return LoadedModel(model, task, text, {key: value for key, value in saved.items() if key != "model"})
