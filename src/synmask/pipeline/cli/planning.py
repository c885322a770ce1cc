"""Verbs that plan: the needs of a target, the settings of a run."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from synmask.pipeline.arguments import Whole
from synmask.pipeline.config.blame import place
from synmask.pipeline.config.loading import check_named, laid_over
from synmask.pipeline.config.schema import Config, as_json
from synmask.pipeline.files import UserError


def plan(
    *target: str,
    configfile: tuple[Path, ...] = (),
    gpus: Annotated[Whole, Field(ge=1, le=100000)] = 1,
) -> None:
    """Estimate what a target needs before it runs: trainings, parameters, hours, memory and disk.

    `~` marks estimates: of parameters, before the vocabulary exists; of hours, from the speed of named
    machines, before trainings of your own have run. `snakemake -n` gives the same hours.

    For example: `synmask plan demo --gpus 4`, `synmask plan mine --configfile mine.yaml`

    Args:
        target: Experiments and tables of the configuration; default: its targets.
        configfile: Your own files; each overrides config.yaml and the files before it. Words after them
            without a dot are targets.
        gpus: Also give the hours on this many GPUs.
    """
    from synmask.pipeline.translation import plan as planning

    target = (*target, *(str(path) for path in configfile if not path.suffix))
    with _configured(target, [path for path in configfile if path.suffix]) as (config, targets, _):
        rows = planning.plan(config, targets)
        for line in [*planning.lines(rows, gpus), *planning.parsing_lines(config, targets)]:
            print(line)


def doctor(
    *target: str,
    configfile: tuple[Path, ...] = (),
    profile: Literal["default", "slurm"] = "default",
    job: bool = False,
) -> None:
    """Check whether this machine has what a target needs: one line per check, good or what to do.

    With `--profile slurm`, also whether the cluster takes jobs with the settings of slurm.local.yaml.
    The exit code is 1 if something is missing.

    For example: `synmask doctor demo --profile slurm --job`

    Args:
        target: Experiments and tables of the configuration; default: its targets.
        configfile: Your own files; each overrides config.yaml and the files before it.
        profile: The profile of Snakemake that you will use.
        job: Also run a job of some seconds, to see whether the nodes have this folder.
    """
    from synmask.pipeline.config.loading import read_published
    from synmask.pipeline.translation import plan as planning
    from synmask.pipeline.workflow import doctor, slurm
    from synmask.pipeline.workflow.targets import Targets

    with _configured(target, configfile) as (config, targets, is_set_in):
        named = Targets(config, read_published(config.published))
        downloads = sorted({path for name in targets for path in named.downloads(name)})
        site = slurm.read_site() if profile == "slurm" else None
        trainings = [
            doctor.Training(config.resources_of(*entry), partial(is_set_in, config.resources_key(*entry)))
            for entry in planning.trained(config, targets)
        ]
        found = [
            *doctor.check(config, downloads, site, trainings, job=job),
            planning.disk(planning.plan(config, targets)),
        ]
        for good, words in found:
            print("good  " if good else "TO DO ", words)
        if not all(good for good, _ in found):
            sys.exit(1)


@contextlib.contextmanager
def _configured(
    target: Sequence[str], configfiles: Iterable[Path]
) -> Iterator[tuple[Config, Sequence[str], Callable[[tuple[str, ...], str], str]]]:
    """The configuration, its targets (by default its own), and where a key of a section is set.

    The current folder is the checkout meanwhile.

    Raises:
        UserError: a target is not in the configuration (with the nearest).
    """
    from synmask.pipeline.workflow.terminal import similar

    configfiles = [path.absolute() for path in configfiles]
    with contextlib.chdir(_checkout(Path.cwd())):
        config, values, files = laid_over(Path(os.path.relpath(path)) for path in configfiles)
        for name in target:
            if name not in config.named_targets:
                near = similar(name, config.named_targets)
                raise UserError(f"{files[-1]}: no experiment or table {name!r}; {near}")
        yield config, target or config.targets, lambda section, key: place((*section, key), values, files)


def _checkout(folder: Path) -> Path:
    """The nearest folder with config.yaml and workflow/: `folder` or one above it.

    Raises:
        UserError: there is none.
    """
    for parent in (folder, *folder.parents):
        if (parent / "config.yaml").is_file() and (parent / "workflow/rules").is_dir():
            return parent
    raise UserError(
        f"{folder}: not inside a checkout of synmask (with config.yaml and workflow/); cd into one"
    )


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
