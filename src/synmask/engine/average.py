"""Averaging epoch checkpoints into one model file that stands alone: to decode, parse and translate."""

import io
import re
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary

from synmask.engine.checkpoints import load
from synmask.engine.model import GuidedTransformer
from synmask.engine.task import GuidedTranslation
from synmask.engine.train import average_file
from synmask.engine.trainer import fairseq_config
from synmask.files import UserError, writing


def average(checkpoints: Path, last: int) -> dict[str, torch.Tensor]:
    """The mean, in float32, of the models of the last `last` epochs in the folder `checkpoints`.

    Where the epochs' models were removed after averaging, it is what `retire` has kept of them.

    Raises:
        UserError: neither is there, or a file is damaged.
    """
    epochs = sorted(
        (int(match[1]), path)
        for path in checkpoints.glob("epoch*.pt")
        if (match := re.fullmatch(r"epoch(\d+)\.pt", path.name))
    )[-last:]
    kept = checkpoints / average_file(last)
    if len(epochs) < last:
        if kept.exists():
            return load(kept)["model"]
        raise UserError(
            f"{checkpoints}: {len(epochs)} epochs there, {last} to average; delete "
            f"{checkpoints.parent}/train.json and rerun to train again"
        )
    mean: dict[str, torch.Tensor] = {}
    for _, path in epochs:
        for name, value in load(path).items():
            mean[name] = mean.get(name, 0) + value.double() / last
    return {name: value.float() for name, value in mean.items()}


def save_model(
    path: Path, state: dict[str, torch.Tensor], data: Path, text: dict[str, Any], settings: dict[str, Any]
) -> None:
    """Write `state` with all that using it needs: settings, dictionaries, BPE codes and text settings.

    Args:
        data: folder of binarised data (its dictionaries are read).
        text: `source`, `target` (languages), `tokeniser`, `lowercase`, `codes` (the BPE codes' text) and
            `vocabulary` (sub-words that may occur; None: all).
        settings: the run's settings.
    """
    dictionaries = {
        side: (data / f"dict.{text[side]}.txt").read_text(encoding="utf-8") for side in ("source", "target")
    }
    with writing(path, "wb") as handle:
        torch.save({"model": state, "dictionaries": dictionaries, "text": text, "settings": settings}, handle)


def load_model(path: Path) -> tuple[GuidedTransformer, GuidedTranslation, dict[str, Any]]:
    """A model file → model in evaluation mode (on the GPU if there is one), its task, its text settings.

    Raises:
        UserError: not a model file, or damaged.
    """
    saved = load(path)
    if "dictionaries" not in saved:
        raise UserError(f"{path}: not a model file of `synmask average`")
    dictionaries = [
        Dictionary.load(io.StringIO(saved["dictionaries"][side])) for side in ("source", "target")
    ]
    text, settings = saved["text"], saved["settings"]
    cfg = fairseq_config(path.parent, path.parent, text["source"], text["target"], settings, seed=1)
    task = GuidedTranslation(cfg.task, *dictionaries, settings)
    model = task.build_model(cfg.model)
    model.load_state_dict(saved["model"])
    return model.to("cuda" if torch.cuda.is_available() else "cpu").eval(), task, text
