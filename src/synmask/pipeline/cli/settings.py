"""`synmask settings`; and the configuration for verbs that name targets."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from synmask.pipeline.config.loading import check_named, laid_over
from synmask.pipeline.config.schema import Config, as_json
from synmask.pipeline.files import UserError
from synmask.pipeline.workflow.terminal import similar


def settings(*, corpus: str, direction: str, system: str, configfile: tuple[Path, ...] = ()) -> None:
    """Print the settings of a run as JSON, for `train --settings`.

    For example: `synmask settings --corpus demo --direction de-en --system grammar`

    Args:
        corpus: A corpus of the configuration.
        direction: Source-target.
        system: A system of the configuration.
        configfile: Your own files; each overrides config.yaml and the files before it.
    """
    config, _, files = laid_over(configfile)
    check_named(config, files[-1], "corpora", corpus)
    check_named(config, files[-1], "systems", system)
    print(as_json(config.run_settings(corpus, direction, system)))


def configured(target: Sequence[str], configfiles: Iterable[Path]) -> tuple[Config, Sequence[str]]:
    """The configuration, and its targets: by default its own.

    Raises:
        UserError: a target is not in the configuration (with the nearest).
    """
    config, _, files = laid_over(configfiles)
    for name in target:
        if name not in config.named_targets:
            near = similar(name, config.named_targets)
            raise UserError(f"{files[-1]}: no experiment or table {name!r}; {near}")
    return config, target or config.targets
