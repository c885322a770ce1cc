"""fairseq 0.12.2 on a current Python and torch. Import this module before fairseq.

fairseq's last release is of 2022. Three things need a change:
- Python 3.11 and later refuse its dataclasses, whose defaults are instances of unhashable classes
  (https://github.com/facebookresearch/fairseq/issues/5012). While fairseq is imported, such classes are made
  hashable by identity.
- torch 2.6 and later load checkpoints with `weights_only`, and fairseq's contain an argparse.Namespace
  (https://github.com/facebookresearch/fairseq/issues/5610). This class is registered with torch as safe.
- The destructors of its data sets fail, too, if a file cannot be opened, and Python prints that (no issue of
  fairseq's has it). They only close what closes by itself, so they are removed.

Tried with Python 3.11, torch 2.13 and hydra 1.3. Another fairseq is imported as it is.
tests/training/test_compat_fairseq.py fails when fairseq no longer needs this.
"""

import argparse
import contextlib
import dataclasses
import inspect
import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from synmask.pipeline.provenance import is_tried

TRIED = "0.12.2"
IS_TRIED = is_tried("fairseq", TRIED)


@contextlib.contextmanager
def _accept_dataclass_defaults() -> Iterator[None]:
    """Let a dataclass instance be a field's default, as Python before 3.11 did."""
    original: Callable[..., Any] = dataclasses._process_class

    def process(cls: type, *args: Any) -> type:
        for name in inspect.get_annotations(cls):
            default = getattr(cls, name, None)
            if isinstance(default, dataclasses.Field):
                default = default.default
            default_class = type(default)
            if dataclasses.is_dataclass(default_class) and default_class.__hash__ is None:
                default_class.__hash__ = object.__hash__
        return original(cls, *args)

    dataclasses._process_class = process
    try:
        yield
    finally:
        dataclasses._process_class = original


def _import_fairseq() -> None:
    root = logging.getLogger()  # its modules change it, so that it would print the messages of all libraries
    handlers, level = [*root.handlers], root.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import fairseq.data
        import fairseq.models.transformer
        import fairseq.sequence_generator
        import fairseq.tasks.masked_lm  # noqa: F401
    root.handlers[:] = handlers
    root.setLevel(level)


def _silence() -> None:
    """Silence warnings about fairseq's old code, which users cannot act on."""
    for module in ("fairseq", "hydra", "torch.nn.functional", "torch.utils.data"):
        warnings.filterwarnings("ignore", module=rf"{re.escape(module)}(\.|$)")
    # matched by text, because hydra names the caller's line
    warnings.filterwarnings("ignore", message=r"(?s).*(hydra|ConfigStore)")


def _remove_destructors() -> None:
    dataset = sys.modules["fairseq.data.indexed_dataset"].MMapIndexedDataset
    for cls in (dataset, dataset.Index):
        if "__del__" in vars(cls):  # absent if a process imports this module again
            del cls.__del__


if IS_TRIED:
    with _accept_dataclass_defaults():
        _import_fairseq()
    _remove_destructors()
else:
    _import_fairseq()
torch.serialization.add_safe_globals([argparse.Namespace])
_silence()
