"""The facts on the jobs that Snakemake has planned: hours, half-done trainings, downloads, reasons."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

from synmask.pipeline.config.base import Fault
from synmask.pipeline.config.loading import key_in_file, user_error
from synmask.pipeline.display import count_of_jobs
from synmask.pipeline.errors import UserError
from synmask.pipeline.runs import TRAININGS, Training, training
from synmask.pipeline.workflow import compat_slurm, half_done, hours, reasons, slurm
from synmask.pipeline.workflow.jobs import Jobs, Wildcards
from synmask.pipeline.workflow.targets import licensed

FORCED = "SYNMASK_FORCED"  # an environment variable


class Planned:
    """The jobs of a workflow that are to be run.

    Args:
        workflow: Snakemake's.
        jobs: parameters of jobs.
        values: the values of all files of the configuration.
    """

    def __init__(self, workflow: Any, jobs: Jobs, values: Mapping[str, Any]) -> None:
        self.workflow, self.jobs, self.config, self.values = workflow, jobs, jobs.config, values

    def check_free(self, target: str) -> None:
        """Stop when a rule has the name of an experiment or table."""
        if self.workflow.is_rule(target):
            section = "experiments" if target in self.config.experiments else "tables"
            fault = Fault((section, target), "a rule has this name; take another")
            sys.exit(str(user_error(fault, self.values)))

    @property
    def targets(self) -> list[str]:
        """The names that can be built."""
        return [rule.name for rule in self.workflow.rules if not rule.has_wildcards()]

    @property
    def on_slurm(self) -> bool:
        """Whether jobs go to SLURM, by the fixed plugin."""
        return compat_slurm.is_adopted(self.workflow.executor_plugin.executor)

    def dry_run_lines(self, counts: Mapping[str, int]) -> Iterator[str]:
        """The lines of a dry run: jobs per rule, trainings, hours, reasons to run again, SLURM's jobs."""
        width = max(map(len, counts), default=0)
        yield from (f"{rule.ljust(width)}  {count:>7,}" for rule, count in counts.items())
        yield from self.expected_work(counts)
        yield from reasons.grouped(self.workflow.dag, self.jobs)
        yield from self.notices()
        yield from slurm.table(self.workflow)
        yield "This was a dry run: nothing was done. -np also shows each job, its reason and its command."

    def expected_work(self, counts: Mapping[str, int]) -> Iterator[str]:
        """The lines on the jobs to be run: their number, trainings, hours."""
        yield count_of_jobs(sum(counts.values()), sum(counts.get(rule, 0) for rule in TRAININGS))
        try:
            if words := hours.total(map(hours.Estimator(self.config).hours, self._trainings())):
                yield f"{words}: see synmask plan"
        except UserError as error:
            yield f"hours unknown: {error}"

    def notices(self) -> Iterator[str]:
        """The lines of a dry run on what to decide, or to do, before the start."""
        downloads = [job.output[0] for job in self._to_run("download_file")]
        lines = self.half_done(), self.uneven_gpus(), licensed(self.config, downloads), self.unrecorded()
        yield from filter(None, lines)

    def _to_run(self, *rules: str) -> list[Any]:
        """The jobs to be run, or those of some rules; a list, since a thread asks while jobs start."""
        jobs = self.workflow.dag.needrun_jobs(exclude_finished=False)
        return [job for job in jobs if not rules or job.rule.name in rules]

    def _trainings(self) -> list[Training]:
        return [training(job.rule.name, job.wildcards_dict) for job in self._to_run(*TRAININGS)]

    def half_done(self) -> str:
        """Trainings that other code has half done, in one line."""
        return half_done.line(self.jobs, self._trainings())

    def uneven_gpus(self) -> str:
        """Trainings whose GPUs cannot share an update evenly, in one line."""
        return self.jobs.uneven_gpus(self._trainings())

    def check_nodes(self) -> None:
        """Stop before a training on several nodes that cannot start."""
        if not any(self.jobs(job.wildcards).resources.nodes > 1 for job in self._to_run(*TRAININGS)):
            return
        if not self.on_slurm:
            plugin = f"snakemake-executor-plugin-slurm {compat_slurm.TRIED}"
            sys.exit(f"resources.nodes: several nodes of one training need --profile slurm, and {plugin}")
        if fault := self.uneven_gpus():
            sys.exit(fault)

    def because(self, number: int) -> str:
        """Why the job with this number runs again."""
        job = self._numbered.get(number)
        return reasons.because(self.workflow.dag, job, self.jobs) if job else ""

    @cached_property
    def _numbered(self) -> dict[int, Any]:
        return {job.jobid: job for job in self._to_run()}

    def unrecorded(self) -> str:
        """Finished jobs without a record, in one line."""
        return reasons.unrecorded(self.workflow.dag)

    def key_to_change(self, wildcards: Wildcards, name: str) -> str:
        """The key of a job's resource, and the file that sets it."""
        return key_in_file((*self.config.resources_key(wildcards), name), self.values)

    def again(self, rule: str) -> Callable[[Wildcards], int]:
        """1 for a training that the user forces: by its rule, by one of its files, or with everything."""

        def again(wildcards: Wildcards) -> int:
            run = training(rule, dict(wildcards.items())).folder
            return int(bool({rule, "*"} & {*self._forced}) or run in map(os.path.dirname, self._forced))

        return again

    @cached_property
    def _forced(self) -> list[str]:
        """The rules and files that the user forces, "*" for all; Snakemake does not tell them to jobs."""
        if self.workflow.is_main_process:
            dag = self.workflow.dag_settings
            names = [*dag.forcerun, *(dag.targets if dag.forcetargets else ()), *["*"] * dag.forceall]
            os.environ[FORCED] = "\n".join(names)
        return os.environ.get(FORCED, "").split("\n")
