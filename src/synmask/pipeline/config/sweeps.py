"""The systems of sweeps, and the rows of tables that name none."""

from collections.abc import Iterable
from typing import Any

from synmask.pipeline.config.base import Fault, at, merge
from synmask.pipeline.config.faults import validate
from synmask.pipeline.config.schema import Config
from synmask.pipeline.config.sections import Experiment, Sweep, System
from synmask.pipeline.guidance import option_names


def complete(config: Config) -> None:
    """Add a system for each value of each experiment's `sweep`, and rows to tables that name none.

    The systems of a sweep are added to `systems` and to the experiment, with the options of its first system
    on each corpus, the swept one excepted; none for a value that a system of the experiment has already. A
    table without `systems` shows those of its experiments.

    Raises:
        Fault: the setting cannot have a value, or another system has the name of a swept one.
    """
    for name, entry in config.experiments.items():
        if not isinstance(entry, Experiment) or not entry.sweep or entry.corpus not in config.corpora:
            continue
        if not {*entry.systems} <= config.systems.keys():
            continue
        first = entry.systems[0]
        added = _swept(first, config.systems[first], entry.sweep, ("experiments", name, "sweep"))
        for system, whole in added.items():
            if config.systems.setdefault(system, whole) != whole:
                raise Fault(("systems", system), f"experiment {name!r} sweeps to this name; take another")
        for corpus in config.corpora.values():
            if first in corpus.options:
                kept = _kept_options(corpus.options[first], entry.sweep)
                corpus.options.update(dict.fromkeys(added, kept))
        config.experiments[name] = entry.model_copy(update={"systems": _differing(config, entry, added)})
    for name, table in config.tables.items():
        if table.systems is None:
            shown = (config.plain_experiments.get(one) for one in table.experiments)
            rows = dict.fromkeys(system for entry in shown if entry for system in entry.systems)
            config.tables[name] = table.model_copy(update={"systems": tuple(rows)})


def _differing(config: Config, entry: Experiment, added: Iterable[str]) -> tuple[str, ...]:
    """An experiment's systems, and those of these that have other settings on its corpus than all before."""
    systems: dict[Any, str] = {}  # the settings in all directions → the system
    for name in (*entry.systems, *added):
        try:
            runs = (config.run_settings(entry.corpus, direction, name) for direction in entry.directions)
            settings: Any = tuple(run.model_dump_json() for run in runs)
        except ValueError:  # that does not fit: `check` says why
            settings = name
        systems.setdefault(settings, name)
    return tuple(dict.fromkeys((*entry.systems, *systems.values())))


def _kept_options(options: dict[str, dict[str, Any]], sweep: Sweep) -> dict[str, dict[str, Any]]:
    """A corpus' options for the first system of a sweep, by direction, without the swept one.

    They override a system's own: the swept option would override each value of the sweep. If the guide itself
    is swept, none are kept.
    """
    if sweep.setting == "guide":
        return {}
    swept = sweep.setting.removeprefix("options.")
    return {way: {key: values[key] for key in values if key != swept} for way, values in options.items()}


def _swept(first: str, system: System, sweep: Sweep, path: tuple) -> dict[str, System]:
    *outer, last = sweep.setting.split(".")
    if sweep.setting == "label":
        raise Fault((*path, "setting"), "a label changes no training; sweep another setting")
    known = option_names(system.options_class)
    if sweep.setting in known and sweep.setting not in System.model_fields:
        raise Fault((*path, "setting"), f"an option of the guide: write options.{sweep.setting}")
    if outer[:1] == ["options"] and not known:
        fault = f"the guide of the first system, {first!r}, has no options; put one first that has"
        raise Fault((*path, "setting"), fault)
    stem, systems = "-".join([first, *sweep.setting.removeprefix("options.").split(".")]), {}
    for value in sweep.values:
        text, changed = str(value).lower(), {last: value}
        for section in reversed(outer):
            changed = {section: changed}
        changed["label"] = f"{system.label or first}, {last} {text}"
        whole = merge(system.model_dump(exclude_unset=True), changed)
        with at(*path):
            systems[f"{stem}-{text}".replace("_", "-")] = validate(System, whole)
    return systems
