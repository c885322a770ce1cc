# The configuration, and short names for what rules ask of the library (src/synmask/pipeline/workflow).
import glob
import os
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from inspect import signature

from synmask.pipeline.config.base import Fault, merge
from synmask.pipeline.config.schema import as_json
from synmask.pipeline.config.sections import SPLITS
from synmask.pipeline.config.loading import load, project_files, read_all, read_published, user_error
from synmask.pipeline.config.sections import DEMO_LANGUAGES
from synmask.pipeline.config.yaml_source import of_command_line
from synmask.pipeline.files import UserError
from synmask.pipeline.languages import DIRECTION, LANGUAGE
from synmask.pipeline.paths import *  # RUN and the other folders
from synmask.pipeline.workflow import compat_slurm, records, slurm
from synmask.pipeline.tasks import SUBMISSION
from synmask.pipeline.workflow.jobs import MODEL, PARSES, VOCABULARY, Jobs, for_attempt
from synmask.pipeline.workflow.planned import Planned
from synmask.pipeline.workflow.targets import Targets

os.environ.setdefault("PYTHONUNBUFFERED", "1")  # progress lines reach the logs at once
os.environ.setdefault("PYTHONFAULTHANDLER", "1")  # a crash, such as SIGBUS, says in the log where it came

# Each overrides those before it.
FILES = [*project_files(), *workflow.overwrite_configfiles]
FILES = [str(path).removeprefix(f"{os.getcwd()}/") for path in FILES]


@contextmanager
def ending_in_one_line():
    """End with a fault that the user can fix."""
    try:
        yield
    except UserError as error:
        sys.exit(str(error))


with ending_in_one_line():
    # read here, and not by `configfile:`, which reads YAML 1.1: 010 as eight
    VALUES = merge(read_all(FILES), of_command_line(workflow.config_settings.config))
    CONFIG = load(VALUES)
    PUBLISHED = read_published(CONFIG.published)
workflow.configfiles.extend(project_files())  # for `--report`, and archives of the workflow


def is_there(path):
    """Whether a file is there, in a storage too: Snakemake asks that in a loop of its own, so in another thread."""
    if workflow.storage_settings.default_storage_provider is None:
        return os.path.exists(path)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: exists(path)).result()


if workflow.is_main_process:
    compat_slurm.adopt()
elif "SLURM_JOB_ID" in os.environ and slurm.setup():
    shell.prefix(slurm.setup())

JOBS = Jobs(CONFIG)
TARGETS = Targets(CONFIG, PUBLISHED, is_there)
PLANNED = Planned(workflow, JOBS, VALUES)
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


def given(method, *args, **kwargs):
    """A function of the wildcards alone: a method of JOBS with the rest of its arguments."""

    def function(wildcards):
        return method(wildcards, *args, **kwargs)

    function.__signature__ = OF_WILDCARDS
    return function


# Snakemake asks for a function's signature several times in each job: a tenth of its time for large targets.
OF_WILDCARDS = signature(lambda wildcards: None)


def by_attempt(amount):
    """An amount of memory or minutes that further attempts ask for two and three times."""
    return lambda wildcards, attempt: for_attempt(amount(wildcards) if callable(amount) else amount, attempt)


def preparing(rule):
    """Minutes and memory of a step that prepares text."""
    return {
        "runtime": by_attempt(given(JOBS.preparing_minutes, rule)),
        "mem_mb": by_attempt(given(JOBS.preparing_memory, rule)),
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
    "cpus_per_task": given(JOBS.resource, "threads"),
    "mem_mb": by_attempt(given(JOBS.resource, "mem_mb")),
    "runtime": given(JOBS.resource, "runtime"),
    "gpu": given(JOBS.resource, "gpus"),
    # a resource, not a parameter: the time between checkpoints must not rerun later steps
    "checkpoint_minutes": given(JOBS.resource, "checkpoint_minutes"),
    "tensorboard": given(JOBS.resource, "tensorboard"),
    "any_code": int(CONFIG.any_code),
}


def gold_trees(wildcards):
    [run, *_] = runs(wildcards)
    return JOBS.data.gold_trees(run.corpus, "valid", run.source)


# Resources of the steps that use a model.
USING = {
    "cpus_per_task": given(JOBS.resource, "threads"),
    "mem_mb": by_attempt(given(JOBS.resource, "mem_mb")),
    "gpu": lambda wildcards: min(1, JOBS.resource(wildcards, "gpus")),
}


def submitted(kind):
    """This file of a system's answers to each test set of GLUE, in the order of its server."""
    return [BENCHMARK / f"{task}/{{system}}/test/{part}.{kind}" for task, part in SUBMISSION.values()]


def submissions(table, wildcards):
    """The zips for GLUE's server of a table's systems."""
    with ending_in_one_line():
        return TARGETS.submissions(table)


def check_free(target):
    """Stop when a rule has the name of an experiment or table."""
    if workflow.is_rule(target):
        section = "experiments" if target in CONFIG.experiments else "tables"
        fault = Fault((section, target), "a rule has this name; take another")
        sys.exit(str(user_error(fault, VALUES)))


def shown(path, caption, category, of, **labels):
    """A file that stands in Snakemake's report, with a caption from workflow/report/ and labels."""
    return report(path, caption=f"../report/{caption}.rst", category=category, subcategory=of, labels=labels)


def captioned(name, figure, of="{experiment}-{direction}"):
    """The three files of the figure `name`; the SVG stands in Snakemake's report."""
    stem = f"{FIGURES}/{of}-{name}"
    svg = shown(f"{stem}.svg", name, "Figures", of.partition("-")[0], figure=figure)
    return {"svg": svg, "pdf": f"{stem}.pdf", "csv": f"{stem}.csv"}


def folder_of(kind):
    """The folder of a job's first input or output file, for `params`."""
    if kind == "input":
        return lambda wildcards, input: os.path.dirname(input[0])
    return lambda wildcards, output: os.path.dirname(output[0])


def stem(wildcards, output):
    """A job's first output file without its ending, for `params`."""
    return os.path.splitext(output[0])[0]


def option(flag, value):
    """An option of the command line, quoted; nothing where there is no value."""
    return f"--{flag} {shlex.quote(str(value))}" if value is not None else ""


def lowercase(wildcards):
    return "--lowercase" if JOBS.corpus(wildcards).text.lowercase else ""


def named_sets(wildcards, input):
    """The options that name the sets of a corpus' test set, if it has several."""
    names = JOBS.corpus(wildcards).test_sets
    return f"--sets {shlex.join(names)} --set-files {shlex.join(input.sets)}" if names else ""


# For figures: files of an experiment's runs, by the wildcards `experiment` and, of some, `direction`.


def runs(wildcards, induced=None):
    return TARGETS.runs(wildcards.experiment, wildcards.get("direction"), induced)


def run_files(*names, induced=None):
    return lambda wildcards: TARGETS.files(runs(wildcards, induced), *names)


def first_runs(wildcards, induced="distances"):
    """The run with the first seed of each system."""
    return TARGETS.first_runs(wildcards.experiment, wildcards.direction, induced)


def last_with_heads(wildcards):
    return first_runs(wildcards, "heads")[-1]


def system_labels(wildcards, induced=None):
    return as_json(TARGETS.labels(run.system for run in runs(wildcards, induced)))
