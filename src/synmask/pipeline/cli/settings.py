"""`synmask settings`; and the configuration for verbs that name targets."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from synmask.pipeline.config.base import Fault, nearest
from synmask.pipeline.config.loading import check_named, inherit, load_project, origin, user_error
from synmask.pipeline.config.schema import Config, as_json
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import flatten
from synmask.pipeline.languages import default_tokeniser, print_note


def settings(
    *, corpus: str, direction: str, system: str, configfile: tuple[Path, ...] = (), places: bool = False
) -> None:
    """Print the settings of a run as JSON, for `train --settings`.

    For example: `synmask settings --corpus demo --direction de-en --system grammar`

    Args:
        corpus: A corpus of the configuration.
        direction: Source-target.
        system: A system of the configuration.
        configfile: Your own files; each overrides config.yaml and the files before it.
        places: Print instead each setting, those of the text and of its sub-words, too, with its value and
            the file, line and key that it comes from.
    """
    config, values, files = load_project(configfile)
    check_named(config, files[-1], "corpora", corpus)
    check_named(config, files[-1], "systems", system)
    entry = config.corpora[corpus]
    if direction not in entry.possible_directions:
        raise UserError(
            f"no direction {direction!r} of {corpus}{nearest(direction, entry.possible_directions)}"
        )
    try:
        run = config.run_settings(corpus, direction, system)
    except Fault as fault:
        raise user_error(Fault(fault.path or ("systems", system), str(fault)), inherit(values)) from None
    for _, words in tokenisers(config, [corpus]):
        print_note(words)
    if not places:
        print(as_json(run))
        return
    pieces = "sentencepiece" if entry.sentencepiece else "bpe"
    all_settings = flatten(
        {"text": entry.text.plain(), pieces: getattr(entry, pieces).plain(), **run.plain()}
    )
    rows = [(name, json.dumps(value, ensure_ascii=False)) for name, value in all_settings.items()]
    name_width, value_width = (max(map(len, column)) for column in zip(*rows, strict=True))
    values = inherit(values)
    for name, value in rows:
        paths = [*_paths(config, corpus, direction, system, name.split("."))]
        print(f"{name:{name_width}}  {value:{value_width}}  {origin(paths, values)}")


def _paths(
    config: Config, corpus: str, direction: str, system: str, setting: list[str]
) -> Iterator[tuple[str, ...]]:
    """The keys that can set a setting of a run; the first that has a value counts."""
    key = setting[1:] if setting[0] == "system" else setting
    if key == ["mlm_weight"] and config.systems[system].mlm_weight == "corpus":
        yield from (("corpora", corpus, "training", *key, direction), ("corpora", corpus, "training", *key))
        return
    if key[0] == "options":
        yield ("corpora", corpus, "options", system, direction, *key[1:])
    yield ("systems", system, *key)
    for name, experiment in config.plain_experiments.items():
        first, *others = experiment.systems
        if experiment.sweep and system in others:
            if ".".join(setting) == experiment.sweep.key:
                yield ("experiments", name, "sweep")
            yield from _paths(config, corpus, direction, first, setting)
    yield ("corpora", corpus, *setting)


def tokenisers(config: Config, corpora: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The tokeniser of each language of these corpora, and a line that says why."""
    for name in dict.fromkeys(corpora):
        entry = config.corpora[name]
        for language in entry.languages:
            used, (default, reason) = entry.text.tokeniser_of(language), default_tokeniser(language)
            why = reason if used == default else f"set in text.tokeniser; by default {default}: {reason}"
            yield used, f"corpora.{name}: tokeniser of {language}: {used} ({why})"


def load_targets(target: Sequence[str], configfiles: Iterable[Path]) -> tuple[Config, Sequence[str]]:
    """The configuration, and the targets: by default, or by the name "all", its own.

    Raises:
        UserError: a target is not in the configuration (with the nearest).
    """
    config, _, files = load_project(configfiles)
    if [*target] in ([], ["all"]):  # Snakemake's name, too
        return config, config.targets
    for name in target:
        if name not in config.named_targets:
            near = nearest(name, config.named_targets)
            raise UserError(f"{files[-1]}: no experiment or table {name!r}{near}")
    return config, target
