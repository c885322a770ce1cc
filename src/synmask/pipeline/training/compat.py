"""Make fairseq 0.12.2 work with current Python and torch. Import this module before fairseq.

It fixes four faults (tried with Python 3.11, torch 2.13):
1. Python >= 3.11 refuses dataclass defaults that are instances of unhashable classes, which fairseq's and
   hydra's configurations use. While fairseq is imported, such classes are made hashable by identity.
2. torch >= 2.6 loads checkpoints with `weights_only`, and fairseq's contain an argparse.Namespace. This class
   is allowed by name; `weights_only` stays on.
3. If gradients are not finite, fairseq's trainer runs the batch again under hooks that fail in current torch
   (StopIteration on encoder outputs) and hide the real fault. The hooks are disabled.
4. If a data file cannot be opened, the destructor of its data set fails, too, and Python prints that. The
   destructors close what closes by itself, and are removed.
"""

import argparse
import contextlib
import dataclasses
import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

# fairseq imports every file in these folders; folder → the files that are needed here.
USED = {
    "models": {"transformer", "roberta"},
    "tasks": {"translation", "masked_lm", "sentence_prediction"},
    "criterions": {"cross_entropy", "masked_lm", "sentence_prediction"},
    "scoring": {"bleu"},
}


@contextlib.contextmanager
def _accept_dataclass_defaults() -> Iterator[None]:
    """Let a dataclass instance be a field's default, as Python before 3.11 did."""
    original: Callable[..., Any] = dataclasses._process_class

    def process(cls: type, *args: Any) -> type:
        for name in inspect.get_annotations(cls):
            default = getattr(cls, name, None)
            if isinstance(default, dataclasses.Field):
                default = default.default
            kind = type(default)
            if dataclasses.is_dataclass(kind) and kind.__hash__ is None:
                kind.__hash__ = object.__hash__
        return original(cls, *args)

    dataclasses._process_class = process
    try:
        yield
    finally:
        dataclasses._process_class = original


@contextlib.contextmanager
def _leave_out() -> Iterator[None]:
    """Hide the models, tasks and criteria that nothing here uses, so that fairseq does not import them."""
    listed = os.listdir

    def listdir(path: Any = ".") -> list[str]:
        names = listed(path)
        used = USED.get(os.path.basename(path)) if isinstance(path, str) and "fairseq" in path else None
        return names if used is None else [name for name in names if name.removesuffix(".py") in used]

    os.listdir = listdir
    try:
        yield
    finally:
        os.listdir = listed


def _import_fairseq() -> None:
    with warnings.catch_warnings(), _accept_dataclass_defaults(), _leave_out():
        warnings.simplefilter("ignore")
        import fairseq.checkpoint_utils
        import fairseq.data
        import fairseq.models.transformer
        import fairseq.options
        import fairseq.sequence_generator
        import fairseq.tasks.translation
        import fairseq.trainer  # noqa: F401


def _silence() -> None:
    """Ignore the warnings of hydra and torch about fairseq's old code, which users cannot act on."""
    for module in ("fairseq", "hydra", "torch.nn.functional", "torch.utils.data"):
        warnings.filterwarnings("ignore", module=rf"{re.escape(module)}(\.|$)")
    # matched by text, because hydra names the caller's line
    warnings.filterwarnings("ignore", message=r"(?s).*(hydra|ConfigStore)")


_import_fairseq()
sys.modules["fairseq.trainer"].NanDetector = contextlib.nullcontext
_dataset = sys.modules["fairseq.data.indexed_dataset"].MMapIndexedDataset
for _kind in (_dataset, _dataset.Index):
    if "__del__" in vars(_kind):  # it is not where a process imports this module again
        del _kind.__del__
_silence()
torch.serialization.add_safe_globals([argparse.Namespace])
