"""The number of a model's parameters, counted on one without weights."""

from argparse import Namespace
from functools import cache

import torch
from fairseq.data import Dictionary

from synmask.pipeline.config.schema import as_json
from synmask.pipeline.config.sections import RunSettings
from synmask.pipeline.translation.task import model_class, transformer_config


def count_parameters(settings: RunSettings, *sizes: int) -> int:
    """The parameters of a run's model with vocabularies of these sizes.

    The vocabularies are source, target and, for a system that reads templates, templates.
    """
    return _counted(as_json(settings), *sizes)


@cache  # it takes 0.4 s; so by JSON, as settings cannot be hashed
def _counted(json: str, *sizes: int) -> int:
    settings = RunSettings.model_validate_json(json)
    names = ("source_dictionary", "target_dictionary", "template_dictionary")
    symbols = (map(str, range(size - Dictionary().nspecial)) for size in sizes)
    words = {name: Dictionary(extra_special_symbols=each) for name, each in zip(names, symbols, strict=False)}
    with torch.device("meta"):
        model = model_class(settings.system.guide).build(
            transformer_config(settings), Namespace(**words), settings.system
        )
    return sum(parameter.numel() for parameter in model.parameters())
