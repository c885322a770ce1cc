# The configuration, and short names for what rules ask of the library (src/synmask/pipeline/workflow).
import glob
import os
import sys
from contextlib import contextmanager
from functools import partial

from synmask.pipeline.config.base import FUNCTION, merge
from synmask.pipeline.config.schema import as_json
from synmask.pipeline.config.loading import load, project_files, read_all, read_published
from synmask.pipeline.files import SPLITS
from synmask.pipeline.config.yaml_source import of_command_line
from synmask.pipeline.errors import UserError
from synmask.pipeline.languages import DIRECTION, LANGUAGE
from synmask.pipeline.tasks import GLUE
from synmask.pipeline.paths import *  # RUN and the other folders
from synmask.pipeline.runs import training as training_of, tuning_seeds
from synmask.pipeline.workflow import compat_slurm, slurm, sources, terminal
from synmask.pipeline.workflow.jobs import MODEL, VOCABULARY, Jobs, as_options, for_attempt
from synmask.pipeline.workflow.planned import Planned
from synmask.pipeline.workflow.targets import Targets, seen_by

os.environ.setdefault("PYTHONUNBUFFERED", "1")  # progress lines reach the logs at once
os.environ.setdefault("PYTHONFAULTHANDLER", "1")  # a crash, such as SIGBUS, says in the log where it came


@contextmanager
def ending_in_one_line():
    """End with a fault that the user can fix."""
    try:
        yield
    except UserError as error:
        sys.exit(str(error))


with ending_in_one_line():
    # read here, and not by `configfile:`, which reads YAML 1.1: 010 as eight
    files = [*project_files(), *workflow.overwrite_configfiles]  # each overrides those before it
    files = [str(path).removeprefix(f"{os.getcwd()}/") for path in files]
    VALUES = merge(read_all(files), of_command_line(workflow.config_settings.config))
    CONFIG = load(VALUES)
    PUBLISHED = read_published(CONFIG.published)
workflow.configfiles.extend(project_files())  # for `--report`, and archives of the workflow


if workflow.is_main_process:
    compat_slurm.adopt()
elif "SLURM_JOB_ID" in os.environ and slurm.setup():
    shell.prefix(slurm.setup())

JOBS = Jobs(CONFIG)
TARGETS = Targets(CONFIG, PUBLISHED, seen_by(workflow, exists))
PLANNED = terminal.planned = Planned(workflow, JOBS, VALUES)
TRAINED = ("train", "valid")  # the splits that training reads
DECODED = ("valid", "test")  # those that are translated and scored
SIDES = ("{source}", "{target}")
each = partial(expand, allow_missing=True)  # these wildcards, and leave the others


wildcard_constraints:
    corpus=any_of(CONFIG.corpora),
    source=LANGUAGE,
    target=LANGUAGE,
    first=LANGUAGE,
    second=LANGUAGE,
    language=LANGUAGE,
    split=any_of(SPLITS),
    system=any_of(CONFIG.systems),
    seed=SEED,
    experiment=any_of(CONFIG.plain_experiments),
    table=any_of(TARGETS.tables),
    direction=DIRECTION,
    page=f"report|report-({any_of([*CONFIG.experiments, *TARGETS.benchmark_tables])})",
    weights=any_of(CONFIG.weights),
    benchmark=any_of(CONFIG.benchmarks),
    task=any_of({task for entry in CONFIG.benchmarks.values() for task in entry.tasks}),
    part="[a-z_]+",
    number="((dev|test)-)?[0-9]+",
    metric=f"ter|{FUNCTION}",


def job(wildcards):
    """All that depends on the wildcards of a job."""
    return JOBS(wildcards)


def code(verb, **kwargs):
    return lambda w: job(w).code(verb, **kwargs)


def settings(rule):
    """The settings of a rule's trainings."""
    return lambda w: JOBS.settings(training_of(rule, dict(w.items())))


def resource(name):
    return lambda w: job(w).resource(name)


def on_nodes(name):
    return lambda w: job(w).on_nodes().get(name)


def by_attempt(amount):
    """An amount of memory or minutes that further attempts ask for two and three times."""
    return lambda wildcards, attempt: for_attempt(amount(wildcards) if callable(amount) else amount, attempt)


def preparing(rule):
    """Minutes and memory of a step that prepares text."""
    return {
        "runtime": by_attempt(lambda w: job(w).preparing_minutes(rule)),
        "mem_mb": by_attempt(lambda w: job(w).preparing_memory(rule)),
    }


def training(command):
    """The shell command of a training: with the options that all trainings share (`arguments.TrainingOptions`).

    On SIGTERM, which a scheduler sends to every process of a job, a training saves and exits with 75: bash waits.
    """
    return (
        f"trap : TERM HUP XCPU; {command}"
        " --code {params.code} --threads {resources.cpus_per_task} --gpus {resources.gpu}"
        " --checkpoint-minutes {resources.checkpoint_minutes} --tensorboard {resources.tensorboard}"
        " --again {resources.again} --any-code {resources.any_code} >> {log:q} 2>&1"
    )


# Resources of a training. It uses `cpus_per_task`, not `threads`, which Snakemake reduces to the available cores:
# another number of threads gives other bytes.
TRAINING = {
    "cpus_per_task": resource("threads"),
    "mem_mb": by_attempt(resource("mem_mb")),
    "runtime": resource("runtime"),
    "gpu": lambda w: job(w).gpus(),
    **{name: on_nodes(name) for name in ("nodes", "tasks", "tasks_per_gpu", "mpi")},
    # a resource, not a parameter: the time between checkpoints must not rerun later steps
    "checkpoint_minutes": resource("checkpoint_minutes"),
    "tensorboard": resource("tensorboard"),
    "any_code": int(CONFIG.any_code),
}


# Resources of the steps that use a model.
USING = {
    "cpus_per_task": resource("threads"),
    "mem_mb": by_attempt(resource("mem_mb")),
    "gpu": lambda w: min(1, job(w).resource("gpus")),
}


def submissions(table, wildcards):
    """The zips for GLUE's server of a table's systems."""
    with ending_in_one_line():
        return TARGETS.submissions(table)


def shown(path, caption, category, of, **labels):
    """A file that stands in Snakemake's report, with a caption from workflow/report/ and labels."""
    return report(path, caption=f"../report/{caption}.rst", category=category, subcategory=of, labels=labels)


def captioned(name, figure, of="{experiment}-{direction}"):
    """The three files of the figure `name`; the SVG stands in Snakemake's report."""
    stem = f"{FIGURES}/{of}-{name}"
    svg = shown(f"{stem}.svg", name, "Figures", of.partition("-")[0], figure=figure)
    return {"svg": svg, "pdf": f"{stem}.pdf", "csv": f"{stem}.csv"}


# For figures: files of an experiment's runs, by the wildcards `experiment` and, of some, `direction`.


def runs(wildcards, induced=None):
    return TARGETS.runs(wildcards.experiment, wildcards.get("direction"), induced)


def run_files(*names, induced=None):
    return lambda w: TARGETS.files(runs(w, induced), *names)


def first_runs(wildcards, induced="distances"):
    """The run with the first seed of each system."""
    return TARGETS.first_runs(wildcards.experiment, wildcards.direction, induced)
