# The configuration, and short names for what rules ask of the library (src/synmask/pipeline/workflow).
import glob
import os
import sys
from functools import partial

from synmask.pipeline import runs
from synmask.pipeline.config.base import FUNCTION
from synmask.pipeline.config.loading import load_project, project_files
from synmask.pipeline.config.schema import as_json
from synmask.pipeline.errors import exit_on_user_error
from synmask.pipeline.files import SPLITS
from synmask.pipeline.languages import DIRECTION, LANGUAGE
from synmask.pipeline.paths import *  # RUN and the other folders
from synmask.pipeline.workflow import compat_slurm, slurm, sources, terminal
from synmask.pipeline.workflow.jobs import MODEL, VOCABULARY, Jobs, as_options, by_attempt
from synmask.pipeline.workflow.planned import Planned
from synmask.pipeline.workflow.targets import Targets, existence

os.environ.setdefault("PYTHONUNBUFFERED", "1")  # progress lines reach the logs at once
os.environ.setdefault("PYTHONFAULTHANDLER", "1")  # a crash, such as SIGBUS, says in the log where it came

# read here, and not by `configfile:`, which reads YAML 1.1: 010 as eight
files = [str(path).removeprefix(f"{os.getcwd()}/") for path in workflow.overwrite_configfiles]
with exit_on_user_error():
    CONFIG, VALUES, _ = load_project(files, workflow.config_settings.config)
workflow.configfiles.extend(project_files())  # for `--report`, and archives of the workflow


if workflow.is_main_process:
    compat_slurm.adopt()
elif "SLURM_JOB_ID" in os.environ and slurm.setup():
    shell.prefix(slurm.setup())

JOBS = Jobs(CONFIG)
TARGETS = Targets(CONFIG, existence(workflow, exists))
PLANNED = terminal.planned = Planned(workflow, JOBS, VALUES)
TRAINING_SPLITS = ("train", "valid")  # the splits that training reads
SCORED_SPLITS = ("valid", "test")  # those that are translated and scored
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


@exit_on_user_error()
def job(wildcards):
    """All that depends on the wildcards of a job."""
    return JOBS(wildcards)


def code(verb, **kwargs):
    return lambda w: job(w).code(verb, **kwargs)


def settings(rule):
    """The settings of a rule's trainings."""
    return lambda w: JOBS.settings(runs.training(rule, dict(w.items())))


def train_command(command):
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
TRAINING_RESOURCES = {
    "cpus_per_task": lambda w: job(w).resources.threads,
    "mem_mb": by_attempt(lambda w: job(w).resources.mem_mb),
    "runtime": lambda w: job(w).resources.runtime,
    "gpu": lambda w: job(w).gpus(),
    "nodes": lambda w: job(w).on_nodes().get("nodes"),
    "tasks": lambda w: job(w).on_nodes().get("tasks"),
    "tasks_per_gpu": lambda w: job(w).on_nodes().get("tasks_per_gpu"),
    "mpi": lambda w: job(w).on_nodes().get("mpi"),
    # a resource, not a parameter: the time between checkpoints must not rerun later steps
    "checkpoint_minutes": lambda w: job(w).resources.checkpoint_minutes,
    "tensorboard": lambda w: int(job(w).resources.tensorboard),
    "any_code": int(CONFIG.any_code),
}


# Resources of the steps that use a model.
INFERENCE_RESOURCES = {
    "cpus_per_task": lambda w: job(w).resources.threads,
    "mem_mb": by_attempt(lambda w: job(w).resources.mem_mb),
    "gpu": lambda w: min(1, job(w).resources.gpus),
}


@exit_on_user_error()
def gold(wildcards):
    """The gold trees, and perhaps heads, with which a run's trees are compared."""
    return job(wildcards).gold()


@exit_on_user_error()
def listed(files, wildcards):
    """The files of a target, by its entry in `Targets.by_name`."""
    return files()


def reported(path, caption, group="{experiment}", **label):
    """A table or figure that `snakemake --report` shows, with its caption, group and label."""
    category = "Tables" if "table" in label else "Figures"
    return report(path, f"../report/{caption}.rst", category, group, label)
