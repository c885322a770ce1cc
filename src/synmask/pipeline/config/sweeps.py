"""The systems of a sweep: an experiment's first one with other values of one setting."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from synmask.pipeline.config.base import merge
from synmask.pipeline.config.faults import Fault, check_known, validated
from synmask.pipeline.config.guides import GUIDES
from synmask.pipeline.config.sections import Experiment, Sweep, System


def expand_sweeps(values: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration as read → the same with one more system per value of each experiment's `sweep`.

    They are added to `systems` and to the experiment, with the options of its first system on each corpus.
    Faulty entries stay as they are; validation reports them with their place.

    Raises:
        Fault: the setting cannot have a value, or another system has the name of a swept one.
    """
    values = dict(values)
    if not all(isinstance(values.get(key), Mapping) for key in ("systems", "experiments", "corpora")):
        return values
    for name, entry in values["experiments"].items():
        try:
            experiment = Experiment.model_validate(entry)
        except ValidationError:  # also a group
            continue
        first = experiment.systems[0]
        if experiment.sweep is None or not _valid(values["systems"].get(first)):
            continue
        added = _swept(first, values["systems"][first], experiment.sweep, ("experiments", name, "sweep"))
        for system, whole in added.items():
            if values["systems"].get(system, whole) != whole:
                raise Fault(("systems", system), f"experiment {name!r} sweeps to this name; take another")
        values["systems"] = {**values["systems"], **added}
        listed = {**entry, "systems": [*experiment.systems, *added]}
        values["experiments"] = {**values["experiments"], name: listed}
        values["corpora"] = {
            corpus: _with_options(settings, first, added) for corpus, settings in values["corpora"].items()
        }
    return values


def _valid(entry: Any) -> bool:
    try:
        _ = System.model_validate(entry).guide_options
    except (ValidationError, KeyError):  # KeyError: an unknown guide
        return False
    return True


def _swept(first: str, entry: Mapping, sweep: Sweep, path: tuple) -> dict[str, dict]:
    *outer, key = sweep.setting.split(".")
    options_there = GUIDES[entry.get("guide", "none")].model_fields
    if sweep.setting in options_there and sweep.setting not in System.model_fields:
        raise Fault((*path, "setting"), f"an option of the guide: write options.{sweep.setting}")
    if outer[:1] == ["options"] and not options_there:
        what = f"the guide of the first system, {first!r}, has no options; put one first that has"
        raise Fault((*path, "setting"), what)
    stem = "-".join([first, *sweep.setting.removeprefix("options.").split(".")])
    systems = {}
    for value in sweep.values:
        text, changed = str(value).lower(), {key: value}
        for name in reversed(outer):
            changed = {name: changed}
        whole = merge(entry, {**changed, "label": f"{entry.get('label') or first}, {key} {text}"})
        system = validated(System, whole, path)
        check_known((*path, "guide"), "guide", system.guide, GUIDES)
        validated(system.kind, system.options, (*path, "options"))
        systems[f"{stem}-{text}".replace("_", "-")] = whole
    return systems


def _with_options(corpus: Any, first: str, added: Mapping[str, Any]) -> Any:
    """A corpus that overrides options of the `added` systems like those of the `first`."""
    options = corpus.get("options") if isinstance(corpus, Mapping) else None
    if not isinstance(options, Mapping) or first not in options:
        return corpus
    return {**corpus, "options": {**options, **dict.fromkeys(added, options[first])}}
