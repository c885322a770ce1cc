"""The experiments around the method: data, training, evaluation, tables, and the steps that rules call."""

from importlib import import_module
from pathlib import Path
from typing import Any


def load(path: str | Path, *, beam: int = 5, length_penalty: float = 1.0, threads: int = 1) -> Any:
    """The trained model in a file of `synmask average`, as a `translation.model.TrainedModel`.

    A file is loaded without running code in it.

    Args:
        path: the model file; "demo" is the model that is shipped (translation/demo.md), unless a file has
            this name.
        beam: hypotheses that `TrainedModel.translate` keeps at each step.
        length_penalty: exponent of the length in the score of a translation.
        threads: CPU threads of this process.

    Raises:
        ModuleNotFoundError: one of the pipeline's packages is not installed.
        UserError: it is no model file, or a number is out of its range.
    """
    try:
        module = import_module(".translation.model", __package__)
    except ModuleNotFoundError as error:
        if (message := missing(error)) is None:
            raise
        raise ModuleNotFoundError(message, name=error.name) from None
    settings = module.override_decoding(module.DEFAULT_DECODING, beam=beam, length_penalty=length_penalty)
    return module.TrainedModel(path, settings, threads=threads)


def missing(error: ModuleNotFoundError) -> str | None:
    """The advice if a package of the pipeline is missing; None if it is a module of synmask."""
    if str(error.name).split(".")[0] == "synmask":
        return None
    return (
        f"{error.name} is not installed, one of the pipeline's packages; in a clone, `make .venv/.ready` "
        "installs all of them in .venv (the method alone, `import synmask`, needs only torch)"
    )
