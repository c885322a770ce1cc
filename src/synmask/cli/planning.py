"""What a target will take."""

from pathlib import Path

from synmask.cli.options import ConfigFile
from synmask.files import UserError


def plan(*target: str, config: ConfigFile = Path("config.yaml"), force: bool = False) -> None:
    """Say what a target will take before it runs: trainings, parameters, hours and disk.

    Of language understanding it says how many fine-tunings there are, and the hours of parsing; and whether
    there is space for it all. Hours are measured, not guessed: they are known for a system on a corpus once
    one of its trainings has run. `~` marks parameters that are estimated, for want of a vocabulary.

    For example: `synmask plan demo`, `synmask plan paper --config mine.yaml`, and for a larger machine than
    this one `synmask plan iwslt14 multi30k --force`

    Args:
        target: Experiments and tables of the configuration; default: its targets.
        force: Plan models, too, that do not fit into memory or onto the disk.
    """
    from synmask.config import Fault, check_sweeps, fault, load, read_yaml
    from synmask.config.machine import check_size
    from synmask.engine.plan import finetuning_lines, finetunings, lines, parsing_lines
    from synmask.engine.plan import plan as rows_of

    values = read_yaml(config)
    checked = load(values, [config])
    targets = target or checked.targets
    for name in targets:
        if name not in {**checked.experiments, **checked.all_tables}:
            known = ", ".join([*checked.experiments, *checked.tables])
            raise UserError(f"{config}: no experiment or table {name!r}; there are: {known}")
    try:
        check_sweeps(checked, [one for name in targets for one in checked.members(name)])
        for experiment in (one for name in targets if not force for one in checked.members(name)):
            check_size(checked, experiment)
    except Fault as found:
        raise fault(found.path, str(found), values, [config]) from None
    rows, tuned = rows_of(checked, targets), finetunings(checked, targets)
    for line in [*(lines(rows) if rows else ()), *parsing_lines(checked, targets), *finetuning_lines(tuned)]:
        print(line)


def settings(*, config: ConfigFile = Path("config.yaml"), corpus: str, direction: str, system: str) -> None:
    """Print the settings of a run as JSON, for --settings of `train`.

    For example: `synmask settings --corpus demo --direction de-en --system grammar`

    Args:
        corpus: A corpus of the configuration.
        direction: Source-target.
        system: A system of the configuration.
    """
    from synmask.config import load, read_yaml

    checked = load(read_yaml(config), [config])
    for kind, name in (("corpora", corpus), ("systems", system)):
        if name not in getattr(checked, kind):
            raise UserError(f"{config}: no {name!r} among the {kind}: {', '.join(getattr(checked, kind))}")
    print(checked.run_settings(corpus, direction, system))
