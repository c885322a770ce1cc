"""The experiments around the method: data, training, evaluation, tables, and the steps that rules call."""

from importlib import import_module
from pathlib import Path
from typing import Any


def load(path: str | Path, **how: Any) -> Any:
    """The trained model in a file of `synmask average`, as a `translation.model.Model`.

    It is loaded without running code of the file; `how` is as for `Model`.
    """
    return import_module(".translation.model", __package__).Model(path, **how)
