"""What a target will take."""

import argparse
from pathlib import Path

from synmask.cli.options import Arguments, add
from synmask.files import UserError


def add_verbs(verbs: argparse._SubParsersAction) -> None:
    option = add(
        verbs,
        "plan",
        _plan,
        "Say what a target will take before it runs: trainings, parameters, hours and disk, and whether "
        "there is space for it; of language understanding how many fine-tunings, and the hours of parsing.",
        "Hours are measured, not guessed: they are known for a system on a corpus once one of its trainings "
        "has run. `~` marks parameters that are estimated, because the corpus has no vocabulary yet.",
    )
    option("TARGET", "experiments and tables of the configuration; default: its targets", nargs="*")
    option("config", "configuration file", default=Path("config.yaml"))
    option("force", "plan models, too, that do not fit into memory or onto the disk", action="store_true")


def _plan(a: Arguments) -> None:
    from synmask.config import Fault, check_sweeps, fault, load, read_yaml
    from synmask.config.machine import check_size
    from synmask.engine.plan import finetuning_lines, finetunings, lines, parsing_lines, plan

    values = read_yaml(a.config)
    config = load(values, [a.config])
    targets = a.target or config.targets
    for target in targets:
        if target not in {**config.experiments, **config.all_tables}:
            known = ", ".join([*config.experiments, *config.tables])
            raise UserError(f"{a.config}: no experiment or table {target!r}; there are: {known}")
    try:
        check_sweeps(config, [name for target in targets for name in config.members(target)])
        for experiment in (name for target in targets if not a.force for name in config.members(target)):
            check_size(config, experiment)
    except Fault as found:
        raise fault(found.path, str(found), values, [a.config]) from None
    rows, tuned = plan(config, targets), finetunings(config, targets)
    for line in [*(lines(rows) if rows else ()), *parsing_lines(config, targets), *finetuning_lines(tuned)]:
        print(line)
